/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which provider of encryption this process uses, and when it is chosen.
 *
 *     MPI_Init --start--> chosen now, or waiting
 *     first session or group key --needed--> chosen now, if it was waiting
 *
 * A provider's library costs as much to load and test as everything else that
 * is done for this process in MPI_Init; records do not name it.  So `auto` may
 * wait until there is something to seal with (opal_aead_base_may_wait).  Under
 * MPI_THREAD_MULTIPLE it never does: Open MPI's frameworks are not to be opened
 * by one thread while another may open, or ask for, others.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"


#include "opal/mca/aead/base/base.h"

static bool framework_open, waiting;

static int choose(bool late)
{
    opal_crypt_options_t *options = &ompi_common_cryptmpi_params.options;
    static const char file[] = "help-opal-aead-base.txt";
    opal_aead_why_t why = {0};
    char text[OMPI_COMMON_CRYPTMPI_ON_NODE_BYTES];
    int rc = opal_aead_base_open_and_select(options->cipher, options->fips, &options->aead, &why);

    framework_open = mca_base_framework_is_open(&opal_aead_base_framework);
    if (NULL != why.topic && late && OMPI_SUCCESS != rc) {
        ompi_common_cryptmpi_show_here(file, why.topic, ompi_common_cryptmpi_on_node(why.detail, text));    /* the others may not get here */
    } else if (NULL != why.topic) {
        OMPI_COMMON_CRYPTMPI_SHOW(file, why.topic, ompi_common_cryptmpi_on_node(why.detail, text));
    }
    if (NULL != options->aead) {
        opal_output_verbose(OMPI_COMMON_CRYPTMPI_SAY_PEERS, ompi_common_cryptmpi_stream, "pml:crypt: provider %s (%s)",
                            options->aead->name, options->aead->version());
    }
    return rc;
}

int ompi_common_cryptmpi_provider_start(void)
{
    opal_crypt_options_t *options = &ompi_common_cryptmpi_params.options;

    options->aead = NULL;
    waiting = !ompi_common_cryptmpi_threaded() && opal_aead_base_may_wait(options->cipher, options->fips);
    return waiting ? OMPI_SUCCESS : choose(false);
}

int ompi_common_cryptmpi_provider_needed(void)
{
    opal_crypt_options_t *options = &ompi_common_cryptmpi_params.options;

    if (waiting) {
        waiting = false;
        if (OMPI_SUCCESS != choose(true)) {
            options->aead = NULL;
        }
        opal_crypt_local_provide(ompi_common_cryptmpi_local(), options->aead);
    }
    return NULL != options->aead ? OMPI_SUCCESS : OMPI_ERR_NOT_AVAILABLE;
}

void ompi_common_cryptmpi_provider_stop(void)
{
    if (framework_open) {
        mca_base_framework_close(&opal_aead_base_framework);
        framework_open = false;
    }
    ompi_common_cryptmpi_params.options.aead = NULL;
    waiting = false;
}

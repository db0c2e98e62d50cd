/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which provider of encryption this process uses, and when it is chosen.
 *
 *     MPI_Init --start--> chosen now, or waiting
 *     first session or group key --needed--> chosen now, if it was waiting
 *
 * A provider's library costs as much to load and test as everything else that we do for this process in MPI_Init, and
 * records do not name it.  So `auto` may wait until there is something to seal (opal_aead_base_may_wait).  Under
 * MPI_THREAD_MULTIPLE it never does: one thread must not open Open MPI's frameworks while another may open or look up
 * others.
 */
#include "cryptproc.h"
#include "cryptproc_internal.h"

#include "opal/mca/aead/base/base.h"

#if OPAL_MAJOR_VERSION < 5
bool opal_cryptproc_threads = false;
#endif

static bool framework_open, waiting;

static int choose(bool late)
{
    opal_crypt_options_t *options = &opal_cryptproc_params.options;
    static const char file[] = "help-opal-aead-base.txt";
    opal_aead_why_t why = {0};
    char text[OPAL_CRYPTPROC_ON_NODE_BYTES];
    int rc = opal_aead_base_open_and_select(options->cipher, options->fips, &options->aead, &why);

    framework_open = mca_base_framework_is_open(&opal_aead_base_framework);
    if (NULL != why.topic && late && OPAL_SUCCESS != rc) {
        opal_cryptproc_show_here(file, why.topic, opal_cryptproc_on_node(why.detail, text));    /* maybe only here */
    } else if (NULL != why.topic) {
        OPAL_CRYPTPROC_SHOW(file, why.topic, opal_cryptproc_on_node(why.detail, text));
    }
    if (NULL != options->aead) {
        opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream, "pml:crypt: provider %s (%s)",
                            options->aead->name, options->aead->version());
    }
    return rc;
}

/* A build that has it has no other, whatever the parameters say, and never chooses late. */
static int choose_plaintext(opal_crypt_options_t *options)
{
    waiting = false;
    if (options->fips) {
        OPAL_CRYPTPROC_SHOW("help-opal-aead-base.txt", "not fips", options->aead->name);
        options->aead = NULL;
        return OPAL_ERR_NOT_AVAILABLE;
    }
    if (0 == OPAL_PROC_MY_NAME.vpid) {
        OPAL_CRYPTPROC_SHOW("help-opal-common-cryptproc.txt", "plaintext");
    }
    return OPAL_SUCCESS;
}

int opal_cryptproc_provider_start(void)
{
    opal_crypt_options_t *options = &opal_cryptproc_params.options;

    options->aead = opal_cryptproc_plaintext();
    if (OPAL_UNLIKELY(NULL != options->aead)) {
        return choose_plaintext(options);
    }
    waiting = !opal_cryptproc_threaded() && opal_aead_base_may_wait(options->cipher, options->fips);
    return waiting ? OPAL_SUCCESS : choose(false);
}

int opal_cryptproc_provider_needed(void)
{
    opal_crypt_options_t *options = &opal_cryptproc_params.options;

    if (waiting) {
        waiting = false;
        if (OPAL_SUCCESS != choose(true)) {
            options->aead = NULL;
        }
        opal_crypt_local_provide(opal_cryptproc_local(), options->aead);
    }
    return NULL != options->aead ? OPAL_SUCCESS : OPAL_ERR_NOT_AVAILABLE;
}

void opal_cryptproc_provider_stop(void)
{
    if (framework_open) {
        mca_base_framework_close(&opal_aead_base_framework);
        framework_open = false;
    }
    opal_cryptproc_params.options.aead = NULL;
    waiting = false;
}

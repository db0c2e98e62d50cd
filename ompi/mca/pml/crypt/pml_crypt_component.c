/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component: parameters, and how it becomes the PML.
 *
 * This is fail-closed, as we are the selected component and load the host
 * ourselves: if anything below fails there is no PML, and MPI_Init ends the job.
 *
 * ob1 and cm ask pml/base whether "ob1" was selected everywhere, while the
 * selection publishes the name of the best component.  Between the end of
 * init and enable our component therefore carries its host's name.
 */
#include "pml_crypt_host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/runtime/opal_progress.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_spelling.h"
#include "ompi/mca/pml/base/base.h"
#include "ompi/runtime/mpiruntime.h"

enum {
    LOCAL_INLINE = 4096,                /* copying more costs more than a second message */
    MTL_SEGMENT = 262144
};

static int component_register(void);
static int component_open(void);
static int component_close(void);
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads);
static int component_finalize(void);

OMPI_DECLSPEC ompi_common_cryptmpi_pml_component_t mca_pml_crypt_component = {
    .pmlm_version = {
        OMPI_COMMON_CRYPTMPI_PML_VERSION,
        .mca_component_name = "crypt",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .pmlm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .pmlm_init = component_init,
    .pmlm_finalize = component_finalize,
};

ompi_pml_crypt_state_t ompi_pml_crypt = {
    .sealing = {.lock = PTHREAD_MUTEX_INITIALIZER},
    .opening = {.lock = PTHREAD_MUTEX_INITIALIZER},
    .fetching = {.lock = PTHREAD_MUTEX_INITIALIZER},
    .landing = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static int component_register(void)
{
    ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    const opal_cryptproc_parameter_t list[] = {
        {"pml_crypt_host", &p->host},
        {"pml_crypt_chop_min", &p->chop_min},
        {"pml_crypt_chunk_size", &p->chunk_size},
        {"pml_crypt_t", &p->t},
        {"pml_crypt_team", &p->team},
    };
    const char *failed;
    int rc;

    if (!OMPI_COMMON_CRYPTMPI_SERIES_OK("pml/crypt")) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    rc = opal_cryptproc_params_register();
    rc = rc ? rc : ompi_common_cryptmpi_protection_register();
    return rc ? rc : opal_cryptproc_register(list, sizeof(list) / sizeof(list[0]), &failed);
}

/* Did the user, or the site, choose `crypt`?  Without a choice every PML is asked, and
 * being installed is no reason to encrypt: there may be no key, and users expect the
 * default.  hook/crypt checks for lists that name other PMLs, too, but may be switched off. */
static bool asked_for(void)
{
    const char **value = NULL;
    int index = mca_base_var_find("ompi", "pml", NULL, NULL);
    const bool chosen = index >= 0 && OPAL_SUCCESS == mca_base_var_get_value(index, &value, NULL, NULL) && NULL != value
                        && NULL != *value;
    const bool alone = chosen && 0 == strcmp(*value, "crypt");

    if (chosen && !alone && '^' != **value && opal_cryptproc_listed(*value, "crypt", strlen("crypt"))) {
        ompi_common_cryptmpi_refuse_list();
    }
    return alone;
}

/* osc is opened after us, and a site's settings (Debian's) may exclude osc/pt2pt,
 * the only component that sends through the PML.  A choice on the command line
 * or in the environment is left alone, and audited. */
static void prefer_osc(void)
{
#if OMPI_MAJOR_VERSION < 5
    if (NULL == getenv("OMPI_MCA_osc")) {
        (void) opal_cryptproc_setenv("OMPI_MCA_osc", "pt2pt,sm");
    }
#endif
}

static int component_open(void)
{
    if (!asked_for()) {
        return OMPI_ERR_NOT_AVAILABLE;
    }
    ompi_common_cryptmpi_spelling_check();      /* hook/crypt may be switched off */
    prefer_osc();
    opal_cryptproc_stream = opal_cryptproc_verbose_open();
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    ompi_pml_crypt_host_close();
    opal_cryptproc_verbose_close(&opal_cryptproc_stream);
    return OMPI_SUCCESS;
}

static bool bounds_hold(ompi_pml_crypt_params_t *p)
{
    if (p->chop_min < 1 || p->chop_min > OPAL_CRYPT_DIRECT_MAX || p->chunk_size < OPAL_CRYPT_CHUNK_MIN
        || p->chunk_size > OPAL_CRYPT_CHUNK_MAX) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "bad-bounds", p->chop_min, OPAL_CRYPT_DIRECT_MAX,
                            p->chunk_size, OPAL_CRYPT_CHUNK_MIN, OPAL_CRYPT_CHUNK_MAX);
        return false;
    }
    return true;
}

/* Over an MTL each segment takes a rendezvous of its own, which short ones would not be worth (docs/design/014-figures.rst).
 * Other processes may have segments of another size. */
static void fit_segments(ompi_pml_crypt_params_t *p)
{
    if (ompi_pml_crypt.mtl && !ompi_pml_crypt_is_set("ompi", "pml", "crypt", "chunk_size")) {
        p->chunk_size = MTL_SEGMENT;
    }
}

/* Adapt to the host.  How many bits of a tag it compares follows from its pml_max_tag: with cm
 * it depends on the MTL and, with libfabric, on the provider. */
static bool fit_host(const mca_pml_base_module_t *host)
{
    const char *name = ompi_pml_crypt.host_name;

    ompi_pml_crypt.mtl = 0 == strcmp(name, "cm");
    if (ompi_pml_crypt.mtl && !ompi_pml_crypt_mtl_fit()) {
        return false;
    }
    ompi_pml_crypt.sends_later = ompi_pml_crypt.mtl || 0 == strcmp(name, "ucx");
    ompi_pml_crypt.tag_bits = opal_crypt_tags_bits(host->pml_max_tag);
    if (ompi_pml_crypt.tag_bits < OPAL_CRYPT_TAG_BITS_MIN) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "host-tags", name, opal_process_info.nodename,
                            ompi_pml_crypt.tag_bits, OPAL_CRYPT_TAG_BITS_MIN);
        return false;
    }
    opal_crypt_tags_make(ompi_pml_crypt.tag_bits, &ompi_pml_crypt.tags);
    return true;
}

static void become_module_of(const mca_pml_base_module_t *host)
{
    ompi_pml_crypt.host = *host;
    if (ompi_pml_crypt.mtl) {
        ompi_pml_crypt.host.pml_send = ompi_pml_crypt_mtl_send;
    }
    ompi_pml_crypt_module.pml_progress = host->pml_progress;
    ompi_pml_crypt_module.pml_max_contextid = host->pml_max_contextid;
    ompi_pml_crypt_module.pml_max_tag = host->pml_max_tag;
    ompi_pml_crypt_module.pml_flags = host->pml_flags;
    OMPI_COMMON_CRYPTMPI_COPY_PML_EXTRAS(&ompi_pml_crypt_module, host);
}

/* NULL after a message, as below. */
static const mca_pml_base_module_t *load_host(bool progress_threads, bool mpi_threads)
{
    const mca_pml_base_module_t *host;

    ompi_pml_crypt.host_name = ompi_common_cryptmpi_transport_is_btl() ? "ob1" : ompi_pml_crypt.params.host;
    ompi_pml_crypt_limits_ucx_raise();
    host = ompi_pml_crypt_host_load(&ompi_pml_crypt.host_name, progress_threads, mpi_threads);
    ompi_pml_crypt_limits_ucx_restore(ompi_pml_crypt.host_name);
    return host;
}

/* Start with pml/crypt sealing. */
static mca_pml_base_module_t *start(const mca_pml_base_module_t *host, bool mpi_threads)
{
    ompi_pml_crypt_params_t *p = &ompi_pml_crypt.params;
    const char *agreed;

    if (ompi_pml_crypt_fault_tolerant() || !fit_host(host)) {
        return NULL;
    }
    fit_segments(p);
    if (!bounds_hold(p) || !ompi_pml_crypt_cut_start()) {
        return NULL;
    }
    ompi_pml_crypt.local_inline = LOCAL_INLINE < p->chop_min ? LOCAL_INLINE : p->chop_min;
    ompi_pml_crypt.stage_bytes = p->chop_min + OPAL_CRYPT_FIRST_OVERHEAD;
    ompi_pml_crypt.capacity_least = ompi_pml_crypt.mtl ? OMPI_PML_CRYPT_MTL_CAPACITY : 0;
    ompi_pml_crypt_find_threads(mpi_threads);
    ompi_pml_crypt_limits_raise();
    ompi_pml_crypt.eager = ompi_pml_crypt_limits_eager(p->chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD);
    become_module_of(host);
    ompi_common_cryptmpi_set_host(&ompi_pml_crypt.host, ompi_pml_crypt.host_name);
    agreed = ompi_pml_crypt_agreed();
    if ((ompi_common_cryptmpi_windows_over_btl() && !ompi_pml_crypt_windows_start(agreed, mpi_threads))
        || OMPI_SUCCESS != ompi_common_cryptmpi_start(agreed)) {
        return NULL;
    }
    opal_output_verbose(OPAL_CRYPTPROC_SAY_PEERS, opal_cryptproc_stream,
                        "pml:crypt: on %s: over %s, messages of more than %u bytes in segments (%s)", opal_process_info.nodename,
                        ompi_pml_crypt.host_name, p->chop_min, ompi_common_cryptmpi_transport_why());
    ompi_pml_crypt_status_start();
    return &ompi_pml_crypt_module;
}

/* Without a module Open MPI would report that there is no component, and look for missing
 * shared libraries: the reason has been shown, so the job ends here. */
static mca_pml_base_module_t *component_init(int *priority, bool progress_threads, bool mpi_threads)
{
    const mca_pml_base_module_t *host = NULL;
    mca_pml_base_module_t *module = NULL;

    opal_cryptproc_shared_start();
    if (ompi_common_cryptmpi_transport_begin(ompi_pml_crypt.params.host)) {
        host = load_host(progress_threads, mpi_threads);
    }
    if (NULL != host && ompi_common_cryptmpi_transport_confirm(ompi_pml_crypt.host_name)) {
        module = ompi_common_cryptmpi_transport_is_btl() ? ompi_pml_crypt_transport_start(host) : start(host, mpi_threads);
    }
    if (NULL == module) {
        ompi_mpi_abort(NULL, 1);
    }
    /* The name under which all processes must have selected us, until enable. */
    strcpy(mca_pml_crypt_component.pmlm_version.mca_component_name, ompi_pml_crypt.host_name);
    *priority = 100;
    return module;
}

static int component_finalize(void)
{
    int rc;

    if (ompi_common_cryptmpi_transport_is_btl()) {
        ompi_pml_crypt_snapshot_btl_stop();
        ompi_common_cryptmpi_waits_show(false);
    }
    ompi_pml_crypt_status_stop();
    ompi_pml_crypt_disable();
    rc = ompi_pml_crypt_host_finalize();
    ompi_pml_crypt_lists_stop();
    ompi_common_cryptmpi_set_host(NULL, NULL);
    opal_cryptproc_shared_stop();
    if (ompi_common_cryptmpi_transport_is_btl()) {
        ompi_common_cryptmpi_comms_stop();
        opal_cryptproc_stop();
    } else {
        ompi_common_cryptmpi_stop();
    }
    return rc;
}

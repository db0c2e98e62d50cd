/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the suite needs outside of its other components' functions: to set up
 * transports and guard the io framework (hook_crypt_files.c) early enough, and to
 * look at the job before MPI_Finalize begins (crypt_report).  And the error classes of files
 * (cryptmpi_classes.h) are added as soon as MPI_Init ends.  This component runs in every
 * job, even if nothing is encrypted: it checks names of parameters (cryptmpi_spelling.h),
 * and whether encryption was forgotten (hook_crypt_plain.c).
 *
 * A sealed segment costs least when it travels eagerly, and btl/tcp's limit is
 * below its size.  In Open MPI 4.1 the transports are up before the PML
 * framework opens, in 5.0 they have read their parameters; the hook framework is
 * the first that opens in both.  With `pml` = crypt over ob1 the limits are
 * therefore set here, in the environment of this process, where btl/tcp looks
 * for them, unless one of the three has been set:
 *
 *     btl_tcp_eager_limit = btl_tcp_rndv_eager_limit = btl_tcp_max_send_size = 262144
 *
 * All or none: a user's value for one may not fit our value for another.  With them,
 * btl_tcp_endpoint_cache is reduced from 30 KiB to what it takes to read a message of
 * 16 KiB at once: that many bytes of each longer one are read into this cache first,
 * and copied once more.
 *
 * Open MPI's own rules decide whether a parameter has been set (environment,
 * command line, files): we register it for a moment, ask for its source, and
 * deregister it without a trace.
 */
#include "ompi_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/mca_base_component_repository.h"
#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/btl/base/base.h"
#include "opal/mca/dl/base/base.h"
#include "ompi/mca/bml/base/base.h"
#include "ompi/mca/hook/hook.h"
#include "ompi/mca/pml/base/base.h"
#if OMPI_MAJOR_VERSION >= 5
#include "ompi/instance/instance.h"
#endif

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_pipe.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_spelling.h"

#include "hook_crypt.h"

static int component_register(void);
static int component_open(void);
static int component_close(void);
static void init_over(int argc, char **argv, int requested, int *provided);
static void end_begins(void);
static void end_over(void);

OMPI_DECLSPEC ompi_hook_base_component_t mca_hook_crypt_component = {
    .hookm_version = {
        OMPI_HOOK_BASE_VERSION_1_0_0,
        .mca_component_name = "crypt",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .hookm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .hookm_mpi_init_bottom = init_over,
    .hookm_mpi_finalize_top = end_begins,
    .hookm_mpi_finalize_bottom = end_over,
};

/* A process that computes next must not be shown as in MPI_Init. */
static void init_over(int argc, char **argv, int requested, int *provided)
{
    opal_cryptproc_restore_env();
    ompi_hook_crypt_plain_watch();
    ompi_common_cryptmpi_classes_add(argc, argv, requested, provided);
    if (NULL != opal_cryptproc_still_here) {
        opal_cryptproc_still_here();
    }
}

/* end_begins and end_over run in the thread that ends MPI; the latter when this component closes, after the transports,
 * or when MPI_Finalize returns while a session keeps it open. */
static ompi_common_cryptmpi_pipe_t broken_pipe;
static bool without_pipe;

static void end_begins(void)
{
    without_pipe = ompi_common_cryptmpi_active() || ompi_common_cryptmpi_over_btl();
    if (without_pipe) {
        ompi_common_cryptmpi_pipe_block(&broken_pipe);
    }
    ompi_common_cryptmpi_report();
}

static void end_over(void)
{
    if (without_pipe) {
        ompi_common_cryptmpi_pipe_restore(&broken_pipe);
        without_pipe = false;
    }
}

#if OMPI_MAJOR_VERSION >= 5
/* In a process of 4.1 this component would load libopen-pal of 5.0 before the
 * transports start: btl/tcp of 4.1 would then find functions of 5.0 and crash,
 * whatever register returns later.  So it requires a symbol that 4.1 does not have,
 * and the dynamic linker refuses it.  (5.0 cannot load a component of 4.1: it has
 * no libopen-pal of that name.) */
static const void *const only_in_5_0 __attribute__((used)) = &ompi_mpi_instance_null;
#endif

typedef struct {
    const char *name, *value;
    mca_base_var_type_t type;       /* as btl/tcp registers it */
    const char *help;
} setting_t;

static const setting_t limits[] = {
    {"eager_limit", OMPI_COMMON_CRYPTMPI_RAISED_LIMIT, MCA_BASE_VAR_TYPE_SIZE_T,
     "Bytes, header included, up to which a message is sent without asking"},
    {"rndv_eager_limit", OMPI_COMMON_CRYPTMPI_RAISED_LIMIT, MCA_BASE_VAR_TYPE_SIZE_T,
     "Bytes, header included, of the first fragment of a longer message"},
    {"max_send_size", OMPI_COMMON_CRYPTMPI_RAISED_LIMIT, MCA_BASE_VAR_TYPE_SIZE_T, "Bytes of a further fragment"},
};
enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };

static const setting_t cache = {
    "endpoint_cache", OMPI_COMMON_CRYPTMPI_ENDPOINT_CACHE, MCA_BASE_VAR_TYPE_INT,
    "Bytes that are read beyond those expected",
};

static int component_register(void)
{
    return OMPI_COMMON_CRYPTMPI_SERIES_OK("hook/crypt") ? OMPI_SUCCESS : OMPI_ERR_NOT_SUPPORTED;
}

/* Is `wanted` in the list of components that a framework is to open?  "^crypt" excludes it, and so does "^ob1,crypt".
 * `alone`: and no other. */
static bool opens(const char *project, const char *framework, const char *wanted, bool alone)
{
    char *value = opal_cryptproc_selection(project, framework);
    const bool found = NULL != value && (alone ? 0 == strcmp(value, wanted)
                                               : '^' != *value && opal_cryptproc_listed(value, wanted, strlen(wanted)));

    free(value);
    return found;
}

/* And will a value that is set now still be read? */
static bool set_by_nobody(const setting_t *setting)
{
    size_t storage = 0;
    opal_cryptproc_peek_t peek = {.project = "opal", .framework = "btl", .component = "tcp", .name = setting->name,
                                  .help = setting->help, .type = setting->type, .flags = MCA_BASE_VAR_FLAG_DWG,
                                  .level = OPAL_INFO_LVL_4, .scope = MCA_BASE_VAR_SCOPE_READONLY};
    bool free_to_set;

    opal_cryptproc_peek(&peek, &storage);
    free_to_set = peek.index >= 0 && !peek.there && MCA_BASE_VAR_SOURCE_DEFAULT == peek.source;
    opal_cryptproc_peek_end(&peek);
    return free_to_set;
}

static void set(const setting_t *setting)
{
    char name[64];

    snprintf(name, sizeof(name), "OMPI_MCA_btl_tcp_%s", setting->name);
    (void) opal_cryptproc_setenv(name, setting->value);
}

static void raise_limits(void)
{
    for (int i = 0; i < LIMITS; i++) {
        if (!set_by_nobody(&limits[i])) {
            return;
        }
    }
    for (int i = 0; i < LIMITS; i++) {
        set(&limits[i]);
    }
    if (set_by_nobody(&cache)) {
        set(&cache);
    }
    ompi_common_cryptmpi_report_raised(OMPI_COMMON_CRYPTMPI_RAISED_TCP);
}

/* ---- our components must be installed ---- */

/* Why our component cannot be loaded, or NULL.  The framework is about to load it from the same place. */
static const char *why_not_here(const mca_base_framework_t *framework)
{
    static const char not_there[] = "it is not installed there";
    mca_base_component_repository_item_t *item;
    opal_list_t *items = NULL;
    opal_dl_handle_t *library;
    char *why = NULL;

    for (const opal_aead_base_static_t *all = framework->framework_static_components; NULL != all && NULL != *all; ++all) {
        if (0 == strcmp(OPAL_AEAD_BASE_STATIC(*all)->mca_component_name, "crypt")) {
            return NULL;
        }
    }
    if (OPAL_SUCCESS != mca_base_component_repository_get_components((mca_base_framework_t *) framework, &items) || NULL == items) {
        return not_there;               /* nor is any other component outside of libmpi */
    }
    OPAL_LIST_FOREACH(item, items, mca_base_component_repository_item_t) {
        if (0 == strcmp(item->ri_name, "crypt")) {
            if (OPAL_SUCCESS != opal_dl_open(item->ri_path, true, true, &library, &why)) {
                return NULL == why ? item->ri_path : why;
            }
            (void) opal_dl_close(library);
            return NULL;
        }
    }
    return not_there;
}

/* Open MPI would only report that a component was not found, and suggest that shared libraries are missing. */
static void demand(const mca_base_framework_t *framework)
{
    const char *why = why_not_here(framework);

    if (NULL != why) {
        (void) opal_cryptproc_show_once("help-mpi-hook-crypt.txt", "not-here", framework->framework_name,
                                        opal_process_info.nodename, why);
        exit(1);                        /* as for names of parameters */
    }
}

/* ---- btl/crypt must not be bypassed ---- */

static bool by_btl, by_pml;             /* what the job asks for by name */

/* Does pml/crypt, or a host that it selects later, use btl/crypt? */
static bool may_use_btl(void)
{
    return !ompi_common_cryptmpi_transport_is_pml() || ompi_common_cryptmpi_windows_over_btl();
}

/* Does pml/crypt decide about it?  Then it may become the only network to be opened: this is early enough for that. */
static bool chosen_by_pml(void)
{
    if (!opens("ompi", "pml", "crypt", true) || OPAL_SUCCESS != opal_cryptproc_params_register()) {
        return false;
    }
    if (!ompi_common_cryptmpi_transport_choose()) {
        exit(1);                        /* as for names of parameters */
    }
    return may_use_btl();
}

/* btl/crypt itself cannot find out which PML there will be. */
static void demand_ob1(void)
{
    by_btl = !chosen_by_pml() && opens("opal", "btl", "crypt", false);
    if (by_btl && !opens("ompi", "pml", "ob1", true)) {
        (void) opal_cryptproc_show_once("help-mpi-hook-crypt.txt", "btl-pml", opal_process_info.nodename);
        exit(1);
    }
}

/* ---- other processes must know that we have hook/crypt ---- */

/* In Open MPI 4.1 there is no runtime yet when this component opens.  In all series there is one when
 * the PML framework opens, before published data is exchanged. */
static mca_base_framework_open_fn_t pml_open;

static int publish_and_open(mca_base_open_flag_t flags)
{
    ompi_hook_crypt_plain_judge(by_pml || by_btl);
    ompi_common_cryptmpi_everywhere_publish();
    return NULL != pml_open ? pml_open(flags) : mca_base_framework_components_open(&ompi_pml_base_framework, flags);
}

static void publish_later(void)
{
    pml_open = ompi_pml_base_framework.framework_open;
    ompi_pml_base_framework.framework_open = publish_and_open;
}

static void publish_no_more(void)
{
    if (publish_and_open == ompi_pml_base_framework.framework_open) {
        ompi_pml_base_framework.framework_open = pml_open;
    }
    ompi_common_cryptmpi_everywhere_forget();
}

/* ---- shared memory must not belong to another user ---- */

/* Up to 4.1, BTLs start when their framework and BML's are open, before any PML.  Open MPI has chosen a component for
 * shared memory by then; in 4.1 it has not when this component opens. */
static mca_base_framework_open_fn_t bml_open;
static bool watching;

static int watch_and_open(mca_base_open_flag_t flags)
{
    opal_cryptproc_shared_start();
    watching = true;
    return NULL != bml_open ? bml_open(flags) : mca_base_framework_components_open(&ompi_bml_base_framework, flags);
}

static void watch_later(void)
{
    bml_open = ompi_bml_base_framework.framework_open;
    ompi_bml_base_framework.framework_open = watch_and_open;
}

static void watch_no_more(void)
{
    if (watch_and_open == ompi_bml_base_framework.framework_open) {
        ompi_bml_base_framework.framework_open = bml_open;
    }
    if (watching) {
        opal_cryptproc_shared_stop();
        watching = false;
    }
}

/* It stays loaded for the guard and the report; pml/crypt needs the same libraries,
 * and so need not load them again. */
static bool has_failed(opal_proc_t *proc) { return ompi_common_cryptmpi_has_failed(proc); }

static int component_open(void)
{
    ompi_common_cryptmpi_spelling_check();
    demand_ob1();
    by_pml = opens("ompi", "pml", "crypt", false);
    if (by_pml) {
        if (!opens("ompi", "pml", "crypt", true)) {
            ompi_common_cryptmpi_refuse_list();
        }
        demand(&ompi_pml_base_framework);
        if (may_use_btl()) {
            demand(&opal_btl_base_framework);
        }
        ompi_common_cryptmpi_report_hooked();
        if (ompi_common_cryptmpi_transport_is_pml() && ompi_common_cryptmpi_host_may_be_ob1()) {
            raise_limits();
        }
        watch_later();
    }
    publish_later();
    ompi_hook_crypt_plain_open();
    opal_cryptproc_has_failed = has_failed;
    ompi_hook_crypt_files_guard();
    return OMPI_SUCCESS;
}

static int component_close(void)
{
    end_over();
    ompi_hook_crypt_files_unguard();
    opal_cryptproc_has_failed = NULL;
    publish_no_more();
    watch_no_more();
    ompi_hook_crypt_plain_close();
    ompi_common_cryptmpi_classes_forget();
    return OMPI_SUCCESS;
}

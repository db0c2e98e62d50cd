/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component: parameters, and precedence over the component that would have
 * been chosen.
 */
#include "fs_crypt.h"

#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_spelling.h"

static int component_register(void)
{
    if (!OMPI_COMMON_CRYPTMPI_SERIES_OK("fs/crypt")) {
        return OMPI_ERR_NOT_SUPPORTED;
    }
    return ompi_common_cryptmpio_params_register();
}

static int component_open(void)
{
    ompi_common_cryptmpi_spelling_check();      /* hook/crypt may be disabled */
    ompi_common_cryptmpio_stream = opal_cryptproc_verbose_open();
    return ompi_common_cryptmpio_start();
}

static int component_close(void)
{
    ompi_common_cryptmpio_stop();
    opal_cryptproc_verbose_close(&ompi_common_cryptmpio_stream);
    return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    return OMPI_SUCCESS;
}

/* If only some processes of the file have hook/crypt, those with it have left the file to Open MPI,
 * or aborted the job.  A process without it does not know that, and must not wait for the others. */
static bool stands_aside(ompio_file_t *fh)
{
    int lacks, none;
    ompi_common_cryptmpi_everywhere_t where = ompi_common_cryptmpi_everywhere(fh->f_comm, &lacks);

    if (OMPI_COMMON_CRYPTMPI_IN_PARTS != where && OMPI_COMMON_CRYPTMPI_SILENT != where) {
        return false;
    }
    if (OMPI_COMMON_CRYPTMPI_SILENT == where
        || OMPI_COMMON_CRYPTMPI_NOWHERE == ompi_common_cryptmpi_everywhere(MPI_COMM_SELF, &none)) {
        ompi_common_cryptmpi_everywhere_abort(where, NULL == fh->f_filename ? "(unknown)" : fh->f_filename, fh->f_comm, lacks);
    }
    return true;
}

static mca_fs_base_module_t *file_query(ompio_file_t *fh, int *priority)
{
    mca_base_component_list_item_t *item;
    mca_fs_base_component_t *best_component = NULL;
    mca_fs_base_module_t *best = NULL;
    int best_priority = -1, its_priority = -1;

    if (stands_aside(fh)) {
        return NULL;
    }
    OPAL_LIST_FOREACH(item, &ompi_fs_base_framework.framework_components, mca_base_component_list_item_t) {
        mca_fs_base_component_t *component = (mca_fs_base_component_t *) item->cli_component;
        if (component == &mca_fs_crypt_component || NULL == component->fsm_file_query) {
            continue;
        }
        mca_fs_base_module_t *module = component->fsm_file_query(fh, &its_priority);
        if (NULL != module && its_priority > best_priority) {
            best = module;
            best_component = component;
            best_priority = its_priority;
        }
    }
    *priority = best_priority + 100;
    return NULL == best ? NULL : ompi_fs_crypt_module(fh, best, best_component);
}

static int file_unquery(ompio_file_t *fh)
{
    (void) fh;
    return OMPI_SUCCESS;
}

mca_fs_base_component_2_0_0_t mca_fs_crypt_component = {
    .fsm_version = {
        MCA_FS_BASE_VERSION_2_0_0,
        .mca_component_name = "crypt",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_open_component = component_open,
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .fsm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .fsm_init_query = init_query,
    .fsm_file_query = file_query,
    .fsm_file_unquery = file_unquery,
};

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The component.  It serves exactly the files that fs/crypt serves.
 */
#include "fbtl_crypt.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_series.h"

static int component_register(void)
{
    return OMPI_COMMON_CRYPTMPI_SERIES_OK("fbtl/crypt") ? OMPI_SUCCESS : OMPI_ERR_NOT_SUPPORTED;
}

static int component_close(void)
{
    ompi_fbtl_crypt_async_stop();
    return OMPI_SUCCESS;
}

static int init_query(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    return OMPI_SUCCESS;
}

static mca_fbtl_base_module_t *file_query(ompio_file_t *fh, int *priority)
{
    mca_base_component_list_item_t *item;
    mca_fbtl_base_module_t *best = NULL;
    const ompi_common_cryptmpio_module_t *fs = ompi_common_cryptmpio_module(fh);
    int best_priority = -1, its_priority = -1;

    if (NULL == fs) {
        return NULL;
    }
    OPAL_LIST_FOREACH(item, &ompi_fbtl_base_framework.framework_components, mca_base_component_list_item_t) {
        mca_fbtl_base_component_t *component = (mca_fbtl_base_component_t *) item->cli_component;
        if (component == &mca_fbtl_crypt_component || NULL == component->fbtlm_file_query) {
            continue;
        }
        mca_fbtl_base_module_t *module = component->fbtlm_file_query(fh, &its_priority);
        if (NULL != module && its_priority > best_priority) {
            best = module;
            best_priority = its_priority;
        }
    }
    *priority = best_priority + 100;
    return NULL == best ? NULL : ompi_fbtl_crypt_module(best, fs);
}

static int file_unquery(ompio_file_t *fh)
{
    (void) fh;
    return OMPI_SUCCESS;
}

mca_fbtl_base_component_2_0_0_t mca_fbtl_crypt_component = {
    .fbtlm_version = {
        MCA_FBTL_BASE_VERSION_2_0_0,
        .mca_component_name = "crypt",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
        .mca_close_component = component_close,
        .mca_register_component_params = component_register,
    },
    .fbtlm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .fbtlm_init_query = init_query,
    .fbtlm_file_query = file_query,
    .fbtlm_file_unquery = file_unquery,
};

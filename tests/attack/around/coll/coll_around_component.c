/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * coll/around: a component that nobody has looked at, and that might send past
 * the PML.  It says when it is asked for a communicator, and does nothing.
 */
#include "ompi/mca/common/cryptmpi/cryptmpi_compat.h"

#include <stdio.h>

#include "ompi/mca/coll/coll.h"

static int init_query(bool progress_threads, bool mpi_threads)
{
    (void) progress_threads;
    (void) mpi_threads;
    return OMPI_SUCCESS;
}

static mca_coll_base_module_t *comm_query(struct ompi_communicator_t *comm, int *priority)
{
    (void) comm;
    *priority = -1;
    fputs("coll/around was asked\n", stderr);
    return NULL;
}

OMPI_DECLSPEC mca_coll_base_component_t mca_coll_around_component = {
    .collm_version = {
        OMPI_COMMON_CRYPTMPI_COLL_VERSION,
        .mca_component_name = "around",
        MCA_BASE_MAKE_VERSION(component, OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION),
    },
    .collm_data = {MCA_BASE_METADATA_PARAM_NONE},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};

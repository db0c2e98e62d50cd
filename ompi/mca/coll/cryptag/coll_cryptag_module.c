/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One module for each communicator: whether we serve it at all, and what we keep.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_ord_plan.h"
#include "coll_cryptag_shm.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/base/base.h"

static void construct(ompi_coll_cryptag_module_t *module)
{
    memset((char *) module + sizeof(module->super), 0, sizeof(*module) - sizeof(module->super));
}

/* If Open MPI installs functions, each entry of a communicator holds a reference to its module, and so do
 * those that we saved.  If modules install them, there are no references: the communicator has a list of
 * modules, which it frees from the top, so what is below us outlives us. */
static void hold(mca_coll_base_module_t *module)
{
    if (!OMPI_COMMON_CRYPTMPI_COLL_INSTALLS) {
        OBJ_RETAIN(module);
    }
}

static void release(mca_coll_base_module_t *module)
{
    if (NULL != module && !OMPI_COMMON_CRYPTMPI_COLL_INSTALLS) {
        OBJ_RELEASE(module);
    }
}

static void destruct(ompi_coll_cryptag_module_t *module)
{
    ompi_coll_cryptag_shm_free(module->shm);
    ompi_coll_cryptag_ord_plan_free(module->ord_plan);
    ompi_coll_cryptag_step_free(&module->step);
    ompi_coll_cryptag_scratch_free(&module->scratch);
    ompi_coll_cryptag_topo_free(module->topo);
    free(module->offset);
    release(module->below.allgather_module);
    release(module->below.allgatherv_module);
    release(module->below.bcast_module);
    release(module->below.alltoall_module);
    release(module->below.alltoallv_module);
}

OBJ_CLASS_INSTANCE(ompi_coll_cryptag_module_t, mca_coll_base_module_t, construct, destruct);

#define SAVE(function)                                                          \
    do {                                                                        \
        below->function = comm->c_coll->coll_##function;                        \
        below->function##_module = comm->c_coll->coll_##function##_module;      \
        if (NULL == below->function##_module) {                                 \
            return OMPI_ERR_NOT_FOUND;                                          \
        }                                                                       \
        hold(below->function##_module);                                         \
    } while (0)

#define INSTALL(function)                                                       \
    do {                                                                        \
        comm->c_coll->coll_##function = base->coll_##function;                  \
        comm->c_coll->coll_##function##_module = base;                          \
    } while (0)

static int enable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    ompi_coll_cryptag_below_t *below = &((ompi_coll_cryptag_module_t *) base)->below;

    SAVE(allgather);
    SAVE(allgatherv);
    SAVE(bcast);
    SAVE(alltoall);
    SAVE(alltoallv);
    if (OMPI_COMMON_CRYPTMPI_COLL_INSTALLS) {
        INSTALL(allgather);
        INSTALL(allgatherv);
        INSTALL(bcast);
        INSTALL(alltoall);
        INSTALL(alltoallv);
    }
    return OMPI_SUCCESS;
}

#define RESTORE(function)                                                       \
    do {                                                                        \
        if (base == comm->c_coll->coll_##function##_module) {                   \
            comm->c_coll->coll_##function = below->function;                    \
            comm->c_coll->coll_##function##_module = below->function##_module;  \
        }                                                                       \
    } while (0)

/* If the module installed its functions; the component below removes its own. */
static int disable(mca_coll_base_module_t *base, ompi_communicator_t *comm)
{
    const ompi_coll_cryptag_below_t *below = &((ompi_coll_cryptag_module_t *) base)->below;

    RESTORE(allgather);
    RESTORE(allgatherv);
    RESTORE(bcast);
    RESTORE(alltoall);
    RESTORE(alltoallv);
    return OMPI_SUCCESS;
}

/* For processes of this job, the launcher's placement counts: asking the sessions
 * would agree on keys with every process of the node in MPI_Init.  For processes
 * met at run time the sessions are asked: Open MPI 4.1 derives their node from rank
 * numbers alone, and all ranks must get the same answer.  Over btl/crypt there are
 * no sessions, and such processes count as on another node. */
bool ompi_coll_cryptag_is_remote(ompi_proc_t *proc)
{
    if (OPAL_PROC_MY_NAME.jobid == proc->super.proc_name.jobid) {
        return OPAL_CRYPTPROC_ALL == opal_cryptproc_params.scope
               || !OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
    }
    return !ompi_common_cryptmpi_active() || !ompi_common_cryptmpi_is_local(proc);
}

/* Stops at the first peer on another node. */
static bool has_remote_peer(ompi_communicator_t *comm)
{
    for (int i = 0; i < ompi_comm_size(comm); i++) {
        if (i != ompi_comm_rank(comm) && ompi_coll_cryptag_is_remote(ompi_comm_peer_lookup(comm, i))) {
            return true;
        }
    }
    return false;
}

/* Above all others, to which it passes on what it does not do itself. */
enum { PRIORITY = 90 };

mca_coll_base_module_t *ompi_coll_cryptag_comm_query(ompi_communicator_t *comm, int *priority)
{
    ompi_coll_cryptag_module_t *module;

    *priority = -1;
    if (!ompi_coll_cryptag_usable() || OMPI_COMM_IS_INTER(comm) || !has_remote_peer(comm)) {
        return NULL;
    }
    module = OBJ_NEW(ompi_coll_cryptag_module_t);
    if (NULL == module) {
        ompi_coll_cryptag_no_memory(comm, sizeof(*module));     /* the others would wait for a rank without one */
    }
    module->super.coll_module_enable = enable;
    module->super.coll_module_disable = OMPI_COMMON_CRYPTMPI_COLL_INSTALLS ? disable : NULL;
    module->super.coll_allgather = ompi_coll_cryptag_allgather;
    module->super.coll_allgatherv = ompi_coll_cryptag_allgatherv;
    module->super.coll_bcast = ompi_coll_cryptag_bcast;
    module->super.coll_alltoall = ompi_coll_cryptag_alltoall;
    module->super.coll_alltoallv = ompi_coll_cryptag_alltoallv;
    *priority = PRIORITY;
    return &module->super;
}

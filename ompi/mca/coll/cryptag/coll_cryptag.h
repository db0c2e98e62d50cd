/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * coll/cryptag: collectives that encrypt (seal) data once for many receivers.
 * README.md says which file holds what.
 *
 * Data leaves the process in only two ways: plaintext goes to the selected PML
 * (pml/crypt, which seals it unless the peer is on this node), and sealed bytes go to
 * the host PML below it.
 */
#ifndef MCA_COLL_CRYPTAG_H
#define MCA_COLL_CRYPTAG_H

#include "ompi_config.h"

#include "mpi.h"
#include "ompi/mca/mca.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

#include "coll_cryptag_call.h"
#include "coll_cryptag_rules.h"

BEGIN_C_DECLS

typedef struct ompi_coll_cryptag_component {
    mca_coll_base_component_t super;

    int allgather_algorithm;    /* ompi_coll_cryptag_algorithm_t; AUTO: by rules */
    int bcast_algorithm, alltoall_algorithm;    /* of their enumerations; 0: auto */
    size_t fragment;            /* most sealed bytes in one message of the host */
    size_t shm_max;             /* most bytes of a node's shared segment */
    char *rules_file;
    int stream;                 /* -1: not set */

    ompi_coll_cryptag_rules_t *rules;   /* NULL until the first communicator in a job with pml/crypt */
    ompi_coll_cryptag_metrics_t total;  /* of this process, read by MPI_T */
} ompi_coll_cryptag_component_t;

OMPI_DECLSPEC extern ompi_coll_cryptag_component_t mca_coll_cryptag_component;

/* The longest piece that is sealed at once; and how much of a broadcast is sealed and forwarded at a time. */
static inline size_t ompi_coll_cryptag_piece_max(void)
{
    return 64 * mca_coll_cryptag_component.fragment;
}

static inline size_t ompi_coll_cryptag_bcast_segment(void)
{
    return 2 * mca_coll_cryptag_component.fragment;
}

/* Use a ring rather than doubling from this many bytes for each item. */
enum { OMPI_COLL_CRYPTAG_RING_MIN = 65536 };

/* The saved functions of the component below, for calls that are better left to it. */
typedef struct ompi_coll_cryptag_below {
    mca_coll_base_module_allgather_fn_t allgather;
    mca_coll_base_module_t *allgather_module;
    mca_coll_base_module_allgatherv_fn_t allgatherv;
    mca_coll_base_module_t *allgatherv_module;
    mca_coll_base_module_bcast_fn_t bcast;
    mca_coll_base_module_t *bcast_module;
    mca_coll_base_module_alltoall_fn_t alltoall;
    mca_coll_base_module_t *alltoall_module;
    mca_coll_base_module_alltoallv_fn_t alltoallv;
    mca_coll_base_module_t *alltoallv_module;
} ompi_coll_cryptag_below_t;

/* Swaps the communicator's entry for a function with the saved one.  The component
 * below is called between two swaps, from its own place: coll/han permanently stores
 * there what is below it, and calls what it finds there.  References that both
 * entries may hold are swapped along. */
#define OMPI_COLL_CRYPTAG_SWAP(comm, below, function)                                       \
    do {                                                                                    \
        __typeof__((below)->function) function_ = (comm)->c_coll->coll_##function;          \
        mca_coll_base_module_t *module_ = (comm)->c_coll->coll_##function##_module;         \
        (comm)->c_coll->coll_##function = (below)->function;                                \
        (comm)->c_coll->coll_##function##_module = (below)->function##_module;              \
        (below)->function = function_;                                                      \
        (below)->function##_module = module_;                                               \
    } while (0)

struct ompi_coll_cryptag_module {
    mca_coll_base_module_t super;
    ompi_coll_cryptag_below_t below;

    bool ready;                             /* setup was done */
    ompi_coll_cryptag_topo_t *topo;
    opal_crypt_group_t *group;
    uint64_t sequence;                      /* calls so far, equal at every rank */

    size_t *offset;                         /* [ranks + 1] for the call in progress */
    ompi_coll_cryptag_scratch_t scratch;
    ompi_coll_cryptag_step_t step;
    ompi_coll_cryptag_shm_t *shm;
    ompi_coll_cryptag_ord_plan_t *ord_plan;
};
OBJ_CLASS_DECLARATION(ompi_coll_cryptag_module_t);

/* False without pml/crypt: no key and no peer table then. */
bool ompi_coll_cryptag_usable(void);
/* Is a process certainly on another node?  False: its session decides. */
bool ompi_coll_cryptag_is_remote(ompi_proc_t *proc);
/* Checksum of the parameters and rules on which the ranks must agree. */
uint32_t ompi_coll_cryptag_settings(void);
/* Add the metrics of a call to those of the process. */
void ompi_coll_cryptag_count(const ompi_coll_cryptag_call_t *call);

int ompi_coll_cryptag_init_query(bool enable_progress_threads, bool enable_mpi_threads);
mca_coll_base_module_t *ompi_coll_cryptag_comm_query(ompi_communicator_t *comm, int *priority);

/* Set up what a communicator needs before its first collective: a collective
 * itself, which communicates only through the selected PML.  Does not return if the
 * ranks' settings differ (the job ends with a message).  An error is the same at all
 * ranks, and the next collective repeats the setup. */
int ompi_coll_cryptag_setup(ompi_coll_cryptag_module_t *module, ompi_communicator_t *comm);

int ompi_coll_cryptag_allgather(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                                ompi_common_cryptmpi_count_t rcount, ompi_datatype_t *rdtype, ompi_communicator_t *comm,
                                mca_coll_base_module_t *module);
int ompi_coll_cryptag_allgatherv(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                                 ompi_common_cryptmpi_counts_t rcounts, ompi_common_cryptmpi_disps_t disps, ompi_datatype_t *rdtype,
                                 ompi_communicator_t *comm, mca_coll_base_module_t *module);
int ompi_coll_cryptag_bcast(void *buffer, ompi_common_cryptmpi_count_t count, ompi_datatype_t *dtype, int root,
                            ompi_communicator_t *comm, mca_coll_base_module_t *module);
int ompi_coll_cryptag_alltoall(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                               ompi_common_cryptmpi_count_t rcount, ompi_datatype_t *rdtype, ompi_communicator_t *comm,
                               mca_coll_base_module_t *module);
int ompi_coll_cryptag_alltoallv(const void *sbuf, ompi_common_cryptmpi_counts_t scounts, ompi_common_cryptmpi_disps_t sdisps,
                                ompi_datatype_t *sdtype, void *rbuf, ompi_common_cryptmpi_counts_t rcounts,
                                ompi_common_cryptmpi_disps_t rdisps, ompi_datatype_t *rdtype,
                                ompi_communicator_t *comm, mca_coll_base_module_t *module);

END_C_DECLS

#endif

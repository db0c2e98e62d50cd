/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All-to-all step by step: in step k a rank sends to the k-th rank after it and
 * receives from the k-th before it.  pml/crypt seals the messages.  For long
 * blocks this is faster than all at once, as few of them compete for the caches.
 *
 *     1. our own block
 *     2. steps k = 1 .. p - 1, at most DEPTH of them in progress
 *     3. wait for the last ones
 */
#include "coll_cryptag.h"
#include "coll_cryptag_alltoall.h"

#include "ompi/mca/pml/pml.h"

enum { DEPTH = 2 };

typedef ompi_request_t *step_t[2];

/* A failure does not end the other steps: peers depend on us in each. */
static void note(int *rc, int ended)
{
    *rc = OMPI_SUCCESS == *rc ? ended : *rc;
}

static void finish(step_t step, int *rc)
{
    for (int i = 0; i < 2; i++) {
        note(rc, ompi_common_cryptmpi_request_end(&step[i], MPI_STATUS_IGNORE));
    }
}

static void start(ompi_coll_cryptag_alltoall_t *alltoall, int k, step_t step, int *rc)
{
    ompi_communicator_t *comm = alltoall->call.comm;
    const int ranks = ompi_comm_size(comm), rank = ompi_comm_rank(comm);
    const int to = (rank + k) % ranks, from = (rank + ranks - k) % ranks;
    const ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&alltoall->out, to);
    const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&alltoall->in, from);

    note(rc, MCA_PML_CALL(irecv(in.base, in.count, in.dtype, from, alltoall->call.tag, comm, &step[0])));
    note(rc, MCA_PML_CALL(isend(out.base, out.count, out.dtype, to, alltoall->call.tag,
                                MCA_PML_BASE_SEND_STANDARD, comm, &step[1])));
}

int ompi_coll_cryptag_alltoall_pairs(ompi_coll_cryptag_alltoall_t *alltoall)
{
    const int ranks = ompi_comm_size(alltoall->call.comm);
    step_t steps[DEPTH] = {{MPI_REQUEST_NULL, MPI_REQUEST_NULL}, {MPI_REQUEST_NULL, MPI_REQUEST_NULL}};
    int rc = OMPI_SUCCESS;

    note(&rc, ompi_coll_cryptag_cell_take_own(alltoall));
    for (int k = 1; k < ranks; k++) {
        finish(steps[k % DEPTH], &rc);
        start(alltoall, k, steps[k % DEPTH], &rc);
    }
    for (int k = ranks; k < ranks + DEPTH; k++) {
        finish(steps[k % DEPTH], &rc);
    }
    return rc;
}

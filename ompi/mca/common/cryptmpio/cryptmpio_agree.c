/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How the processes of a file come to the same decision: everything here is
 * collective over the file's communicator, and all of it goes through its
 * collectives, which pml/crypt seals between nodes.
 *
 * Their results are checked before use: the collective calls of a program may
 * not match, and another process may lie.
 */
#include "cryptmpio_internal.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/le.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

/* `count`: length of a message, checked if it came from another process. */
int ompi_common_cryptmpio_bcast(const ompio_file_t *fh, int root, void *bytes, size_t count)
{
    return fh->f_comm->c_coll->coll_bcast(bytes, (int) count, MPI_BYTE, root, fh->f_comm,
                                          fh->f_comm->c_coll->coll_bcast_module);
}

int ompi_common_cryptmpio_bcast_flag(const ompio_file_t *fh, bool *flag)
{
    uint8_t value = *flag;
    int rc = ompi_common_cryptmpio_bcast(fh, 0, &value, sizeof(value));

    *flag = 0 != value;
    return rc;
}

int ompi_common_cryptmpio_error_of_another(int error)
{
    return error < MPI_SUCCESS ? MPI_ERR_INTERN : error;
}

int ompi_common_cryptmpio_agree_values(const ompio_file_t *fh, int error, int *values, int count)
{
    int mine[1 + OMPI_CRYPTMPIO_VALUES_MAX] = {error < 0 ? MPI_ERR_OTHER : error};      /* Open MPI's own: less than success */
    int most[1 + OMPI_CRYPTMPIO_VALUES_MAX];

    memcpy(mine + 1, values, (size_t) count * sizeof(*values));
    memcpy(most, mine, sizeof(most));
    int rc = fh->f_comm->c_coll->coll_allreduce(mine, most, 1 + count, MPI_INT, MPI_MAX, fh->f_comm,
                                                fh->f_comm->c_coll->coll_allreduce_module);

    for (int i = 0; i < count; ++i) {
        rc = most[1 + i] < values[i] ? OMPI_ERROR : rc;
        values[i] = most[1 + i];
    }
    return MPI_SUCCESS != mine[0] ? mine[0] : OMPI_SUCCESS != rc ? MPI_ERR_INTERN : ompi_common_cryptmpio_error_of_another(most[0]);
}

int ompi_common_cryptmpio_agree_any(const ompio_file_t *fh, int error, bool *any)
{
    int value = *any;

    error = ompi_common_cryptmpio_agree_values(fh, error, &value, 1);
    *any = 0 != value;
    return error;
}

int ompi_common_cryptmpio_agree(const ompio_file_t *fh, int error)
{
    bool any = false;

    return ompi_common_cryptmpio_agree_any(fh, error, &any);
}

void ompi_common_cryptmpio_say(int value, int says[OMPI_CRYPTMPIO_SAYS])
{
    says[0] = value;
    says[1] = INT_MAX - value;
}

bool ompi_common_cryptmpio_said_alike(const int says[OMPI_CRYPTMPIO_SAYS]) { return INT_MAX - says[1] == says[0]; }

void ompi_common_cryptmpio_say_hash(const uint8_t *hash, int says[OMPI_CRYPTMPIO_SAYS_HASH])
{
    for (int i = 0; i < OMPI_CRYPTMPIO_SAYS_HASH; i += OMPI_CRYPTMPIO_SAYS) {
        ompi_common_cryptmpio_say((int) (opal_crypt_le_get32(hash + 2 * i) & INT_MAX), says + i);
    }
}

bool ompi_common_cryptmpio_said_alike_hash(const int says[OMPI_CRYPTMPIO_SAYS_HASH])
{
    return ompi_common_cryptmpio_said_alike(says) && ompi_common_cryptmpio_said_alike(says + OMPI_CRYPTMPIO_SAYS);
}

int ompi_common_cryptmpio_rank_as_value(const ompio_file_t *fh, int says) { return says > 0 ? says * fh->f_size - fh->f_rank : 0; }

int ompi_common_cryptmpio_rank_of_value(const ompio_file_t *fh, int most)
{
    return (fh->f_size - most % fh->f_size) % fh->f_size;       /* always a valid rank */
}

int ompi_common_cryptmpio_lowest(const ompio_file_t *fh, int says)
{
    int mine = ompi_common_cryptmpio_rank_as_value(fh, says), most = 0;
    int rc = fh->f_comm->c_coll->coll_allreduce(&mine, &most, 1, MPI_INT, MPI_MAX, fh->f_comm,
                                                fh->f_comm->c_coll->coll_allreduce_module);

    return OMPI_SUCCESS == rc ? ompi_common_cryptmpio_rank_of_value(fh, most) : 0;
}

int ompi_common_cryptmpio_lowest_of_each(const ompio_file_t *fh, int *ranks, size_t count)
{
    const size_t bytes = count * sizeof(*ranks);
    int *mine = malloc(bytes);

    if (NULL != mine) {
        memcpy(mine, ranks, bytes);
    }
    int rc = fh->f_comm->c_coll->coll_allreduce(MPI_IN_PLACE, ranks, (int) count, MPI_INT, MPI_MIN, fh->f_comm,
                                                fh->f_comm->c_coll->coll_allreduce_module);
    for (size_t i = 0; OMPI_SUCCESS == rc && NULL != mine && i < count; ++i) {
        /* Valid: the rank of another process, or what this process itself put there. */
        if (ranks[i] < 0 || ranks[i] > mine[i] || (fh->f_rank == ranks[i] && ranks[i] != mine[i])) {
            rc = OMPI_ERROR;
        }
    }
    rc = NULL == mine ? OMPI_ERR_OUT_OF_RESOURCE : rc;
    free(mine);
    return rc;
}

int ompi_common_cryptmpio_max_bytes(const ompio_file_t *fh, uint8_t *values, size_t count)
{
    return fh->f_comm->c_coll->coll_allreduce(MPI_IN_PLACE, values, (int) count, MPI_UINT8_T, MPI_MAX, fh->f_comm,
                                              fh->f_comm->c_coll->coll_allreduce_module);
}

/* If one process is out of memory, all must fail: the others would wait for one that left. */
static int agree_on(const ompio_file_t *fh, bool had)
{
    return MPI_SUCCESS == ompi_common_cryptmpio_agree(fh, had ? MPI_SUCCESS : MPI_ERR_NO_MEM) ? OMPI_SUCCESS
                                                                                                : OMPI_ERR_OUT_OF_RESOURCE;
}

int ompi_common_cryptmpio_gather(const ompio_file_t *fh, const void *bytes, size_t count, uint8_t **all, int **counts)
{
    struct ompi_communicator_t *comm = fh->f_comm;
    int mine = count < INT_MAX ? (int) count : INT_MAX, *displacements = calloc((size_t) fh->f_size, sizeof(*displacements));
    size_t total = 0, own = 0;

    *counts = calloc((size_t) fh->f_size, sizeof(**counts));
    *all = NULL;
    int rc = agree_on(fh, NULL != displacements && NULL != *counts);
    const bool had = OMPI_SUCCESS == rc;
    if (had) {
        rc = comm->c_coll->coll_allgather(&mine, 1, MPI_INT, *counts, 1, MPI_INT, comm, comm->c_coll->coll_allgather_module);
    }
    for (int i = 0; OMPI_SUCCESS == rc && i < fh->f_size; ++i) {
        const int bytes_of_one = (*counts)[i];

        displacements[i] = (int) total;
        own = i == fh->f_rank ? total : own;
        total += bytes_of_one < 0 ? INT_MAX : (size_t) bytes_of_one;
        rc = i == fh->f_rank && mine != bytes_of_one ? OMPI_ERROR
             : total < INT_MAX                       ? OMPI_SUCCESS : OMPI_ERR_OUT_OF_RESOURCE;       /* on all */
    }
    if (had) {
        *all = OMPI_SUCCESS == rc ? malloc(total + 1) : NULL;
        rc = agree_on(fh, NULL != *all);
    }
    if (OMPI_SUCCESS == rc) {
        rc = comm->c_coll->coll_allgatherv((void *) (uintptr_t) bytes, mine, MPI_BYTE, *all,
                                           ompi_common_cryptmpi_counts(*counts), ompi_common_cryptmpi_disps(displacements), MPI_BYTE, comm, comm->c_coll->coll_allgatherv_module);
    }
    if (OMPI_SUCCESS == rc) {
        rc = agree_on(fh, 0 == mine || 0 == memcmp(*all + own, bytes, (size_t) mine));
    }
    free(displacements);
    return rc;
}

bool ompi_common_cryptmpio_exposed(const ompio_file_t *fh)
{
    return !ompi_common_cryptmpi_active() && !opal_cryptproc_has_transport() && ompi_common_cryptmpio_apart(fh);
}

/* Open MPI knows those of our job on this node from the beginning.  For a process of another job, the flag is only a guess
 * from the host name. */
static bool is_here(const ompio_file_t *fh, int rank)
{
    const ompi_proc_t *proc = ompi_group_peer_lookup_existing(fh->f_comm->c_local_group, rank);

    return proc == ompi_proc_local_proc
           || (NULL != proc && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags) && proc->super.proc_name.jobid == OPAL_PROC_MY_NAME.jobid);
}

int ompi_common_cryptmpio_first_here(const ompio_file_t *fh, int rank)
{
    while (rank < fh->f_size && !is_here(fh, rank)) {
        ++rank;
    }
    return rank;
}

bool ompi_common_cryptmpio_apart(const ompio_file_t *fh)
{
    int rank = 0;

    while (rank < fh->f_size && is_here(fh, rank)) {
        ++rank;
    }
    return rank < fh->f_size;
}

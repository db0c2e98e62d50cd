/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt-times.so: loaded before a program of `mpicrypt bench nas`, it stands
 * between the program and Open MPI (C, and Fortran by mpif.h or `use mpi`), and
 * rank 0 prints in MPI_Finalize, as means over all ranks,
 *
 *     @mpicrypt times INTER-NODE COMMUNICATION EXECUTION
 *
 * in seconds.  EXECUTION: from the end of MPI_Init to MPI_Finalize.
 * COMMUNICATION: in those calls below.  INTER-NODE: in those that send to or
 * receive from a process of another node, or wait for such a request; one that
 * receives from any source is taken for such if the communicator has processes
 * of other nodes.
 *
 * One thread only, as the NAS Parallel Benchmarks have it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "times.h"

static double between, inside, started;
static int *node, my_node;                      /* of each rank of MPI_COMM_WORLD */

double mpicrypt_times_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double) t.tv_sec + 1e-9 * (double) t.tv_nsec;
}

static void *need(void *block)
{
    if (NULL == block) {
        fprintf(stderr, "mpicrypt-times: out of memory\n");
        PMPI_Abort(MPI_COMM_WORLD, 1);
    }
    return block;
}

void mpicrypt_times_spent(double begin, bool far)
{
    double seconds = mpicrypt_times_now() - begin;

    inside += seconds;
    between += far ? seconds : 0;
}

/* ---- who is on another node ---- */

/* For each rank of a communicator, and at its end for MPI_ANY_SOURCE. */
typedef struct group {
    MPI_Comm comm;
    bool *far;
    int size;
    struct group *next;
} group_t;

static group_t *groups;

static group_t *learn(MPI_Comm comm)
{
    group_t *group = need(calloc(1, sizeof(*group)));
    int inter, *rank;
    MPI_Group members, world;

    group->comm = comm;
    PMPI_Comm_test_inter(comm, &inter);
    (inter ? PMPI_Comm_remote_group : PMPI_Comm_group)(comm, &members);
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Group_size(members, &group->size);
    group->far = need(calloc((size_t) group->size + 1, sizeof(bool)));
    rank = need(calloc(2 * (size_t) group->size + 2, sizeof(int)));
    for (int i = 0; i < group->size; ++i) {
        rank[i] = i;
    }
    PMPI_Group_translate_ranks(members, group->size, rank, world, rank + group->size);
    for (int i = 0; i < group->size; ++i) {
        int place = rank[group->size + i];
        group->far[i] = MPI_UNDEFINED == place || node[place] != my_node;
        group->far[group->size] = group->far[group->size] || group->far[i];
    }
    free(rank);
    PMPI_Group_free(&members);
    PMPI_Group_free(&world);
    group->next = groups;
    groups = group;
    return group;
}

bool mpicrypt_times_is_far(int peer, MPI_Comm comm)
{
    group_t *group = groups;

    if (MPI_PROC_NULL == peer || NULL == node) {
        return false;
    }
    while (NULL != group && group->comm != comm) {
        group = group->next;
    }
    group = NULL == group ? learn(comm) : group;
    return peer >= 0 && peer < group->size ? group->far[peer] : group->far[group->size];
}

/* The handle may come back for another communicator. */
void mpicrypt_times_forget(MPI_Comm comm)
{
    for (group_t **at = &groups; NULL != *at; at = &(*at)->next) {
        if ((*at)->comm == comm) {
            group_t *gone = *at;
            *at = gone->next;
            free(gone->far);
            free(gone);
            return;
        }
    }
}

/* ---- requests to and from other nodes ---- */

static MPI_Request *pending;
static size_t pending_count, pending_capacity;

void mpicrypt_times_watch(MPI_Request request, bool far)
{
    if (!far || MPI_REQUEST_NULL == request) {
        return;
    }
    if (pending_count == pending_capacity) {
        pending_capacity = 0 == pending_capacity ? 64 : 2 * pending_capacity;
        pending = need(realloc(pending, pending_capacity * sizeof(*pending)));
    }
    pending[pending_count++] = request;
}

static long find(MPI_Request request)
{
    for (size_t i = pending_count; i > 0; --i) {
        if (pending[i - 1] == request) {
            return (long) i - 1;
        }
    }
    return -1;
}

static MPI_Request request_of(const void *list, int i, bool fortran)
{
    return fortran ? PMPI_Request_f2c(((const MPI_Fint *) list)[i]) : ((const MPI_Request *) list)[i];
}

/* What is waited for, before the call: its result is given to mpicrypt_times_after(), after it. */
MPI_Request *mpicrypt_times_before(const void *list, int count, bool fortran, bool *far)
{
    MPI_Request *before = need(malloc(((size_t) count + 1) * sizeof(*before)));

    *far = false;
    for (int i = 0; i < count; ++i) {
        before[i] = request_of(list, i, fortran);
        *far = *far || find(before[i]) >= 0;
    }
    return before;
}

void mpicrypt_times_after(MPI_Request *before, const void *list, int count, bool fortran)
{
    for (int i = 0; i < count; ++i) {
        long place = find(before[i]);
        if (place >= 0 && MPI_REQUEST_NULL == request_of(list, i, fortran)) {
            pending[place] = pending[--pending_count];
        }
    }
    free(before);
}

/* ---- start and end ---- */

void mpicrypt_times_begin(void)
{
    MPI_Comm shared;
    int rank, size, leader;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &shared);
    leader = rank;
    PMPI_Bcast(&leader, 1, MPI_INT, 0, shared);
    PMPI_Comm_free(&shared);
    node = need(calloc((size_t) size, sizeof(int)));
    PMPI_Allgather(&leader, 1, MPI_INT, node, 1, MPI_INT, MPI_COMM_WORLD);
    my_node = node[rank];
    between = inside = 0;
    started = mpicrypt_times_now();
}

void mpicrypt_times_end(void)
{
    double mine[3] = {between, inside, mpicrypt_times_now() - started}, sum[3];
    int rank, size;

    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Reduce(mine, sum, 3, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("\n@mpicrypt times %.6f %.6f %.6f\n", sum[0] / size, sum[1] / size, sum[2] / size);
        fflush(stdout);
    }
}

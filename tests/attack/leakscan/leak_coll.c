/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every collective, in the ways that are named on the command line: blocking,
 * nonblocking, persistent.  Reductions are a bitwise or of equal bytes, so that
 * partial results show the canary, too.
 */
#include "leak.h"
#include "mt_ways.h"

static int root, rank, size, n;
static MPI_Comm comm;
static int counts[64], at[64];
static MPI_Datatype types[64];

static void begin(const leak_op_t *op)
{
    mt_way = op->how;
    comm = leak_comm;
    n = (int) leak_n;
    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    root = leak_root ? size - 1 : 0;
    MT_CHECK(size <= 64, "%d ranks", size);
    for (int i = 0; i < size; i++) {
        counts[i] = n;
        at[i] = i * n;
        types[i] = MPI_BYTE;
    }
}

static void barrier(const leak_op_t *op)
{
    begin(op);
    MT_CALL(Barrier, Ibarrier, comm);
}

static void bcast(const leak_op_t *op)
{
    begin(op);
    unsigned char *p = rank == root ? leak_out : leak_in;
    MT_CALL(Bcast, Ibcast, p, n, MPI_BYTE, root, comm);
    LEAK_SAME(p, 1);
}

static void gather(const leak_op_t *op)
{
    begin(op);
    if (op->with) {
        MT_CALL(Gatherv, Igatherv, leak_out, n, MPI_BYTE, leak_in, counts, at, MPI_BYTE, root, comm);
    } else {
        MT_CALL(Gather, Igather, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, root, comm);
    }
    LEAK_SAME(leak_in, rank == root ? size : 0);
}

static void scatter(const leak_op_t *op)
{
    begin(op);
    if (op->with) {
        MT_CALL(Scatterv, Iscatterv, leak_out, counts, at, MPI_BYTE, leak_in, n, MPI_BYTE, root, comm);
    } else {
        MT_CALL(Scatter, Iscatter, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, root, comm);
    }
    LEAK_SAME(leak_in, 1);
}

static void allgather(const leak_op_t *op)
{
    begin(op);
    if (op->with) {
        MT_CALL(Allgatherv, Iallgatherv, leak_out, n, MPI_BYTE, leak_in, counts, at, MPI_BYTE, comm);
    } else {
        MT_CALL(Allgather, Iallgather, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm);
    }
    LEAK_SAME(leak_in, size);
}

static void alltoall(const leak_op_t *op)
{
    begin(op);
    if (2 == op->with) {
        MT_CALL(Alltoallw, Ialltoallw, leak_out, counts, at, types, leak_in, counts, at, types, comm);
    } else if (1 == op->with) {
        MT_CALL(Alltoallv, Ialltoallv, leak_out, counts, at, MPI_BYTE, leak_in, counts, at, MPI_BYTE, comm);
    } else {
        MT_CALL(Alltoall, Ialltoall, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm);
    }
    LEAK_SAME(leak_in, size);
}

static void reduce(const leak_op_t *op)
{
    begin(op);
    MT_CALL(Reduce, Ireduce, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, root, comm);
    LEAK_SAME(leak_in, rank == root);
}

static void allreduce(const leak_op_t *op)
{
    begin(op);
    MT_CALL(Allreduce, Iallreduce, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
    LEAK_SAME(leak_in, 1);
}

static void reduce_scatter(const leak_op_t *op)
{
    begin(op);
    if (op->with) {
        MT_CALL(Reduce_scatter_block, Ireduce_scatter_block, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
    } else {
        MT_CALL(Reduce_scatter, Ireduce_scatter, leak_out, leak_in, counts, MPI_BYTE, MPI_BOR, comm);
    }
    LEAK_SAME(leak_in, 1);
}

static void scan(const leak_op_t *op)
{
    begin(op);
    if (op->with) {
        MT_CALL(Exscan, Iexscan, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
    } else {
        MT_CALL(Scan, Iscan, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
    }
    LEAK_SAME(leak_in, !(op->with && 0 == rank));
}

/* The three ways of one collective. */
#define WAYS(name, iname, ...) \
    {#name, __VA_ARGS__, .how = MT_BLOCKING}, {#iname, __VA_ARGS__, .how = MT_NONBLOCKING}, \
    {#name "_init", __VA_ARGS__, .how = MT_PERSISTENT}

static const leak_op_t ops[] = {
    WAYS(Barrier, Ibarrier, barrier, .bare = true),
    WAYS(Bcast, Ibcast, bcast, .rooted = true),
    WAYS(Gather, Igather, gather, .rooted = true),
    WAYS(Gatherv, Igatherv, gather, .with = 1, .rooted = true),
    WAYS(Scatter, Iscatter, scatter, .rooted = true),
    WAYS(Scatterv, Iscatterv, scatter, .with = 1, .rooted = true),
    WAYS(Allgather, Iallgather, allgather),
    WAYS(Allgatherv, Iallgatherv, allgather, .with = 1),
    WAYS(Alltoall, Ialltoall, alltoall),
    WAYS(Alltoallv, Ialltoallv, alltoall, .with = 1),
    WAYS(Alltoallw, Ialltoallw, alltoall, .with = 2),
    WAYS(Reduce, Ireduce, reduce, .rooted = true, .splits = true),
    WAYS(Allreduce, Iallreduce, allreduce, .splits = true),
    WAYS(Reduce_scatter, Ireduce_scatter, reduce_scatter, .splits = true),
    WAYS(Reduce_scatter_block, Ireduce_scatter_block, reduce_scatter, .with = 1, .splits = true),
    WAYS(Scan, Iscan, scan),
    WAYS(Exscan, Iexscan, scan, .with = 1),
};

/* ---- neighborhoods ---- */

static MPI_Comm ring;
static MPI_Aint far_at[64];

static void neighbor(const leak_op_t *op)
{
    begin(op);
    comm = ring;
    for (int i = 0; i < 2; i++) {
        far_at[i] = at[i];
    }
    switch (op->with) {
    case 0: MT_CALL(Neighbor_allgather, Ineighbor_allgather, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm); break;
    case 1: MT_CALL(Neighbor_allgatherv, Ineighbor_allgatherv, leak_out, n, MPI_BYTE, leak_in, counts, at, MPI_BYTE,
                    comm); break;
    case 2: MT_CALL(Neighbor_alltoall, Ineighbor_alltoall, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm); break;
    case 3: MT_CALL(Neighbor_alltoallv, Ineighbor_alltoallv, leak_out, counts, at, MPI_BYTE, leak_in, counts, at,
                    MPI_BYTE, comm); break;
    case 4: MT_CALL(Neighbor_alltoallw, Ineighbor_alltoallw, leak_out, counts, far_at, types, leak_in, counts, far_at,
                    types, comm); break;
    }
    LEAK_SAME(leak_in, 2);
}

static const leak_op_t neighbor_ops[] = {
    WAYS(Neighbor_allgather, Ineighbor_allgather, neighbor, .with = 0),
    WAYS(Neighbor_allgatherv, Ineighbor_allgatherv, neighbor, .with = 1),
    WAYS(Neighbor_alltoall, Ineighbor_alltoall, neighbor, .with = 2),
    WAYS(Neighbor_alltoallv, Ineighbor_alltoallv, neighbor, .with = 3),
    WAYS(Neighbor_alltoallw, Ineighbor_alltoallw, neighbor, .with = 4),
};

/* ---- between two groups: the nodes ---- */

static void inter(const leak_op_t *op)
{
    int far, sender;
    begin(op);
    MT_MPI(MPI_Comm_remote_size(comm, &far));
    MT_CHECK(far == size, "%d and %d ranks", size, far);
    /* Rank 0 of the lower, or of the upper half is the root. */
    sender = (mt_rank < mt_size / 2) == (0 == leak_root);
    root = !sender ? 0 : 0 == rank ? MPI_ROOT : MPI_PROC_NULL;
    switch (op->with) {
    case 0:
        MT_CALL(Bcast, Ibcast, sender ? leak_out : leak_in, n, MPI_BYTE, root, comm);
        LEAK_SAME(leak_in, !sender);
        break;
    case 1:
        MT_CALL(Gather, Igather, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, root, comm);
        LEAK_SAME(leak_in, MPI_ROOT == root ? far : 0);
        break;
    case 2:
        MT_CALL(Scatter, Iscatter, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, root, comm);
        LEAK_SAME(leak_in, !sender);
        break;
    case 3:
        MT_CALL(Reduce, Ireduce, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, root, comm);
        LEAK_SAME(leak_in, MPI_ROOT == root);
        break;
    case 4:
        MT_CALL(Allgather, Iallgather, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm);
        LEAK_SAME(leak_in, far);
        break;
    case 5:
        MT_CALL(Alltoall, Ialltoall, leak_out, n, MPI_BYTE, leak_in, n, MPI_BYTE, comm);
        LEAK_SAME(leak_in, far);
        break;
    case 6:
        MT_CALL(Allreduce, Iallreduce, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
        LEAK_SAME(leak_in, 1);
        break;
    case 7:
        MT_CALL(Alltoallv, Ialltoallv, leak_out, counts, at, MPI_BYTE, leak_in, counts, at, MPI_BYTE, comm);
        LEAK_SAME(leak_in, far);
        break;
    case 8:
        MT_CALL(Allgatherv, Iallgatherv, leak_out, n, MPI_BYTE, leak_in, counts, at, MPI_BYTE, comm);
        LEAK_SAME(leak_in, far);
        break;
    case 9:
        MT_CALL(Reduce_scatter_block, Ireduce_scatter_block, leak_out, leak_in, n, MPI_BYTE, MPI_BOR, comm);
        LEAK_SAME(leak_in, 1);
        break;
    }
}

static const leak_op_t inter_ops[] = {
    WAYS(Bcast, Ibcast, inter, .with = 0, .rooted = true),
    WAYS(Gather, Igather, inter, .with = 1, .rooted = true),
    WAYS(Scatter, Iscatter, inter, .with = 2, .rooted = true),
    WAYS(Reduce, Ireduce, inter, .with = 3, .rooted = true, .splits = true),
    WAYS(Allgather, Iallgather, inter, .with = 4),
    WAYS(Alltoall, Ialltoall, inter, .with = 5),
    WAYS(Allreduce, Iallreduce, inter, .with = 6, .splits = true),
    WAYS(Alltoallv, Ialltoallv, inter, .with = 7),
    WAYS(Allgatherv, Iallgatherv, inter, .with = 8),
    WAYS(Reduce_scatter_block, Ireduce_scatter_block, inter, .with = 9, .splits = true),
};

/* ---- */

static void chosen(const char *group, const leak_op_t *all, int count, size_t largest)
{
    static const char *const words[MT_WAYS] = {"blocking", "nonblocking", "persistent"};
    for (int i = 0; i < count; i++) {
        if (mt_flag(words[all[i].how]) && (!mt_flag("adapt") || bcast == all[i].run || reduce == all[i].run)) {
            leak_run(group, &all[i], 1, largest, MPI_COMM_WORLD);
        }
    }
}

void leak_coll(size_t largest)
{
    chosen("collective", ops, LEAK_COUNT(ops), largest);
}

/* A ring in which both neighbors live on the other node. */
void leak_neighbor(size_t largest)
{
    MPI_Comm mixed;
    int periodic = 1, half = mt_size / 2;
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, mt_rank < half ? 2 * mt_rank : 2 * (mt_rank - half) + 1, &mixed));
    MT_MPI(MPI_Cart_create(mixed, 1, &mt_size, &periodic, 0, &ring));
    chosen("neighborhood", neighbor_ops, LEAK_COUNT(neighbor_ops), largest);
    MT_MPI(MPI_Comm_free(&ring));
    MT_MPI(MPI_Comm_free(&mixed));
}

void leak_inter(size_t largest)
{
    MPI_Comm half;
    int upper = mt_rank >= mt_size / 2;
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, upper, mt_rank, &half));
    MT_MPI(MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, upper ? 0 : mt_size / 2, 5, &leak_comm));
    chosen("inter-communicator", inter_ops, LEAK_COUNT(inter_ops), largest);
    MT_MPI(MPI_Comm_free(&leak_comm));
    MT_MPI(MPI_Comm_free(&half));
    leak_comm = MPI_COMM_WORLD;
}

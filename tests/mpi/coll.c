/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every collective, in the way named on the command line: "blocking" (the
 * default), "nonblocking" or "persistent"; on the world, on sub-communicators
 * of all shapes, on duplicates; from 0 to 300,000 bytes a rank; every root; in
 * place; predefined and own operations, commutative or not.
 */
#include "mt_ways.h"

static MPI_Comm comm;
static int rank, size, seed;

static unsigned char *get(size_t n)
{
    unsigned char *p = mt_alloc(n + 1);
    MT_CHECK(NULL != p, "memory");
    memset(p, 0x33, n + 1);
    return p;
}

static uint64_t key(int from, int to) { return mt_key(seed, from, to, 3); }

/* v-collectives: rank i contributes n + 3 i bytes to everybody, gaps between. */
static int part(int i, int n) { return n ? n + 3 * i : (i % 2); }

static void counts_of(int n, int *counts, int *at)
{
    for (int i = 0, where = 0; i < size; i++) {
        counts[i] = part(i, n);
        at[i] = where;
        where += counts[i] + 5;
    }
}

static size_t room_of(int n) { return (size_t) size * ((size_t) n + 3 * (size_t) size + 6); }

static void rooted(int n, int root)
{
    size_t all = (size_t) size * (size_t) n;
    int *counts = malloc((size_t) size * sizeof(int)), *at = malloc((size_t) size * sizeof(int));
    unsigned char *p = get(all), *q = get(room_of(n)), *own = get(room_of(n));
    counts_of(n, counts, at);

    if (rank == root) {
        mt_fill(p, (size_t) n, key(root, 0));
    }
    MT_CALL(Bcast, Ibcast, p, n, MPI_BYTE, root, comm);
    MT_SAME(p, (size_t) n, key(root, 0), "bcast");

    mt_fill(own, (size_t) n, key(rank, 1));
    MT_CALL(Gather, Igather, own, n, MPI_BYTE, p, n, MPI_BYTE, root, comm);
    for (int i = 0; rank == root && i < size; i++) {
        MT_SAME(p + (size_t) i * (size_t) n, (size_t) n, key(i, 1), "gather");
    }
    mt_fill(own, (size_t) counts[rank], key(rank, 2));
    MT_CALL(Gatherv, Igatherv, own, counts[rank], MPI_BYTE, q, counts, at, MPI_BYTE, root, comm);
    for (int i = 0; rank == root && i < size; i++) {
        MT_SAME(q + at[i], (size_t) counts[i], key(i, 2), "gatherv");
    }
    for (int i = 0; rank == root && i < size; i++) {
        mt_fill(p + (size_t) i * (size_t) n, (size_t) n, key(i, 3));
        mt_fill(q + at[i], (size_t) counts[i], key(i, 4));
    }
    if (rank == root && n % 2) {
        MT_CALL(Scatter, Iscatter, p, n, MPI_BYTE, MPI_IN_PLACE, n, MPI_BYTE, root, comm);
    } else {
        MT_CALL(Scatter, Iscatter, p, n, MPI_BYTE, own, n, MPI_BYTE, root, comm);
        MT_SAME(own, (size_t) n, key(rank, 3), "scatter");
    }
    MT_CALL(Scatterv, Iscatterv, q, counts, at, MPI_BYTE, own, counts[rank], MPI_BYTE, root, comm);
    MT_SAME(own, (size_t) counts[rank], key(rank, 4), "scatterv");
    free(counts); free(at); free(p); free(q); free(own);
}

static void everybody(int n)
{
    size_t all = (size_t) size * (size_t) n, bytes = (size_t) n;
    int *counts = malloc((size_t) size * sizeof(int)), *at = malloc((size_t) size * sizeof(int));
    unsigned char *p = get(all), *q = get(room_of(n)), *own = get(all);
    counts_of(n, counts, at);

    MT_CALL(Barrier, Ibarrier, comm);
    mt_fill(own, bytes, key(rank, 5));
    MT_CALL(Allgather, Iallgather, own, n, MPI_BYTE, p, n, MPI_BYTE, comm);
    for (int i = 0; i < size; i++) {
        MT_SAME(p + (size_t) i * bytes, bytes, key(i, 5), "allgather");
    }
    memset(p, 0, all);
    mt_fill(p + (size_t) rank * bytes, bytes, key(rank, 6));
    MT_CALL(Allgather, Iallgather, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, p, n, MPI_BYTE, comm);
    for (int i = 0; i < size; i++) {
        MT_SAME(p + (size_t) i * bytes, bytes, key(i, 6), "allgather in place");
    }
    mt_fill(q + at[rank], (size_t) counts[rank], key(rank, 7));
    MT_CALL(Allgatherv, Iallgatherv, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, q, counts, at, MPI_BYTE, comm);
    for (int i = 0; i < size; i++) {
        MT_SAME(q + at[i], (size_t) counts[i], key(i, 7), "allgatherv");
    }
    for (int i = 0; i < size; i++) {
        mt_fill(own + (size_t) i * bytes, bytes, key(rank, 10 + i));
    }
    MT_CALL(Alltoall, Ialltoall, own, n, MPI_BYTE, p, n, MPI_BYTE, comm);
    for (int i = 0; i < size; i++) {
        MT_SAME(p + (size_t) i * bytes, bytes, key(i, 10 + rank), "alltoall");
    }
    if (MT_BLOCKING == mt_way) {              /* in place with non-blocking alltoall: not in every 4.1 */
        MT_CALL(Alltoall, Ialltoall, MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, own, n, MPI_BYTE, comm);
        for (int i = 0; i < size; i++) {
            MT_SAME(own + (size_t) i * bytes, bytes, key(i, 10 + rank), "alltoall in place");
        }
    }
    free(counts); free(at); free(p); free(q); free(own);
}

/* Sizes differ for every pair: i sends to k: n + i + 2 k bytes. */
static void all_to_all_v(int n)
{
    size_t room = (size_t) size * ((size_t) n + 3 * (size_t) size + 8);
    int *sc = malloc((size_t) size * sizeof(int)), *sd = malloc((size_t) size * sizeof(int));
    int *rc = malloc((size_t) size * sizeof(int)), *rd = malloc((size_t) size * sizeof(int));
    MPI_Datatype *types = malloc((size_t) size * sizeof(*types));
    unsigned char *p = get(room), *q = get(room);
    for (int i = 0, a = 0, b = 0; i < size; i++) {
        sc[i] = n + rank + 2 * i;
        rc[i] = n + i + 2 * rank;
        sd[i] = a;
        rd[i] = b;
        a += sc[i] + 1;
        b += rc[i] + 2;
        types[i] = i % 2 ? MPI_BYTE : MPI_CHAR;
        mt_fill(p + sd[i], (size_t) sc[i], key(rank, 50 + i));
    }
    for (int w = 0; w < 2; w++) {
        memset(q, 0, room);
        if (w) {
            for (int i = 0; i < size; i++) {            /* signatures must agree: bytes */
                types[i] = MPI_BYTE;
            }
            MT_CALL(Alltoallw, Ialltoallw, p, sc, sd, types, q, rc, rd, types, comm);
        } else {
            MT_CALL(Alltoallv, Ialltoallv, p, sc, sd, MPI_BYTE, q, rc, rd, MPI_BYTE, comm);
        }
        for (int i = 0; i < size; i++) {
            MT_SAME(q + rd[i], (size_t) rc[i], key(i, 50 + rank), w ? "alltoallw" : "alltoallv");
        }
    }
    free(sc); free(sd); free(rc); free(rd); free(types); free(p); free(q);
}

/* ---- reductions over 64-bit integers ---- */

static uint64_t value(int from, int i) { return mt_mix(key(from, 100) + (uint64_t) i); }

static uint64_t sum(int first, int last, int i)
{
    uint64_t s = 0;
    for (int r = first; r <= last; r++) {
        s += value(r, i);
    }
    return s;
}

static void reductions(int n, int root)
{
    size_t bytes = (size_t) n * 8;
    uint64_t *a = (uint64_t *) get(bytes * (size_t) size), *b = (uint64_t *) get(bytes * (size_t) size);
    int *counts = malloc((size_t) size * sizeof(int)), total = n * size, first = 0;
    for (int i = 0; i < total; i++) {
        a[i] = value(rank, i);
    }
    MT_CALL(Reduce, Ireduce, a, b, n, MPI_UINT64_T, MPI_SUM, root, comm);
    for (int i = 0; rank == root && i < n; i++) {
        MT_CHECK(b[i] == sum(0, size - 1, i), "reduce, element %d", i);
    }
    MT_CALL(Allreduce, Iallreduce, a, b, n, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        MT_CHECK(b[i] == sum(0, size - 1, i), "allreduce, element %d", i);
    }
    memcpy(b, a, bytes);
    MT_CALL(Allreduce, Iallreduce, MPI_IN_PLACE, b, n, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        MT_CHECK(b[i] == sum(0, size - 1, i), "allreduce in place, element %d", i);
    }
    MT_CALL(Scan, Iscan, a, b, n, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        MT_CHECK(b[i] == sum(0, rank, i), "scan, element %d", i);
    }
    MT_CALL(Exscan, Iexscan, a, b, n, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; rank > 0 && i < n; i++) {
        MT_CHECK(b[i] == sum(0, rank - 1, i), "exscan, element %d", i);
    }
    MT_CALL(Reduce_scatter_block, Ireduce_scatter_block, a, b, n, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < n; i++) {
        MT_CHECK(b[i] == sum(0, size - 1, rank * n + i), "reduce_scatter_block, element %d", i);
    }
    for (int i = 0; i < size; i++) {                    /* uneven, some empty, `total` together */
        counts[i] = size - 1 == i ? total - first : i % 2 ? 0 : n / 2;
        first += counts[i];
    }
    first = 0;
    for (int i = 0; i < rank; i++) {
        first += counts[i];
    }
    MT_CALL(Reduce_scatter, Ireduce_scatter, a, b, counts, MPI_UINT64_T, MPI_SUM, comm);
    for (int i = 0; i < counts[rank]; i++) {
        MT_CHECK(b[i] == sum(0, size - 1, first + i), "reduce_scatter, element %d", i);
    }
    free(a); free(b); free(counts);
}

/* Composition of x -> m x + c (mod 2^32): associative, not commutative. */
typedef struct { uint32_t m, c; } affine_t;

static void compose(void *in, void *inout, int *n, MPI_Datatype *type)
{
    affine_t *f = in, *g = inout;
    (void) type;
    for (int i = 0; i < *n; i++) {
        affine_t h = {f[i].m * g[i].m, f[i].m * g[i].c + f[i].c};
        g[i] = h;
    }
}

static void own_operation(int n, int root)
{
    MPI_Datatype pair;
    MPI_Op op;
    affine_t *a = (affine_t *) get((size_t) n * 8), *b = (affine_t *) get((size_t) n * 8), *want = (affine_t *) get((size_t) n * 8);
    MT_MPI(MPI_Type_contiguous(2, MPI_UINT32_T, &pair));
    MT_MPI(MPI_Type_commit(&pair));
    MT_MPI(MPI_Op_create(compose, 0, &op));
    for (int i = 0; i < n; i++) {
        want[i] = (affine_t) {1, 0};
        for (int r = size - 1; r >= 0; r--) {
            affine_t f = {(uint32_t) value(r, i) | 1, (uint32_t) (value(r, i) >> 32)};
            want[i] = (affine_t) {f.m * want[i].m, f.m * want[i].c + f.c};
            if (r == rank) {
                a[i] = f;
            }
        }
    }
    MT_CALL(Reduce, Ireduce, a, b, n, pair, op, root, comm);
    MT_CHECK(rank != root || 0 == memcmp(b, want, (size_t) n * 8), "reduce, own operation");
    MT_CALL(Allreduce, Iallreduce, a, b, n, pair, op, comm);
    MT_CHECK(0 == memcmp(b, want, (size_t) n * 8), "allreduce, own operation");
    MT_MPI(MPI_Op_free(&op));
    MT_MPI(MPI_Type_free(&pair));
    free(a); free(b); free(want);
}

static void on(MPI_Comm c, const char *name, int limit)
{
    static const int sizes[] = {0, 1, 24, 1000, 4097, 32769, 65537, 300001};
    static int calls;
    comm = c;
    calls++;
    if (MPI_COMM_NULL != c) {
        MT_MPI(MPI_Comm_rank(c, &rank));
        MT_MPI(MPI_Comm_size(c, &size));
        for (int i = 0; i < (int) (sizeof(sizes) / sizeof(*sizes)) && sizes[i] <= limit; i++) {
            int n = sizes[i], root = (i * 3 + 1) % size;
            seed = 100 * calls + i;
            for (int r = 0; r < size && n < 5000; r++) {
                rooted(n, r);
            }
            rooted(n, root);
            everybody(n);
            all_to_all_v(n);
            reductions(n / 8 + 1, root);
            own_operation(n / 8 + 1, root);
        }
    }
    mt_group("%s", name);
}

int main(int argc, char **argv)
{
    MPI_Comm c;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_way = mt_flag("persistent") ? MT_PERSISTENT : mt_flag("nonblocking") ? MT_NONBLOCKING : MT_BLOCKING;
    int limit = (int) mt_arg("limit", 300001);
    on(MPI_COMM_WORLD, "world", limit);
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &c));
    on(c, "duplicate", 5000);
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, -mt_rank, &c));
    on(c, "odd and even ranks, in reverse", limit);
    MT_MPI(MPI_Comm_free(&c));
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0 == mt_rank ? MPI_UNDEFINED : 0, mt_rank * 7 % 5, &c));
    on(c, "all but rank 0, mixed", 5000);
    if (MPI_COMM_NULL != c) {
        MT_MPI(MPI_Comm_free(&c));
    }
    MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &c));
    on(c, "a node", 70000);
    MT_MPI(MPI_Comm_free(&c));
    on(MPI_COMM_SELF, "self", 5000);
    return mt_end();
}

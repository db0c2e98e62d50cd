/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Alltoall and MPI_Alltoallv, every algorithm: every byte of every block,
 * in place, strided on one side or both, short, long and empty blocks mixed, on
 * communicators with the node maps of the arguments; blocks of unequal length are
 * refused; and how many items are sealed (noshm: none, without shared memory).
 *
 *     alltoall [largest=BYTES] [noshm=0] MAP...
 */
#include "cryptag.h"

enum { AUTO, HOP, NODE, PAIRS, ROWS };

static void uniform(MPI_Comm comm, size_t m, bool in_place, int round)
{
    mt_buf_t out, in;
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    mt_buf_new(&out, (size_t) p * m);
    mt_buf_new(&in, (size_t) p * m);
    for (int i = 0; i < p; i++) {
        mt_fill((in_place ? in.p : out.p) + (size_t) i * m, m, mt_key(round, rank, i, 0));
    }
    MT_MPI(MPI_Alltoall(in_place ? MPI_IN_PLACE : out.p, (int) m, MPI_BYTE, in.p, (int) m, MPI_BYTE, comm));
    for (int i = 0; i < p; i++) {
        MT_SAME(in.p + (size_t) i * m, m, mt_key(round, i, rank, 0), "alltoall");
    }
    MT_CHECK(0 == m || in.p[(size_t) p * m] == in.p[-1], "the byte behind the buffer was written");
    mt_buf_free(&out);
    mt_buf_free(&in);
}

static int strided_value(int from, int to, int i, int round)
{
    return ((from * 64 + to) * 4096 + i) * 8 + round % 8;
}

/* Every other int on one side or on both; the gaps must stay as they are. */
static void strided(MPI_Comm comm, int ints, bool strided_send, bool strided_recv, int round)
{
    MPI_Datatype vector, spaced;
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    MT_MPI(MPI_Type_vector(ints, 1, 2, MPI_INT, &vector));
    MT_MPI(MPI_Type_create_resized(vector, 0, (MPI_Aint) (2 * (size_t) ints * sizeof(int)), &spaced));
    MT_MPI(MPI_Type_commit(&spaced));
    const size_t step_out = strided_send ? 2 : 1, step_in = strided_recv ? 2 : 1, n = (size_t) ints;
    int *out = mt_alloc((size_t) p * n * step_out * sizeof(int)), *in = mt_alloc((size_t) p * n * step_in * sizeof(int));
    MT_CHECK(NULL != out && NULL != in, "memory");
    memset(in, 0x77, (size_t) p * n * step_in * sizeof(int));
    for (int r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) {
            out[((size_t) r * n + i) * step_out] = strided_value(rank, r, (int) i, round);
        }
    }
    MT_MPI(MPI_Alltoall(out, strided_send ? 1 : ints, strided_send ? spaced : MPI_INT, in, strided_recv ? 1 : ints,
                        strided_recv ? spaced : MPI_INT, comm));
    for (int r = 0; r < p; r++) {
        for (size_t i = 0; i < n; i++) {
            const int *at = &in[((size_t) r * n + i) * step_in];

            MT_CHECK(strided_value(r, rank, (int) i, round) == at[0], "int %zu of block %d is wrong", i, r);
            MT_CHECK(1 == step_in || 0x77777777 == at[1], "the gap after int %zu of block %d was written", i, r);
        }
    }
    free(out);
    free(in);
    MPI_Type_free(&spaced);
    MPI_Type_free(&vector);
}

/* From `from` to `to`; symmetric for calls in place. */
static int length(int from, int to, size_t m, int round, bool symmetric)
{
    int a = symmetric && to < from ? to : from, b = symmetric && to < from ? from : to, k = (3 * a + 5 * b + round) % 5;

    return 0 == k ? 0 : 1 == k ? a + b : (int) (m * (size_t) k / 3);
}

/* Lengths all different, gaps between blocks, blocks received in reverse order. */
static void uneven(MPI_Comm comm, size_t m, bool in_place, int round)
{
    enum { GAP = 3 };
    int p, rank, end_out = 0, end_in = 0;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    int *n = malloc(4 * (size_t) p * sizeof(int)), *n_in = n + p, *at = n + 2 * p, *at_in = n + 3 * p;
    MT_CHECK(NULL != n, "memory");
    for (int i = 0; i < p; i++) {
        n[i] = length(rank, i, m, round, in_place);
        at[i] = end_out;
        end_out += n[i];
    }
    for (int i = p - 1; i >= 0; i--) {
        n_in[i] = length(i, rank, m, round, in_place);
        at_in[i] = end_in;
        end_in += n_in[i] + GAP;
    }
    uint8_t *out = mt_alloc((size_t) end_out + 1), *in = mt_alloc((size_t) end_in + 1);
    MT_CHECK(NULL != out && NULL != in, "memory");
    memset(in, 0xee, (size_t) end_in + 1);
    for (int i = 0; i < p; i++) {
        mt_fill(in_place ? in + at_in[i] : out + at[i], (size_t) n[i], mt_key(round, rank, i, 1));
    }
    MT_MPI(MPI_Alltoallv(in_place ? MPI_IN_PLACE : out, n, at, MPI_BYTE, in, n_in, at_in, MPI_BYTE, comm));
    for (int i = 0; i < p; i++) {
        MT_SAME(in + at_in[i], (size_t) n_in[i], mt_key(round, i, rank, 1), "alltoallv");
        for (int k = 0; k < GAP; k++) {
            MT_CHECK(0xee == in[at_in[i] + n_in[i] + k], "the gap after block %d was written", i);
        }
    }
    free(out);
    free(in);
    free(n);
}

static void all_cases(MPI_Comm comm, size_t largest, int round)
{
    static const size_t sizes[] = { 0, 1, 3, 8, 100, 1000, 4096, 4097, 16384, 70000, 262144 };

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++) {
        uniform(comm, sizes[i], false, round++);
        uniform(comm, sizes[i], true, round++);
        for (int k = 0; k < 3; k++) {
            uneven(comm, sizes[i], false, round++);
            uneven(comm, sizes[i], true, round++);
        }
    }
    for (int ints = 1; ints < 3000 && (size_t) ints * sizeof(int) <= largest; ints = ints * 9 + 1) {
        strided(comm, ints, true, true, round++);
        strided(comm, ints, true, false, round++);
        strided(comm, ints, false, true, round++);
    }
}

/* Blocks that are shorter where they come from than where they go are an error, and
 * nothing behind them is read. */
static void unequal(MPI_Comm comm)
{
    int p, rc, class;

    MPI_Comm_size(comm, &p);
    int *out = calloc((size_t) p, sizeof(int)), *in = calloc(2 * (size_t) p, sizeof(int));
    MT_CHECK(NULL != out && NULL != in, "memory");
    MT_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
    rc = MPI_Alltoall(out, 1, MPI_INT, in, 2, MPI_INT, comm);
    MT_MPI(MPI_Error_class(rc, &class));
    MT_CHECK(MPI_ERR_TRUNCATE == class, "unequal blocks: class %d", class);
    MT_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL));
    free(out);
    free(in);
}

/* One item a pair of nodes (by node) or of ranks on different nodes (by rows), and each
 * byte between nodes in one of them.  Over btl/crypt none. */
static void check_counts(MPI_Comm comm, const int *nodes, int p, int algorithm)
{
    enum { M = 64 };
    unsigned char *out = calloc((size_t) p, M), *in = calloc((size_t) p, M);
    unsigned long long pairs = 0, bytes = 0;
    metrics_t added, sum;

    MT_CHECK(NULL != out && NULL != in, "memory");
    for (int a = 0; a < p; a++) {
        for (int b = 0; b < p; b++) {
            bool first = mt_sealed() && nodes[a] != nodes[b];

            bytes += first ? M : 0;
            for (int i = 0; NODE == algorithm && i < p; i++) {
                first = first && !(i < a && nodes[i] == nodes[a]) && !(i < b && nodes[i] == nodes[b]);
            }
            pairs += first;
        }
    }
    CRYPTAG_COUNT(added, MT_MPI(MPI_Alltoall(out, M, MPI_BYTE, in, M, MPI_BYTE, comm)));
    MT_MPI(MPI_Allreduce(added, sum, METRICS, MPI_UNSIGNED_LONG_LONG, MPI_SUM, comm));
    MT_CHECK(pairs == sum[2] && bytes == sum[3], "%llu items of %llu bytes were sealed, must be %llu of %llu", sum[2],
             sum[3], pairs, bytes);
    MT_CHECK(pairs == sum[4] && bytes == sum[5], "%llu items of %llu bytes were opened, must be %llu of %llu", sum[4],
             sum[5], pairs, bytes);
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    const char *maps[32];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    const char *words[ALGORITHMS_MOST];
    const int alltoalls = cryptag_algorithms("alltoall", words);
    const size_t largest = (size_t) mt_arg("largest", 16384);
    const int count = map_arguments(argc, argv, maps, 32);

    for (int i = 0; i < count; i++) {
        MPI_Comm comm = map_comm(maps[i]);
        int nodes[MAP_RANKS], p = map_parse(maps[i], nodes);

        for (int a = 0; a < alltoalls && MPI_COMM_NULL != comm; a++) {
            cryptag_set("alltoall_algorithm", a);
            all_cases(comm, largest, 1000 * i + a);
            unequal(comm);
            if ((NODE == a || ROWS == a) && 0 == mt_arg("noshm", 0)) {
                check_counts(comm, nodes, p, a);
            }
        }
        if (MPI_COMM_NULL != comm) {
            MT_MPI(MPI_Comm_free(&comm));
        }
        cryptag_set("alltoall_algorithm", AUTO);
        mt_group("%s, up to %zu bytes", maps[i], largest);
    }
    cryptag_stop();
    return mt_end();
}

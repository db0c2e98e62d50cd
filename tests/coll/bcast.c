/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Bcast, every algorithm, from every root: every byte, strided types (the
 * root's and the others' of different shape), no bytes, on communicators with
 * the node maps of the arguments; and who seals and opens how much.
 *
 *     bcast [largest=BYTES] [segment=130000] MAP...
 *
 * segment: twice what coll_cryptag_fragment is.
 */
#include "cryptag.h"

enum { AUTO, HOP };
static const char *name[ALGORITHMS_MOST];

static void contiguous(MPI_Comm comm, size_t m, int root, int round)
{
    mt_buf_t buffer;
    int rank;

    MPI_Comm_rank(comm, &rank);
    mt_buf_new(&buffer, m);
    if (rank == root) {
        mt_fill(buffer.p, m, mt_key(round, root, 0, 0));
    }
    MT_MPI(MPI_Bcast(buffer.p, (int) m, MPI_BYTE, root, comm));
    MT_BUF(&buffer, m, mt_key(round, root, 0, 0));
    mt_buf_free(&buffer);
}

/* Every other int at odd ranks, consecutive ones at even ranks; the gaps must
 * stay as they are. */
static void strided(MPI_Comm comm, int ints, int root, int round)
{
    MPI_Datatype vector;
    int rank;

    MPI_Comm_rank(comm, &rank);
    const size_t step = rank % 2 ? 2 : 1;
    int *all = mt_alloc((size_t) ints * 2 * sizeof(int));
    MT_CHECK(NULL != all, "memory");
    memset(all, 0x77, (size_t) ints * 2 * sizeof(int));
    for (int i = 0; rank == root && i < ints; i++) {
        all[(size_t) i * step] = round * 100000 + i;
    }
    MT_MPI(MPI_Type_vector(ints, 1, 2, MPI_INT, &vector));
    MT_MPI(MPI_Type_commit(&vector));
    MT_MPI(MPI_Bcast(all, 2 == step ? 1 : ints, 2 == step ? vector : MPI_INT, root, comm));
    for (int i = 0; i < ints; i++) {
        MT_CHECK(round * 100000 + i == all[(size_t) i * step], "int %d of %d is wrong", i, ints);
        MT_CHECK(1 == step || 0x77777777 == all[2 * i + 1], "the gap after int %d was written", i);
    }
    MPI_Type_free(&vector);
    free(all);
}

/* The root seals once.  Everybody else opens that once from the memory of his node; where
 * it goes by messages within nodes (short ones, no memory), one rank of every other node.
 * Over btl/crypt nobody does either. */
static void check_counts(MPI_Comm comm, const int *nodes, size_t m, int root, size_t segment, size_t share_min)
{
    unsigned char *bytes = mt_alloc(m);
    bool first = true;
    metrics_t added;
    int rank, ranks, here = 0;

    MT_CHECK(NULL != bytes, "memory");
    memset(bytes, 1, m);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    for (int i = 0; i < ranks; i++) {
        first = first && (i >= rank || nodes[i] != nodes[rank]);
        here += nodes[i] == nodes[rank];
    }
    const unsigned long long pieces = (m + segment - 1) / segment;
    const bool shared = here > 1 && m >= share_min, seals = mt_sealed() && rank == root;
    const bool opens = mt_sealed() && (shared ? !seals : first && nodes[rank] != nodes[root]);
    CRYPTAG_COUNT(added, MT_MPI(MPI_Bcast(bytes, (int) m, MPI_BYTE, root, comm)));
    MT_CHECK(added[2] == (seals ? pieces : 0) && added[3] == (seals ? m : 0), "sealed %llu pieces, %llu bytes of %zu",
             added[2], added[3], m);
    MT_CHECK(added[4] == (opens ? pieces : 0) && added[5] == (opens ? m : 0), "opened %llu pieces, %llu bytes of %zu",
             added[4], added[5], m);
    free(bytes);
}

static void all_cases(MPI_Comm comm, size_t largest, int round)
{
    static const size_t sizes[] = { 0, 1, 3, 100, 1000, 4096, 16385, 70000, 262144, 1048577 };
    int p;

    MPI_Comm_size(comm, &p);
    for (int root = 0; root < p; root++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && sizes[i] <= largest; i++) {
            contiguous(comm, sizes[i], root, round++);
        }
        for (int ints = 1; (size_t) ints * sizeof(int) <= largest; ints = ints * 9 + 1) {
            strided(comm, ints, root, round++);
        }
    }
}

int main(int argc, char **argv)
{
    const char *maps[32];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    const int bcasts = cryptag_algorithms("bcast", name);
    const size_t largest = (size_t) mt_arg("largest", 70000), segment = (size_t) mt_arg("segment", 130000);
    const size_t share_min = (size_t) mt_arg("share_min", 129);
    const int count = map_arguments(argc, argv, maps, 32);

    for (int i = 0; i < count; i++) {
        MPI_Comm comm = map_comm(maps[i]);
        int nodes[MAP_RANKS], p = map_parse(maps[i], nodes);

        for (int a = 0; a < bcasts && MPI_COMM_NULL != comm; a++) {
            cryptag_set("bcast_algorithm", a);
            MT_CHECK(a == cryptag_get("bcast_algorithm"), "%s is not set", name[a]);
            all_cases(comm, largest, 1000 * i + a);
            for (int root = 0; HOP != a && root < p; root++) {
                check_counts(comm, nodes, 100, root, segment, share_min);
                check_counts(comm, nodes, largest, root, segment, share_min);
            }
        }
        if (MPI_COMM_NULL != comm) {
            MT_MPI(MPI_Comm_free(&comm));
        }
        cryptag_set("bcast_algorithm", AUTO);
        mt_group("%s, up to %zu bytes", maps[i], largest);
    }
    cryptag_stop();
    return mt_end();
}

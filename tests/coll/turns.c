/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Collectives without a barrier between them: whoever is done with a broadcast
 * goes on to some all-gathers at once, in the same shared memory, while its root and
 * the chiefs of other nodes may still be at the broadcast, or at an all-gather that
 * is over for others.  Some ranks are late.  turns [rounds=N]
 */
#include "mt.h"

enum { BYTES = 64 << 10, PART = 64 << 10 };

static unsigned char sent[BYTES], got[BYTES], part[PART], *parts;

static void broadcast(int round)
{
    int root = round % mt_size;

    mt_fill(sent, BYTES, mt_key(1, root, round, 0));
    memcpy(got, sent, root == mt_rank ? BYTES : 0);
    MT_MPI(MPI_Bcast(got, BYTES, MPI_BYTE, root, MPI_COMM_WORLD));
    MT_CHECK(0 == memcmp(sent, got, BYTES), "round %d: the broadcast of rank %d", round, root);
}

static void gather(int round, int number, int bytes)
{
    mt_fill(part, bytes, mt_key(2, mt_rank, round, number));
    MT_MPI(MPI_Allgather(part, bytes, MPI_BYTE, parts, bytes, MPI_BYTE, MPI_COMM_WORLD));
    for (int rank = 0; rank < mt_size; rank++) {
        MT_CHECK((size_t) bytes == mt_differs(parts + (size_t) rank * bytes, bytes, mt_key(2, rank, round, number)),
                 "round %d, all-gather %d of %d bytes: the part of rank %d", round, number, bytes, rank);
    }
}

/* Now and then another rank works for a while. */
static void be_late(uint64_t *random)
{
    if (0 == mt_below(random, 8)) {
        double until = MPI_Wtime() + 1e-6 * (double) mt_below(random, 300);
        while (MPI_Wtime() < until) {
        }
    }
}

int main(int argc, char **argv)
{
    static const int sizes[] = {4096, 1, 4097, 0, 1000, PART, 8192};
    uint64_t random;
    int gathers = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    random = mt_key(3, mt_rank, 0, 0);
    long rounds = mt_arg("rounds", 300);
    parts = malloc((size_t) mt_size * PART);
    for (int round = 0; round < rounds; round++) {
        broadcast(round);
        for (int number = 0; number < round % 5; number++) {
            be_late(&random);
            gather(round, number, sizes[gathers++ % (int) (sizeof(sizes) / sizeof(sizes[0]))]);
        }
    }
    mt_group("%ld broadcasts, %d all-gathers between them", rounds, gathers);
    free(parts);
    return mt_end();
}

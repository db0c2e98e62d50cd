/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Collectives without a barrier between them: whoever is done with a broadcast
 * goes on to an all-gather at once, in the same shared memory, while its root and
 * the chiefs of other nodes may still be at the broadcast.  turns [rounds=N]
 */
#include "mt.h"

enum { BYTES = 64 << 10, PART = 4 << 10 };

static unsigned char sent[BYTES], got[BYTES], part[PART], *parts;

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    int rounds = (int) mt_arg("rounds", 300);
    parts = malloc((size_t) mt_size * PART);
    for (int i = 0; i < rounds; i++) {
        int root = i % mt_size;
        mt_fill(sent, BYTES, mt_key(1, root, i, 0));
        mt_fill(part, PART, mt_key(2, mt_rank, i, 0));
        memcpy(got, sent, root == mt_rank ? BYTES : 0);
        MT_MPI(MPI_Bcast(got, BYTES, MPI_BYTE, root, MPI_COMM_WORLD));
        MT_MPI(MPI_Allgather(part, PART, MPI_BYTE, parts, PART, MPI_BYTE, MPI_COMM_WORLD));
        MT_CHECK(0 == memcmp(sent, got, BYTES), "round %d: the broadcast of rank %d", i, root);
        for (int rank = 0; rank < mt_size; rank++) {
            mt_fill(part, PART, mt_key(2, rank, i, 0));
            MT_CHECK(0 == memcmp(part, parts + (size_t) rank * PART, PART), "round %d: the part of rank %d", i, rank);
        }
    }
    mt_group("%d rounds", rounds);
    return mt_end();
}

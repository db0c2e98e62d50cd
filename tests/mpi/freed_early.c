/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A communicator is freed while a message that a probe has found, but that is never received,
 * is still arriving.  Its memory must not be touched afterwards: what the allocator returns
 * next is filled and must stay as it is.
 *
 * The message is lost intentionally, which MPI_Finalize may report.
 */
#include "mt.h"

enum { BLOCKS = 400, ROUNDS = 20 };

static unsigned char *blocks[BLOCKS];

static size_t size_of(int i) { return (size_t) 64 << (i % 12); }

static void fill_memory(int round)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(size_of(i));
        MT_CHECK(NULL != blocks[i], "no memory");
        mt_fill(blocks[i], size_of(i), mt_key(round, i, 0, 0));
    }
}

static void check_memory(int round)
{
    for (int i = 0; i < BLOCKS; i++) {
        MT_SAME(blocks[i], size_of(i), mt_key(round, i, 0, 0), "memory that was given out after the free");
        free(blocks[i]);
    }
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const size_t bytes = (size_t) mt_arg("bytes", 3000000);
    unsigned char *p = malloc(bytes);
    int found = 0, early = 0;
    memset(p, 1, bytes);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Comm comm;
        MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
        if (mt_size - 1 == mt_rank) {
            MT_MPI(MPI_Isend(p, (int) bytes, MPI_BYTE, 0, 1, comm, &request));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == mt_rank) {
            for (int tries = 0; tries < 1 + round && !found; tries++) {
                MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 1, comm, &found, MPI_STATUS_IGNORE));
            }
            early += !found;
        }
        MT_MPI(MPI_Comm_free(&comm));
        if (0 == mt_rank) {
            fill_memory(round);
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == mt_rank) {
            check_memory(round);
        }
        if (MPI_REQUEST_NULL != request) {
            MT_MPI(MPI_Request_free(&request));     /* its buffer stays */
        }
        found = 0;
    }
    mt_group("%d communicators were freed, %d of them early", ROUNDS, early);
    return mt_end();
}

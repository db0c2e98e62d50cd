/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages that are never received, as if an attacker had deleted them: rank 1
 * sends `messages` of them to rank 0, after some that are received.
 * tests/shell/final.sh checks what is reported about them at the end.
 *
 * With `left=N`, MPI_Finalize finds pending operations: long messages that are never received,
 * and receives that nothing matches, their requests freed.  No rank may die of it.
 */
#include "mt.h"

#include <signal.h>
#include <unistd.h>

/* On MPI_COMM_WORLD, and on a communicator that is freed before they end. */
static void leave(int messages)
{
    enum { BYTES = 3000000 };
    static unsigned char out[BYTES], in[BYTES];
    const int next = (mt_rank + 1) % mt_size, before = (mt_rank + mt_size - 1) % mt_size;
    MPI_Request request;
    MPI_Comm comms[2] = {MPI_COMM_WORLD};

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]));
    for (int i = 0; i < messages; i++) {
        MT_MPI(MPI_Isend(out, 1 + (int) (i * 70001L % BYTES), MPI_BYTE, next, 98, comms[i / 2 % 2], &request));
        MT_MPI(MPI_Request_free(&request));
        MT_MPI(MPI_Irecv(in, BYTES, MPI_BYTE, i % 3 ? before : MPI_ANY_SOURCE, 97, comms[i / 2 % 2], &request));
        MT_MPI(MPI_Request_free(&request));
    }
    MT_MPI(MPI_Comm_free(&comms[1]));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int messages = (int) mt_arg("messages", 0), left = (int) mt_arg("left", 0);
    int value = mt_rank, sum = 0;

    MT_MPI(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < messages && 1 == mt_rank; i++) {
        MT_MPI(MPI_Send(&i, 1, MPI_INT, 0, 99, MPI_COMM_WORLD));
    }
    leave(left);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (mt_flag("dies") && 1 == mt_rank) {
        kill(getpid(), SIGKILL);
    }
    mt_group("%d messages that nobody receives", messages + left);
    return mt_end();
}

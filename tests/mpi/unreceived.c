/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages that nobody receives, as if somebody had deleted them on their way:
 * rank 1 sends `messages` of them to rank 0, after some that are received.
 * tests/shell/final.sh looks for what must be said of it at the end.
 */
#include "mt.h"

#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const int messages = (int) mt_arg("messages", 0);
    int value = mt_rank, sum = 0;

    MT_MPI(MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    for (int i = 0; i < messages && 1 == mt_rank; i++) {
        MT_MPI(MPI_Send(&i, 1, MPI_INT, 0, 99, MPI_COMM_WORLD));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (mt_flag("dies") && 1 == mt_rank) {
        kill(getpid(), SIGKILL);
    }
    mt_group("%d messages that nobody receives", messages);
    return mt_end();
}

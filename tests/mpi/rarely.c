/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * rarely: a process computes for 2.5 seconds between its calls of MPI, and sends its first message to a peer that
 * only waits for it, and answers.  Each call takes the connection a step further, so a few calls must suffice.
 */
#include "mt.h"

#include <time.h>
#include <unistd.h>

enum { CALLS_MOST = 12, GAP_MS = 2500, LIMIT_SECONDS = 120 };

static void compute(long milliseconds)
{
    struct timespec begin, now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < milliseconds);
}

int main(int argc, char **argv)
{
    int value = 42, answer = 0, calls = 0, done = 0;
    MPI_Request send, receive;

    /* mt_start has all processes meet. */
    MT_MPI(MPI_Init(&argc, &argv));
    MT_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &mt_rank));
    MT_MPI(MPI_Comm_size(MPI_COMM_WORLD, &mt_size));
    alarm(LIMIT_SECONDS);
    if (1 == mt_rank) {
        MT_MPI(MPI_Irecv(&answer, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, &receive));
        MT_MPI(MPI_Isend(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, &send));
        for (; !done; calls++) {
            MT_CHECK(calls < CALLS_MOST, "%d calls, and there is no answer", calls);
            compute(GAP_MS);
            MT_MPI(MPI_Test(&receive, &done, MPI_STATUS_IGNORE));
        }
        MT_MPI(MPI_Wait(&send, MPI_STATUS_IGNORE));
        MT_CHECK(43 == answer, "%d", answer);
    } else if (0 == mt_rank) {
        MT_MPI(MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_CHECK(42 == value, "%d", value);
        answer = value + 1;
        MT_MPI(MPI_Send(&answer, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
    }
    MT_MPI(MPI_Bcast(&calls, 1, MPI_INT, 1, MPI_COMM_WORLD));
    if (0 == mt_rank) {
        printf("ok rarely: an answer after %d calls\n", calls);
    }
    MT_MPI(MPI_Finalize());
    return 0;
}

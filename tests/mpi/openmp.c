/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An application that uses OpenMP: it computes in parallel regions while large
 * messages are under way, and its threads send and receive in a region.
 */
#include "mt.h"

enum { BYTES = 1000003, ROUNDS = 10, THREADS = 4 };

static int partner(void)
{
    return (mt_rank + mt_size / 2) % mt_size;       /* on the other node */
}

static double compute(int seed)
{
    double sum = 0;

#pragma omp parallel for num_threads(THREADS) reduction(+ : sum)
    for (int i = 0; i < 1000000; i++) {
        sum += (double) ((i ^ seed) & 1023);
    }
    return sum;
}

static void beside_computation(void)
{
    unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
    const double expected = compute(0);

    for (int round = 0; round < ROUNDS; round++) {
        MPI_Request request[2];
        mt_fill(out, BYTES, mt_key(1, mt_rank, round, 0));
        MT_MPI(MPI_Irecv(in, BYTES, MPI_BYTE, partner(), round, MPI_COMM_WORLD, &request[0]));
        MT_MPI(MPI_Isend(out, BYTES, MPI_BYTE, partner(), round, MPI_COMM_WORLD, &request[1]));
        MT_CHECK(expected == compute(0), "a sum of the parallel region");
        MT_MPI(MPI_Waitall(2, request, MPI_STATUSES_IGNORE));
        MT_SAME(in, BYTES, mt_key(1, partner(), round, 0), "beside a parallel region");
    }
    free(out);
    free(in);
    mt_group("parallel regions while messages are under way");
}

/* A thread's exchange; returns whether all was right. */
static int exchange(int thread)
{
    unsigned char *out = malloc(BYTES), *in = malloc(BYTES);
    int right = 1;

    for (int round = 0; round < ROUNDS; round++) {
        mt_fill(out, BYTES, mt_key(2, mt_rank, round, thread));
        right = right && MPI_SUCCESS == MPI_Sendrecv(out, BYTES, MPI_BYTE, partner(), thread, in, BYTES, MPI_BYTE,
                                                     partner(), thread, MPI_COMM_WORLD, MPI_STATUS_IGNORE)
                && BYTES == mt_differs(in, BYTES, mt_key(2, partner(), round, thread));
    }
    free(out);
    free(in);
    return right;
}

static void from_regions(void)
{
    int right = 0;

#pragma omp parallel for num_threads(THREADS) reduction(+ : right)
    for (int thread = 0; thread < THREADS; thread++) {
        right += exchange(thread);
    }
    MT_CHECK(THREADS == right, "%d of %d threads", right, THREADS);
    mt_group("messages of %d threads in a parallel region", THREADS);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_MULTIPLE);
    MT_CHECK(0 == mt_size % 2, "an even number of ranks, please");
    beside_computation();
    from_regions();
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Computation between messages: products of small matrices, as in the papers'
 * stencils.  A unit is an amount of work, not of time: what takes processor
 * time away from the application makes it longer.
 */
#include "rank.h"

enum { N = 16 };

static double a[N][N], b[N][N], c[N][N];

static void multiply(void)
{
    for (int i = 0; i < N; ++i) {
        for (int j = 0; j < N; ++j) {
            double sum = 0;
            for (int k = 0; k < N; ++k) {
                sum += a[i][k] * b[k][j];
            }
            c[i][j] = sum;
        }
    }
    /* The next product depends on this one, so that none can be left out. */
    __asm__ volatile("" : : "r"(a), "r"(b), "r"(c) : "memory");
}

void mpicrypt_mpi_work(size_t units)
{
    for (size_t i = 0; i < units; ++i) {
        multiply();
    }
}

double mpicrypt_mpi_unit_seconds(void)
{
    enum { SAMPLES = 9, UNITS = 500 };
    double seconds[SAMPLES];

    mpicrypt_mpi_work(UNITS);
    for (int i = 0; i < SAMPLES; ++i) {
        double start = MPI_Wtime();
        mpicrypt_mpi_work(UNITS);
        seconds[i] = (MPI_Wtime() - start) / UNITS;
    }
    return mpicrypt_spread(seconds, SAMPLES).median;
}

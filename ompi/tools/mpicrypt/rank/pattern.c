/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Timing a pattern:
 *
 *     for each size:  prepare | for each choice: verify one iteration, warm up,
 *                     find how many iterations a lap has | laps, in each of
 *                     which the choices take turns | release
 *
 * A lap's time is that of the slowest rank, over the iterations.
 */
#include <stdlib.h>

#include "rank.h"

static double slowest(double seconds)
{
    MPI_Allreduce(MPI_IN_PLACE, &seconds, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return seconds;
}

/* Seconds of `count` iterations, the same in all ranks; *work gets the part of
 * the computation. */
static double lap(const mpicrypt_mpi_pattern_t *pattern, size_t count, size_t units, double *work)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    *work = pattern->iterate(count, units);
    double end = MPI_Wtime();
    *work = slowest(*work);
    return slowest(end - start);
}

/* Doubled until a lap is long enough to be extrapolated from.  As every rank
 * has the same time, every rank decides the same. */
static size_t iterations(const mpicrypt_mpi_pattern_t *pattern, size_t units, double wanted)
{
    size_t count = 1;
    double seconds, work;

    for (;; count *= 2) {
        seconds = lap(pattern, count, units, &work);
        if (seconds >= wanted / 4 || count >= (size_t) 1 << 24) {
            break;
        }
    }
    double fit = (double) count * wanted / seconds;
    return fit < 1 ? 1 : (size_t) fit;
}

/* `given`: iterations of a lap; 0: as many as fit. */
static void measure_size(const mpicrypt_mpi_pattern_t *pattern, size_t bytes, size_t units, size_t given)
{
    const mpicrypt_mpi_job_t *job = &mpicrypt_mpi_job;
    const int choices = mpicrypt_mpi_choices();
    size_t *count = mpicrypt_mpi_memory((size_t) choices * sizeof(*count));
    double work;

    pattern->prepare(bytes);
    for (int c = 0; c < choices; ++c) {
        mpicrypt_mpi_choose(c);
        pattern->verify(c);
        count[c] = 0 != given ? given : iterations(pattern, units, job->lap_ms / 1000);
    }
    for (size_t i = 0; i < job->laps; ++i) {
        for (int turn = 0; turn < choices; ++turn) {
            int c = (int) (((size_t) turn + i) % (size_t) choices);
            mpicrypt_mpi_choose(c);
            double seconds = lap(pattern, count[c], units, &work), each = (double) count[c] * pattern->share;
            if (0 == mpicrypt_mpi_rank) {
                printf("@mpicrypt value %zu %zu %.9g %.9g %d\n", bytes, i, seconds / each, work / each, c);
            }
        }
    }
    pattern->release();
    free(count);
}

void mpicrypt_mpi_measure(const mpicrypt_mpi_pattern_t *pattern)
{
    const mpicrypt_mpi_job_t *job = &mpicrypt_mpi_job;
    double unit = slowest(mpicrypt_mpi_unit_seconds());

    if (0 == mpicrypt_mpi_rank) {
        printf("@mpicrypt unit %.9g\n", unit);
    }
    for (int s = 0; s < job->sizes.count; ++s) {
        measure_size(pattern, job->sizes.value[s], s < job->work.count ? job->work.value[s] : 0,
                     s < job->iterations.count ? job->iterations.value[s] : 0);
    }
    mpicrypt_mpi_chosen();
}

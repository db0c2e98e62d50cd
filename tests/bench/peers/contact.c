/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * First contact of all pairs: what it takes, and the memory of an idle process before it and when it has met those on the
 * other node.  One line: the longest wall clock and the processor time of all ranks together, in milliseconds, and the
 * median rank's memory, in bytes: what it has for itself, without pages that it shares with others.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static double processor(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return 1e3 * (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec)
           + 1e-3 * (double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double own_memory(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    double kib = -1;

    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        (void) sscanf(line, "Private_Dirty: %lf", &kib);
    }
    if (NULL == file || kib < 0) {
        fprintf(stderr, "/proc/self/smaps_rollup cannot be read\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    fclose(file);
    return 1024 * kib;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return (left > right) - (left < right);
}

/* On rank 0. */
static double median(double value, int ranks)
{
    double *all = calloc((size_t) ranks, sizeof(*all)), found;

    if (NULL == all) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Gather(&value, 1, MPI_DOUBLE, all, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    qsort(all, (size_t) ranks, sizeof(*all), by_value);
    found = all[ranks / 2];
    free(all);
    return found;
}

/* A message to and from every process at an odd distance, or at an even one: the longest time. */
static void meet(int first, int rank, int ranks, double *took)
{
    const double begin = MPI_Wtime();
    char out = 1, in;

    for (int distance = first; distance < ranks; distance += 2) {
        MPI_Sendrecv(&out, 1, MPI_CHAR, (rank + distance) % ranks, 1, &in, 1, MPI_CHAR, (rank + ranks - distance) % ranks, 1,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    *took += 1e3 * (MPI_Wtime() - begin);
}

/* Ranks must alternate between two nodes, so those at an even distance are on this one. */
static void check_places(int rank)
{
    int here, first = rank;
    MPI_Comm node;

    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &here);
    MPI_Bcast(&first, 1, MPI_INT, 0, node);
    if (rank != first + 2 * here) {
        fprintf(stderr, "rank %d is number %d of a node whose first is %d\n", rank, here, first);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_Comm_free(&node);
}

int main(int argc, char **argv)
{
    double took = 0, used, longest = 0, sum = 0, before, after;
    int rank, ranks;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    before = own_memory();
    used = processor();
    meet(1, rank, ranks, &took);
    MPI_Barrier(MPI_COMM_WORLD);
    after = own_memory();
    meet(2, rank, ranks, &took);
    used = processor() - used;
    MPI_Reduce(&took, &longest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&used, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    before = median(before, ranks);
    after = median(after, ranks);
    check_places(rank);
    if (0 == rank) {
        printf("%.0f %.0f %.0f %.0f\n", longest, sum, before, after);
    }
    return MPI_Finalize();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * put_get BYTES...: what a put, and a get, with its flush takes between two ranks, in microseconds: the median of many,
 * for each length on one line.  What came is compared.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAPS = 201 };

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *) a, right = *(const double *) b;

    return (left > right) - (left < right);
}

static double median_of(int get, void *local, int bytes, MPI_Win window)
{
    static double took[LAPS];

    for (int i = 0; i < LAPS; i++) {
        took[i] = MPI_Wtime();
        if (get) {
            MPI_Get(local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
        } else {
            MPI_Put(local, bytes, MPI_BYTE, 1, 0, bytes, MPI_BYTE, window);
        }
        MPI_Win_flush(1, window);
        took[i] = 1e6 * (MPI_Wtime() - took[i]);
    }
    qsort(took, LAPS, sizeof(took[0]), by_value);
    return took[LAPS / 2];
}

static void one_length(int bytes, int rank, char *local, MPI_Win window)
{
    double put, get;

    if (0 == rank) {
        memset(local, bytes % 251 + 1, (size_t) bytes);
        put = median_of(0, local, bytes, window);
        memset(local, 0, (size_t) bytes);
        get = median_of(1, local, bytes, window);
        if ((char) (bytes % 251 + 1) != local[0] || local[0] != local[bytes - 1]) {
            fprintf(stderr, "%d bytes: what came back is not what was put\n", bytes);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
        printf("%d %.1f %.1f\n", bytes, put, get);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    enum { MOST = 8 << 20 };
    char *memory, *local = malloc(MOST);
    MPI_Win window;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win_allocate(MOST, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
    MPI_Win_lock_all(0, window);
    for (int i = 1; i < argc; i++) {
        const int bytes = atoi(argv[i]);

        if (NULL == local || bytes < 1 || bytes > MOST) {
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        one_length(bytes, rank, local, window);
    }
    MPI_Win_unlock_all(window);
    MPI_Win_free(&window);
    free(local);
    return MPI_Finalize();
}

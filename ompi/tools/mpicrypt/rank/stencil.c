/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A step of a stencil in 2, 3 or 4 dimensions: compute, then exchange a message
 * with each neighbor of a periodic grid, and wait for all of them.  Ranks are
 * numbered row by row.  Where a dimension has one place, a rank is its own
 * neighbor there, and nothing is sent.  The value is the time of a step.
 */
#include <stdlib.h>

#include "rank.h"

enum { DIMS = 4, MOST = 2 * DIMS };

static mpicrypt_mpi_message_t out[MOST], in[MOST];
static int neighbors;

/* The tag is the direction in which a message goes: with two places in a
 * dimension, both neighbors are the same rank. */
static void prepare(size_t bytes)
{
    int dims = (int) mpicrypt_mpi_job.dims, size[DIMS] = {0}, periodic[DIMS] = {1, 1, 1, 1}, below, above;
    MPI_Comm grid;

    MPI_Dims_create(mpicrypt_mpi_size, dims, size);
    MPI_Cart_create(MPI_COMM_WORLD, dims, size, periodic, 0, &grid);
    neighbors = 0;
    for (int d = 0; d < dims; ++d) {
        MPI_Cart_shift(grid, d, 1, &below, &above);
        if (above != mpicrypt_mpi_rank) {
            out[neighbors] = mpicrypt_mpi_message_new(bytes, above, 2 * d);
            in[neighbors++] = mpicrypt_mpi_message_new(bytes, below, 2 * d);
            out[neighbors] = mpicrypt_mpi_message_new(bytes, below, 2 * d + 1);
            in[neighbors++] = mpicrypt_mpi_message_new(bytes, above, 2 * d + 1);
        }
    }
    MPI_Comm_free(&grid);
    if (0 == mpicrypt_mpi_rank) {
        printf("@mpicrypt messages %d\n", neighbors);
    }
}

static void exchange(void)
{
    MPI_Request request[2 * MOST];

    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_irecv(&in[i], &request[i]);
    }
    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_isend(&out[i], &request[neighbors + i]);
    }
    MPI_Waitall(2 * neighbors, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_received(&in[i]);
    }
}

static double iterate(size_t count, size_t units)
{
    double work = 0;

    for (size_t i = 0; i < count; ++i) {
        if (units > 0) {
            double start = MPI_Wtime();
            mpicrypt_mpi_work(units);
            work += MPI_Wtime() - start;
        }
        exchange();
    }
    return work;
}

static void verify(int number)
{
    (void) number;
    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_fill(&out[i], mpicrypt_mpi_rank, out[i].tag);
    }
    iterate(1, 0);
    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_check_filled(&in[i], in[i].peer, in[i].tag);
    }
}

static void release(void)
{
    for (int i = 0; i < neighbors; ++i) {
        mpicrypt_mpi_message_free(&out[i]);
        mpicrypt_mpi_message_free(&in[i]);
    }
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_stencil = {prepare, verify, iterate, release, 1};

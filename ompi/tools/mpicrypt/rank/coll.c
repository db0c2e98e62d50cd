/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Collectives over all ranks, back to back: MPI_Allgather, MPI_Bcast from rank
 * 0, MPI_Alltoall.  The value is the time of one call; the size is that of a rank's
 * contribution, of the message, or of the block between two ranks.
 *
 * Each buffer is one allocation; a block of it is treated as a message, so that
 * its contents are filled and checked like those of messages.
 */
#include <limits.h>
#include <stdlib.h>

#include "rank.h"

static uint8_t *out, *in;
static size_t block;

static void allocate(size_t bytes, size_t out_blocks, size_t in_blocks)
{
    if (bytes > INT_MAX) {
        mpicrypt_mpi_abort(MPICRYPT_USAGE, "blocks of %zu bytes: the most are %d", bytes, INT_MAX);
    }
    block = bytes;
    out = 0 == out_blocks ? NULL : mpicrypt_mpi_memory(bytes * out_blocks);
    in = mpicrypt_mpi_memory(bytes * in_blocks);
}

static void release(void)
{
    free(out);
    free(in);
}

static mpicrypt_mpi_message_t part(uint8_t *buffer, int i)
{
    return (mpicrypt_mpi_message_t){.plain = buffer + (size_t) i * block, .bytes = block};
}

static void fill(uint8_t *buffer, int i, int from, int number)
{
    mpicrypt_mpi_message_t message = part(buffer, i);
    mpicrypt_mpi_fill(&message, from, number);
}

static void check(int i, int from, int number)
{
    mpicrypt_mpi_message_t message = part(in, i);
    mpicrypt_mpi_check_filled(&message, from, number);
}

/* ---- all-gather ---- */

static void allgather_prepare(size_t bytes)
{
    allocate(bytes, 1, (size_t) mpicrypt_mpi_size);
}

static double allgather_iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count; ++i) {
        MPI_Allgather(out, (int) block, MPI_BYTE, in, (int) block, MPI_BYTE, MPI_COMM_WORLD);
    }
    return 0;
}

static void allgather_verify(int number)
{
    fill(out, 0, mpicrypt_mpi_rank, number);
    allgather_iterate(1, 0);
    for (int i = 0; i < mpicrypt_mpi_size; ++i) {
        check(i, i, number);
    }
}

/* ---- broadcast ---- */

static void bcast_prepare(size_t bytes)
{
    allocate(bytes, 0, 1);
}

static double bcast_iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count; ++i) {
        MPI_Bcast(in, (int) block, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    return 0;
}

static void bcast_verify(int number)
{
    if (0 == mpicrypt_mpi_rank) {
        fill(in, 0, 0, number);
    }
    bcast_iterate(1, 0);
    check(0, 0, number);
}

/* ---- all-to-all ---- */

static void alltoall_prepare(size_t bytes)
{
    allocate(bytes, (size_t) mpicrypt_mpi_size, (size_t) mpicrypt_mpi_size);
}

static double alltoall_iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count; ++i) {
        MPI_Alltoall(out, (int) block, MPI_BYTE, in, (int) block, MPI_BYTE, MPI_COMM_WORLD);
    }
    return 0;
}

static void alltoall_verify(int number)
{
    for (int i = 0; i < mpicrypt_mpi_size; ++i) {
        fill(out, i, mpicrypt_mpi_rank, number + i);
    }
    alltoall_iterate(1, 0);
    for (int i = 0; i < mpicrypt_mpi_size; ++i) {
        check(i, i, number + mpicrypt_mpi_rank);
    }
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_allgather = {allgather_prepare, allgather_verify, allgather_iterate,
                                                       release, 1};
const mpicrypt_mpi_pattern_t mpicrypt_mpi_bcast = {bcast_prepare, bcast_verify, bcast_iterate, release, 1};
const mpicrypt_mpi_pattern_t mpicrypt_mpi_alltoall = {alltoall_prepare, alltoall_verify, alltoall_iterate,
                                                      release, 1};

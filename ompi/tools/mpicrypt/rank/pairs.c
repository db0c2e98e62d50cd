/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Several pairs at once: the lower rank of each sends a window of messages
 * without waiting, the other one answers when all have arrived.  The value is
 * the time of one window, answer included.  Or both send a window at once (both),
 * and nobody answers.
 *
 * Every message has memory of its own on the receiving side: with one buffer
 * for all, as is common in such benchmarks, receives overlap, which MPI forbids.
 */
#include <stdlib.h>

#include "rank.h"

static mpicrypt_mpi_message_t *out, *in, answer;
static MPI_Request *request;
static int partner;
static bool sends, receives;

/* A plain sender reads the same memory again and again. */
static size_t out_buffers(void)
{
    return !sends ? 0 : 0 == mpicrypt_mpi_job.seal_bits ? 1 : mpicrypt_mpi_job.window;
}

static size_t in_buffers(void)
{
    return receives ? mpicrypt_mpi_job.window : 0;
}

static void prepare(size_t bytes)
{
    const size_t window = mpicrypt_mpi_job.window;
    bool lower = false;

    partner = mpicrypt_mpi_partner(mpicrypt_mpi_job.pairs, mpicrypt_mpi_job.local, &lower);
    sends = partner >= 0 && (lower || mpicrypt_mpi_job.both);
    receives = partner >= 0 && (!lower || mpicrypt_mpi_job.both);
    out = mpicrypt_mpi_memory(window * sizeof(*out));
    in = mpicrypt_mpi_memory(window * sizeof(*in));
    request = mpicrypt_mpi_memory(2 * window * sizeof(*request));
    answer = mpicrypt_mpi_message_new(1, partner, 2);
    for (size_t i = 0; i < out_buffers(); ++i) {
        out[i] = mpicrypt_mpi_message_new(bytes, partner, 1);
    }
    for (size_t i = 0; i < in_buffers(); ++i) {
        in[i] = mpicrypt_mpi_message_new(bytes, partner, 1);
    }
}

static void window(void)
{
    int count = 0;

    for (size_t i = 0; i < in_buffers(); ++i) {
        mpicrypt_mpi_irecv(&in[i], &request[count++]);
    }
    for (size_t i = 0; sends && i < mpicrypt_mpi_job.window; ++i) {
        mpicrypt_mpi_isend(&out[i % out_buffers()], &request[count++]);
    }
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    for (size_t i = 0; i < in_buffers(); ++i) {
        mpicrypt_mpi_received(&in[i]);
    }
    if (sends && !receives) {
        mpicrypt_mpi_recv(&answer);
    } else if (receives && !sends) {
        mpicrypt_mpi_send(&answer);
    }
}

static double iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count && partner >= 0; ++i) {
        window();
    }
    return 0;
}

static void verify(int number)
{
    (void) number;
    bool numbered = 0 != mpicrypt_mpi_job.seal_bits;    /* then the sender has a buffer each, too */

    for (size_t i = 0; i < out_buffers(); ++i) {
        mpicrypt_mpi_fill(&out[i], mpicrypt_mpi_rank, (int) i);
    }
    iterate(1, 0);
    for (size_t i = 0; i < in_buffers(); ++i) {
        mpicrypt_mpi_check_filled(&in[i], partner, numbered ? (int) i : 0);
    }
}

static void release(void)
{
    for (size_t i = 0; i < out_buffers(); ++i) {
        mpicrypt_mpi_message_free(&out[i]);
    }
    for (size_t i = 0; i < in_buffers(); ++i) {
        mpicrypt_mpi_message_free(&in[i]);
    }
    mpicrypt_mpi_message_free(&answer);
    free(out);
    free(in);
    free(request);
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_pairs = {prepare, verify, iterate, release, 1};

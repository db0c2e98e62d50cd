/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Several pairs at once: the lower rank of each sends a window of messages
 * without waiting, the other one answers when all have arrived.  The value is
 * the time of one window, answer included.
 *
 * Every message has memory of its own on the receiving side: with one buffer
 * for all, as is common in such benchmarks, receives overlap, which MPI forbids.
 */
#include <stdlib.h>

#include "rank.h"

static mpicrypt_mpi_message_t *message, answer;
static MPI_Request *request;
static int partner;
static bool sender;

static size_t buffers(void)
{
    return sender && 0 == mpicrypt_mpi_job.seal_bits ? 1 : mpicrypt_mpi_job.window;
}

static void prepare(size_t bytes)
{
    partner = mpicrypt_mpi_partner(mpicrypt_mpi_job.pairs, mpicrypt_mpi_job.local, &sender);
    message = mpicrypt_mpi_memory(mpicrypt_mpi_job.window * sizeof(*message));
    request = mpicrypt_mpi_memory(mpicrypt_mpi_job.window * sizeof(*request));
    answer = mpicrypt_mpi_message_new(1, partner, 2);
    /* A plain sender reads the same memory again and again. */
    for (size_t i = 0; i < buffers() && partner >= 0; ++i) {
        message[i] = mpicrypt_mpi_message_new(bytes, partner, 1);
    }
}

static void window(void)
{
    int count = (int) mpicrypt_mpi_job.window;

    if (sender) {
        for (int i = 0; i < count; ++i) {
            mpicrypt_mpi_isend(&message[(size_t) i % buffers()], &request[i]);
        }
        MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
        mpicrypt_mpi_recv(&answer);
        return;
    }
    for (int i = 0; i < count; ++i) {
        mpicrypt_mpi_irecv(&message[i], &request[i]);
    }
    MPI_Waitall(count, request, MPI_STATUSES_IGNORE);
    for (int i = 0; i < count; ++i) {
        mpicrypt_mpi_received(&message[i]);
    }
    mpicrypt_mpi_send(&answer);
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

    for (size_t i = 0; i < buffers() && sender && partner >= 0; ++i) {
        mpicrypt_mpi_fill(&message[i], mpicrypt_mpi_rank, (int) i);
    }
    iterate(1, 0);
    for (size_t i = 0; i < buffers() && !sender && partner >= 0; ++i) {
        mpicrypt_mpi_check_filled(&message[i], partner, numbered ? (int) i : 0);
    }
}

static void release(void)
{
    for (size_t i = 0; i < buffers() && partner >= 0; ++i) {
        mpicrypt_mpi_message_free(&message[i]);
    }
    mpicrypt_mpi_message_free(&answer);
    free(message);
    free(request);
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_pairs = {prepare, verify, iterate, release, 1};

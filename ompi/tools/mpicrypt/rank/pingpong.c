/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Ping-pong: one rank sends, the other sends back, with blocking calls.  The
 * value is the one-way time, half of a round trip.
 */
#include "rank.h"

static mpicrypt_mpi_message_t out, in;
static int partner;
static bool first;

static void prepare(size_t bytes)
{
    partner = mpicrypt_mpi_partner(1, mpicrypt_mpi_job.local, &first);
    out = mpicrypt_mpi_message_new(bytes, partner, 1);
    in = mpicrypt_mpi_message_new(bytes, partner, 1);
}

static double iterate(size_t count, size_t units)
{
    (void) units;
    for (size_t i = 0; i < count && partner >= 0; ++i) {
        if (first) {
            mpicrypt_mpi_send(&out);
            mpicrypt_mpi_recv(&in);
        } else {
            mpicrypt_mpi_recv(&in);
            mpicrypt_mpi_send(&out);
        }
    }
    return 0;
}

static void verify(int number)
{
    (void) number;
    if (partner >= 0) {
        mpicrypt_mpi_fill(&out, mpicrypt_mpi_rank, 0);
        iterate(1, 0);
        mpicrypt_mpi_check_filled(&in, partner, 0);
    }
}

static void release(void)
{
    mpicrypt_mpi_message_free(&out);
    mpicrypt_mpi_message_free(&in);
}

const mpicrypt_mpi_pattern_t mpicrypt_mpi_pingpong = {prepare, verify, iterate, release, 2};

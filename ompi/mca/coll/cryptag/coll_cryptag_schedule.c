/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The rounds of a ring and of a doubling; see the header.
 */
#include "coll_cryptag_schedule.h"

#include <stdbool.h>

static bool power_of_two(int n)
{
    return 0 == (n & (n - 1));
}

int ompi_coll_cryptag_rounds(ompi_coll_cryptag_kind_t kind, int n)
{
    int rounds = 0;

    if (OMPI_COLL_CRYPTAG_RING == kind) {
        return n - 1;
    }
    while ((1L << rounds) < n) {
        rounds++;
    }
    return rounds;
}

static void ring_round(int n, int me, int index, ompi_coll_cryptag_round_t *round)
{
    round->to = (me + 1) % n;
    round->from = (me - 1 + n) % n;
    round->sent = (ompi_coll_cryptag_run_t) { (me - index + n) % n, 1 };
    round->received = (ompi_coll_cryptag_run_t) { (me - index - 1 + n) % n, 1 };
}

/* Member me holds the aligned group of 2^index items around it. */
static void exchange_round(int me, int index, ompi_coll_cryptag_round_t *round)
{
    int held = 1 << index, partner = me ^ held;

    round->to = round->from = partner;
    round->sent = (ompi_coll_cryptag_run_t) { me & ~(held - 1), held };
    round->received = (ompi_coll_cryptag_run_t) { partner & ~(held - 1), held };
}

/* Member me holds items me ... me + 2^index - 1. */
static void bruck_round(int n, int me, int index, ompi_coll_cryptag_round_t *round)
{
    int held = 1 << index, count = held < n - held ? held : n - held;

    round->to = (me - held + n) % n;
    round->from = (me + held) % n;
    round->sent = (ompi_coll_cryptag_run_t) { me, count };
    round->received = (ompi_coll_cryptag_run_t) { round->from, count };
}

void ompi_coll_cryptag_round(ompi_coll_cryptag_kind_t kind, int n, int me, int index,
                             ompi_coll_cryptag_round_t *round)
{
    if (OMPI_COLL_CRYPTAG_RING == kind) {
        ring_round(n, me, index, round);
    } else if (power_of_two(n)) {
        exchange_round(me, index, round);
    } else {
        bruck_round(n, me, index, round);
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which members exchange what in a ring and in a doubling, as pure arithmetic:
 * no communicator, no buffer, no cipher.  n members each own one item, and
 * after all rounds every member has every item.
 *
 *     ring       n - 1 rounds, one item in each, from the member before
 *     doubling   ceil(lg n) rounds; for a power of two the members of a round
 *                are 2^round apart and exchange all they have (recursive
 *                doubling), otherwise a member sends to the one 2^round before
 *                it (Bruck et al., IEEE TPDS 8(11), 1997)
 *
 * Both sides of a message compute it from the same few integers, so its content
 * need not be described on the wire.
 */
#ifndef COLL_CRYPTAG_SCHEDULE_H
#define COLL_CRYPTAG_SCHEDULE_H

typedef enum {
    OMPI_COLL_CRYPTAG_RING,
    OMPI_COLL_CRYPTAG_DOUBLING
} ompi_coll_cryptag_kind_t;

/* Items first, first + 1 ... first + count - 1, each modulo n. */
typedef struct ompi_coll_cryptag_run {
    int first, count;
} ompi_coll_cryptag_run_t;

typedef struct ompi_coll_cryptag_round {
    int to, from;
    ompi_coll_cryptag_run_t sent, received;
} ompi_coll_cryptag_round_t;

int ompi_coll_cryptag_rounds(ompi_coll_cryptag_kind_t kind, int n);

void ompi_coll_cryptag_round(ompi_coll_cryptag_kind_t kind, int n, int me, int index,
                             ompi_coll_cryptag_round_t *round);

/* The k-th item of a run. */
static inline int ompi_coll_cryptag_item(const ompi_coll_cryptag_run_t *run, int k, int n)
{
    return (run->first + k) % n;
}

#endif

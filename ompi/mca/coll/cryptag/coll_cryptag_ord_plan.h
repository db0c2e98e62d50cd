/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The plan of O-RD for one rank: what it seals, sends, receives in each round.
 * It depends on the node map alone, so each rank makes it by itself, once for a
 * communicator: the pieces that a partner will send follow from what that
 * partner was sent before, and so on.
 */
#ifndef COLL_CRYPTAG_ORD_PLAN_H
#define COLL_CRYPTAG_ORD_PLAN_H

#include "coll_cryptag_schedule.h"
#include "coll_cryptag_topo.h"

/* Blocks sealed together. */
typedef struct ompi_coll_cryptag_ord_piece {
    int origin;                 /* rank that sealed it */
    int item;                   /* its index among that rank's pieces */
    int count;
    int *blocks;                /* [count] whose blocks, in the order they are joined */
} ompi_coll_cryptag_ord_piece_t;

typedef struct ompi_coll_cryptag_ord_round {
    ompi_coll_cryptag_round_t round;
    bool to_here, from_here;    /* partner on this node: plaintext, no pieces */
    int sealed;                 /* piece to seal before sending, or -1 */
    int out_count, in_count;
    int *out, *in;              /* indices of pieces, in the order they travel */
} ompi_coll_cryptag_ord_round_t;

struct ompi_coll_cryptag_ord_plan {
    int rounds, pieces;
    ompi_coll_cryptag_ord_round_t *round;   /* [rounds] */
    ompi_coll_cryptag_ord_piece_t *piece;   /* [pieces] that this rank makes or receives, in order */
};
typedef struct ompi_coll_cryptag_ord_plan ompi_coll_cryptag_ord_plan_t;

/* NULL when out of memory. */
ompi_coll_cryptag_ord_plan_t *ompi_coll_cryptag_ord_plan_new(const ompi_coll_cryptag_topo_t *topo);
void ompi_coll_cryptag_ord_plan_free(ompi_coll_cryptag_ord_plan_t *plan);

#endif

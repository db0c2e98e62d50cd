/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What HS1, HS2 and HS3 share: the layout of the node's segment, the
 * all-gather of the leaders, and the last step.
 *
 *     | plaintext blocks, node by node | sealed items, node by node |     (over btl/crypt the same bytes)
 *
 * Consecutive calls alternate between the two halves of the segment, if they fit:
 * no rank waits for those that still copy out the last call.  A rank that writes
 * into a half has left the call in between; there it saw the leader's + 2, which came
 * after every rank's + 1: so all have left the call before it, the last in this half.
 */
#ifndef COLL_CRYPTAG_HS_H
#define COLL_CRYPTAG_HS_H

#include "coll_cryptag_call.h"

typedef struct ompi_coll_cryptag_hs {
    ompi_coll_cryptag_call_t *call;
    ompi_coll_cryptag_shm_t *shm;
    uint64_t phase;             /* our flag */
    uint8_t *data;              /* this call's part of the segment */
    size_t *place;              /* [ranks + 1] offset of block by_node[i] in the data */
    size_t *sealed;             /* [ranks + 1] offset of its sealed form (HS2, HS3) */
    ompi_coll_cryptag_part_t *node_sealed;  /* [nodes] what each leader contributes */
} ompi_coll_cryptag_hs_t;

/* Bytes of data that a call needs in the segment, equal at every rank. */
size_t ompi_coll_cryptag_hs_bytes(const ompi_coll_cryptag_call_t *call);

/* Steps 1a, 2 and 4 of HS1 and HS2. */
void ompi_coll_cryptag_hs_begin(ompi_coll_cryptag_call_t *call, bool by_node, ompi_coll_cryptag_hs_t *hs);
void ompi_coll_cryptag_hs_leaders(ompi_coll_cryptag_hs_t *hs);
void ompi_coll_cryptag_hs_end(ompi_coll_cryptag_hs_t *hs);

/* Steps 1 and 2 of HS2 and HS3: every rank seals, leaders all-gather. */
void ompi_coll_cryptag_hs_sealed(ompi_coll_cryptag_call_t *call, ompi_coll_cryptag_hs_t *hs);

/* Tell the others that we no longer need the segment. */
void ompi_coll_cryptag_hs_leave(ompi_coll_cryptag_hs_t *hs);

/* Is the k-th foreign item opened by this rank?  The leader, which has been busy,
 * comes last. */
bool ompi_coll_cryptag_hs_ours(const ompi_coll_cryptag_hs_t *hs, int k);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Naive (Naser et al. 2019, Algorithm 1 for the all-gather): every rank seals
 * its block, an ordinary all-gather carries the sealed blocks, and every rank
 * opens all others, including those of its own node.
 *
 *     r_e 1, s_e m, r_d p - 1, s_d (p - 1) m
 */
#include "coll_cryptag.h"

#include <string.h>

typedef struct {
    ompi_coll_cryptag_call_t *call;
    const ompi_coll_cryptag_part_t *parts;
} naive_t;

static void open_block(void *context, int lane, int rank)
{
    naive_t *naive = context;
    ompi_coll_cryptag_name_t name = { rank, OPAL_CRYPT_TO_ALL, 0 };

    (void) lane;
    ompi_coll_cryptag_open(naive->call, &name, naive->parts[rank].base,
                           ompi_coll_cryptag_block(naive->call, rank), naive->parts[rank].plain_bytes);
}

void ompi_coll_cryptag_naive(ompi_coll_cryptag_call_t *call)
{
    const int p = call->topo->ranks, rank = call->topo->rank;
    ompi_coll_cryptag_part_t *parts = ompi_coll_cryptag_scratch(call, (size_t) p * sizeof(*parts));
    int *members = ompi_coll_cryptag_scratch(call, (size_t) p * sizeof(*members));
    int *first = ompi_coll_cryptag_scratch(call, ((size_t) p + 1) * sizeof(*first));
    const ompi_coll_cryptag_name_t own = { rank, OPAL_CRYPT_TO_ALL, 0 };
    const ompi_coll_cryptag_lane_t lane = { members, parts, first };
    naive_t naive = { call, parts };
    size_t total = 0;
    uint8_t *sealed;

    for (int i = 0; i < p; i++) {
        size_t bytes = ompi_coll_cryptag_block_bytes(call, i);
        parts[i] = (ompi_coll_cryptag_part_t) { NULL, ompi_coll_cryptag_sealed_bytes(call, bytes), bytes };
        total += parts[i].wire_bytes;
        members[i] = first[i] = i;
    }
    first[p] = p;
    sealed = ompi_coll_cryptag_scratch(call, total);
    for (int i = 0; i < p; i++) {
        parts[i].base = ompi_coll_cryptag_sealed_at(call, ompi_coll_cryptag_block(call, i), sealed);
        sealed += parts[i].wire_bytes;
    }

    /* 1. seal our block */
    ompi_coll_cryptag_seal(call, &own, ompi_coll_cryptag_block(call, rank), parts[rank].plain_bytes,
                           parts[rank].base);

    /* 2. all-gather of sealed blocks   3. open each as it arrives */
    ompi_coll_cryptag_gather(call, &(ompi_coll_cryptag_gather_t) {
        .kind = ompi_coll_cryptag_gather_kind(total / (size_t) p),
        .form = OMPI_COLL_CRYPTAG_SEALED,
        .n = p, .me = rank,
        .lanes = &lane, .lane_count = 1,
        .arrived = open_block, .context = &naive,
    });
}

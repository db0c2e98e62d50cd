/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * O-Ring: the ring in rank order, where a block is sealed only on its way
 * between nodes.
 *
 *     next rank is here, block came plain     send it as it is
 *     next rank is here, block came sealed    open it, send plaintext
 *     next rank is elsewhere, came sealed     forward it unchanged
 *     next rank is elsewhere, came plain      seal it
 *
 * Whether a block reaches rank i sealed depends only on whether rank i - 1 is on
 * the same node, so messages need not say it.
 */
#include "coll_cryptag.h"

/* The rank that sealed the block of `owner` that reaches `rank` from another
 * node: the last one before it that had the block in plaintext. */
static int sealer_of(const ompi_coll_cryptag_topo_t *topo, int rank, int owner)
{
    int at = (rank - 1 + topo->ranks) % topo->ranks;

    while (at != owner) {
        int before = (at - 1 + topo->ranks) % topo->ranks;
        if (ompi_coll_cryptag_same_node(topo, before, at)) {
            break;
        }
        at = before;
    }
    return at;
}

static ompi_coll_cryptag_part_t part_of(const ompi_coll_cryptag_call_t *call, int block,
                                        ompi_coll_cryptag_form_t form, uint8_t *sealed)
{
    size_t bytes = ompi_coll_cryptag_block_bytes(call, block);

    return OMPI_COLL_CRYPTAG_SEALED == form
        ? (ompi_coll_cryptag_part_t) { sealed, ompi_coll_cryptag_sealed_bytes(call, bytes), bytes }
        : (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_block(call, block), bytes, bytes };
}

static void open_block(ompi_coll_cryptag_call_t *call, int block, const uint8_t *sealed)
{
    const ompi_coll_cryptag_name_t name = { sealer_of(call->topo, call->topo->rank, block),
                                            OPAL_CRYPT_TO_ALL, (uint32_t) block };
    ompi_coll_cryptag_open(call, &name, sealed, ompi_coll_cryptag_block(call, block),
                           ompi_coll_cryptag_block_bytes(call, block));
}

void ompi_coll_cryptag_o_ring(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int p = topo->ranks, next = (topo->rank + 1) % p, previous = (topo->rank - 1 + p) % p;
    const ompi_coll_cryptag_form_t
        form_in = ompi_coll_cryptag_same_node(topo, previous, topo->rank) ? OMPI_COLL_CRYPTAG_PLAIN
                                                                          : OMPI_COLL_CRYPTAG_SEALED,
        form_out = ompi_coll_cryptag_same_node(topo, topo->rank, next) ? OMPI_COLL_CRYPTAG_PLAIN
                                                                       : OMPI_COLL_CRYPTAG_SEALED;
    const size_t capacity = ompi_coll_cryptag_sealed_bytes(call, ompi_coll_cryptag_longest_block(call));
    /* received in the last step, being received in this one, sealed by us */
    uint8_t *came = ompi_coll_cryptag_scratch(call, capacity);
    uint8_t *coming = ompi_coll_cryptag_scratch(call, capacity);
    uint8_t *own = ompi_coll_cryptag_scratch(call, capacity);
    bool forward = false;

    for (int i = 0; i < p - 1; i++) {
        ompi_coll_cryptag_round_t round;
        ompi_coll_cryptag_part_t in, out;
        uint8_t *swap;

        ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_RING, p, topo->rank, i, &round);
        const int sent = round.sent.first, received = round.received.first;

        /* 1. post the receive */
        in = part_of(call, received, form_in, coming);
        ompi_coll_cryptag_recv(call, previous, form_in, &in, 1);

        /* 2. seal or open the block as needed, 3. send it */
        if (OMPI_COLL_CRYPTAG_SEALED == form_out && !forward) {
            const ompi_coll_cryptag_name_t name = { topo->rank, OPAL_CRYPT_TO_ALL, (uint32_t) sent };
            ompi_coll_cryptag_seal(call, &name, ompi_coll_cryptag_block(call, sent),
                                   ompi_coll_cryptag_block_bytes(call, sent), own);
        } else if (OMPI_COLL_CRYPTAG_PLAIN == form_out && forward) {
            open_block(call, sent, came);
        }
        out = part_of(call, sent, form_out, forward ? came : own);
        ompi_coll_cryptag_send(call, next, form_out, &out, 1);

        /* 4. open a forwarded block while it travels on */
        if (OMPI_COLL_CRYPTAG_SEALED == form_out && forward) {
            open_block(call, sent, came);
        }
        ompi_coll_cryptag_wait(call);

        forward = OMPI_COLL_CRYPTAG_SEALED == form_in;
        swap = came;
        came = coming;
        coming = swap;
    }

    /* 5. the last one is not forwarded */
    if (forward && p > 1) {
        open_block(call, next, came);
    }
}

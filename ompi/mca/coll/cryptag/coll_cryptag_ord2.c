/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * O-RD2: the doubling in rank order, where everything that leaves the node in
 * a step is one sealed piece, and is opened at once by its receiver.  Fewer,
 * longer pieces than O-RD: for small blocks.
 */
#include "coll_cryptag.h"

#include <string.h>

static size_t run_bytes(const ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_run_t *run)
{
    size_t bytes = 0;

    for (int k = 0; k < run->count; k++) {
        bytes += ompi_coll_cryptag_block_bytes(call, ompi_coll_cryptag_item(run, k, call->topo->ranks));
    }
    return bytes;
}

/* Seal a run; if it wraps around, its two parts are joined first. */
static void seal_run(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_run_t *run, int index, int to,
                     uint8_t *sealed)
{
    const ompi_coll_cryptag_name_t name = { call->topo->rank, (uint32_t) to, (uint32_t) index };
    const size_t bytes = run_bytes(call, run);
    ompi_coll_cryptag_part_t part[2];
    uint8_t *joined;

    if (1 == ompi_coll_cryptag_run_parts(call, run, part)) {
        ompi_coll_cryptag_seal(call, &name, part[0].base, bytes, sealed);
        return;
    }
    joined = ompi_coll_cryptag_scratch(call, bytes);
    memcpy(joined, part[0].base, part[0].plain_bytes);
    memcpy(joined + part[0].plain_bytes, part[1].base, part[1].plain_bytes);
    ompi_coll_cryptag_seal(call, &name, joined, bytes, sealed);
}

static void open_run(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_run_t *run, int index, int from,
                     const uint8_t *sealed)
{
    const ompi_coll_cryptag_name_t name = { from, (uint32_t) call->topo->rank, (uint32_t) index };
    const size_t bytes = run_bytes(call, run);
    ompi_coll_cryptag_part_t part[2];
    uint8_t *joined;

    if (1 == ompi_coll_cryptag_run_parts(call, run, part)) {
        ompi_coll_cryptag_open(call, &name, sealed, part[0].base, bytes);
        return;
    }
    joined = ompi_coll_cryptag_scratch(call, bytes);
    ompi_coll_cryptag_open(call, &name, sealed, joined, bytes);
    memcpy(part[0].base, joined, part[0].plain_bytes);
    memcpy(part[1].base, joined + part[0].plain_bytes, part[1].plain_bytes);
}

void ompi_coll_cryptag_o_rd2(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int p = topo->ranks, rounds = ompi_coll_cryptag_rounds(OMPI_COLL_CRYPTAG_DOUBLING, p);
    const size_t capacity = ompi_coll_cryptag_sealed_bytes(call, call->offset[p]);
    uint8_t *out = ompi_coll_cryptag_scratch(call, capacity), *in = ompi_coll_cryptag_scratch(call, capacity);

    for (int i = 0; i < rounds; i++) {
        ompi_coll_cryptag_round_t round;
        ompi_coll_cryptag_part_t part_in[2], part_out[2];
        bool from_here, to_here;
        size_t bytes;

        ompi_coll_cryptag_round(OMPI_COLL_CRYPTAG_DOUBLING, p, topo->rank, i, &round);
        from_here = ompi_coll_cryptag_same_node(topo, round.from, topo->rank);
        to_here = ompi_coll_cryptag_same_node(topo, round.to, topo->rank);

        /* 1. post the receive: plaintext into its place, a sealed piece into scratch */
        if (from_here) {
            ompi_coll_cryptag_recv(call, round.from, OMPI_COLL_CRYPTAG_PLAIN, part_in,
                                   ompi_coll_cryptag_run_parts(call, &round.received, part_in));
        } else {
            bytes = run_bytes(call, &round.received);
            part_in[0] = (ompi_coll_cryptag_part_t) { in, ompi_coll_cryptag_sealed_bytes(call, bytes), bytes };
            ompi_coll_cryptag_recv(call, round.from, OMPI_COLL_CRYPTAG_SEALED, part_in, 1);
        }

        /* 2. send what we have: plain within the node, else as one piece */
        if (to_here) {
            ompi_coll_cryptag_send(call, round.to, OMPI_COLL_CRYPTAG_PLAIN, part_out,
                                   ompi_coll_cryptag_run_parts(call, &round.sent, part_out));
        } else {
            bytes = run_bytes(call, &round.sent);
            seal_run(call, &round.sent, i, round.to, out);
            part_out[0] = (ompi_coll_cryptag_part_t) { out, ompi_coll_cryptag_sealed_bytes(call, bytes), bytes };
            ompi_coll_cryptag_send(call, round.to, OMPI_COLL_CRYPTAG_SEALED, part_out, 1);
        }
        ompi_coll_cryptag_wait(call);

        /* 3. open */
        if (!from_here) {
            open_run(call, &round.received, i, round.from, in);
        }
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HS1: one sealed piece for each node, the fewest of all algorithms: for small
 * blocks.
 *
 *     leader: r_e 1, s_e l m     all: r_d ceil((N - 1) / l) pieces of l m
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

static uint8_t *plain_of_node(const ompi_coll_cryptag_hs_t *hs, int node)
{
    return hs->data + hs->place[hs->call->topo->node_first[node]];
}

static ompi_coll_cryptag_name_t name_of(const ompi_coll_cryptag_hs_t *hs, int node)
{
    return (ompi_coll_cryptag_name_t) { ompi_coll_cryptag_rank_at(hs->call->topo, node, 0),
                                        OPAL_CRYPT_TO_ALL, 0 };
}

void ompi_coll_cryptag_hs1(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    ompi_coll_cryptag_hs_t hs;
    int k = 0;

    /* 1. every rank puts its block into the shared plaintext */
    ompi_coll_cryptag_hs_begin(call, true, &hs);
    ompi_coll_cryptag_shm_arrive(hs.shm, hs.phase + 1);

    /* 2. the leader seals the blocks of its node, leaders all-gather */
    if (0 == topo->local) {
        const ompi_coll_cryptag_name_t name = name_of(&hs, topo->node);

        ompi_coll_cryptag_shm_await_all(hs.shm, hs.phase + 1);
        ompi_coll_cryptag_seal(call, &name, plain_of_node(&hs, topo->node),
                               hs.node_sealed[topo->node].plain_bytes, hs.node_sealed[topo->node].base);
    }
    ompi_coll_cryptag_hs_leaders(&hs);
    ompi_coll_cryptag_shm_await(hs.shm, 0, hs.phase + 2);

    /* 3. all open their part of the other nodes' pieces */
    for (int node = 0; node < topo->nodes; node++) {
        if (node != topo->node && ompi_coll_cryptag_hs_ours(&hs, k++)) {
            const ompi_coll_cryptag_name_t name = name_of(&hs, node);
            ompi_coll_cryptag_open(call, &name, hs.node_sealed[node].base, plain_of_node(&hs, node),
                                   hs.node_sealed[node].plain_bytes);
        }
    }

    /* 4. all copy */
    ompi_coll_cryptag_hs_end(&hs);
}

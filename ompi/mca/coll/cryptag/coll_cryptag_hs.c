/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What HS1, HS2 and HS3 share.  Phases of a call, after `phase`:
 *     + 1  our block is in the segment
 *     + 2  (leader) all sealed items are in the segment
 *     + 3  (not in HS3) we have opened our part of them
 *     + 4  we no longer need the segment
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

#include <string.h>

/* Where the sealed items begin: behind the plaintext, or at its place if nothing is sealed. */
static size_t sealed_first(const ompi_coll_cryptag_call_t *call)
{
    return ompi_coll_cryptag_seals(call) ? ompi_coll_cryptag_aligned(call->offset[call->topo->ranks]) : 0;
}

/* A node's blocks are never longer sealed together than sealed one by one. */
size_t ompi_coll_cryptag_hs_bytes(const ompi_coll_cryptag_call_t *call)
{
    size_t bytes = sealed_first(call);

    for (int i = 0; i < call->topo->ranks; i++) {
        bytes += ompi_coll_cryptag_sealed_bytes(call, ompi_coll_cryptag_block_bytes(call, i));
    }
    return bytes;
}

static void lay_out(ompi_coll_cryptag_hs_t *hs, bool by_node)
{
    const ompi_coll_cryptag_call_t *call = hs->call;
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    size_t sealed = sealed_first(call);

    hs->place[0] = 0;
    for (int node = 0; node < topo->nodes; node++) {
        ompi_coll_cryptag_part_t *part = &hs->node_sealed[node];

        *part = (ompi_coll_cryptag_part_t) { hs->data + sealed, 0, 0 };
        for (int i = topo->node_first[node]; i < topo->node_first[node + 1]; i++) {
            size_t bytes = ompi_coll_cryptag_block_bytes(call, topo->by_node[i]);

            hs->place[i + 1] = hs->place[i] + bytes;
            hs->sealed[i] = sealed + part->wire_bytes;
            part->plain_bytes += bytes;
            part->wire_bytes += by_node ? 0 : ompi_coll_cryptag_sealed_bytes(call, bytes);
        }
        if (by_node) {
            part->wire_bytes = ompi_coll_cryptag_sealed_bytes(call, part->plain_bytes);
        }
        sealed += part->wire_bytes;
    }
}

/* Choose the place for this call's data.  If it takes the whole segment, or follows
 * another user of it, all ranks must have copied out what is there. */
static void take_turn(ompi_coll_cryptag_hs_t *hs)
{
    ompi_coll_cryptag_shm_t *shm = hs->shm;
    const size_t half = shm->data_bytes / 2;
    const bool whole = ompi_coll_cryptag_hs_bytes(hs->call) > half;

    if (whole || 0 == shm->turn || shm->turn_phase != hs->phase) {
        ompi_coll_cryptag_shm_await_all(shm, hs->phase);
        shm->turn = 0;
    }
    hs->data = shm->data + shm->turn % 2 * half;
    shm->turn += whole ? 0 : 1;
}

void ompi_coll_cryptag_hs_begin(ompi_coll_cryptag_call_t *call, bool by_node, ompi_coll_cryptag_hs_t *hs)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const size_t ranks = (size_t) topo->ranks;

    hs->call = call;
    hs->shm = call->module->shm;
    hs->phase = hs->shm->phase;
    hs->place = ompi_coll_cryptag_scratch(call, (ranks + 1) * sizeof(size_t));
    hs->sealed = ompi_coll_cryptag_scratch(call, (ranks + 1) * sizeof(size_t));
    hs->node_sealed = ompi_coll_cryptag_scratch(call, (size_t) topo->nodes * sizeof(*hs->node_sealed));
    take_turn(hs);
    lay_out(hs, by_node);
    ompi_coll_cryptag_take_own(call, hs->data + hs->place[topo->node_first[topo->node] + topo->local]);
}

void ompi_coll_cryptag_hs_leaders(ompi_coll_cryptag_hs_t *hs)
{
    ompi_coll_cryptag_call_t *call = hs->call;
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const size_t nodes = (size_t) topo->nodes;
    int *members, *first;
    ompi_coll_cryptag_lane_t lane;

    if (0 != topo->local) {
        return;
    }
    members = ompi_coll_cryptag_scratch(call, nodes * sizeof(*members));
    first = ompi_coll_cryptag_scratch(call, (nodes + 1) * sizeof(*first));
    for (int node = 0; node < topo->nodes; node++) {
        members[node] = ompi_coll_cryptag_rank_at(topo, node, 0);
        first[node] = node;
    }
    first[topo->nodes] = topo->nodes;
    lane = (ompi_coll_cryptag_lane_t) { members, hs->node_sealed, first };
    ompi_coll_cryptag_gather(call, &(ompi_coll_cryptag_gather_t) {
        .kind = ompi_coll_cryptag_gather_kind(call->offset[topo->ranks] / nodes),
        .form = OMPI_COLL_CRYPTAG_SEALED,
        .n = topo->nodes, .me = topo->node,
        .lanes = &lane, .lane_count = 1,
    });
    ompi_coll_cryptag_shm_arrive(hs->shm, hs->phase + 2);
}

void ompi_coll_cryptag_hs_sealed(ompi_coll_cryptag_call_t *call, ompi_coll_cryptag_hs_t *hs)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int own = topo->node_first[topo->node] + topo->local;
    const ompi_coll_cryptag_name_t name = { topo->rank, OPAL_CRYPT_TO_ALL, 0 };

    ompi_coll_cryptag_hs_begin(call, false, hs);
    ompi_coll_cryptag_seal(call, &name, hs->data + hs->place[own],
                           ompi_coll_cryptag_block_bytes(call, topo->rank), hs->data + hs->sealed[own]);
    ompi_coll_cryptag_shm_arrive(hs->shm, hs->phase + 1);
    if (0 == topo->local) {
        ompi_coll_cryptag_shm_await_all(hs->shm, hs->phase + 1);
    }
    ompi_coll_cryptag_hs_leaders(hs);
    ompi_coll_cryptag_shm_await(hs->shm, 0, hs->phase + 2);
}

bool ompi_coll_cryptag_hs_ours(const ompi_coll_cryptag_hs_t *hs, int k)
{
    return hs->shm->here - 1 - k % hs->shm->here == hs->shm->local;
}

void ompi_coll_cryptag_hs_end(ompi_coll_cryptag_hs_t *hs)
{
    ompi_coll_cryptag_call_t *call = hs->call;
    const ompi_coll_cryptag_topo_t *topo = call->topo;

    ompi_coll_cryptag_shm_arrive(hs->shm, hs->phase + 3);
    ompi_coll_cryptag_shm_await_all(hs->shm, hs->phase + 3);

    /* 4. copy everything to the user's buffer */
    if (topo->in_order && call->user.dense) {
        memcpy(call->user.rbuf, hs->data, call->offset[topo->ranks]);
    } else {
        for (int i = 0; i < topo->ranks; i++) {
            ompi_coll_cryptag_deliver(call, topo->by_node[i], hs->data + hs->place[i]);
        }
    }
    ompi_coll_cryptag_hs_leave(hs);
}

void ompi_coll_cryptag_hs_leave(ompi_coll_cryptag_hs_t *hs)
{
    ompi_coll_cryptag_shm_arrive(hs->shm, hs->phase + 4);
    hs->shm->phase = hs->shm->turn_phase = hs->phase + 4;
}

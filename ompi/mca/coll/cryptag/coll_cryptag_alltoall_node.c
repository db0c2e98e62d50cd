/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All-to-all by pairs of nodes: the ranks of a node put their blocks into its
 * shared segment, and for every other node one rank (a different one for each, to
 * share the work) seals what goes there as one item for the rank that opens it,
 * and sends it.  With l ranks on a node these are N (N - 1) messages instead of
 * p (p - l).
 *
 *     | received[here][ranks] 4 | packed[here][nodes] 8 | sent[here][here] 4 | spoiled[nodes] 4 | outgoing | incoming |
 *
 *     received   bytes that a local rank gets from each rank in this way
 *     packed     bytes that a local rank put into its region for a node
 *     sent       bytes in a local rank's region for another one of the node
 *     spoiled    (if nothing is sealed) data from this node, or from another that the same rank opens, does not have
 *                the length that its receivers expect: an error in the program
 *     outgoing   regions, by local rank and node; blocks one after the other
 *     incoming   by node: its ranks' blocks for this node, as they were sealed
 *
 * A block that is longer than a slot is a separate message through pml/crypt,
 * which seals it with the key of the two ranks.  Both know its length, so they
 * need not agree on anything.
 *
 * Phases: + 1 our blocks are in the segment, + 2 those from other nodes are,
 * + 3 we have copied ours out.
 *
 * If the program is wrong, other ranks of the node may be in another call: a length from the segment is read once,
 * and limited to what there is room for.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_alltoall.h"
#include "coll_cryptag_shm.h"

#include <string.h>

#include "ompi/mca/pml/pml.h"

typedef struct {
    ompi_coll_cryptag_alltoall_t *alltoall;
    ompi_coll_cryptag_call_t *call;
    const ompi_coll_cryptag_topo_t *topo;
    ompi_coll_cryptag_shm_t *shm;
    uint64_t phase;
    uint32_t *received;
    uint64_t *packed;
    uint32_t *sent, *spoiled;
    uint8_t *outgoing, *incoming;
} node_run_t;

/* A message for, or from, another node. */
typedef struct {
    int node, peer;
    ompi_coll_cryptag_part_t out, in;
} pair_t;

static size_t tables_bytes(const ompi_coll_cryptag_topo_t *topo, size_t here)
{
    return ompi_coll_cryptag_aligned(here * (size_t) topo->ranks * sizeof(uint32_t))
           + ompi_coll_cryptag_aligned(here * (size_t) topo->nodes * sizeof(uint64_t))
           + ompi_coll_cryptag_aligned(here * here * sizeof(uint32_t))
           + ompi_coll_cryptag_aligned((size_t) topo->nodes * sizeof(uint32_t));
}

size_t ompi_coll_cryptag_alltoall_node_bytes(const ompi_coll_cryptag_alltoall_t *alltoall)
{
    const ompi_coll_cryptag_topo_t *topo = alltoall->call.topo;
    const size_t here = (size_t) topo->widest;

    return tables_bytes(topo, here) + 2 * here * (size_t) topo->ranks * alltoall->slot + OMPI_COLL_CRYPTAG_ALIGN;
}

static void lay_out(node_run_t *run)
{
    const size_t here = (size_t) run->shm->here, ranks = (size_t) run->topo->ranks;
    uint8_t *data = run->shm->data;

    run->received = (uint32_t *) (void *) data;
    data += ompi_coll_cryptag_aligned(here * ranks * sizeof(uint32_t));
    run->packed = (uint64_t *) (void *) data;
    data += ompi_coll_cryptag_aligned(here * (size_t) run->topo->nodes * sizeof(uint64_t));
    run->sent = (uint32_t *) (void *) data;
    run->spoiled = (uint32_t *) (void *) (data + ompi_coll_cryptag_aligned(here * here * sizeof(uint32_t)));
    run->outgoing = run->shm->data + tables_bytes(run->topo, here);
    run->incoming = run->outgoing + here * ranks * run->alltoall->slot;
}

static uint8_t *region_of(const node_run_t *run, int local, int node)
{
    const size_t before = (size_t) local * (size_t) run->topo->ranks + (size_t) run->topo->node_first[node];

    return run->outgoing + before * run->alltoall->slot;
}

static uint64_t *packed_of(const node_run_t *run, int local, int node)
{
    return &run->packed[(size_t) local * (size_t) run->topo->nodes + (size_t) node];
}

static uint32_t *received_of(const node_run_t *run, int local, int rank)
{
    return &run->received[(size_t) local * (size_t) run->topo->ranks + (size_t) rank];
}

static uint32_t *sent_of(const node_run_t *run, int local, int to_local)
{
    return &run->sent[(size_t) local * (size_t) run->shm->here + (size_t) to_local];
}

/* Read a length that another rank has written. */
static size_t said(const uint32_t *length, const node_run_t *run)
{
    const size_t bytes = __atomic_load_n(length, __ATOMIC_RELAXED);

    return bytes < run->alltoall->slot ? bytes : run->alltoall->slot;
}

static size_t said_packed(const node_run_t *run, int local, int node)
{
    const uint64_t bytes = __atomic_load_n(packed_of(run, local, node), __ATOMIC_RELAXED);
    const size_t capacity = (size_t) ompi_coll_cryptag_node_size(run->topo, node) * run->alltoall->slot;

    return bytes < capacity ? (size_t) bytes : capacity;
}

static uint8_t *incoming_of(const node_run_t *run, int node)
{
    const size_t before = (size_t) run->topo->node_first[node] * (size_t) run->shm->here;

    return run->incoming + before * run->alltoall->slot;
}

static bool travels_alone(const node_run_t *run, const ompi_coll_cryptag_cell_t *cell)
{
    return cell->bytes > run->alltoall->slot;
}

/* ---- 1. our blocks into the segment ---- */

static void pack_blocks(node_run_t *run)
{
    const ompi_coll_cryptag_topo_t *topo = run->topo;

    for (int node = 0; node < topo->nodes; node++) {
        uint8_t *region = region_of(run, topo->local, node), *end = region;

        for (int i = topo->node_first[node]; i < topo->node_first[node + 1]; i++) {
            const int rank = topo->by_node[i];
            const ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&run->alltoall->out, rank);
            const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&run->alltoall->in, rank);

            *received_of(run, topo->local, rank) = travels_alone(run, &in) ? 0 : (uint32_t) in.bytes;
            if (node == topo->node) {
                *sent_of(run, topo->local, topo->local_of[rank]) = travels_alone(run, &out) ? 0 : (uint32_t) out.bytes;
            }
            if (!travels_alone(run, &out)) {
                ompi_coll_cryptag_cell_pack(run->call, &out, end);
                end += out.bytes;
            }
        }
        *packed_of(run, topo->local, node) = (uint64_t) (end - region);
    }
}

/* ---- 2. between nodes ---- */

static size_t incoming_bytes(const node_run_t *run, int node)
{
    size_t bytes = 0;

    for (int i = run->topo->node_first[node]; i < run->topo->node_first[node + 1]; i++) {
        for (int local = 0; local < run->shm->here; local++) {
            bytes += said(received_of(run, local, run->topo->by_node[i]), run);
        }
    }
    return bytes;
}

static ompi_coll_cryptag_part_t sealed_part(node_run_t *run, uint8_t *plain, size_t bytes)
{
    const size_t wire_bytes = ompi_coll_cryptag_sealed_bytes(run->call, bytes);
    uint8_t *apart = ompi_coll_cryptag_scratch(run->call, wire_bytes);

    return (ompi_coll_cryptag_part_t) { ompi_coll_cryptag_sealed_at(run->call, plain, apart), wire_bytes, bytes };
}

static void post_pair(node_run_t *run, pair_t *pair)
{
    ompi_coll_cryptag_call_t *call = run->call;
    const ompi_coll_cryptag_name_t name = { run->topo->rank, (uint32_t) pair->peer, 0 };
    const size_t in_bytes = incoming_bytes(run, pair->node);
    size_t out_bytes = 0, *packed = ompi_coll_cryptag_scratch(call, (size_t) run->shm->here * sizeof(*packed));
    uint8_t *plain, *end;

    if (in_bytes > 0) {
        pair->in = sealed_part(run, incoming_of(run, pair->node), in_bytes);
        ompi_coll_cryptag_recv(call, pair->peer, OMPI_COLL_CRYPTAG_SEALED, &pair->in, 1);
    }
    for (int local = 0; local < run->shm->here; local++) {
        packed[local] = said_packed(run, local, pair->node);
        out_bytes += packed[local];
    }
    if (0 == out_bytes) {
        return;
    }
    plain = end = ompi_coll_cryptag_scratch(call, out_bytes);
    for (int local = 0; local < run->shm->here; local++) {
        memcpy(end, region_of(run, local, pair->node), packed[local]);
        end += packed[local];
    }
    pair->out = sealed_part(run, plain, out_bytes);
    ompi_coll_cryptag_seal(call, &name, plain, out_bytes, pair->out.base);
    ompi_coll_cryptag_send(call, pair->peer, OMPI_COLL_CRYPTAG_SEALED, &pair->out, 1);
}

/* We seal for, and open from, one node in every `here`. */
static int post_pairs(node_run_t *run, pair_t *pairs)
{
    const ompi_coll_cryptag_topo_t *topo = run->topo;
    int count = 0;

    for (int k = 1; k < topo->nodes; k++) {
        const int node = (topo->node + k) % topo->nodes;

        if (node % run->shm->here == topo->local) {
            pairs[count] = (pair_t) {
                .node = node,
                .peer = ompi_coll_cryptag_rank_at(topo, node, topo->node % ompi_coll_cryptag_node_size(topo, node)),
            };
            post_pair(run, &pairs[count++]);
        }
    }
    return count;
}

static void open_pairs(node_run_t *run, const pair_t *pairs, int count)
{
    for (int i = 0; i < count; i++) {
        run->spoiled[pairs[i].node] = run->call->spoiled;
        const ompi_coll_cryptag_name_t name = { pairs[i].peer, (uint32_t) run->topo->rank, 0 };

        if (pairs[i].in.plain_bytes > 0) {
            ompi_coll_cryptag_open(run->call, &name, pairs[i].in.base, incoming_of(run, pairs[i].node),
                                   pairs[i].in.plain_bytes);
        }
    }
}

/* Long blocks; in place they are sent from a copy.  Our own is no message: ob1 of 5.0.7 would write from the copy into an
 * accelerator's memory by itself. */
static void post_long(node_run_t *run)
{
    const int p = run->topo->ranks, rank = run->topo->rank;

    for (int k = 0; k < p; k++) {
        const int from = (rank - k + p) % p;
        const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&run->alltoall->in, from);
        ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&run->alltoall->out, from);

        if (from == rank && in.bytes == out.bytes && travels_alone(run, &in)) {
            run->call->metrics.s_c += out.bytes;
            ompi_coll_cryptag_note(run->call, ompi_coll_cryptag_cell_take_own(run->alltoall));
            continue;
        }
        if (travels_alone(run, &out) && run->alltoall->in_place) {
            out = ompi_coll_cryptag_cell_copy(run->call, &out);
        }
        if (travels_alone(run, &in)) {
            ompi_coll_cryptag_cell_recv(run->call, from, &in);
        }
        if (travels_alone(run, &out)) {
            ompi_coll_cryptag_cell_send(run->call, from, &out);
        }
    }
}

/* ---- 3. our blocks from the segment ---- */

/* From the region of a rank of this node, by the lengths that it wrote. */
static void deliver_local(node_run_t *run, int rank, const ompi_coll_cryptag_cell_t *in)
{
    const int sender = run->topo->local_of[rank];
    const uint8_t *from = region_of(run, sender, run->topo->node);

    for (int local = 0; local < run->topo->local; local++) {
        from += said(sent_of(run, sender, local), run);
    }
    if (*sent_of(run, sender, run->topo->local) != *received_of(run, run->topo->local, rank)) {
        ompi_coll_cryptag_mistaken(run->call);
    } else if (!travels_alone(run, in)) {
        ompi_coll_cryptag_cell_unpack(run->call, in, from);
    }
}

static void deliver_blocks(node_run_t *run)
{
    const ompi_coll_cryptag_topo_t *topo = run->topo;

    for (int node = 0; node < topo->nodes; node++) {
        const uint8_t *from = incoming_of(run, node);

        if (node != topo->node && 0 != run->spoiled[node]) {
            ompi_coll_cryptag_mistaken(run->call);
        }

        for (int i = topo->node_first[node]; i < topo->node_first[node + 1]; i++) {
            const int rank = topo->by_node[i];
            const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&run->alltoall->in, rank);

            if (node == topo->node) {
                deliver_local(run, rank, &in);
                continue;
            }
            for (int local = 0; local < run->shm->here; local++) {
                if (local == topo->local && !travels_alone(run, &in)) {
                    ompi_coll_cryptag_cell_unpack(run->call, &in, from);
                }
                from += said(received_of(run, local, rank), run);
            }
        }
    }
}

void ompi_coll_cryptag_alltoall_node(ompi_coll_cryptag_alltoall_t *alltoall)
{
    ompi_coll_cryptag_call_t *call = &alltoall->call;
    node_run_t run = {
        .alltoall = alltoall, .call = call, .topo = call->topo, .shm = call->module->shm,
        .phase = call->module->shm->phase,
    };
    pair_t *pairs = ompi_coll_cryptag_scratch(call, (size_t) call->topo->nodes * sizeof(*pairs));
    int count;

    lay_out(&run);

    /* 1. short blocks into the segment, after the last call's have been copied out */
    ompi_coll_cryptag_shm_await_all(run.shm, run.phase);
    pack_blocks(&run);
    ompi_coll_cryptag_shm_arrive(run.shm, run.phase + 1);

    /* 2. post long ones, and our share of the pairs of nodes */
    post_long(&run);
    ompi_coll_cryptag_shm_await_all(run.shm, run.phase + 1);
    count = post_pairs(&run, pairs);
    ompi_coll_cryptag_wait(call);
    open_pairs(&run, pairs, count);
    ompi_coll_cryptag_shm_arrive(run.shm, run.phase + 2);

    /* 3. our blocks from the segment */
    ompi_coll_cryptag_shm_await_all(run.shm, run.phase + 2);
    deliver_blocks(&run);
    ompi_coll_cryptag_shm_arrive(run.shm, run.phase + 3);
    run.shm->phase = run.phase + 3;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All-to-all by rows, for blocks of equal length: a rank's data for the l ranks of
 * another node is a row of l blocks, each sealed for the rank that opens it, and
 * travels as one message.  One of the l ranks receives it into the node's shared
 * segment (each of them receives some of the rows), where each rank opens its own
 * blocks.  So a byte is touched as often as if each block travelled alone, but these
 * are p (N - 1) messages instead of p (p - l), and all ranks have equal work.
 *
 *     segment    | node 0             | node 1 | ...     the sender's node
 *                | row of its rank 0  | row 1  | ...
 *                | for 0 | for 1 | ...                   local ranks here
 *
 * Blocks for this node are messages to the selected PML.
 *
 * Phases: + 1 the rows that we receive have arrived, + 2 we have opened our blocks.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_alltoall.h"
#include "coll_cryptag_shm.h"

typedef struct {
    ompi_coll_cryptag_alltoall_t *alltoall;
    ompi_coll_cryptag_call_t *call;
    const ompi_coll_cryptag_topo_t *topo;
    ompi_coll_cryptag_shm_t *shm;
    size_t bytes, wire_bytes;               /* length of a block, plain and sealed */
    ompi_coll_cryptag_part_t *caught;       /* rows received, by sending rank */
    ompi_coll_cryptag_part_t *sent;         /* rows sent, by node */
} rows_run_t;

static size_t block_bytes(const ompi_coll_cryptag_alltoall_t *alltoall)
{
    return ompi_coll_cryptag_cell(&alltoall->in, 0).bytes;
}

size_t ompi_coll_cryptag_alltoall_rows_bytes(const ompi_coll_cryptag_alltoall_t *alltoall)
{
    const ompi_coll_cryptag_topo_t *topo = alltoall->call.topo;

    return (size_t) topo->widest * (size_t) topo->ranks * ompi_coll_cryptag_sealed_bytes(&alltoall->call, block_bytes(alltoall));
}

/* The rank of `node` that receives the rows of local rank `sender` of other nodes. */
static int catcher(const ompi_coll_cryptag_topo_t *topo, int node, int sender)
{
    return ompi_coll_cryptag_rank_at(topo, node, sender % ompi_coll_cryptag_node_size(topo, node));
}

/* The place for the row of local rank `sender` of `node`. */
static uint8_t *row_of(const rows_run_t *run, int node, int sender)
{
    const size_t rows = (size_t) run->topo->node_first[node] + (size_t) sender;

    return run->shm->data + rows * (size_t) run->shm->here * run->wire_bytes;
}

static ompi_coll_cryptag_part_t row(const rows_run_t *run, uint8_t *base, int blocks)
{
    return (ompi_coll_cryptag_part_t) { base, (size_t) blocks * run->wire_bytes, (size_t) blocks * run->bytes };
}

/* ---- 1. rows ---- */

static void catch_rows(rows_run_t *run, int node)
{
    for (int i = 0; i < ompi_coll_cryptag_node_size(run->topo, node); i++) {
        const int rank = ompi_coll_cryptag_rank_at(run->topo, node, i);

        if (run->topo->rank == catcher(run->topo, run->topo->node, i)) {
            run->caught[rank] = row(run, row_of(run, node, i), run->shm->here);
            ompi_coll_cryptag_recv(run->call, rank, OMPI_COLL_CRYPTAG_SEALED, &run->caught[rank], 1);
        }
    }
}

static void seal_block(rows_run_t *run, int rank, uint8_t *sealed)
{
    const ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&run->alltoall->out, rank);
    const ompi_coll_cryptag_name_t name = { run->topo->rank, (uint32_t) rank, 0 };
    const uint8_t *plain = ompi_coll_cryptag_cell_flat(&out);

    if (NULL == plain) {
        plain = (uint8_t *) ompi_coll_cryptag_cell_copy(run->call, &out).base;
    }
    ompi_coll_cryptag_seal(run->call, &name, plain, run->bytes, sealed);
}

static void send_row(rows_run_t *run, int node)
{
    const int there = ompi_coll_cryptag_node_size(run->topo, node);
    uint8_t *sealed = ompi_coll_cryptag_scratch(run->call, (size_t) there * run->wire_bytes);

    for (int i = 0; i < there; i++) {
        seal_block(run, ompi_coll_cryptag_rank_at(run->topo, node, i), sealed + (size_t) i * run->wire_bytes);
    }
    run->sent[node] = row(run, sealed, there);
    ompi_coll_cryptag_send(run->call, catcher(run->topo, node, run->topo->local), OMPI_COLL_CRYPTAG_SEALED,
                           &run->sent[node], 1);
}

/* With MPI_IN_PLACE a block is sent from a copy, made before any arrives. */
static void exchange_here(rows_run_t *run)
{
    const ompi_coll_cryptag_topo_t *topo = run->topo;

    ompi_coll_cryptag_note(run->call, ompi_coll_cryptag_cell_take_own(run->alltoall));
    for (int k = 1; k < run->shm->here; k++) {
        const int rank = ompi_coll_cryptag_rank_at(topo, topo->node, (topo->local + k) % run->shm->here);
        const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&run->alltoall->in, rank);
        ompi_coll_cryptag_cell_t out = ompi_coll_cryptag_cell(&run->alltoall->out, rank);

        if (run->alltoall->in_place) {
            out = ompi_coll_cryptag_cell_copy(run->call, &out);
        }
        ompi_coll_cryptag_cell_recv(run->call, rank, &in);
        ompi_coll_cryptag_cell_send(run->call, rank, &out);
    }
}

/* ---- 2. our blocks of them ---- */

static void open_block(rows_run_t *run, int node, int sender)
{
    const int rank = ompi_coll_cryptag_rank_at(run->topo, node, sender);
    const ompi_coll_cryptag_cell_t in = ompi_coll_cryptag_cell(&run->alltoall->in, rank);
    const ompi_coll_cryptag_name_t name = { rank, (uint32_t) run->topo->rank, 0 };
    const uint8_t *sealed = row_of(run, node, sender) + (size_t) run->topo->local * run->wire_bytes;
    uint8_t *flat = ompi_coll_cryptag_cell_flat(&in);
    uint8_t *plain = NULL != flat ? flat : ompi_coll_cryptag_scratch(run->call, run->bytes);

    ompi_coll_cryptag_open(run->call, &name, sealed, plain, run->bytes);
    if (NULL == flat) {
        ompi_coll_cryptag_cell_unpack(run->call, &in, plain);
    }
}

void ompi_coll_cryptag_alltoall_rows(ompi_coll_cryptag_alltoall_t *alltoall)
{
    ompi_coll_cryptag_call_t *call = &alltoall->call;
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    ompi_coll_cryptag_shm_t *shm = call->module->shm;
    const uint64_t phase = shm->phase;
    rows_run_t run = {
        .alltoall = alltoall, .call = call, .topo = topo, .shm = shm, .bytes = block_bytes(alltoall),
        .wire_bytes = ompi_coll_cryptag_sealed_bytes(call, block_bytes(alltoall)),
        .caught = ompi_coll_cryptag_scratch(call, (size_t) topo->ranks * sizeof(*run.caught)),
        .sent = ompi_coll_cryptag_scratch(call, (size_t) topo->nodes * sizeof(*run.sent)),
    };

    /* 1. rows into the segment, after the last call's blocks have been taken from it */
    ompi_coll_cryptag_shm_await_all(shm, phase);
    for (int k = 1; k < topo->nodes; k++) {
        catch_rows(&run, (topo->node + topo->nodes - k) % topo->nodes);
    }
    for (int k = 1; k < topo->nodes; k++) {
        send_row(&run, (topo->node + k) % topo->nodes);
    }
    exchange_here(&run);
    ompi_coll_cryptag_wait(call);
    ompi_coll_cryptag_shm_arrive(shm, phase + 1);

    /* 2. our blocks from the segment */
    ompi_coll_cryptag_shm_await_all(shm, phase + 1);
    for (int k = 1; k < topo->nodes; k++) {
        const int node = (topo->node + topo->nodes - k) % topo->nodes;

        for (int i = 0; i < ompi_coll_cryptag_node_size(topo, node); i++) {
            open_block(&run, node, i);
        }
    }
    ompi_coll_cryptag_shm_arrive(shm, phase + 2);
    shm->phase = phase + 2;
}

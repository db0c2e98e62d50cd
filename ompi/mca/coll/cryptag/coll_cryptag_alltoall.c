/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Alltoall and MPI_Alltoallv: left to the component below, where every
 * block is a message that pml/crypt seals with the key of the two ranks; or small
 * blocks travel together, in one sealed message for a pair of nodes, or for a rank
 * and a node; or long blocks are separate messages, a few at a time.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_alltoall.h"
#include "coll_cryptag_shm.h"

#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"

/* Unpacking zeros touches exactly the bytes that belong to the message. */
static void wipe(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_side_t *in = &((ompi_coll_cryptag_alltoall_t *) call)->in;
    size_t longest = 0;
    uint8_t *zeros;

    for (int i = 0; i < call->topo->ranks; i++) {
        size_t bytes = ompi_coll_cryptag_cell(in, i).bytes;
        longest = bytes > longest ? bytes : longest;
    }
    zeros = ompi_coll_cryptag_scratch(call, longest);
    memset(zeros, 0, longest);
    for (int i = 0; i < call->topo->ranks; i++) {
        ompi_coll_cryptag_cell_t cell = ompi_coll_cryptag_cell(in, i);
        (void) ompi_common_cryptmpi_unpack(cell.base, cell.count, cell.dtype, 0, cell.bytes, zeros);
    }
}

/* Blocks of up to NODE_MAX bytes travel together from node to node; auto uses rows up to ROWS_MAX,
 * and pairs from PAIRS_MIN if a rank's blocks do not fit into a processor's own caches. */
enum { NODE_MAX = 4096, ROWS_MAX = 131072, PAIRS_MIN = 131072, MANY_BYTES = 2097152 };

/* The best algorithm that needs no shared memory. */
static int by_messages(const ompi_coll_cryptag_alltoall_t *alltoall, size_t block)
{
    const bool many = block >= PAIRS_MIN && block >= MANY_BYTES / (size_t) alltoall->call.topo->ranks;

    return many && MPI_IN_PLACE != alltoall->out.buffer ? OMPI_COLL_CRYPTAG_ALLTOALL_PAIRS
                                                        : OMPI_COLL_CRYPTAG_ALLTOALL_HOP;
}

static int by_size(const ompi_coll_cryptag_alltoall_t *alltoall, size_t block)
{
    if (alltoall->call.topo->widest > 1 && block <= NODE_MAX) {
        return OMPI_COLL_CRYPTAG_ALLTOALL_NODE;
    }
    return alltoall->call.topo->widest > 1 && block <= ROWS_MAX ? OMPI_COLL_CRYPTAG_ALLTOALL_ROWS
                                                                    : by_messages(alltoall, block);
}

static bool can(ompi_coll_cryptag_alltoall_t *alltoall, int algorithm)
{
    ompi_coll_cryptag_call_t *call = &alltoall->call;

    switch (algorithm) {
    case OMPI_COLL_CRYPTAG_ALLTOALL_NODE:
        return ompi_coll_cryptag_shm_ensure(call, ompi_coll_cryptag_alltoall_node_bytes(alltoall));
    case OMPI_COLL_CRYPTAG_ALLTOALL_ROWS:
        return !alltoall->in.counts
               && ompi_coll_cryptag_shm_ensure(call, ompi_coll_cryptag_alltoall_rows_bytes(alltoall));
    case OMPI_COLL_CRYPTAG_ALLTOALL_PAIRS:
        return MPI_IN_PLACE != alltoall->out.buffer;
    default:
        return true;
    }
}

/* Equal at every rank: alltoallv's sizes, which differ, are not used. */
static int choose(ompi_coll_cryptag_alltoall_t *alltoall)
{
    const ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;
    const bool vector = !!alltoall->in.counts;
    const size_t block = vector ? 0 : ompi_coll_cryptag_cell(&alltoall->in, 0).bytes;
    int algorithm = c->alltoall_algorithm;

    if (0 == algorithm) {
        algorithm = ompi_coll_cryptag_rules_find(c->rules, OMPI_COLL_CRYPTAG_ALLTOALL, alltoall->call.topo, block);
    }
    if (0 == algorithm) {
        algorithm = by_size(alltoall, block);
    }
    alltoall->slot = vector || block > NODE_MAX ? NODE_MAX : block;
    return can(alltoall, algorithm) ? algorithm : by_messages(alltoall, block);
}

static void check_device(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_side_t *side)
{
    for (int i = 0; i < call->topo->ranks && MPI_IN_PLACE != side->buffer; i++) {
        const ompi_coll_cryptag_cell_t cell = ompi_coll_cryptag_cell(side, i);

        ompi_coll_cryptag_device_check(call, cell.base, cell.dtype, cell.bytes);
    }
}

/* MPI requires this for equal blocks.  A block that is shorter than the other side's would be
 * read, sealed and sent beyond its end. */
static bool lengths_match(const ompi_coll_cryptag_alltoall_t *alltoall)
{
    return alltoall->in.counts || MPI_IN_PLACE == alltoall->out.buffer
           || ompi_coll_cryptag_cell(&alltoall->out, 0).bytes == ompi_coll_cryptag_cell(&alltoall->in, 0).bytes;
}

/* *left: leave it to the component below. */
static int run(ompi_coll_cryptag_alltoall_t *alltoall, bool *left)
{
    ompi_coll_cryptag_call_t *call = &alltoall->call;
    int rc = lengths_match(alltoall) ? ompi_coll_cryptag_setup(call->module, call->comm) : MPI_ERR_TRUNCATE;

    *left = false;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call->topo = call->module->topo;
    call->algorithm = choose(alltoall);
    *left = OMPI_COLL_CRYPTAG_ALLTOALL_HOP == call->algorithm;
    if (*left || OMPI_COLL_CRYPTAG_ALLTOALL_PAIRS == call->algorithm) {
        ompi_coll_cryptag_scratch_reset(&call->module->scratch);
        return *left ? OMPI_SUCCESS : ompi_coll_cryptag_alltoall_pairs(alltoall);
    }
    check_device(call, &alltoall->out);
    check_device(call, &alltoall->in);
    call->sequence = call->module->sequence++;
    alltoall->in_place = MPI_IN_PLACE == alltoall->out.buffer;
    if (alltoall->in_place) {
        alltoall->out = alltoall->in;
    }
    if (OMPI_COLL_CRYPTAG_ALLTOALL_NODE == call->algorithm) {
        ompi_coll_cryptag_alltoall_node(alltoall);
    } else {
        ompi_coll_cryptag_alltoall_rows(alltoall);
    }
    ompi_coll_cryptag_count(call);
    return ompi_coll_cryptag_finish(call);
}

int ompi_coll_cryptag_alltoall(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                               ompi_common_cryptmpi_count_t rcount, ompi_datatype_t *rdtype, ompi_communicator_t *comm,
                               mca_coll_base_module_t *base)
{
    ompi_coll_cryptag_module_t *module = (ompi_coll_cryptag_module_t *) base;
    ompi_coll_cryptag_alltoall_t alltoall = {
        .call = {
            .module = module, .comm = comm, .wipe = wipe,
            .operation = OMPI_COLL_CRYPTAG_ALLTOALL, .tag = MCA_COLL_BASE_TAG_ALLTOALL,
        },
        .out = { (char *) sbuf, (size_t) scount, 0, 0, sdtype },
        .in = { rbuf, (size_t) rcount, 0, 0, rdtype },
    };
    bool left;
    int rc;

    if (0 == ompi_common_cryptmpi_bytes(rdtype, (size_t) rcount)) {
        return OMPI_SUCCESS;
    }
    rc = run(&alltoall, &left);
    if (left) {
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, alltoall);
        rc = comm->c_coll->coll_alltoall(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                                         comm->c_coll->coll_alltoall_module);
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, alltoall);
    }
    return rc;
}

int ompi_coll_cryptag_alltoallv(const void *sbuf, ompi_common_cryptmpi_counts_t scounts, ompi_common_cryptmpi_disps_t sdisps,
                                ompi_datatype_t *sdtype, void *rbuf, ompi_common_cryptmpi_counts_t rcounts,
                                ompi_common_cryptmpi_disps_t rdisps, ompi_datatype_t *rdtype,
                                ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    ompi_coll_cryptag_module_t *module = (ompi_coll_cryptag_module_t *) base;
    ompi_coll_cryptag_alltoall_t alltoall = {
        .call = {
            .module = module, .comm = comm, .wipe = wipe,
            .operation = OMPI_COLL_CRYPTAG_ALLTOALL, .tag = MCA_COLL_BASE_TAG_ALLTOALLV,
        },
        .out = { (char *) sbuf, 0, scounts, sdisps, sdtype },
        .in = { rbuf, 0, rcounts, rdisps, rdtype },
    };
    bool left;
    int rc = run(&alltoall, &left);

    if (left) {
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, alltoallv);
        rc = comm->c_coll->coll_alltoallv(sbuf, scounts, sdisps, sdtype, rbuf, rcounts, rdisps, rdtype, comm,
                                          comm->c_coll->coll_alltoallv_module);
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, alltoallv);
    }
    return rc;
}

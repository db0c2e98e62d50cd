/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Bcast: either left to the component below, where pml/crypt seals and
 * opens on every hop, or sealed once by the root.
 */
#include "coll_cryptag.h"
#include "coll_cryptag_bcast.h"
#include "coll_cryptag_shm.h"

#include <limits.h>
#include <string.h>

#include "ompi/mca/coll/base/coll_tags.h"

/* Unpacking zeros touches exactly the bytes that belong to the message. */
static void wipe(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_bcast_t *bcast = (ompi_coll_cryptag_bcast_t *) call;
    uint8_t *zeros;

    if (call->topo->rank == bcast->root) {
        return;
    }
    zeros = ompi_coll_cryptag_scratch(call, bcast->segment);
    memset(zeros, 0, bcast->segment);
    for (size_t done = 0; done < bcast->bytes; done += bcast->segment) {
        size_t bytes = bcast->bytes - done < bcast->segment ? bcast->bytes - done : bcast->segment;
        (void) ompi_common_cryptmpi_unpack(bcast->buffer, bcast->count, bcast->dtype, done, bytes, zeros);
    }
}

/* auto: chain from CHAIN_MIN bytes on; within a node through shared memory from SHARE_MIN. */
enum { CHAIN_MIN = 1048576, SHARE_MIN = 129 };

/* Equal at every rank, as in an all-gather. */
static int choose(const ompi_coll_cryptag_bcast_t *bcast)
{
    const ompi_coll_cryptag_component_t *c = &mca_coll_cryptag_component;
    const ompi_coll_cryptag_topo_t *topo = bcast->call.topo;
    int algorithm = c->bcast_algorithm;

    if (0 == algorithm) {
        algorithm = ompi_coll_cryptag_rules_find(c->rules, OMPI_COLL_CRYPTAG_BCAST, topo, bcast->bytes);
    }
    if (0 == algorithm) {
        algorithm = topo->nodes > 2 && bcast->bytes >= CHAIN_MIN ? OMPI_COLL_CRYPTAG_BCAST_CHAIN
                                                                 : OMPI_COLL_CRYPTAG_BCAST_BINOMIAL;
    }
    return algorithm;
}

int ompi_coll_cryptag_bcast_segments(size_t bytes)
{
    const size_t segment = ompi_coll_cryptag_bcast_segment(), segments = bytes / segment + (0 != bytes % segment);

    return segments < INT_MAX ? (int) segments : INT_MAX;      /* `bytes` may come from another rank */
}

static void cut(ompi_coll_cryptag_bcast_t *bcast)
{
    const size_t segment = ompi_coll_cryptag_bcast_segment();

    bcast->segment = bcast->bytes < segment ? bcast->bytes : segment;
    bcast->segments = ompi_coll_cryptag_bcast_segments(bcast->bytes);
    bcast->share = bcast->call.topo->widest > 1 && bcast->bytes >= SHARE_MIN
                   && ompi_coll_cryptag_shm_ensure(&bcast->call, ompi_coll_cryptag_bcast_slot_bytes(bcast)
                          * (size_t) (bcast->segments < OMPI_COLL_CRYPTAG_BCAST_SLOTS
                                          ? bcast->segments : OMPI_COLL_CRYPTAG_BCAST_SLOTS));
}

int ompi_coll_cryptag_bcast(void *buffer, ompi_common_cryptmpi_count_t count, ompi_datatype_t *dtype, int root,
                            ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    ompi_coll_cryptag_module_t *module = (ompi_coll_cryptag_module_t *) base;
    ompi_coll_cryptag_bcast_t bcast = {
        .call = {
            .module = module, .comm = comm, .wipe = wipe,
            .operation = OMPI_COLL_CRYPTAG_BCAST, .tag = MCA_COLL_BASE_TAG_BCAST,
        },
        .buffer = buffer, .count = (size_t) count, .dtype = dtype, .root = root,
        .bytes = ompi_common_cryptmpi_bytes(dtype, (size_t) count),
    };
    int rc;

    if (0 == bcast.bytes) {
        return OMPI_SUCCESS;
    }
    rc = ompi_coll_cryptag_setup(module, comm);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    bcast.call.topo = module->topo;
    bcast.call.algorithm = choose(&bcast);
    if (OMPI_COLL_CRYPTAG_BCAST_HOP == bcast.call.algorithm) {
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, bcast);
        rc = comm->c_coll->coll_bcast(buffer, count, dtype, root, comm, comm->c_coll->coll_bcast_module);
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, bcast);
        return rc;
    }
    ompi_coll_cryptag_device_check(&bcast.call, buffer, dtype, bcast.bytes);
    bcast.call.sequence = module->sequence++;
    bcast.dense = ompi_common_cryptmpi_contiguous(buffer, dtype, bcast.count);
    bcast.stream = NULL != bcast.dense ? NULL : ompi_common_cryptmpi_stream_open(buffer, bcast.count, dtype,
                                                                                 root == module->topo->rank, bcast.bytes);
    cut(&bcast);
    ompi_coll_cryptag_bcast_tree(&bcast);
    ompi_common_cryptmpi_stream_close(bcast.stream);
    ompi_coll_cryptag_count(&bcast.call);
    return ompi_coll_cryptag_finish(&bcast.call);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Allgather and MPI_Allgatherv:
 *     1. sizes   2. algorithm   3. our block into its place   4. run
 *     5. blocks to the user   6. all ranks agree on success
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

#include "ompi/mca/coll/base/coll_tags.h"
#include "opal/util/output.h"

#define FUNCTION_OF_RUN(name, function, word) [OMPI_COLL_CRYPTAG_##name] = ompi_coll_cryptag_##function,
#define FUNCTION_OF_NAMED(name, word)
static const ompi_coll_cryptag_run_fn_t run_fn[OMPI_COLL_CRYPTAG_ALGORITHMS] = {
    OPAL_CRYPT_ALLGATHERS(FUNCTION_OF_RUN, FUNCTION_OF_NAMED)
};

/* Packed blocks are stored one after the other in rank order.  dense: the user's
 * buffer has the same layout, in memory of the host, so no second buffer is needed. */
static void measure(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_user_t *user = &call->user;
    const int p = call->topo->ranks;
    size_t *offset = call->module->offset, size;
    ptrdiff_t lb, true_lb, true_extent;

    ompi_datatype_type_size(user->rdtype, &size);
    ompi_datatype_get_extent(user->rdtype, &lb, &user->extent);
    ompi_datatype_get_true_extent(user->rdtype, &true_lb, &true_extent);
    user->dense = 0 == true_lb && (ptrdiff_t) size == user->extent
                  && (0 == size || NULL != ompi_common_cryptmpi_contiguous(user->rbuf, user->rdtype, 2));
    offset[0] = 0;
    for (int i = 0; i < p; i++) {
        size_t count = ompi_coll_cryptag_user_count(user, i);

        if (user->rcounts && 0 != count && (size_t) ompi_common_cryptmpi_disp(user->disps, i) * size != offset[i]) {
            user->dense = false;
        }
        offset[i + 1] = offset[i] + count * size;
    }
    call->offset = offset;
}

static bool is_hs(int algorithm)
{
    return algorithm >= OMPI_COLL_CRYPTAG_HS1 && algorithm <= OMPI_COLL_CRYPTAG_HS3;
}

/* Equal at every rank: it depends on sizes, node map and settings alone, and
 * either all nodes have the segment or none. */
static int choose(ompi_coll_cryptag_call_t *call)
{
    const size_t block = call->offset[call->topo->ranks] / (size_t) call->topo->ranks;
    int algorithm = mca_coll_cryptag_component.allgather_algorithm;

    if (OMPI_COLL_CRYPTAG_AUTO == algorithm) {
        algorithm = ompi_coll_cryptag_rules_find(mca_coll_cryptag_component.rules, call->operation,
                                                 call->topo, block);
    }
    if (is_hs(algorithm) && !ompi_coll_cryptag_shm_ensure(call, ompi_coll_cryptag_hs_bytes(call))) {
        algorithm = !ompi_coll_cryptag_seals(call)        ? OMPI_COLL_CRYPTAG_HOP
                    : block < OMPI_COLL_CRYPTAG_RING_MIN ? OMPI_COLL_CRYPTAG_C_RD
                                                         : OMPI_COLL_CRYPTAG_C_RING;
    }
    return algorithm;
}

static void run(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;

    if (is_hs(call->algorithm)) {
        run_fn[call->algorithm](call);
        return;
    }
    call->plain = call->user.dense ? (uint8_t *) call->user.rbuf
                                   : ompi_coll_cryptag_scratch(call, call->offset[topo->ranks]);
    ompi_coll_cryptag_take_own(call, ompi_coll_cryptag_block(call, topo->rank));
    run_fn[call->algorithm](call);
    for (int i = 0; i < topo->ranks && !call->user.dense; i++) {
        if (i != topo->rank || MPI_IN_PLACE != call->user.sbuf) {
            ompi_coll_cryptag_deliver(call, i, ompi_coll_cryptag_block(call, i));
        }
    }
}

/* Open MPI itself returns from a call without elements, perhaps only at some ranks, while others pass elements of no
 * size: such a call sends no message, and takes no sequence number. */
static bool is_empty(const ompi_coll_cryptag_user_t *user, ompi_communicator_t *comm)
{
    size_t size, count = 0;

    ompi_datatype_type_size(user->rdtype, &size);
    for (int i = 0; i < ompi_comm_size(comm) && 0 == count; i++) {
        count = ompi_coll_cryptag_user_count(user, i);
    }
    return 0 == size || 0 == count;
}

/* *left: leave it to the component below. */
static int allgather(ompi_coll_cryptag_module_t *module, ompi_communicator_t *comm,
                     const ompi_coll_cryptag_user_t *user, bool *left)
{
    ompi_coll_cryptag_call_t call = {
        .module = module, .comm = comm, .user = *user, .wipe = ompi_coll_cryptag_wipe,
        .operation = OMPI_COLL_CRYPTAG_ALLGATHER, .tag = MCA_COLL_BASE_TAG_ALLGATHER,
    };
    int rc;

    *left = false;
    if (is_empty(user, comm)) {
        return OMPI_SUCCESS;
    }
    rc = ompi_coll_cryptag_setup(module, comm);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    call.topo = module->topo;
    call.sequence = module->sequence++;
    measure(&call);
    call.algorithm = choose(&call);
    *left = OMPI_COLL_CRYPTAG_HOP == call.algorithm;
    if (*left) {
        ompi_coll_cryptag_scratch_reset(&module->scratch);
        return OMPI_SUCCESS;
    }
    ompi_coll_cryptag_device_check(&call, user->sbuf, user->sdtype, ompi_coll_cryptag_block_bytes(&call, call.topo->rank));
    ompi_coll_cryptag_device_check(&call, user->rbuf, user->rdtype, call.offset[call.topo->ranks]);
    run(&call);
    ompi_coll_cryptag_count(&call);
    return ompi_coll_cryptag_finish(&call);
}

int ompi_coll_cryptag_allgather(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                                ompi_common_cryptmpi_count_t rcount, ompi_datatype_t *rdtype, ompi_communicator_t *comm,
                                mca_coll_base_module_t *base)
{
    const ompi_coll_cryptag_user_t user = {
        .sbuf = sbuf, .scount = (size_t) scount, .sdtype = sdtype,
        .rbuf = rbuf, .rcount = (size_t) rcount, .rdtype = rdtype,
    };
    ompi_coll_cryptag_module_t *module = (ompi_coll_cryptag_module_t *) base;
    bool left;
    int rc = allgather(module, comm, &user, &left);

    if (left) {
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, allgather);
        rc = comm->c_coll->coll_allgather(sbuf, scount, sdtype, rbuf, rcount, rdtype, comm,
                                          comm->c_coll->coll_allgather_module);
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, allgather);
    }
    return rc;
}

int ompi_coll_cryptag_allgatherv(const void *sbuf, ompi_common_cryptmpi_count_t scount, ompi_datatype_t *sdtype, void *rbuf,
                                 ompi_common_cryptmpi_counts_t rcounts, ompi_common_cryptmpi_disps_t disps, ompi_datatype_t *rdtype,
                                 ompi_communicator_t *comm, mca_coll_base_module_t *base)
{
    const ompi_coll_cryptag_user_t user = {
        .sbuf = sbuf, .scount = (size_t) scount, .sdtype = sdtype,
        .rbuf = rbuf, .rcounts = rcounts, .disps = disps, .rdtype = rdtype,
    };
    ompi_coll_cryptag_module_t *module = (ompi_coll_cryptag_module_t *) base;
    bool left;
    int rc = allgather(module, comm, &user, &left);

    if (left) {
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, allgatherv);
        rc = comm->c_coll->coll_allgatherv(sbuf, scount, sdtype, rbuf, rcounts, disps, rdtype, comm,
                                           comm->c_coll->coll_allgatherv_module);
        OMPI_COLL_CRYPTAG_SWAP(comm, &module->below, allgatherv);
    }
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HS3: like HS2, but every rank opens every foreign block, directly into the
 * user's buffer.  Opening takes no longer than copying, and no rank waits for
 * what others open.
 *
 *     r_e 1, s_e m, r_d p - l, s_d (p - l) m, every rank
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

static void open_foreign(const ompi_coll_cryptag_hs_t *hs)
{
    ompi_coll_cryptag_call_t *call = hs->call;
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const bool dense = call->user.dense;
    uint8_t *plain = dense ? NULL : ompi_coll_cryptag_scratch(call, ompi_coll_cryptag_longest_block(call));

    for (int i = 0; i < topo->ranks; i++) {
        const ompi_coll_cryptag_name_t name = { topo->by_node[i], OPAL_CRYPT_TO_ALL, 0 };

        if (topo->node_of[name.origin] != topo->node) {
            plain = dense ? (uint8_t *) call->user.rbuf + call->offset[name.origin] : plain;
            ompi_coll_cryptag_open(call, &name, hs->data + hs->sealed[i], plain,
                                   ompi_coll_cryptag_block_bytes(call, name.origin));
            if (!dense) {
                ompi_coll_cryptag_deliver(call, name.origin, plain);
            }
        }
    }
}

void ompi_coll_cryptag_hs3(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    ompi_coll_cryptag_hs_t hs;

    /* 1. and 2. as in HS2 */
    ompi_coll_cryptag_hs_sealed(call, &hs);

    /* 3. all copy the blocks of their node, and open those of the others */
    for (int i = topo->node_first[topo->node]; i < topo->node_first[topo->node + 1]; i++) {
        ompi_coll_cryptag_deliver(call, topo->by_node[i], hs.data + hs.place[i]);
    }
    open_foreign(&hs);
    ompi_coll_cryptag_hs_leave(&hs);
}

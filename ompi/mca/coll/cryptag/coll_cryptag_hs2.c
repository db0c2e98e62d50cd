/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HS2: like HS1, but every rank seals its own block, so that sealing too is
 * shared out: for blocks of some KiB.
 *
 *     r_e 1, s_e m, r_d N - 1, s_d (N - 1) m, every rank
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

void ompi_coll_cryptag_hs2(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    const int own = topo->node_first[topo->node] + topo->local;
    ompi_coll_cryptag_name_t name = { topo->rank, OPAL_CRYPT_TO_ALL, 0 };
    ompi_coll_cryptag_hs_t hs;
    int k = 0;

    /* 1. every rank puts its block into the shared plaintext, and sealed
     *    beside it */
    ompi_coll_cryptag_hs_begin(call, false, &hs);
    ompi_coll_cryptag_seal(call, &name, hs.data + hs.place[own],
                           ompi_coll_cryptag_block_bytes(call, topo->rank), hs.data + hs.sealed[own]);
    ompi_coll_cryptag_shm_arrive(hs.shm, hs.phase + 1);

    /* 2. leaders all-gather what is sealed */
    if (0 == topo->local) {
        ompi_coll_cryptag_shm_await_all(hs.shm, hs.phase + 1);
    }
    ompi_coll_cryptag_hs_leaders(&hs);
    ompi_coll_cryptag_shm_await(hs.shm, 0, hs.phase + 2);

    /* 3. all open their part of the other nodes' blocks */
    for (int i = 0; i < topo->ranks; i++) {
        name.origin = topo->by_node[i];
        if (topo->node_of[name.origin] != topo->node && ompi_coll_cryptag_hs_ours(&hs, k++)) {
            ompi_coll_cryptag_open(call, &name, hs.data + hs.sealed[i], hs.data + hs.place[i],
                                   ompi_coll_cryptag_block_bytes(call, name.origin));
        }
    }

    /* 4. all copy */
    ompi_coll_cryptag_hs_end(&hs);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HS2: like HS1, but every rank seals its own block, so that the work of sealing
 * is shared, too: for blocks of some KiB.
 *
 *     r_e 1, s_e m, r_d N - 1, s_d (N - 1) m, every rank
 */
#include "coll_cryptag.h"
#include "coll_cryptag_hs.h"
#include "coll_cryptag_shm.h"

void ompi_coll_cryptag_hs2(ompi_coll_cryptag_call_t *call)
{
    const ompi_coll_cryptag_topo_t *topo = call->topo;
    ompi_coll_cryptag_hs_t hs;
    int k = 0;

    /* 1. every rank puts its block into the shared plaintext, and its sealed
     *    form behind that
     * 2. leaders all-gather the sealed blocks */
    ompi_coll_cryptag_hs_sealed(call, &hs);

    /* 3. all open their part of the other nodes' blocks */
    for (int i = 0; i < topo->ranks; i++) {
        const ompi_coll_cryptag_name_t name = { topo->by_node[i], OPAL_CRYPT_TO_ALL, 0 };

        if (topo->node_of[name.origin] != topo->node && ompi_coll_cryptag_hs_ours(&hs, k++)) {
            ompi_coll_cryptag_open(call, &name, hs.data + hs.sealed[i], hs.data + hs.place[i],
                                   ompi_coll_cryptag_block_bytes(call, name.origin));
        }
    }

    /* 4. all copy */
    ompi_coll_cryptag_hs_end(&hs);
}

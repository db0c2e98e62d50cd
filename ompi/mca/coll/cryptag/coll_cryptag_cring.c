/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * C-Ring: concurrent rings, one in each lane, then a ring within each node.
 * No step moves more than one block: for large blocks.
 *
 *     r_c N + l - 2, s_c (p - 1) m, r_e 1, s_e m, r_d N - 1, s_d (N - 1) m
 */
#include "coll_cryptag.h"

void ompi_coll_cryptag_c_ring(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_concurrent(call, OMPI_COLL_CRYPTAG_RING);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * C-RD: concurrent doublings, one in each lane, then a doubling within each
 * node.  The fewest steps without shared memory: for small blocks.
 *
 *     r_c lg N + lg l, s_c (p - 1) m, r_e 1, s_e m, r_d N - 1, s_d (N - 1) m
 */
#include "coll_cryptag.h"

void ompi_coll_cryptag_c_rd(ompi_coll_cryptag_call_t *call)
{
    ompi_coll_cryptag_concurrent(call, OMPI_COLL_CRYPTAG_DOUBLING);
}

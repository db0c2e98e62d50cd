/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One MPI_Alltoall or MPI_Alltoallv in progress.
 */
#ifndef COLL_CRYPTAG_ALLTOALL_H
#define COLL_CRYPTAG_ALLTOALL_H

#include "coll_cryptag_call.h"

/* The user's blocks, sent or received: `counts` and `disps` for alltoallv,
 * else `count` of each. */
typedef struct ompi_coll_cryptag_side {
    char *buffer;
    size_t count;
    const int *counts, *disps;
    ompi_datatype_t *dtype;
} ompi_coll_cryptag_side_t;

/* One of them. */
typedef struct ompi_coll_cryptag_cell {
    char *base;
    size_t count, bytes;
    ompi_datatype_t *dtype;
} ompi_coll_cryptag_cell_t;

typedef struct ompi_coll_cryptag_alltoall {
    ompi_coll_cryptag_call_t call;      /* first: wipe finds us through it */
    ompi_coll_cryptag_side_t out, in;
    bool in_place;                      /* out is in */
    size_t slot;                        /* longest block that travels with others */
} ompi_coll_cryptag_alltoall_t;

ompi_coll_cryptag_cell_t ompi_coll_cryptag_cell(const ompi_coll_cryptag_side_t *side, int rank);

/* NODE (coll_cryptag_alltoall_node.c): the bytes of shared memory that it
 * needs, equal at every rank, and itself. */
size_t ompi_coll_cryptag_alltoall_node_bytes(const ompi_coll_cryptag_alltoall_t *alltoall);
void ompi_coll_cryptag_alltoall_node(ompi_coll_cryptag_alltoall_t *alltoall);

/* PAIRS (coll_cryptag_alltoall_pairs.c); not in place. */
int ompi_coll_cryptag_alltoall_pairs(ompi_coll_cryptag_alltoall_t *alltoall);

#endif

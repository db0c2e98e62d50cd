/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One MPI_Alltoall or MPI_Alltoallv in progress.
 */
#ifndef COLL_CRYPTAG_ALLTOALL_H
#define COLL_CRYPTAG_ALLTOALL_H

#include "coll_cryptag_call.h"

/* The user's blocks, sent or received: `counts` and `disps` for alltoallv, else
 * `count` elements in each. */
typedef struct ompi_coll_cryptag_side {
    char *buffer;
    size_t count;
    ompi_common_cryptmpi_counts_t counts;
    ompi_common_cryptmpi_disps_t disps;
    ompi_datatype_t *dtype;
} ompi_coll_cryptag_side_t;

/* One block. */
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

/* ---- cells (coll_cryptag_alltoall_cell.c) ---- */

ompi_coll_cryptag_cell_t ompi_coll_cryptag_cell(const ompi_coll_cryptag_side_t *side, int rank);
/* The address of its bytes if they are contiguous in packed form, or NULL. */
uint8_t *ompi_coll_cryptag_cell_flat(const ompi_coll_cryptag_cell_t *cell);
void ompi_coll_cryptag_cell_pack(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_cell_t *cell, uint8_t *to);
void ompi_coll_cryptag_cell_unpack(ompi_coll_cryptag_call_t *call, const ompi_coll_cryptag_cell_t *cell,
                                   const uint8_t *from);
/* A packed copy in scratch. */
ompi_coll_cryptag_cell_t ompi_coll_cryptag_cell_copy(ompi_coll_cryptag_call_t *call,
                                                     const ompi_coll_cryptag_cell_t *cell);
/* A message by the selected PML, pending until the call's next wait. */
void ompi_coll_cryptag_cell_recv(ompi_coll_cryptag_call_t *call, int rank, const ompi_coll_cryptag_cell_t *in);
void ompi_coll_cryptag_cell_send(ompi_coll_cryptag_call_t *call, int rank, const ompi_coll_cryptag_cell_t *out);
/* Copy the block for ourselves. */
int ompi_coll_cryptag_cell_take_own(const ompi_coll_cryptag_alltoall_t *alltoall);

/* ---- the algorithms ---- */

/* NODE (coll_cryptag_alltoall_node.c): the bytes of shared memory that it needs,
 * equal at every rank; and the algorithm. */
size_t ompi_coll_cryptag_alltoall_node_bytes(const ompi_coll_cryptag_alltoall_t *alltoall);
void ompi_coll_cryptag_alltoall_node(ompi_coll_cryptag_alltoall_t *alltoall);

/* ROWS (coll_cryptag_alltoall_rows.c), for MPI_Alltoall: the same. */
size_t ompi_coll_cryptag_alltoall_rows_bytes(const ompi_coll_cryptag_alltoall_t *alltoall);
void ompi_coll_cryptag_alltoall_rows(ompi_coll_cryptag_alltoall_t *alltoall);

/* PAIRS (coll_cryptag_alltoall_pairs.c); not in place. */
int ompi_coll_cryptag_alltoall_pairs(ompi_coll_cryptag_alltoall_t *alltoall);

#endif

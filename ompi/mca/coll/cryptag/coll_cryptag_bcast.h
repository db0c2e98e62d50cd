/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One MPI_Bcast in progress.
 */
#ifndef COLL_CRYPTAG_BCAST_H
#define COLL_CRYPTAG_BCAST_H

#include "coll_cryptag_call.h"

typedef struct ompi_coll_cryptag_bcast {
    ompi_coll_cryptag_call_t call;      /* first: wipe finds us through it */
    char *buffer;
    size_t count;
    ompi_datatype_t *dtype;
    int root;
    size_t bytes;                       /* packed, equal at every rank */
    char *dense;                        /* the packed bytes in `buffer`; NULL: not contiguous */
    ompi_common_cryptmpi_stream_t *stream;      /* if not: to pack or unpack in order; or NULL */
    size_t segment;                     /* bytes that are sealed and forwarded at a time */
    int segments;
    bool share;                         /* nodes forward through their shared segment */
} ompi_coll_cryptag_bcast_t;

/* Segments in a node's shared memory at a time. */
#define OMPI_COLL_CRYPTAG_BCAST_SLOTS 8

static inline size_t ompi_coll_cryptag_bcast_slot_bytes(const ompi_coll_cryptag_bcast_t *bcast)
{
    enum { LINE = 64 };

    return (ompi_coll_cryptag_sealed_bytes(&bcast->call, bcast->segment) + LINE - 1) / LINE * LINE;
}

int ompi_coll_cryptag_bcast_segments(size_t bytes);

/* BINOMIAL and CHAIN (coll_cryptag_bcast_tree.c). */
void ompi_coll_cryptag_bcast_tree(ompi_coll_cryptag_bcast_t *bcast);

#endif

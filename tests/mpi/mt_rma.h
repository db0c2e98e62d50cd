/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One-sided operations drawn at random, and what memory and results must be after them.
 *
 * A step is what happens in one epoch.  Each window is cut into places, and what is done at a place has one
 * outcome, whatever the order in which it arrives: one origin puts there, or some get, or all accumulate by one
 * commutative operation, or one origin does several atomic operations, which MPI keeps in order, or all take a
 * number from a counter.  Every rank draws all operations of all ranks, and so knows what every window must be.
 */
#ifndef TESTS_MPI_MT_RMA_H
#define TESTS_MPI_MT_RMA_H

#include "mt.h"

typedef enum {
    MT_PUT, MT_GET, MT_ACCUMULATE, MT_GET_ACCUMULATE, MT_FETCH, MT_COMPARE, MT_KINDS
} mt_rma_kind_t;

typedef enum {                          /* behind an operation in a passive epoch */
    MT_NOTHING, MT_FLUSH, MT_FLUSH_LOCAL, MT_FLUSH_ALL, MT_FLUSH_LOCAL_ALL, MT_WAIT
} mt_rma_then_t;

/* Where elements lie. */
typedef struct mt_layout {
    MPI_Datatype type;                  /* committed, or of MPI */
    bool derived;
    int count, n;                       /* of the type; elements in all */
    size_t unit;                        /* bytes of an element */
    size_t *at;                         /* where each is, in bytes */
    size_t bytes;                       /* to behind the last */
} mt_layout_t;

typedef struct mt_rma_op {
    mt_rma_kind_t kind;
    int origin, target, place;
    size_t displacement, room;          /* of its place, in bytes */
    MPI_Datatype element;
    MPI_Op op;
    mt_layout_t from, to;
    unsigned char *sent;                /* packed; of MT_COMPARE: the new value, and what is expected */
    unsigned char *old;                 /* packed: what it fetches; NULL: nothing, or it is one of a chain */
    bool chain;                         /* int64: the old value is the sum of those that came before, in any order */
    bool request;
    mt_rma_then_t then;
} mt_rma_op_t;

typedef struct mt_rma_step {
    mt_rma_op_t *ops;                   /* in the order of each origin */
    int count, room, places;
    size_t bytes;                       /* that they move */
} mt_rma_step_t;

/* The model: what is in the windows of `ranks` processes. */
typedef struct mt_rma_model {
    int ranks;
    size_t *sizes;
    unsigned char **windows;
    bool nearby;                        /* shared memory: Open MPI has no errors that we know */
} mt_rma_model_t;

/* What a version of Open MPI itself does wrong over the network is left out, unless its word is on the command line;
 * so is what is given as no-WORD.  May it be done? */
bool mt_rma_may(const mt_rma_model_t *m, const char *word);
void mt_rma_tell(void);                 /* what is left out, and why */

/* Sizes of at most `most` bytes; random content, which is small doubles in the first quarter. */
mt_rma_model_t mt_rma_model_draw(uint64_t *state, int ranks, size_t most);
void mt_rma_model_free(mt_rma_model_t *m);

/* Operations; the model is then as the windows must be after them. */
mt_rma_step_t mt_rma_step_draw(uint64_t *state, mt_rma_model_t *m);
void mt_rma_step_free(mt_rma_step_t *s);

void mt_layout_put(const mt_layout_t *l, unsigned char *memory, const unsigned char *packed);
const char *mt_rma_name(const mt_rma_op_t *op);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Datatypes drawn at random: every constructor, nested up to four deep, with gaps,
 * negative strides and bounds, blocks without elements and members of several sizes.
 * Beside each is its typemap, built here by MPI's rules and never by MPI_Pack, so
 * that what a library makes of a buffer can be compared byte for byte.
 */
#ifndef TESTS_MPI_MT_TYPES_H
#define TESTS_MPI_MT_TYPES_H

#include "mt.h"

typedef struct mt_entry {
    MPI_Aint at;                        /* from the origin of the buffer */
    int bytes;
} mt_entry_t;

typedef struct mt_type {
    MPI_Datatype type;                  /* committed */
    mt_entry_t *map;                    /* its elements, in the order in which they are sent */
    int entries;
    size_t size;                        /* bytes of data in one */
    MPI_Aint extent;
    char text[400];                     /* how it was built */
} mt_type_t;

/* A type of at least one byte, none of whose bytes overlap within `count` of them. */
mt_type_t mt_type_draw(uint64_t *state, int depth, int *count, size_t most);
/* A type that is given, as `map` says in `text`; takes the map. */
mt_type_t mt_type_of(MPI_Datatype type, mt_entry_t *map, int entries, const char *text);
void mt_type_free(mt_type_t *t);

/* Memory for `count` of a type: every byte poisoned, `origin` is what MPI is given. */
typedef struct mt_span {
    unsigned char *memory, *origin;
    size_t bytes;
} mt_span_t;
mt_span_t mt_span_new(const mt_type_t *t, int count);
void mt_span_poison(mt_span_t *s);
void mt_span_free(mt_span_t *s);

/* By the typemap: n packed bytes into the span, or from it. */
void mt_span_put(const mt_type_t *t, mt_span_t *s, const unsigned char *packed, size_t n);
void mt_span_get(const mt_type_t *t, const mt_span_t *s, unsigned char *packed, size_t n);
/* Exactly these bytes, and poison everywhere else; the first place that differs, or -1. */
long mt_span_differs(const mt_type_t *t, const mt_span_t *s, const unsigned char *packed, size_t n);

#endif

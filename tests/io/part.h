/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Random accesses to a range of a file: units of it are dealt to processes, some
 * to one of them several times in a round, and each has a view of its own units,
 * built in one of several ways.  In memory the bytes are in another order,
 * described by another datatype.
 */
#ifndef TESTS_IO_PART_H
#define TESTS_IO_PART_H

#include "mt.h"

#define PART_SLOTS 24
#define PART_PIECES 40

typedef struct part {
    size_t from, to, unit;              /* bytes of the file */
    int slots, owner[PART_SLOTS];       /* of the units of a round */
    int view;                           /* how the filetype is built */
    size_t etype;                       /* bytes: 1, or those of an int */
    int memory;                         /* how memory is described */
    size_t seed;                        /* of its pieces */
} part_t;

/* The same on all processes; `size` of them take part. */
part_t part_draw(uint64_t *state, size_t span, int size);
/* Nothing at or behind `end`. */
void part_clip(part_t *part, size_t end);

/* The bytes of `file` that are `rank`'s, in the order of its view. */
size_t part_pack(const part_t *part, int rank, const unsigned char *file, unsigned char *packed);
void part_set_view(const part_t *part, MPI_File f, int rank);

/* Memory for n packed bytes: a type, of which one element is transferred, at the
 * start of a buffer of at most 2 n + 64 bytes; and where each byte is there. */
typedef struct part_memory {
    MPI_Datatype type;
    int count, pieces;
    size_t bytes[PART_PIECES], at[PART_PIECES], room;
} part_memory_t;

part_memory_t part_memory(const part_t *part, size_t n);
void part_memory_free(part_memory_t *memory);
void part_scatter(const part_memory_t *memory, const unsigned char *packed, unsigned char *buffer);
void part_gather(const part_memory_t *memory, const unsigned char *buffer, unsigned char *packed);

#endif

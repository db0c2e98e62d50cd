/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One cell of the table of attacks: who sends what to whom, who receives, what
 * the attackers do, and how every receive has to end.  See tamper.table.
 */
#ifndef TESTS_ATTACK_CELLS_H
#define TESTS_ATTACK_CELLS_H

#include "mt.h"

enum { CELL_PARTS = 8, CELL_TEXT = 160 };

typedef struct part {           /* a message, or a receive */
    int from, to;               /* from: MPI_ANY_SOURCE allowed in a receive */
    int tag, comm;              /* tag: MPI_ANY_TAG allowed in a receive */
} part_t;

typedef struct cell {
    int number;
    char row[512];              /* as in the table, to show */
    char section[32], how[32];  /* how: irecv, recv, or a probe and a receive */
    size_t bytes;
    int sends_count, receives_count;
    part_t sends[CELL_PARTS], receives[CELL_PARTS];
    char plans[4][CELL_TEXT];   /* by rank */
    char ends[32], later[32];   /* how the receives end; and after release ("" if nothing was kept back) */
    bool stuck;                 /* senders need not complete */
} cell_t;

/* The cells of a table's section.  Rows stand for many: see tamper.table. */
cell_t *cells_read(const char *path, const char *section, bool all_bits, int *count);

#endif

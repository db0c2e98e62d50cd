/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A set of 48-bit counters that is filled roughly from below: the accepted messages of a peer.  (The serials of
 * receives that were given back are kept in the same kind of set.)
 *
 *     0 ......... mark | full run | bitmap page | (absent) | bitmap page ... top
 *     all in the set     pages of 16384 counters
 *
 * Everything below `mark`, the lowest counter not in the set, costs nothing.  Above it a page with gaps costs 2 KiB,
 * and neighboring full pages are one run of 24 bytes, however many they are: a message that is never received costs
 * its page and a run, not everything after it.  Counters that arrive in order never touch a page.
 *
 * Threads: the owner locks.
 */
#ifndef OPAL_CRYPT_WIRE_REPLAY_H
#define OPAL_CRYPT_WIRE_REPLAY_H

#include "opal/mca/common/crypt/base/base.h"

#define OPAL_CRYPT_REPLAY_PAGE_BITS 14
#define OPAL_CRYPT_REPLAY_PAGE      (UINT64_C(1) << OPAL_CRYPT_REPLAY_PAGE_BITS)

typedef struct opal_crypt_replay_run {
    uint64_t page;              /* the first of its pages */
    uint64_t pages;             /* 1 with a bitmap */
    uint64_t *bits;             /* NULL: all pages are full */
    uint32_t present;           /* bits set */
} opal_crypt_replay_run_t;

typedef struct opal_crypt_replay {
    uint64_t mark;              /* the lowest counter that is not in the set */
    uint64_t top;               /* the highest counter in the set, plus one */
    uint64_t accepted;          /* how many are in the set */
    opal_crypt_replay_run_t *runs;      /* sorted, disjoint, no two full ones adjacent */
    size_t count, capacity;
    uint64_t *spare;            /* a page kept for reuse */
} opal_crypt_replay_t;

/* An empty set whose lowest possible member is `mark`. */
void opal_crypt_replay_init(opal_crypt_replay_t *set, uint64_t mark);
void opal_crypt_replay_fini(opal_crypt_replay_t *set);

bool opal_crypt_replay_has(const opal_crypt_replay_t *set, uint64_t counter);

/* ERR_REPLAY if already present, ERR_MEMORY: the set is unchanged. */
int opal_crypt_replay_insert(opal_crypt_replay_t *set, uint64_t counter);

/* The lowest counter >= `from` that is not in the set. */
uint64_t opal_crypt_replay_missing(const opal_crypt_replay_t *set, uint64_t from);

/* Bytes of memory used beyond the struct. */
size_t opal_crypt_replay_memory(const opal_crypt_replay_t *set);

#endif

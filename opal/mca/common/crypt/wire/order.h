/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI's order, checked where the messages are authentic.  Every receive has a
 * serial, taken when it was posted; within one (session, envelope) counters
 * must rise with the serials that they matched:
 *
 *     serial   4     7     9    12          9 outstanding, 4, 7, 12 accepted
 *     counter 20    23     ?    31          so 9 must bring 24..30
 *
 * Little has to be remembered: between two neighboring serials that are still outstanding no message can be accepted
 * any more, so the accepted ones there shrink to one span (first and last).  An envelope whose counters are all below
 * the replay set's mark, and whose serials are all below every outstanding one, is forgotten: whatever comes has a
 * higher serial, and the replay set ensures that it has a higher counter.  So is one whose communicator is gone: its
 * generation does not come back.
 *
 * While a receive stays outstanding, or a message missing, nothing is forgotten, and each non-blocking collective has
 * its own tag.  But then those tags are all alike (crypt/wire/order_ranges.c): neighboring ones become one range.
 *
 *     memory = one entry per envelope that has a counter above the lowest one
 *              still missing, or a serial above the lowest one outstanding, and after
 *              some hundred of them
 *              one range per run of neighboring tags that are alike
 *              + one span per outstanding serial between accepted ones
 *
 * Traffic that comes in order creates no entry at all.
 *
 * A receive for any tag takes the first message of its communicator, whatever
 * the tag (of the application's, which are not negative): no later receive may
 * get one that was sent before it.  For that a communicator has two more
 * entries, under tags that no message has:
 *
 *     WILD   what receives for any tag got.  Counters increase here, too, and a later
 *            receive of any kind must not get a counter below an earlier one's
 *            here.
 *     ALL    what all receives got, since the first for any tag was posted.  In no
 *            order; a receive for any tag must not get a counter above that of
 *            a later receive here.
 *
 * Threads: the table is locked by its session; serials have their own lock, taken after the session's.
 */
#ifndef OPAL_CRYPT_WIRE_ORDER_H
#define OPAL_CRYPT_WIRE_ORDER_H

#include <pthread.h>

#include "replay.h"
#include "session.h"

struct opal_crypt_serials {
    pthread_mutex_t lock;
    uint64_t next;              /* 1, 2 ... */
    opal_crypt_replay_t given_back;
    uint64_t oldest;            /* the lowest outstanding, or next; a copy readable without the lock */
    bool any_tag;               /* a receive for any tag was posted */
    unsigned references;        /* the owner's, and one per entry */
    bool dead;                  /* the owner is gone: nothing is outstanding */
};

typedef struct opal_crypt_span {
    uint64_t serial_low, serial_high;
    uint64_t counter_low, counter_high;     /* the lowest and highest of its counters */
} opal_crypt_span_t;

typedef struct opal_crypt_order_entry {
    opal_crypt_envelope_t envelope;
    uint32_t chain;             /* the next entry with this hash, plus one */
    opal_crypt_serials_t *serials;
    uint32_t count, capacity;   /* of `more`; capacity 0: `one` is the only span */
    opal_crypt_span_t one;
    opal_crypt_span_t *more;
} opal_crypt_order_entry_t;

/* The tags first.tag ... last: all messages of each are within this span. */
typedef struct opal_crypt_order_range {
    opal_crypt_envelope_t first;
    int32_t last;
    opal_crypt_serials_t *serials;
    opal_crypt_span_t span;
} opal_crypt_order_range_t;

typedef struct opal_crypt_order {
    opal_crypt_order_entry_t *entries;              /* dense */
    uint32_t *heads;            /* hash -> entry, plus one; `capacity` of them */
    uint32_t count, capacity;   /* capacity: 0 or a power of two */
    size_t spans;               /* total capacity of all `more` */
    opal_crypt_order_range_t *ranges;   /* sorted, disjoint; an entry of the same envelope is newer */
    uint32_t range_count, range_capacity;
} opal_crypt_order_t;

void opal_crypt_order_init(opal_crypt_order_t *order);
void opal_crypt_order_fini(opal_crypt_order_t *order);

/* With the session's and the serials' lock held, and `serial` outstanding: ERR_ORDER if `counter` does not fit between
 * its neighbors. */
int opal_crypt_order_check(opal_crypt_order_t *order,
                           const opal_crypt_serials_t *serials, uint64_t serial, bool any_tag,
                           const opal_crypt_envelope_t *envelope, uint64_t counter);

/* The same after `counter` went into `replay` and `serial` was given back:
 * remember what later checks need.  ERR_MEMORY. */
int opal_crypt_order_add(opal_crypt_order_t *order,
                         const opal_crypt_replay_t *replay,
                         opal_crypt_serials_t *serials, uint64_t serial, bool any_tag,
                         const opal_crypt_envelope_t *envelope, uint64_t counter);

/* Can no message arrive any more that this span, the last of its envelope, would have to refuse? */
bool opal_crypt_span_final(const opal_crypt_span_t *last, const opal_crypt_replay_t *replay,
                           const opal_crypt_serials_t *serials);

/* The range with this envelope, or NULL. */
const opal_crypt_order_range_t *opal_crypt_ranges_find(const opal_crypt_order_t *order,
                                                       const opal_crypt_envelope_t *envelope);

/* Merge newer ranges (sorted here), each of one tag, with their references to their serials, all of which are
 * `serials`.  ERR_MEMORY: nothing was done. */
int opal_crypt_ranges_merge(opal_crypt_order_t *order, const opal_crypt_replay_t *replay,
                            const opal_crypt_serials_t *serials, opal_crypt_order_range_t *newer,
                            uint32_t count);
void opal_crypt_ranges_free(opal_crypt_order_t *order);

/* With the lock held: `serial` is no longer outstanding. */
int opal_crypt_serials_release(opal_crypt_serials_t *serials, uint64_t serial);

/* Release one reference; the last one frees. */
void opal_crypt_serials_unref(opal_crypt_serials_t *serials);

/* Bytes of memory used beyond the struct. */
size_t opal_crypt_order_memory(const opal_crypt_order_t *order);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * For providers whose contexts keep state of keys: unique ids for keys, and notice to every context that a key was
 * wiped.
 *
 * A wiped key must not live on in contexts of other threads.  Its id is written into a ring; each context reads the
 * ring at its next use and clears what it holds of those ids.  A context that was idle while the ring wrapped clears
 * everything.
 */
#ifndef OPAL_AEAD_GONE_H
#define OPAL_AEAD_GONE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "opal/mca/aead/aead_module.h"

#define OPAL_AEAD_GONE_RING 256

typedef struct {
    pthread_mutex_t lock;               /* for writers */
    atomic_uint_fast64_t last_id;
    atomic_uint_fast64_t count;
    atomic_uint_fast64_t ids[OPAL_AEAD_GONE_RING];
} opal_aead_gone_t;

#define OPAL_AEAD_GONE_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

/* An id, never 0, that no other key of this process has or had. */
static inline uint64_t opal_aead_gone_new_id(opal_aead_gone_t *gone)
{
    return atomic_fetch_add_explicit(&gone->last_id, 1, memory_order_relaxed) + 1;
}

static inline void opal_aead_gone_add(opal_aead_gone_t *gone, uint64_t id)
{
    uint64_t n;

    pthread_mutex_lock(&gone->lock);
    n = atomic_load_explicit(&gone->count, memory_order_relaxed);
    /* release: a thread that reads this id reads a count of at least n */
    atomic_store_explicit(&gone->ids[n % OPAL_AEAD_GONE_RING], id, memory_order_release);
    atomic_store_explicit(&gone->count, n + 1, memory_order_release);
    pthread_mutex_unlock(&gone->lock);
}

/* The starting point of a new context. */
static inline uint64_t opal_aead_gone_now(opal_aead_gone_t *gone)
{
    return atomic_load_explicit(&gone->count, memory_order_acquire);
}

/* Calls `clear` for each id added since `*seen`; with id 0 if those are no longer known: clear everything. */
static inline void opal_aead_gone_visit(opal_aead_gone_t *gone, uint64_t *seen, opal_aead_context_t *context,
                                        void (*clear)(opal_aead_context_t *context, uint64_t id))
{
    const uint64_t count = opal_aead_gone_now(gone);

    if (count == *seen) {
        return;
    }
    for (uint64_t n = *seen; n < count && count - *seen < OPAL_AEAD_GONE_RING; ++n) {
        clear(context, atomic_load_explicit(&gone->ids[n % OPAL_AEAD_GONE_RING], memory_order_acquire));
    }
    /* The ring may have wrapped before or during the reading. */
    if (atomic_load_explicit(&gone->count, memory_order_relaxed) - *seen >= OPAL_AEAD_GONE_RING) {
        clear(context, 0);
    }
    *seen = count;
}

#endif

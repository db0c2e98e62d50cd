/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * For providers whose contexts keep state of keys in memory that the kernel does not wipe in a forked child: a
 * library's own heap.  All their contexts are in a list, and a child gives each of them another key before it does
 * anything else.
 *
 *     context_new   opal_aead_live_add         context_free   opal_aead_live_remove
 *     a table or an object of a context is made or freed between _lock and _unlock:
 *     a fork waits for that, so that the child finds complete ones
 *
 * An operation on a complete one, by a thread that the child does not have, may be half done there; setting another
 * key must be safe even then.
 */
#ifndef OPAL_AEAD_LIVE_H
#define OPAL_AEAD_LIVE_H

#include <pthread.h>
#include <stddef.h>

/* Part of a provider's context. */
typedef struct opal_aead_live {
    struct opal_aead_live *next, **link;
} opal_aead_live_t;

typedef struct {
    pthread_mutex_t lock;
    opal_aead_live_t *first;
} opal_aead_live_list_t;

#define OPAL_AEAD_LIVE_LIST_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

static inline void opal_aead_live_lock(opal_aead_live_list_t *list)
{
    pthread_mutex_lock(&list->lock);
}

static inline void opal_aead_live_unlock(opal_aead_live_list_t *list)
{
    pthread_mutex_unlock(&list->lock);
}

static inline void opal_aead_live_add(opal_aead_live_list_t *list, opal_aead_live_t *live)
{
    opal_aead_live_lock(list);
    live->next = list->first;
    live->link = &list->first;
    if (NULL != live->next) {
        live->next->link = &live->next;
    }
    list->first = live;
    opal_aead_live_unlock(list);
}

/* With the lock held. */
static inline void opal_aead_live_remove(opal_aead_live_t *live)
{
    *live->link = live->next;
    if (NULL != live->next) {
        live->next->link = live->link;
    }
}

#endif

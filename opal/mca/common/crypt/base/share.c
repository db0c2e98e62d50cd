/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One loop, many threads (crypt/base/share.h).  A single number says which turn is next:
 *
 *     free = | loop 32 | turns 16 | next turn 16 |
 *
 * The thread that increments `next turn` owns that turn, and the loop is not over before the turn is: so `turn` and
 * `argument`, which were written before the loop began, are this loop's.  A late helper finds no turn, or one of a
 * later loop.
 */
#include "share.h"
#include "secmem.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum {
    POLLS = 4000,           /* of an idle helper: some 20 us */
    PATIENCE = 10000        /* of the caller, before it yields its processor to a helper that has none */
};

typedef struct helper {
    opal_crypt_job_t job;
    opal_crypt_share_t *share;
} helper_t;

struct opal_crypt_share {
    opal_crypt_team_t *team;
    void (*turn)(void *argument, unsigned index);
    void *argument;
    uint32_t loop;
    _Atomic uint64_t free;
    _Atomic unsigned left;                      /* turns not finished */
    unsigned helpers;
    helper_t helper[];
};

static inline void pause_a_little(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* False: none is free. */
static bool take_turn(opal_crypt_share_t *share)
{
    uint64_t free = atomic_load_explicit(&share->free, memory_order_acquire);

    do {
        if ((free & 0xffff) >= (free >> 16 & 0xffff)) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&share->free, &free, free + 1, memory_order_acquire,
                                                    memory_order_acquire));
    share->turn(share->argument, (unsigned) (free & 0xffff));
    atomic_fetch_sub_explicit(&share->left, 1, memory_order_release);
    return true;
}

static void help(opal_crypt_job_t *job)
{
    opal_crypt_share_t *share = ((helper_t *) job)->share;

    for (unsigned polls = 0; polls < POLLS; polls++) {
        if (take_turn(share)) {
            polls = 0;
        }
        pause_a_little();
    }
}

void opal_crypt_share_run(opal_crypt_share_t *share, unsigned turns, void (*turn)(void *argument, unsigned index),
                          void *argument)
{
    share->turn = turn;
    share->argument = argument;
    atomic_store_explicit(&share->left, turns, memory_order_relaxed);
    atomic_store_explicit(&share->free, (uint64_t) ++share->loop << 32 | (uint64_t) turns << 16, memory_order_release);
    if (!opal_crypt_forked()) {
        for (unsigned i = 0; i < share->helpers && i + 1 < turns; i++) {
            if (opal_crypt_job_done(&share->helper[i].job)) {
                opal_crypt_team_submit(share->team, &share->helper[i].job);
            }
        }
    }
    while (take_turn(share)) {
    }
    for (unsigned waits = 0; atomic_load_explicit(&share->left, memory_order_acquire) > 0; waits++) {
        if (waits > PATIENCE) {
            sched_yield();
        }
        pause_a_little();
    }
}

opal_crypt_share_t *opal_crypt_share_create(opal_crypt_team_t *team, unsigned helpers)
{
    opal_crypt_share_t *share = calloc(1, sizeof(*share) + helpers * sizeof(share->helper[0]));

    if (NULL != share) {
        share->team = team;
        share->helpers = helpers;
        for (unsigned i = 0; i < helpers; i++) {
            share->helper[i] = (helper_t) {.job = {.work = help, .done = 1}, .share = share};
        }
    }
    return share;
}

void opal_crypt_share_destroy(opal_crypt_share_t *share)
{
    if (NULL == share || opal_crypt_forked()) {
        return;
    }
    for (unsigned i = 0; i < share->helpers; i++) {
        while (!opal_crypt_job_done(&share->helper[i].job)) {
            sched_yield();
        }
    }
    free(share);
}

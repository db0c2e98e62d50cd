/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How much longer a loop waits.  The time between two checks counts as 0.1 seconds at most: time in which the process
 * is stopped, or has no processor, does not count.
 */
#ifndef OPAL_CRYPT_BASE_PATIENCE_H
#define OPAL_CRYPT_BASE_PATIENCE_H

#include <stdint.h>
#include <time.h>

typedef struct opal_crypt_patience {
    int64_t last, left;                     /* milliseconds */
} opal_crypt_patience_t;

/* On a monotonic clock. */
static inline int64_t opal_crypt_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline opal_crypt_patience_t opal_crypt_patience(int64_t milliseconds)
{
    return (opal_crypt_patience_t){.last = opal_crypt_milliseconds(), .left = milliseconds};
}

/* Milliseconds left; 0 once expired. */
static inline int64_t opal_crypt_patience_left(opal_crypt_patience_t *patience)
{
    const int64_t most = 100, now = opal_crypt_milliseconds(), passed = now - patience->last;
    const int64_t counts = passed < most ? passed : most;

    patience->last = now;
    patience->left -= counts < patience->left ? counts : patience->left;
    return patience->left;
}

#endif

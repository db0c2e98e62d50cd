/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How much longer a loop waits.  What is between two looks at it counts as 0.1 seconds at most:
 * while a process is stopped, or has no processor, it waits for nobody.
 */
#ifndef OPAL_CRYPT_BASE_PATIENCE_H
#define OPAL_CRYPT_BASE_PATIENCE_H

#include <stdint.h>
#include <time.h>

typedef struct opal_crypt_patience {
    int64_t looked, left;                   /* milliseconds */
} opal_crypt_patience_t;

/* On a clock that only goes forward. */
static inline int64_t opal_crypt_milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t) now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static inline opal_crypt_patience_t opal_crypt_patience(int64_t milliseconds)
{
    return (opal_crypt_patience_t){.looked = opal_crypt_milliseconds(), .left = milliseconds};
}

/* Milliseconds that are left; 0 when it is over. */
static inline int64_t opal_crypt_patience_left(opal_crypt_patience_t *patience)
{
    const int64_t most = 100, now = opal_crypt_milliseconds(), passed = now - patience->looked;
    const int64_t counts = passed < most ? passed : most;

    patience->looked = now;
    patience->left -= counts < patience->left ? counts : patience->left;
    return patience->left;
}

#endif

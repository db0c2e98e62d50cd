/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What was sealed and opened by this process, counted per thread without
 * atomics that others wait for, and summed up when somebody asks.
 */
#ifndef OPAL_CRYPT_BASE_STATS_H
#define OPAL_CRYPT_BASE_STATS_H

#include "base.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_stats {
    uint64_t sealed_calls, sealed_bytes;    /* bytes are plaintext */
    uint64_t opened_calls, opened_bytes;
    uint64_t failed_opens;                  /* refused by a tag, a header or a token */
    uint64_t chopped_sealed, chopped_opened;        /* messages, by their first parts */
    uint64_t epochs;                        /* keys of an epoch that were derived */
    uint64_t aead_ns;                       /* in the provider, all threads; 0 unless timed */
} opal_crypt_stats_t;

/* The sum over all threads, living and ended.  While others seal it is a
 * moment's picture.  Any thread. */
void opal_crypt_stats(opal_crypt_stats_t *stats);

/* Measure aead_ns from now on, or no more: two looks at the clock a call. */
void opal_crypt_stats_timing(bool on);

/* True after OPAL_CRYPT_FAILURES_MAX failed opens in this process: somebody is
 * trying keys, and the caller ends the job. */
#define OPAL_CRYPT_FAILURES_MAX 1000
bool opal_crypt_too_many_failures(void);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process has sealed and opened, counted per thread without contended atomics, and summed on request.
 */
#ifndef OPAL_CRYPT_BASE_STATS_H
#define OPAL_CRYPT_BASE_STATS_H

#include "base.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_stats {
    uint64_t sealed_calls, sealed_bytes;    /* bytes are plaintext */
    uint64_t opened_calls, opened_bytes;
    uint64_t failed_opens;                  /* refused: wrong tag, header or token */
    uint64_t chopped_sealed, chopped_opened;        /* messages, counted by their first parts */
    uint64_t epochs;                        /* epoch keys derived */
    uint64_t aead_ns;                       /* in providers, all threads; 0 unless timed */
} opal_crypt_stats_t;

/* The sum over all threads, running and ended: a snapshot while others seal.  Any thread. */
void opal_crypt_stats(opal_crypt_stats_t *stats);

/* Start or stop measuring aead_ns: two clock readings per call. */
void opal_crypt_stats_timing(bool on);

/* True after OPAL_CRYPT_FAILURES_MAX failed opens in this process: an attacker is trying keys, and the caller ends the
 * job. */
#define OPAL_CRYPT_FAILURES_MAX 1000
bool opal_crypt_too_many_failures(void);

#pragma GCC visibility pop

#endif

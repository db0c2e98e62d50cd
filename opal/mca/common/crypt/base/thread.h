/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a thread keeps to itself: AEAD contexts, the AES context of the
 * chopping PRF, and its share of the statistics.  Made at the thread's first
 * call; freed when it ends, or by opal_crypt_finalize.
 */
#ifndef OPAL_CRYPT_BASE_THREAD_H
#define OPAL_CRYPT_BASE_THREAD_H

#include <openssl/types.h>

#include "stats.h"
#include "opal/mca/aead/aead_module.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_THREAD_CONTEXTS 8        /* providers one process may use at once */

typedef struct opal_crypt_thread {
    const opal_aead_module_t *aead[OPAL_CRYPT_THREAD_CONTEXTS];
    opal_aead_context_t *context[OPAL_CRYPT_THREAD_CONTEXTS];
    EVP_CIPHER_CTX *aes;                    /* keyed with zeros between two calls */
    size_t aes_key_bytes;
    opal_crypt_stats_t stats;               /* written by this thread only */
    struct opal_crypt_thread *next, *previous;
} opal_crypt_thread_t;

/* While *multiple is false the caller promises that only one thread at a time
 * is inside the functions of sessions, serials and frames (the segments of
 * chopped messages, chop_end and pieces stay free), and the core spares
 * itself the atomics and locks that only serve several.  Without this call, or
 * with NULL, any thread may do anything.  *multiple is read at each call and
 * may become true while no thread is inside; it stays the caller's, and must
 * live until opal_crypt_finalize or another call.  Counters are atomic
 * in any case: a promise that is broken must not repeat a nonce. */
void opal_crypt_threads(const bool *multiple);

/* What *multiple says now. */
extern const bool *opal_crypt_multiple;

static inline bool opal_crypt_threaded(void)
{
    return *opal_crypt_multiple;
}

/* The calling thread's; NULL without memory. */
opal_crypt_thread_t *opal_crypt_thread(void);

/* The calling thread and its AEAD context for `aead`: ERR_MEMORY, and ERR_FORKED in a child, whose
 * keys are zeros. */
int opal_crypt_thread_ready(const opal_aead_module_t *aead, opal_crypt_thread_t **thread,
                            opal_aead_context_t **context);

/* Frees it, and what libcrypto keeps for this thread, before the thread ends:
 * for one that nobody joins. */
void opal_crypt_thread_end(void);

/* The AEAD context of the calling thread for `aead`; made at its first call, freed with the
 * thread or by opal_crypt_finalize. */
opal_aead_context_t *opal_crypt_context(const opal_aead_module_t *aead);

/* AES_K of `blocks` blocks, K of 16, 24 or 32 bytes.  Nothing of K stays
 * behind.  This is a PRF: no caller may use K to encrypt. */
int opal_crypt_thread_aes(opal_crypt_thread_t *thread,
                          const uint8_t *key, size_t key_bytes,
                          const uint8_t *in, uint8_t *out, int blocks);

static inline void opal_crypt_count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

static inline void opal_crypt_count_sealed(opal_crypt_thread_t *thread, size_t plain_bytes)
{
    opal_crypt_count(&thread->stats.sealed_calls, 1);
    opal_crypt_count(&thread->stats.sealed_bytes, plain_bytes);
}

static inline void opal_crypt_count_opened(opal_crypt_thread_t *thread, size_t plain_bytes)
{
    opal_crypt_count(&thread->stats.opened_calls, 1);
    opal_crypt_count(&thread->stats.opened_bytes, plain_bytes);
}

/* One more chopped message, by its first part. */
static inline void opal_crypt_count_chopped(bool sealed)
{
    opal_crypt_thread_t *thread = opal_crypt_thread();

    if (NULL != thread) {
        opal_crypt_count(sealed ? &thread->stats.chopped_sealed : &thread->stats.chopped_opened, 1);
    }
}

/* Is the time in providers measured?  Set by opal_crypt_stats_timing. */
extern bool opal_crypt_timing;
uint64_t opal_crypt_now(void);                      /* nanoseconds of the monotonic clock */
void opal_crypt_count_time(uint64_t since) OPAL_CRYPT_RARE;         /* for the calling thread */

/* One more epoch was derived. */
void opal_crypt_count_epoch(void);

/* One more failed open; returns OPAL_CRYPT_ERR_AUTH. */
int opal_crypt_count_failed(void) OPAL_CRYPT_RARE;

/* Messages and files of a process begin and end this room on their own, and the last end counts: states of
 * threads, memory of secrets, OpenSSL's objects. */
void opal_crypt_base_begin(void);
void opal_crypt_base_finalize(void);

#pragma GCC visibility pop

#endif

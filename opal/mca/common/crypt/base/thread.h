/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * State of one thread: AEAD contexts, the AES context of the chopping PRF, and its share of the statistics.  Created
 * at the thread's first call; freed when it ends, or by opal_crypt_finalize.
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

/* While *multiple is false the caller promises that only one thread at a time is inside the functions of sessions,
 * serials and frames (the segments of chopped messages, chop_end and pieces are exempt), and the core omits atomics
 * and locks that only serve several.  Without this call, or with NULL, any thread may do anything.  *multiple is read
 * at each call and may become true while no thread is inside; it stays the caller's, and must live until
 * opal_crypt_finalize or another call.  Counters are always atomic: a broken promise must not repeat a nonce. */
void opal_crypt_threads(const bool *multiple);

/* The current value of *multiple. */
extern const bool *opal_crypt_multiple;

static inline bool opal_crypt_threaded(void)
{
    return *opal_crypt_multiple;
}

/* The calling thread's state; NULL: no memory. */
opal_crypt_thread_t *opal_crypt_thread(void);

/* The calling thread's state and its AEAD context for `aead`: ERR_MEMORY, or ERR_FORKED in a child, whose keys are
 * zeros. */
int opal_crypt_thread_ready(const opal_aead_module_t *aead, opal_crypt_thread_t **thread,
                            opal_aead_context_t **context);

/* Frees the state, and what libcrypto keeps for this thread, before the thread ends: for a thread that nobody
 * joins. */
void opal_crypt_thread_end(void);

/* The calling thread's AEAD context for `aead`; created at its first call, freed with the thread or by
 * opal_crypt_finalize. */
opal_aead_context_t *opal_crypt_context(const opal_aead_module_t *aead);

/* AES_K of `blocks` blocks, with K of 16, 24 or 32 bytes.  Leaves nothing of K behind.  This is a PRF: no caller may
 * use K to encrypt. */
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

/* Count one more chopped message, by its first part. */
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

/* Count one more derived epoch. */
void opal_crypt_count_epoch(void);

/* Count one more failed open; returns OPAL_CRYPT_ERR_AUTH. */
int opal_crypt_count_failed(void) OPAL_CRYPT_RARE;

/* Messages and files of a process begin and end this part separately, and the last end frees it: thread states, memory
 * for secrets, OpenSSL's objects. */
void opal_crypt_base_begin(void);
void opal_crypt_base_finalize(void);

#pragma GCC visibility pop

#endif

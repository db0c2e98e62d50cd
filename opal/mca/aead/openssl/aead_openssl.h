/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider `openssl`: OpenSSL 3's libcrypto.
 *
 *     aead_openssl_module.c     seal and open
 *     aead_openssl_cache.c      EVP contexts, one per key and thread
 *     aead_openssl_memory.c     keeps libcrypto's copies of keys out of core files
 *     aead_openssl_component.c  what Open MPI's loader sees
 */
#ifndef OPAL_AEAD_OPENSSL_H
#define OPAL_AEAD_OPENSSL_H

#include <stdbool.h>
#include <openssl/evp.h>

#include "opal/mca/aead/aead_module.h"

/* `init` fetches the ciphers, once per process; call it before anything else uses libcrypto, if possible
 * (aead_openssl_memory.c says why). */
OPAL_AEAD_PROVIDER(openssl);
int opal_aead_openssl_is_fips(void);

/* ---- aead_openssl_memory.c ---- */

typedef enum {
    OPAL_AEAD_OPENSSL_NOT_GUARDED,
    OPAL_AEAD_OPENSSL_OWN_PAGES,        /* round keys are in pages left out of core files */
    OPAL_AEAD_OPENSSL_NO_CORE_FILES     /* libcrypto was in use before: this process dumps none */
} opal_aead_openssl_guard_t;

/* Try to become libcrypto's allocator; harmless if it is too late. */
void opal_aead_openssl_take_over(void);

/* At the first call, for the first context, decide how round keys stay out of core files: a process that only opens
 * this provider keeps its core files. */
opal_aead_openssl_guard_t opal_aead_openssl_guard(void);

/* Between these two, whatever libcrypto allocates on this thread is secret. */
void opal_aead_openssl_secret_begin(void);
void opal_aead_openssl_secret_end(void);

/* In a forked child, with opal_crypt_fork_anew: contexts can be made again.  The parent's are not used or freed. */
void opal_aead_openssl_anew(void);

/* True if the address is in our pages; for tests. */
bool opal_aead_openssl_in_own_pages(const void *address);

/* ---- aead_openssl_cache.c ---- */

/* An expanded key.  The id is never used twice in a process; 0: wiped. */
typedef struct opal_aead_openssl_key {
    uint64_t id;
    opal_aead_cipher_t cipher;
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
} opal_aead_openssl_key_t;

/* The fetched cipher; NULL if there is none, or after libcrypto's end. */
const EVP_CIPHER *opal_aead_openssl_cipher(opal_aead_cipher_t cipher);

uint64_t opal_aead_openssl_key_id(void);
void opal_aead_openssl_key_gone(uint64_t id);

int opal_aead_openssl_context_new(opal_aead_context_t **context);
void opal_aead_openssl_context_free(opal_aead_context_t *context);

/* The EVP context for this key, keyed; NULL: out of memory or end of libcrypto. */
EVP_CIPHER_CTX *opal_aead_openssl_context_for(opal_aead_context_t *context,
                                              const opal_aead_openssl_key_t *key);

#endif

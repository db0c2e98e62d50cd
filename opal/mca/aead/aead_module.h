/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The interface of a provider of authenticated encryption: a struct of pointers.
 *
 * This header does not depend on Open MPI, so the core, the unit tests and the
 * fuzzers can use a provider without an MPI library.  aead.h adds what the
 * component loader needs.
 *
 * Keys.  An expanded key is a block of key_bytes bytes, aligned to OPAL_AEAD_KEY_ALIGN, in memory of the
 * CALLER (who keeps it out of core files).  After key_init it is read-only and may be used by any number of threads,
 * each with its own context.  It must not be moved or copied.
 *
 * Contexts.  A context belongs to one thread at a time.  It may cache data to make
 * the next call cheap.  Cached key data is in memory that is excluded from core
 * files, and is gone after key_wipe() of the key followed by context_free() or by
 * the next use of the context with other keys.
 *
 * Buffers.  Text in and text out are equal (in place) or disjoint.  Lengths
 * are size_t; a message may be longer than INT_MAX.
 */
#ifndef OPAL_AEAD_MODULE_H
#define OPAL_AEAD_MODULE_H

#include <stddef.h>
#include <stdint.h>

#define OPAL_AEAD_NONCE_BYTES   12
#define OPAL_AEAD_TAG_BYTES     16
#define OPAL_AEAD_KEY_MAX_BYTES 32
#define OPAL_AEAD_KEY_ALIGN     64

typedef enum {
    OPAL_AEAD_AES_128_GCM,
    OPAL_AEAD_AES_192_GCM,
    OPAL_AEAD_AES_256_GCM,
    OPAL_AEAD_CHACHA20_POLY1305,
    OPAL_AEAD_CIPHERS
} opal_aead_cipher_t;

#define OPAL_AEAD_BIT(cipher) (1u << (cipher))
#define OPAL_AEAD_ALL (OPAL_AEAD_BIT(OPAL_AEAD_CIPHERS) - 1)

/* Return codes of every function here. */
enum {
    OPAL_AEAD_OK = 0,
    OPAL_AEAD_REFUSED = -1,   /* open: wrong tag.  The one code for every bad input */
    OPAL_AEAD_ERROR = -2      /* out of memory, unsupported cipher, too long: nothing was written, or zeros */
};

/* A piece of a text; pieces are treated as concatenated. */
typedef struct {
    const void *base;
    size_t bytes;
} opal_aead_piece_t;

typedef struct opal_aead_context opal_aead_context_t;

typedef struct opal_aead_module {
    const char *name;

    /* Set bits: OPAL_AEAD_BIT(cipher) for what this provider supports on this CPU.  Fixed once the component is
     * open. */
    uint32_t ciphers;

    /* The underlying library and its version, for reports: "OpenSSL 3.0.17". */
    const char *(*version)(void);

    /* What reports must say about how this process protects keys ("core files are off: ..."); NULL, or a function
     * returning NULL: nothing. */
    const char *(*note)(void);

    size_t key_bytes;
    int (*key_init)(opal_aead_cipher_t cipher, const uint8_t *raw, void *key);
    void (*key_wipe)(void *key);

    int (*context_new)(opal_aead_context_t **context);
    void (*context_free)(opal_aead_context_t *context);

    /* seal: writes text_bytes of ciphertext and the tag. */
    int (*seal)(opal_aead_context_t *context, const void *key,
                const uint8_t nonce[OPAL_AEAD_NONCE_BYTES],
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes,
                void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES]);

    /* open: OPAL_AEAD_REFUSED leaves text_bytes of zeros in plain. */
    int (*open)(opal_aead_context_t *context, const void *key,
                const uint8_t nonce[OPAL_AEAD_NONCE_BYTES],
                const void *aad, size_t aad_bytes,
                const void *cipher, size_t text_bytes,
                const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain);

    /* NULL, or seal for a text in several pieces, without copying it; none of them overlaps cipher. */
    int (*seal_joined)(opal_aead_context_t *context, const void *key,
                       const uint8_t nonce[OPAL_AEAD_NONCE_BYTES],
                       const void *aad, size_t aad_bytes,
                       const opal_aead_piece_t *plain, int plain_count,
                       void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES]);
} opal_aead_module_t;

/* What a provider has beside its module.  `init`: OPAL_AEAD_ERROR if its library cannot be used; before `fini` all contexts
 * must be freed. */
#define OPAL_AEAD_PROVIDER(NAME)                                        \
    extern opal_aead_module_t opal_aead_##NAME##_module;                \
    int opal_aead_##NAME##_init(void);                                  \
    void opal_aead_##NAME##_fini(void);                                 \
    int opal_aead_##NAME##_priority(opal_aead_cipher_t cipher)

/* 16, 24, 32, 32. */
static inline size_t opal_aead_raw_key_bytes(opal_aead_cipher_t cipher)
{
    return OPAL_AEAD_AES_128_GCM == cipher ? 16 : OPAL_AEAD_AES_192_GCM == cipher ? 24 : 32;
}

/* AES-GCM with keys of this size; -1: there is none. */
static inline int opal_aead_aes_gcm(size_t key_bits)
{
    return 128 == key_bits ? (int) OPAL_AEAD_AES_128_GCM : 192 == key_bits ? (int) OPAL_AEAD_AES_192_GCM
           : 256 == key_bits ? (int) OPAL_AEAD_AES_256_GCM : -1;
}

static inline const char *opal_aead_cipher_name(unsigned cipher)
{
    static const char *const names[OPAL_AEAD_CIPHERS] = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};

    return cipher < OPAL_AEAD_CIPHERS ? names[cipher] : "unknown";
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What seals and opens chopped messages and the pieces of collectives: the
 * provider.  Or, in builds made with --enable-no-crypto, nothing: texts are
 * copied, and no tag is looked at.  Those builds are for measuring what copies,
 * waits and hand-overs cost beside the cipher.  They say so in every job, and a process of another build does not
 * talk to theirs.
 */
#ifndef OPAL_CRYPT_BASE_NO_CRYPTO_H
#define OPAL_CRYPT_BASE_NO_CRYPTO_H

#ifndef OPAL_CRYPT_TEST_NO_CRYPTO

#define NO_CRYPTO false
#define SEAL(aead) (aead)->seal
#define OPEN(aead) (aead)->open

#else

#include <string.h>

#include "opal/mca/aead/aead_module.h"

static inline int copy_seal(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                            const opal_aead_aad_t *aad, int aad_count,
                            const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    (void) context, (void) key, (void) nonce, (void) aad, (void) aad_count;
    memmove(cipher, plain, text_bytes);
    memset(tag, 0, OPAL_AEAD_TAG_BYTES);
    return OPAL_AEAD_OK;
}

static inline int copy_open(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                            const opal_aead_aad_t *aad, int aad_count,
                            const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    (void) context, (void) key, (void) nonce, (void) aad, (void) aad_count, (void) tag;
    memmove(plain, cipher, text_bytes);
    return OPAL_AEAD_OK;
}

#define NO_CRYPTO true
#define SEAL(aead) copy_seal
#define OPEN(aead) copy_open

#endif
#endif

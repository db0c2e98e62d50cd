/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Crypto++ for C: an object that seals, or opens, with one key.  It belongs to
 * one thread at a time.  No exception leaves these functions.
 */
#ifndef OPAL_AEAD_CRYPTOPP_CIPHER_H
#define OPAL_AEAD_CRYPTOPP_CIPHER_H

#include "opal/mca/aead/aead_module.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct opal_aead_cryptopp_cipher opal_aead_cryptopp_cipher_t;

/* NULL: out of memory. */
opal_aead_cryptopp_cipher_t *opal_aead_cryptopp_cipher_new(opal_aead_cipher_t cipher, const uint8_t *raw,
                                                           int opening);
void opal_aead_cryptopp_cipher_free(opal_aead_cryptopp_cipher_t *cipher);    /* wipes it */

/* Replace its key with another one, in a forked child: for GCM without allocating, for ChaCha20-Poly1305 in memory
 * that the C library has made usable there.  NULL allowed. */
void opal_aead_cryptopp_cipher_forget(opal_aead_cryptopp_cipher_t *cipher);

/* Process the text, and compute its tag: when sealing, the message's tag; when opening, the one to compare with the
 * message's.  OPAL_AEAD_OK or OPAL_AEAD_ERROR. */
int opal_aead_cryptopp_cipher_run(opal_aead_cryptopp_cipher_t *cipher, const uint8_t *nonce,
                                  const void *aad, size_t aad_bytes,
                                  const uint8_t *in, size_t text_bytes, uint8_t *out, uint8_t *tag);

/* The version of the running library: 870 is 8.7. */
int opal_aead_cryptopp_version(void);

#ifdef __cplusplus
}
#endif

#endif

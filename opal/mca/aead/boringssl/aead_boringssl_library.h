/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The functions of BoringSSL that this provider calls.  For its own files only: BoringSSL's headers have the same
 * names as OpenSSL's.
 */
#ifndef OPAL_AEAD_BORINGSSL_LIBRARY_H
#define OPAL_AEAD_BORINGSSL_LIBRARY_H

#include <openssl/aead.h>
#include <openssl/err.h>

#ifndef OPENSSL_IS_BORINGSSL
#error "these are not BoringSSL's headers"
#endif

typedef struct {
    __typeof__(EVP_aead_aes_128_gcm) *aes_128_gcm, *aes_192_gcm, *aes_256_gcm, *chacha20_poly1305;
    __typeof__(EVP_AEAD_CTX_init) *init;
    __typeof__(EVP_AEAD_CTX_cleanup) *cleanup;
    __typeof__(EVP_AEAD_CTX_seal_scatter) *seal;
    __typeof__(EVP_AEAD_CTX_open_gather) *open;
    __typeof__(ERR_clear_error) *clear_error;
} opal_aead_boringssl_library_t;

/* Load it, once per process; NULL: it is absent, or a different library. */
const opal_aead_boringssl_library_t *opal_aead_boringssl_library(void);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Signatures with certificates' keys, and reading a private key without leaving copies of it on the heap, as
 * libcrypto's own PEM reader does.
 *
 * The schemes are those of TLS 1.3 (RFC 8446, 4.2.3), with the same numbers.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_IDENTITY_X509_KEY_H
#define OPAL_CRYPT_IDENTITY_X509_KEY_H

#include "opal/mca/common/crypt/base/base.h"

#include <openssl/types.h>

#pragma GCC visibility push(default)

#define OPAL_CRYPT_RSA_BITS_MIN     2048
#define OPAL_CRYPT_SIGNATURE_MAX    1024    /* RSA of 8192 bits */

typedef enum {
    OPAL_CRYPT_SIGN_ECDSA_P256 = 0x0403,    /* with SHA-256 */
    OPAL_CRYPT_SIGN_ECDSA_P384 = 0x0503,    /* with SHA-384 */
    OPAL_CRYPT_SIGN_RSA_PSS = 0x0804,       /* key rsaEncryption; SHA-256, MGF1, salt 32 */
    OPAL_CRYPT_SIGN_ED25519 = 0x0807,
    OPAL_CRYPT_SIGN_RSA_PSS_PSS = 0x0809    /* key RSASSA-PSS; the rest alike */
} opal_crypt_sign_t;

/* The scheme with which a key signs.  `rc` with topic "x509-weak-key" or "x509-key-type" if it may not sign; `whose`
 * begins the detail. */
int opal_crypt_sign_scheme(EVP_PKEY *key, const char *whose, int rc, unsigned *scheme,
                           opal_crypt_why_t *why);

/* The private key in a PEM file's bytes (PKCS #8, or the traditional forms of RSA and EC), for the certificate that
 * has `public_key`; the caller frees it.  A mismatch shows in the first signature. */
int opal_crypt_private_key(const char *pem, size_t pem_bytes, EVP_PKEY *public_key, const char *path,
                           EVP_PKEY **key, opal_crypt_why_t *why);

/* At most OPAL_CRYPT_SIGNATURE_MAX bytes of signature. */
int opal_crypt_sign(EVP_PKEY *key, unsigned scheme, const void *text, size_t text_bytes,
                    uint8_t *signature, size_t *signature_bytes);

/* ERR_AUTH unless the signature is valid. */
int opal_crypt_sign_verify(EVP_PKEY *key, unsigned scheme, const void *text, size_t text_bytes,
                           const uint8_t *signature, size_t signature_bytes);

#pragma GCC visibility pop

#endif

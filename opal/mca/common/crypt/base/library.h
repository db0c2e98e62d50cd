/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL's algorithms for the core, fetched once: from libcrypto's default library context or, under crypt_fips=1,
 * from a context of our own in which only a FIPS 140 provider is available.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_LIBRARY_H
#define OPAL_CRYPT_BASE_LIBRARY_H

#include "base.h"

#include <openssl/types.h>

typedef struct opal_crypt_library {
    OSSL_LIB_CTX *context;          /* NULL: OpenSSL's own */
    const char *properties;         /* NULL, or "fips=yes" */
    EVP_KDF *hkdf;
    EVP_MAC *hmac;
    EVP_MD *sha256;
} opal_crypt_library_t;

#pragma GCC visibility push(default)

/* Choose between the two; called first, by local_create and, for files, by common/cryptmpio.  ERR_CONFIG if a FIPS
 * provider is required and cannot be loaded. */
int opal_crypt_library_open(bool fips, opal_crypt_why_t *why);

/* Random bytes for a key: from the FIPS module under crypt_fips=1, else from the kernel.  ERR_LIBRARY if the module
 * provides none. */
int opal_crypt_draw(void *block, size_t bytes);

/* The library opened, or else the default; NULL if libcrypto lacks HKDF, or has cleaned up. */
const opal_crypt_library_t *opal_crypt_library(void);

/* libcrypto has cleaned up as the program ends: its objects can no longer be used or freed. */
bool opal_crypt_library_ended(void);

void opal_crypt_library_close(void);

#pragma GCC visibility pop

#endif

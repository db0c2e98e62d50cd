/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL's algorithms as the core uses them, fetched once: libcrypto's
 * default library context, or, under crypt_fips=1, a context of our own in
 * which nothing but a FIPS 140 provider can be fetched.
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

/* Decide between the two; before anything else is called, by local_create
 * and, for files, by common/cryptmpio.  ERR_CONFIG when a FIPS provider is demanded
 * and none can be loaded. */
int opal_crypt_library_open(bool fips, opal_crypt_why_t *why);

/* Random bytes for a key: from the module under crypt_fips=1, else the kernel's.
 * ERR_LIBRARY when the module gives none. */
int opal_crypt_draw(void *block, size_t bytes);

/* What was opened, or else the default; NULL when libcrypto lacks HKDF, or has ended. */
const opal_crypt_library_t *opal_crypt_library(void);

/* libcrypto has cleaned up, as the program ends: none of its objects can be used, or
 * freed, any more. */
bool opal_crypt_library_ended(void);

void opal_crypt_library_close(void);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The inside of cryptfile/keystore/https.h: OpenSSL's context for one server.
 */
#ifndef OPAL_CRYPTFILE_KEYSTORE_HTTPS_CONTEXT_H
#define OPAL_CRYPTFILE_KEYSTORE_HTTPS_CONTEXT_H

#include "https.h"
#include "opal/mca/common/crypt/base/libssl.h"

struct opal_cryptfile_https {
    const opal_cryptfile_https_to_t *to;
    const opal_crypt_libssl_t *ssl;     /* NULL for a Unix socket */
    OSSL_LIB_CTX *library;
    const char *properties;
    SSL_CTX *context;
};

/* For one connection, which verifies the server; reads from *in and writes to *out, both its own. */
SSL *opal_cryptfile_https_ssl(const opal_cryptfile_https_t *https, BIO **in, BIO **out);

#endif

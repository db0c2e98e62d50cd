/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * AES-GCM by OpenSSL's libcrypto.
 */
#include "opal/mca/aead/openssl/aead_openssl.h"

#include <openssl/crypto.h>

static const char *version(void)
{
    return OpenSSL_version(OPENSSL_VERSION);
}

const opal_aead_module_t opal_aead_openssl_module = {
    .name = "openssl",
    .ciphers = 0,
    .version = version,
};

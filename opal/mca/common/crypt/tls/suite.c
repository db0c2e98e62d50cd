/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The suites and groups of TLS 1.3 that a connection may have.
 */
#include "suite.h"

const opal_crypt_tls_suite_t *opal_crypt_tls_suite(opal_aead_cipher_t cipher)
{
    static const opal_crypt_tls_suite_t suites[] = {
        {OPAL_AEAD_AES_128_GCM, 0x1301, "TLS_AES_128_GCM_SHA256", false, 32},
        {OPAL_AEAD_AES_256_GCM, 0x1302, "TLS_AES_256_GCM_SHA384", true, 48},
        {OPAL_AEAD_CHACHA20_POLY1305, 0x1303, "TLS_CHACHA20_POLY1305_SHA256", false, 32},
    };

    for (size_t i = 0; i < sizeof(suites) / sizeof(suites[0]); ++i) {
        if (cipher == suites[i].cipher) {
            return &suites[i];
        }
    }
    return NULL;
}

const opal_crypt_tls_group_of_t *opal_crypt_tls_group(opal_crypt_tls_group_t group)
{
    static const opal_crypt_tls_group_of_t groups[] = {
        {OPAL_CRYPT_TLS_P256, "P-256", 65, 65},
        {OPAL_CRYPT_TLS_X25519, "X25519", 32, 32},
        {OPAL_CRYPT_TLS_X25519MLKEM768, "X25519MLKEM768", 1216, 1120},
    };

    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); ++i) {
        if (group == groups[i].group) {
            return &groups[i];
        }
    }
    return NULL;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The TLS 1.3 suites and groups that a connection may use.
 */
#include "suite.h"

#include <stdio.h>

/* In order of preference. */
static const opal_crypt_tls_group_of_t groups_known[] = {
    {OPAL_CRYPT_TLS_X25519MLKEM768, "X25519MLKEM768", 1216, 1120},
    {OPAL_CRYPT_TLS_X25519, "X25519", 32, 32},
    {OPAL_CRYPT_TLS_P256, "P-256", 65, 65},
};
enum { KNOWN = sizeof(groups_known) / sizeof(groups_known[0]) };

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
    opal_crypt_tls_groups_t bit = opal_crypt_tls_group_bit(group);

    return opal_crypt_tls_group_take(&bit);
}

opal_crypt_tls_groups_t opal_crypt_tls_group_bit(unsigned number)
{
    for (unsigned i = 0; i < KNOWN; ++i) {
        if (number == (unsigned) groups_known[i].group) {
            return 1u << i;
        }
    }
    return 0;
}

const opal_crypt_tls_group_of_t *opal_crypt_tls_group_take(opal_crypt_tls_groups_t *groups)
{
    for (unsigned i = 0; i < KNOWN; ++i) {
        if (0 != (*groups & 1u << i)) {
            *groups &= ~(1u << i);
            return &groups_known[i];
        }
    }
    return NULL;
}

const char *opal_crypt_tls_groups_text(opal_crypt_tls_groups_t groups, char text[OPAL_CRYPT_TLS_GROUPS_TEXT])
{
    const opal_crypt_tls_group_of_t *group;
    int used = snprintf(text, OPAL_CRYPT_TLS_GROUPS_TEXT, "%s", 0 == groups ? "none" : "");

    while (NULL != (group = opal_crypt_tls_group_take(&groups)) && used < OPAL_CRYPT_TLS_GROUPS_TEXT) {
        used += snprintf(text + used, OPAL_CRYPT_TLS_GROUPS_TEXT - (size_t) used, "%s%s", used > 0 ? ", " : "", group->name);
    }
    return text;
}

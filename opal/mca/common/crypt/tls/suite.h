/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What two ends agree on before they connect: a cipher suite and a group of TLS 1.3.
 * Both are known from the records of the two processes; nothing is negotiated.
 * docs/transport-format.rst, "Overview" and "Groups".
 */
#ifndef OPAL_CRYPT_TLS_SUITE_H
#define OPAL_CRYPT_TLS_SUITE_H

#include "opal/mca/aead/aead_module.h"
#include "opal/mca/common/crypt/base/base.h"

/* The numbers of TLS. */
typedef enum {
    OPAL_CRYPT_TLS_P256 = 0x0017,
    OPAL_CRYPT_TLS_X25519 = 0x001d,
    OPAL_CRYPT_TLS_X25519MLKEM768 = 0x11ec      /* OpenSSL 3.5 or newer */
} opal_crypt_tls_group_t;

typedef struct opal_crypt_tls_suite {
    opal_aead_cipher_t cipher;
    uint16_t number;
    const char *name;
    bool sha384;
    size_t hash_bytes;                          /* also of the PSK, and of traffic secrets */
} opal_crypt_tls_suite_t;

typedef struct opal_crypt_tls_group_of {
    opal_crypt_tls_group_t group;
    const char *name;
    size_t client_bytes, server_bytes;          /* of a key share */
} opal_crypt_tls_group_of_t;

#pragma GCC visibility push(default)

/* NULL if TLS 1.3 has none: AES-192-GCM; an unknown number. */
const opal_crypt_tls_suite_t *opal_crypt_tls_suite(opal_aead_cipher_t cipher);
const opal_crypt_tls_group_of_t *opal_crypt_tls_group(opal_crypt_tls_group_t group);

/* A set of groups has a bit for each; the lower one is preferred.  0: an unknown number. */
typedef unsigned opal_crypt_tls_groups_t;
opal_crypt_tls_groups_t opal_crypt_tls_group_bit(unsigned number);

/* Take the most preferred one out of *groups; NULL: none is left. */
const opal_crypt_tls_group_of_t *opal_crypt_tls_group_take(opal_crypt_tls_groups_t *groups);

/* "X25519MLKEM768, X25519", or "none". */
#define OPAL_CRYPT_TLS_GROUPS_TEXT  48
const char *opal_crypt_tls_groups_text(opal_crypt_tls_groups_t groups, char text[OPAL_CRYPT_TLS_GROUPS_TEXT]);

#pragma GCC visibility pop

#endif

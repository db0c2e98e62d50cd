/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The inside of a tls object and of a handshake, for handshake.c and contexts.c.
 */
#ifndef OPAL_CRYPT_TLS_HANDSHAKE_OBJECT_H
#define OPAL_CRYPT_TLS_HANDSHAKE_OBJECT_H

#include "handshake.h"
#include "opal/mca/common/crypt/base/libssl.h"

struct opal_crypt_tls {
    const opal_crypt_libssl_t *ssl;
    const opal_crypt_tls_suite_t *suite;
    opal_crypt_tls_groups_t groups;         /* those that this OpenSSL supports */
    SSL_CTX *client, *server;
};

/* In crypt_secmem. */
typedef struct handshake_secrets {
    opal_crypt_tls_psk_t psk;
    uint8_t client[OPAL_CRYPT_TLS_SECRET_MAX], server[OPAL_CRYPT_TLS_SECRET_MAX];   /* traffic secrets */
} handshake_secrets_t;

struct opal_crypt_handshake {
    const opal_crypt_tls_t *tls;
    bool listens;
    opal_crypt_handshake_state_t state;
    const char *reason;

    opal_crypt_tls_name_t own;                              /* for the listener: */
    opal_crypt_handshake_find_t find;
    void *arg;

    opal_crypt_tls_identity_t identity;
    const opal_crypt_tls_group_of_t *group;                 /* NULL: the listener does not know it yet */
    uint8_t packed[OPAL_CRYPT_TLS_IDENTITY_BYTES];
    handshake_secrets_t *secrets;
    unsigned secrets_seen;                                  /* bit 0 the client's, bit 1 the server's */

    SSL *ssl;                                               /* NULL before and after */
    BIO *in, *out;                                          /* belong to the SSL */

    size_t total;                                           /* bytes taken so far */
    unsigned records;                                       /* complete ones */
    size_t have;                                            /* bytes of the arriving record */
    uint8_t record[OPAL_CRYPT_TLS_HEADER + OPAL_CRYPT_TLS_HELLO_MAX];

    size_t output_from, output_to;
    uint8_t output[OPAL_CRYPT_TLS_HEADER + OPAL_CRYPT_TLS_HELLO_MAX];
};

/* contexts.c: an SSL object for this handshake, with its group only; NULL without memory. */
SSL *opal_crypt_tls_ssl(opal_crypt_handshake_t *handshake);

#endif

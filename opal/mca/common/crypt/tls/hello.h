/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The identity of a connection, and the two plaintext messages of a handshake.  A listener reads a ClientHello here,
 * and asks its caller about the client, before OpenSSL sees a byte of it.
 *
 *     | "ompi" 4 | version 1 = 1 | 0 1 | link 2 | attempt 4 | claimed 40 | wanted 40 |        92 B
 *     name = | SHA-256(name of the job) 32 | rank 4 | instance 4 |
 *
 * A hello is accepted in one form only, the one that our own ends send: docs/transport-format.rst, "Hellos".  These
 * functions keep no state, and trust nothing: a name is a claim until the handshake is done.
 */
#ifndef OPAL_CRYPT_TLS_HELLO_H
#define OPAL_CRYPT_TLS_HELLO_H

#include "suite.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_TLS_NAME_BYTES       40
#define OPAL_CRYPT_TLS_IDENTITY_BYTES   92
#define OPAL_CRYPT_TLS_HEADER           5           /* of every record */
#define OPAL_CRYPT_TLS_HELLO_MAX        2048        /* without the header */

/* The name of a process, as in its record. */
typedef struct opal_crypt_tls_name {
    uint8_t nspace[32];                             /* SHA-256 */
    uint32_t rank, instance;
} opal_crypt_tls_name_t;

typedef struct opal_crypt_tls_identity {
    opal_crypt_tls_name_t claimed;                  /* the client */
    opal_crypt_tls_name_t wanted;                   /* the listener */
    uint16_t link;
    uint32_t attempt;                               /* increases: a listener accepts each once */
} opal_crypt_tls_identity_t;

int opal_crypt_tls_name_make(const char *nspace, uint32_t rank, uint32_t instance, opal_crypt_tls_name_t *name);
bool opal_crypt_tls_name_equal(const opal_crypt_tls_name_t *a, const opal_crypt_tls_name_t *b);

void opal_crypt_tls_identity_pack(const opal_crypt_tls_identity_t *identity,
                                  uint8_t bytes[OPAL_CRYPT_TLS_IDENTITY_BYTES]);

/* Check a whole record as received, header included.  NULL: our end could have sent it, for this suite and for *group,
 * which a client's hello sets.  Else: the reason for refusing it, in English. */
const char *opal_crypt_client_hello(const opal_crypt_tls_suite_t *suite, const uint8_t *record, size_t bytes,
                                    opal_crypt_tls_identity_t *identity, const opal_crypt_tls_group_of_t **group);
const char *opal_crypt_server_hello(const opal_crypt_tls_suite_t *suite, const opal_crypt_tls_group_of_t *group,
                                    const uint8_t *record, size_t bytes);

#pragma GCC visibility pop

#endif

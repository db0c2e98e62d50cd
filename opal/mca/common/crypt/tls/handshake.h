/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The handshake of a connection: TLS 1.3 by OpenSSL, in memory, with the PSK of a pair of processes.  The caller owns
 * the socket; this takes received bytes and returns bytes to send, and ends in records (records.h) or in a refusal.
 *
 *     connects    ClientHello -->                          ClientHello    listens
 *                             <-- ServerHello, Finished    find() looks up its name
 *                 Finished    -->                          done
 *                 done
 *
 * An unauthenticated client gets no answer, and only one record of it is read.  It costs an OpenSSL object only if it
 * claims the name of a process of the job.  A refusal is final.  No alert is sent: the caller closes the socket.
 *
 * Threads: a tls object by any number, a handshake by one at a time.
 */
#ifndef OPAL_CRYPT_TLS_HANDSHAKE_H
#define OPAL_CRYPT_TLS_HANDSHAKE_H

#include "hello.h"
#include "records.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/identity/schedule.h"

#pragma GCC visibility push(default)

/* The most bytes that a handshake accepts, from anybody. */
#define OPAL_CRYPT_HANDSHAKE_INPUT_MAX  4096

/* A suite, for any number of handshakes: OpenSSL's contexts for both ends, unaffected by OpenSSL's configuration
 * files.  Under crypt_fips=1 it uses the FIPS provider. */
typedef struct opal_crypt_tls opal_crypt_tls_t;

/* ERR_CONFIG with `why` filled: TLS 1.3 has no suite for this cipher, or this OpenSSL (or its
 * FIPS provider) lacks it. */
int opal_crypt_tls_create(opal_aead_cipher_t cipher, opal_crypt_tls_t **tls, opal_crypt_why_t *why);
void opal_crypt_tls_destroy(opal_crypt_tls_t *tls);             /* after its handshakes; NULL allowed */

/* The groups that this OpenSSL supports. */
opal_crypt_tls_groups_t opal_crypt_tls_groups(const opal_crypt_tls_t *tls);

/* In memory of crypt_secmem; set by opal_crypt_tls_psk, or, in a test, by hand. */
typedef struct opal_crypt_tls_psk {
    uint8_t bytes[OPAL_CRYPT_TLS_SECRET_MAX];       /* as long as the suite's hash */
} opal_crypt_tls_psk_t;

/* The PSK of a pair, for connections in one direction: OUT if this process connects. */
int opal_crypt_tls_psk(const opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule,
                       opal_crypt_direction_t direction, opal_crypt_tls_psk_t *psk);

typedef struct opal_crypt_handshake opal_crypt_handshake_t;

typedef enum {
    OPAL_CRYPT_HANDSHAKE_RUNNING,
    OPAL_CRYPT_HANDSHAKE_DONE,
    OPAL_CRYPT_HANDSHAKE_REFUSED
} opal_crypt_handshake_state_t;

/* Called by a listener: may this process connect to us, and what are the group and the PSK of the pair?  Any code but
 * OK refuses it.  `identity` is a claim; its wanted name is the listener's own. */
typedef int (*opal_crypt_handshake_find_t)(void *arg, const opal_crypt_tls_identity_t *identity,
                                           opal_crypt_tls_group_t *group, opal_crypt_tls_psk_t *psk);

/* Start a handshake.  `tls` must outlive it; psk and names are copied. */
int opal_crypt_handshake_connect(const opal_crypt_tls_t *tls, opal_crypt_tls_group_t group,
                                 const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk,
                                 opal_crypt_handshake_t **handshake);
int opal_crypt_handshake_accept(const opal_crypt_tls_t *tls, const opal_crypt_tls_name_t *own,
                                opal_crypt_handshake_find_t find, void *arg, opal_crypt_handshake_t **handshake);
void opal_crypt_handshake_destroy(opal_crypt_handshake_t *handshake);       /* NULL allowed */

/* How many bytes to read next, so that nothing after the handshake is read; 0 when it has ended. */
size_t opal_crypt_handshake_wants(const opal_crypt_handshake_t *handshake);

/* Process received bytes.  *taken: the rest belongs to the records.  ERR_AUTH, from then on always: refused. */
int opal_crypt_handshake_feed(opal_crypt_handshake_t *handshake, const void *bytes, size_t count, size_t *taken);

/* The bytes to send, and how many were sent.  There may be some left when it is DONE. */
const uint8_t *opal_crypt_handshake_output(const opal_crypt_handshake_t *handshake, size_t *count);
void opal_crypt_handshake_sent(opal_crypt_handshake_t *handshake, size_t count);

opal_crypt_handshake_state_t opal_crypt_handshake_state(const opal_crypt_handshake_t *handshake);

/* Why it was refused, in English, for developers; never key material. */
const char *opal_crypt_handshake_reason(const opal_crypt_handshake_t *handshake);

/* When listening: the hello came from the process that it names, since the binder was right, and is answered. */
bool opal_crypt_handshake_answered(const opal_crypt_handshake_t *handshake);

/* The identity of the other end: certain when the handshake is DONE. */
const opal_crypt_tls_identity_t *opal_crypt_handshake_identity(const opal_crypt_handshake_t *handshake);

/* Once, when it is DONE: create the records of the connection.  The traffic secrets move there. */
int opal_crypt_handshake_records(opal_crypt_handshake_t *handshake, const opal_aead_module_t *aead,
                                 opal_crypt_tls_records_t **records);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The handshake, record by record:
 *
 *     1. gather          one record, and never a byte beyond it
 *     2. check           the first record: hello.c, and the listener's find()
 *     3. let OpenSSL proceed, and take what it wants to send
 *     4. finish          check what was agreed, keep two secrets, free OpenSSL's object
 */
#include "handshake_object.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>

#define PROTECTED 23                    /* a record's type once keys are in use */

/* ---- making and destroying ---- */

static void ssl_end(opal_crypt_handshake_t *handshake)
{
    if (NULL != handshake->ssl && !opal_crypt_library_ended()) {
        opal_crypt_libssl_free(handshake->tls->ssl, handshake->ssl);
        handshake->tls->ssl->ERR_clear_error();
    }
    handshake->ssl = NULL;
    handshake->in = handshake->out = NULL;
}

/* What the peer sent is discarded, too. */
static int refuse_peer(opal_crypt_handshake_t *handshake, const char *reason)
{
    handshake->state = OPAL_CRYPT_HANDSHAKE_REFUSED;
    handshake->reason = reason;
    handshake->have = handshake->output_from = handshake->output_to = 0;
    ssl_end(handshake);
    opal_crypt_secmem_free(handshake->secrets);
    handshake->secrets = NULL;
    return OPAL_CRYPT_ERR_AUTH;
}

static opal_crypt_handshake_t *handshake_make(const opal_crypt_tls_t *tls, bool listens)
{
    opal_crypt_handshake_t *handshake = calloc(1, sizeof(*handshake));

    if (NULL != handshake) {
        handshake->tls = tls;
        handshake->listens = listens;
    }
    return handshake;
}

static int secrets_make(opal_crypt_handshake_t *handshake)
{
    handshake->secrets = opal_crypt_secmem_alloc(sizeof(*handshake->secrets));
    return NULL != handshake->secrets ? OPAL_CRYPT_OK
         : opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED : OPAL_CRYPT_ERR_MEMORY;
}

void opal_crypt_handshake_destroy(opal_crypt_handshake_t *handshake)
{
    if (NULL != handshake) {
        ssl_end(handshake);
        opal_crypt_secmem_free(handshake->secrets);
        free(handshake);
    }
}

/* ---- 4. finish ---- */

/* Verify once more what our settings and hello.c have ensured: the PSK was used, and nothing else; OpenSSL holds
 * nothing of the records. */
static const char *agreed_wrongly(const opal_crypt_handshake_t *handshake)
{
    const opal_crypt_libssl_t *ssl = handshake->tls->ssl;
    const SSL_CIPHER *cipher = ssl->SSL_get_current_cipher(handshake->ssl);

    if (TLS1_3_VERSION != ssl->SSL_version(handshake->ssl)) {
        return "another version than TLS 1.3";
    }
    if (1 != ssl->SSL_session_reused(handshake->ssl)) {
        return "the PSK was not used";
    }
    if (NULL == cipher || handshake->tls->suite->number != ssl->SSL_CIPHER_get_protocol_id(cipher)) {
        return "another cipher suite";
    }
    if (0 != ssl->SSL_has_pending(handshake->ssl) || 0 != ssl->BIO_ctrl_pending(handshake->in)) {
        return "something follows the handshake in its record";
    }
    return 3 == handshake->secrets_seen ? NULL : "OpenSSL gave no traffic secrets";
}

static int handshake_finish(opal_crypt_handshake_t *handshake)
{
    const char *wrong = agreed_wrongly(handshake);

    if (NULL != wrong) {
        return refuse_peer(handshake, wrong);
    }
    ssl_end(handshake);
    opal_crypt_wipe(&handshake->secrets->psk, sizeof(handshake->secrets->psk));
    handshake->state = OPAL_CRYPT_HANDSHAKE_DONE;
    return OPAL_CRYPT_OK;
}

/* ---- 3. let OpenSSL proceed ---- */

static bool output_take(opal_crypt_handshake_t *handshake)
{
    const opal_crypt_libssl_t *ssl = handshake->tls->ssl;
    const size_t pending = ssl->BIO_ctrl_pending(handshake->out);

    if (pending > sizeof(handshake->output) - handshake->output_to) {
        return false;
    }
    if (pending > 0
        && (int) pending != ssl->BIO_read(handshake->out, handshake->output + handshake->output_to, (int) pending)) {
        return false;
    }
    handshake->output_to += pending;
    return true;
}

/* Secrets are in libcrypto's memory until this returns: no fork may happen meanwhile. */
static int go_on(opal_crypt_handshake_t *handshake, const uint8_t *record, size_t bytes)
{
    const opal_crypt_libssl_t *ssl = handshake->tls->ssl;
    int done = 0, how = SSL_ERROR_SSL, rc;

    if (opal_crypt_library_ended()) {
        return refuse_peer(handshake, "OpenSSL has cleaned up");
    }
    opal_crypt_secret_begin();
    ssl->ERR_clear_error();             /* or SSL_get_error takes the program's errors for its own */
    if (0 == bytes || (int) bytes == ssl->BIO_write(handshake->in, record, (int) bytes)) {
        done = ssl->SSL_do_handshake(handshake->ssl);
        how = ssl->SSL_get_error(handshake->ssl, done);
    }
    if (1 != done && (SSL_ERROR_WANT_READ != how || 0 != ssl->BIO_ctrl_pending(handshake->in))) {
        rc = refuse_peer(handshake, "OpenSSL refused it");
    } else if (!output_take(handshake)) {
        rc = refuse_peer(handshake, "too much to send");
    } else {
        rc = 1 == done ? handshake_finish(handshake) : OPAL_CRYPT_OK;
    }
    ssl->ERR_clear_error();
    opal_crypt_secret_end();
    return rc;
}

/* ---- 2. check ---- */

/* The first record that a listener gets: nothing is allocated for an unknown client. */
static int first_client_record(opal_crypt_handshake_t *handshake)
{
    const opal_crypt_tls_t *tls = handshake->tls;
    opal_crypt_tls_group_t expected = 0;
    const char *wrong = opal_crypt_client_hello(tls->suite, handshake->record, handshake->have, &handshake->identity,
                                                &handshake->group);
    int rc;

    if (NULL != wrong) {
        return refuse_peer(handshake, wrong);
    }
    if (!opal_crypt_tls_name_equal(&handshake->identity.wanted, &handshake->own)) {
        return refuse_peer(handshake, "it wants another process");
    }
    if (OPAL_CRYPT_OK != (rc = secrets_make(handshake))) {
        (void) refuse_peer(handshake, "no memory for secrets");
        return rc;
    }
    if (OPAL_CRYPT_OK != handshake->find(handshake->arg, &handshake->identity, &expected, &handshake->secrets->psk)) {
        return refuse_peer(handshake, "nobody of that name may connect");
    }
    if (expected != handshake->group->group) {
        return refuse_peer(handshake, "it offers another group");
    }
    opal_crypt_tls_identity_pack(&handshake->identity, handshake->packed);
    handshake->ssl = opal_crypt_tls_ssl(handshake);
    if (NULL == handshake->ssl) {
        (void) refuse_peer(handshake, "no memory");
        return OPAL_CRYPT_ERR_MEMORY;
    }
    return OPAL_CRYPT_OK;
}

static int first_server_record(opal_crypt_handshake_t *handshake)
{
    const char *wrong = opal_crypt_server_hello(handshake->tls->suite, handshake->group, handshake->record,
                                                handshake->have);

    return NULL == wrong ? OPAL_CRYPT_OK : refuse_peer(handshake, wrong);
}

static int record_complete(opal_crypt_handshake_t *handshake)
{
    const size_t bytes = handshake->have;
    int rc = OPAL_CRYPT_OK;

    if (0 == handshake->records) {
        rc = handshake->listens ? first_client_record(handshake) : first_server_record(handshake);
    } else if (PROTECTED != handshake->record[0]) {
        rc = refuse_peer(handshake, "a record in plaintext after the hello");
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    ++handshake->records;
    handshake->have = 0;
    return go_on(handshake, handshake->record, bytes);
}

/* ---- 1. gather ---- */

/* How much of the arriving record to read: its header, then all of it. */
static size_t record_bytes(const opal_crypt_handshake_t *handshake)
{
    return handshake->have < OPAL_CRYPT_TLS_HEADER ? OPAL_CRYPT_TLS_HEADER
         : OPAL_CRYPT_TLS_HEADER + (size_t) opal_crypt_get16(handshake->record + 3);
}

size_t opal_crypt_handshake_wants(const opal_crypt_handshake_t *handshake)
{
    return OPAL_CRYPT_HANDSHAKE_RUNNING == handshake->state ? record_bytes(handshake) - handshake->have : 0;
}

/* The header is complete: check it before waiting for what it announces. */
static int header_complete(opal_crypt_handshake_t *handshake)
{
    const size_t bytes = record_bytes(handshake);
    const unsigned type = handshake->record[0];

    if (OPAL_CRYPT_TLS_HEADER == bytes || bytes > sizeof(handshake->record)
        || handshake->total + bytes - OPAL_CRYPT_TLS_HEADER > OPAL_CRYPT_HANDSHAKE_INPUT_MAX) {
        return refuse_peer(handshake, "a record that is empty, or too long");
    }
    if ((0 == handshake->records ? 22 : PROTECTED) != type || 3 != handshake->record[1]) {
        return refuse_peer(handshake, "not a record of a handshake");
    }
    return OPAL_CRYPT_OK;
}

int opal_crypt_handshake_feed(opal_crypt_handshake_t *handshake, const void *bytes, size_t count, size_t *taken)
{
    const uint8_t *at = bytes;
    int rc = OPAL_CRYPT_OK;

    *taken = 0;
    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    if (OPAL_CRYPT_HANDSHAKE_REFUSED == handshake->state) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    while (OPAL_CRYPT_OK == rc && OPAL_CRYPT_HANDSHAKE_RUNNING == handshake->state && *taken < count) {
        const size_t wanted = opal_crypt_handshake_wants(handshake);
        const size_t now = wanted < count - *taken ? wanted : count - *taken;

        memcpy(handshake->record + handshake->have, at + *taken, now);
        handshake->have += now;
        handshake->total += now;
        *taken += now;
        if (now < wanted) {
            break;
        }
        rc = OPAL_CRYPT_TLS_HEADER == handshake->have ? header_complete(handshake) : record_complete(handshake);
    }
    return rc;
}

/* ---- for the caller ---- */

int opal_crypt_handshake_connect(const opal_crypt_tls_t *tls, opal_crypt_tls_group_t group,
                                 const opal_crypt_tls_identity_t *identity, const opal_crypt_tls_psk_t *psk,
                                 opal_crypt_handshake_t **made)
{
    opal_crypt_handshake_t *handshake = handshake_make(tls, false);
    int rc = NULL == handshake ? OPAL_CRYPT_ERR_MEMORY
           : 0 == (tls->groups & opal_crypt_tls_group_bit(group)) ? OPAL_CRYPT_ERR_CONFIG : secrets_make(handshake);

    *made = NULL;
    if (OPAL_CRYPT_OK == rc) {
        handshake->group = opal_crypt_tls_group(group);
        handshake->identity = *identity;
        opal_crypt_tls_identity_pack(identity, handshake->packed);
        handshake->secrets->psk = *psk;
        handshake->ssl = opal_crypt_tls_ssl(handshake);
        rc = NULL == handshake->ssl ? OPAL_CRYPT_ERR_MEMORY : go_on(handshake, NULL, 0);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_handshake_destroy(handshake);
        return OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPT_ERR_LIBRARY : rc;
    }
    *made = handshake;
    return OPAL_CRYPT_OK;
}

int opal_crypt_handshake_accept(const opal_crypt_tls_t *tls, const opal_crypt_tls_name_t *own,
                                opal_crypt_handshake_find_t find, void *arg, opal_crypt_handshake_t **made)
{
    opal_crypt_handshake_t *handshake = handshake_make(tls, true);

    *made = handshake;
    if (NULL == handshake) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    handshake->own = *own;
    handshake->find = find;
    handshake->arg = arg;
    return OPAL_CRYPT_OK;
}

const uint8_t *opal_crypt_handshake_output(const opal_crypt_handshake_t *handshake, size_t *count)
{
    *count = handshake->output_to - handshake->output_from;
    return handshake->output + handshake->output_from;
}

void opal_crypt_handshake_sent(opal_crypt_handshake_t *handshake, size_t count)
{
    const size_t left = handshake->output_to - handshake->output_from;

    handshake->output_from += count < left ? count : left;
    if (handshake->output_from == handshake->output_to) {
        handshake->output_from = handshake->output_to = 0;
    }
}

opal_crypt_handshake_state_t opal_crypt_handshake_state(const opal_crypt_handshake_t *handshake)
{
    return handshake->state;
}

const char *opal_crypt_handshake_reason(const opal_crypt_handshake_t *handshake)
{
    return NULL == handshake->reason ? "" : handshake->reason;
}

bool opal_crypt_handshake_answered(const opal_crypt_handshake_t *handshake)
{
    return handshake->listens && handshake->records > 0 && OPAL_CRYPT_HANDSHAKE_REFUSED != handshake->state;
}

const opal_crypt_tls_identity_t *opal_crypt_handshake_identity(const opal_crypt_handshake_t *handshake)
{
    return &handshake->identity;
}

int opal_crypt_tls_psk(const opal_crypt_tls_t *tls, const opal_crypt_schedule_t *schedule,
                       opal_crypt_direction_t direction, opal_crypt_tls_psk_t *psk)
{
    return opal_crypt_schedule_expand(schedule, OPAL_CRYPT_LABEL_TRANSPORT, direction, psk->bytes,
                                      tls->suite->hash_bytes);
}

int opal_crypt_handshake_records(opal_crypt_handshake_t *handshake, const opal_aead_module_t *aead,
                                 opal_crypt_tls_records_t **records)
{
    const handshake_secrets_t *secrets = handshake->secrets;
    int rc;

    *records = NULL;
    if (OPAL_CRYPT_HANDSHAKE_DONE != handshake->state || NULL == secrets) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    rc = opal_crypt_tls_records_create(aead, handshake->tls->suite->cipher, OPAL_CRYPT_TLS_RECORDS_RENEW,
                                   handshake->listens ? secrets->server : secrets->client,
                                   handshake->listens ? secrets->client : secrets->server, records);
    opal_crypt_secmem_free(handshake->secrets);
    handshake->secrets = NULL;
    return rc;
}

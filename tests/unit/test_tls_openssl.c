/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * It is TLS 1.3: our ends, handshake and records, against ends of OpenSSL alone.  What we seal comes out of
 * SSL_read and what SSL_write seals opens here, with KeyUpdates and close_notify of both, as client and as
 * server.  Tickets of OpenSSL, and its requests for a KeyUpdate, end the connection.
 */
#include "tls_openssl.h"

#include "opal/mca/common/crypt/tls/records_object.h"

static uint8_t data[100000], wire[200000], back[100001];

/* What OpenSSL's end wrote, opened by ours; `kind` of the last record, or the error. */
static int from_peer(peer_t *peer, opal_crypt_tls_records_t *ours, size_t *got)
{
    const int have = BIO_read(peer->out, wire, sizeof(wire));
    opal_crypt_tls_record_kind_t kind = OPAL_CRYPT_TLS_RECORD_DATA;
    size_t at = 0, one, plain_bytes;

    for (*got = 0; have > 0 && at < (size_t) have; at += one) {
        int rc = opal_crypt_tls_records_next(ours, wire + at, (size_t) have - at, &one);
        UNIT_CHECK(OPAL_CRYPT_OK != rc || (one > 0 && one <= (size_t) have - at));
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_crypt_tls_records_open(ours, wire + at, one, back + *got, sizeof(back) - *got, &plain_bytes, &kind);
            *got += plain_bytes;
        }
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
    return (int) kind;
}

static void ours_to_peer(opal_crypt_tls_records_t *ours, peer_t *peer, size_t bytes)
{
    const struct iovec piece = {data, bytes};
    size_t wire_bytes, got = 0, one;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(ours, &piece, 1, wire, sizeof(wire), &wire_bytes));
    UNIT_CHECK((int) wire_bytes == BIO_write(peer->in, wire, (int) wire_bytes));
    while (got < bytes && 1 == SSL_read_ex(peer->ssl, back + got, bytes - got, &one)) {
        got += one;
    }
    UNIT_CHECK(got == bytes && 0 == memcmp(back, data, bytes));
}

static void peer_to_ours(peer_t *peer, opal_crypt_tls_records_t *ours, size_t bytes)
{
    size_t got, written;

    UNIT_CHECK(1 == SSL_write_ex(peer->ssl, data, bytes, &written) && written == bytes);
    UNIT_CHECK(OPAL_CRYPT_TLS_RECORD_DATA == (opal_crypt_tls_record_kind_t) from_peer(peer, ours, &got));
    UNIT_CHECK(got == bytes && 0 == memcmp(back, data, bytes));
}

static void talk(peer_t *peer, opal_crypt_tls_records_t *ours)
{
    static const size_t lengths[] = {1, 5, 64, 5000, 16384, 16385, 100000};
    uint8_t end[OPAL_CRYPT_TLS_RECORD_CLOSE];
    size_t got;

    for (int round = 0; round < 3; ++round) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
            ours_to_peer(ours, peer, lengths[i]);
            peer_to_ours(peer, ours, lengths[i]);
        }
        /* OpenSSL's KeyUpdate; ours came by itself, every third record. */
        UNIT_CHECK(1 == SSL_key_update(peer->ssl, SSL_KEY_UPDATE_NOT_REQUESTED) && 1 == SSL_do_handshake(peer->ssl));
        UNIT_CHECK(OPAL_CRYPT_TLS_RECORD_RENEWED == (opal_crypt_tls_record_kind_t) from_peer(peer, ours, &got) && 0 == got);
    }
    UNIT_CHECK(0 == SSL_shutdown(peer->ssl));
    UNIT_CHECK(OPAL_CRYPT_TLS_RECORD_CLOSED == (opal_crypt_tls_record_kind_t) from_peer(peer, ours, &got) && 0 == got);
    UNIT_CHECK(opal_crypt_tls_records_closed(ours));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_close(ours, end));
    UNIT_CHECK((int) sizeof(end) == BIO_write(peer->in, end, sizeof(end)));
    UNIT_CHECK(1 == SSL_shutdown(peer->ssl) && 0 != (SSL_RECEIVED_SHUTDOWN & SSL_get_shutdown(peer->ssl)));
}

/* Our records, with a low limit, from a handshake that is done. */
static opal_crypt_tls_records_t *records_of(opal_crypt_handshake_t *ours)
{
    opal_crypt_tls_records_t *records = NULL;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_records(ours, &opal_aead_openssl_module, &records));
    records->renew = 3;
    return records;
}

static void both_ways(const opal_crypt_tls_t *tls)
{
    for (int listens = 0; listens < 2; ++listens) {
        job_t job = {.psk = tls_psk(7)};
        opal_crypt_handshake_t *ours = listens ? tls_accept(tls, &job) : tls_connect(tls, &job.psk);
        peer_t *peer = peer_make(!listens, (odd_t) {0}, 7);
        opal_crypt_tls_records_t *records;

        UNIT_GROUP("OpenSSL %s", listens ? "connects" : "listens");
        if (listens) {
            flight_t hello;
            (void) SSL_do_handshake(peer->ssl);
            hello = peer_output(peer);
            UNIT_CHECK(0 == tls_input(ours, &hello, 8192));
        }
        UNIT_REQUIRE(peer_shake(peer, ours, false));
        UNIT_CHECK(1 == SSL_session_reused(peer->ssl) && TLS1_3_VERSION == SSL_version(peer->ssl));
        records = records_of(ours);
        talk(peer, records);
        opal_crypt_tls_records_destroy(records);
        opal_crypt_handshake_destroy(ours);
        peer_free(peer);
    }
}

/* What OpenSSL may send by itself, and our end never accepts. */
static void unwanted(const opal_crypt_tls_t *tls, bool tickets)
{
    const opal_crypt_tls_psk_t psk = tls_psk(7);
    opal_crypt_handshake_t *ours = tls_connect(tls, &psk);
    peer_t *peer = peer_make(true, (odd_t) {.tickets = tickets}, 7);
    opal_crypt_tls_records_t *records;
    flight_t flight = tls_output(ours);
    size_t got;

    UNIT_GROUP("OpenSSL %s", tickets ? "sends tickets" : "asks for a KeyUpdate");
    peer_input(peer, &flight);
    UNIT_CHECK(1 != SSL_do_handshake(peer->ssl));
    flight = peer_output(peer);
    UNIT_CHECK(0 == tls_input(ours, &flight, 8192) && TLS_STATE(ours, DONE));
    flight = tls_output(ours);
    peer_input(peer, &flight);
    UNIT_CHECK(1 == SSL_do_handshake(peer->ssl));
    records = records_of(ours);
    if (!tickets) {
        UNIT_CHECK(1 == SSL_key_update(peer->ssl, SSL_KEY_UPDATE_REQUESTED) && 1 == SSL_do_handshake(peer->ssl));
    }
    UNIT_CHECK(BIO_ctrl_pending(peer->out) > 0);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == from_peer(peer, records, &got) && 0 == got);
    opal_crypt_tls_records_destroy(records);
    opal_crypt_handshake_destroy(ours);
    peer_free(peer);
}

int main(void)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);

    UNIT_REQUIRE(NULL != tls);
    for (size_t i = 0; i < sizeof(data); ++i) {
        data[i] = (uint8_t) (i * 31 + i / 251 + 1);
    }
    both_ways(tls);
    unwanted(tls, true);
    unwanted(tls, false);
    opal_crypt_tls_destroy(tls);
    return unit_done();
}

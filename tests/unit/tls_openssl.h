/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An end of a connection by OpenSSL alone, with callbacks of its own: what it accepts and
 * sends is TLS 1.3.  It shares no code with the product, and can be made to misbehave.
 */
#ifndef TESTS_UNIT_TLS_OPENSSL_H
#define TESTS_UNIT_TLS_OPENSSL_H

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "tls_ends.h"

/* What an end does that ours would not. */
typedef struct odd {
    bool no_psk, certificate, tickets, early_data, middlebox, tls12, other_hash_first, two_shares;
    const char *groups;
    const uint8_t *identity;            /* NULL: the right one */
    size_t identity_bytes;
} odd_t;

typedef struct peer {
    odd_t odd;
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    uint8_t identity[OPAL_CRYPT_TLS_IDENTITY_BYTES];
    opal_crypt_tls_psk_t psk;
} peer_t;

static inline SSL_SESSION *peer_session(peer_t *peer, SSL *ssl)
{
    const unsigned char sha256[2] = {0x13, 0x01};
    SSL_SESSION *session = SSL_SESSION_new();

    UNIT_REQUIRE(NULL != session && 1 == SSL_SESSION_set1_master_key(session, peer->psk.bytes, 32)
                 && 1 == SSL_SESSION_set_cipher(session, SSL_CIPHER_find(ssl, sha256))
                 && 1 == SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION));
    if (peer->odd.early_data) {
        UNIT_REQUIRE(1 == SSL_SESSION_set_max_early_data(session, 1024));
    }
    return session;
}

static inline int peer_use(SSL *ssl, const EVP_MD *hash, const unsigned char **identity, size_t *bytes, SSL_SESSION **session)
{
    peer_t *peer = SSL_get_app_data(ssl);

    (void) hash;
    *session = peer_session(peer, ssl);
    *identity = NULL == peer->odd.identity ? peer->identity : peer->odd.identity;
    *bytes = NULL == peer->odd.identity ? sizeof(peer->identity) : peer->odd.identity_bytes;
    return 1;
}

static inline int peer_find(SSL *ssl, const unsigned char *identity, size_t bytes, SSL_SESSION **session)
{
    peer_t *peer = SSL_get_app_data(ssl);

    *session = sizeof(peer->identity) == bytes && 0 == memcmp(identity, peer->identity, bytes) ? peer_session(peer, ssl) : NULL;
    return 1;
}

static inline void peer_certificate(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);

    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *) "stranger", -1, -1, 0);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_issuer_name(certificate, name);
    X509_set_pubkey(certificate, key);
    UNIT_REQUIRE(0 != X509_sign(certificate, key, EVP_sha256()) && 1 == SSL_CTX_use_certificate(context, certificate)
                 && 1 == SSL_CTX_use_PrivateKey(context, key));
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static inline peer_t *peer_make(bool server, odd_t odd, uint8_t psk)
{
    peer_t *peer = calloc(1, sizeof(*peer));
    const opal_crypt_tls_identity_t identity = tls_identity();

    UNIT_REQUIRE(NULL != peer);
    peer->odd = odd;
    peer->psk = tls_psk(psk);
    opal_crypt_tls_identity_pack(&identity, peer->identity);
    peer->context = SSL_CTX_new(server ? TLS_server_method() : TLS_client_method());
    UNIT_REQUIRE(NULL != peer->context);
    SSL_CTX_set_min_proto_version(peer->context, odd.tls12 ? TLS1_2_VERSION : TLS1_3_VERSION);
    SSL_CTX_set_max_proto_version(peer->context, odd.tls12 ? TLS1_2_VERSION : TLS1_3_VERSION);
    UNIT_REQUIRE(1 == SSL_CTX_set_ciphersuites(peer->context, odd.other_hash_first ? "TLS_AES_256_GCM_SHA384:TLS_AES_128_GCM_SHA256"
                                                                                  : "TLS_AES_128_GCM_SHA256"));
    UNIT_REQUIRE(1 == SSL_CTX_set1_groups_list(peer->context, NULL == odd.groups ? "X25519" : odd.groups));
    SSL_CTX_set_num_tickets(peer->context, odd.tickets ? 2 : 0);
#ifdef SSL_OP_NO_RX_CERTIFICATE_COMPRESSION
    SSL_CTX_set_options(peer->context, SSL_OP_NO_RX_CERTIFICATE_COMPRESSION);
#endif
    if (!odd.middlebox) {
        SSL_CTX_clear_options(peer->context, SSL_OP_ENABLE_MIDDLEBOX_COMPAT);
    }
    if (!odd.tickets) {
        SSL_CTX_set_options(peer->context, SSL_OP_NO_TICKET);
    }
    if (odd.certificate) {
        peer_certificate(peer->context);
    }
    if (!odd.no_psk && server) {
        SSL_CTX_set_psk_find_session_callback(peer->context, peer_find);
    } else if (!odd.no_psk) {
        SSL_CTX_set_psk_use_session_callback(peer->context, peer_use);
    }
    peer->ssl = SSL_new(peer->context);
    peer->in = BIO_new(BIO_s_mem());
    peer->out = BIO_new(BIO_s_mem());
    UNIT_REQUIRE(NULL != peer->ssl && NULL != peer->in && NULL != peer->out);
    SSL_set_app_data(peer->ssl, peer);
    SSL_set_bio(peer->ssl, peer->in, peer->out);
    if (server) {
        SSL_set_accept_state(peer->ssl);
    } else {
        SSL_set_connect_state(peer->ssl);
    }
    return peer;
}

static inline void peer_free(peer_t *peer)
{
    SSL_free(peer->ssl);
    SSL_CTX_free(peer->context);
    free(peer);
    ERR_clear_error();
}

static inline flight_t peer_output(peer_t *peer)
{
    flight_t flight = {0};
    const int bytes = BIO_read(peer->out, flight.data, sizeof(flight.data));

    flight.bytes = bytes > 0 ? (size_t) bytes : 0;
    return flight;
}

static inline void peer_input(peer_t *peer, const flight_t *flight)
{
    UNIT_REQUIRE(0 == flight->bytes || (int) flight->bytes == BIO_write(peer->in, flight->data, (int) flight->bytes));
}

/* Our end connects to, or listens to, OpenSSL's; true when both are done. */
static inline bool peer_shake(peer_t *peer, opal_crypt_handshake_t *ours, bool listens)
{
    int done = 0;

    for (int turn = 0; turn < 4; ++turn) {
        flight_t flight;
        if (!listens || turn > 0) {
            flight = tls_output(ours);
            peer_input(peer, &flight);
        }
        if (1 != done) {
            done = SSL_do_handshake(peer->ssl);
        }
        flight = peer_output(peer);
        if (flight.bytes > 0) {
            (void) tls_input(ours, &flight, 8192);
        }
    }
    return 1 == done && TLS_STATE(ours, DONE);
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL's contexts for both ends, with everything set that a configuration file could set, and OpenSSL's callbacks
 * during a handshake:
 *
 *     use_psk, find_psk     the PSK, for exactly our identity
 *     refuse_certificate    any certificate
 *     take_secret           the traffic secrets, by their labels and the client's random bytes
 */
#include "handshake_object.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/library.h"

#include <assert.h>
#include <stdlib.h>

#define SECURITY_LEVEL  2               /* 112 bits and more */
#define RANDOM          32

/* OpenSSL 3.2 and newer offer to compress certificates; earlier versions ignore the bits. */
#define NO_CERTIFICATE_COMPRESSION (UINT64_C(1) << 32 | UINT64_C(1) << 33)
#if defined(SSL_OP_NO_TX_CERTIFICATE_COMPRESSION) && defined(SSL_OP_NO_RX_CERTIFICATE_COMPRESSION)
static_assert(NO_CERTIFICATE_COMPRESSION
                  == (SSL_OP_NO_TX_CERTIFICATE_COMPRESSION | SSL_OP_NO_RX_CERTIFICATE_COMPRESSION),
              "certificate compression");
#endif

static opal_crypt_handshake_t *handshake_of(const SSL *ssl, const opal_crypt_libssl_t *libssl)
{
    return libssl->SSL_get_ex_data(ssl, 0);
}

/* OpenSSL's callbacks pass no argument of ours but the SSL, whose table is always the same. */
static opal_crypt_handshake_t *called(const SSL *ssl)
{
    const opal_crypt_libssl_t *libssl;

    return OPAL_CRYPT_OK == opal_crypt_libssl_load(&libssl, NULL) ? handshake_of(ssl, libssl) : NULL;
}

/* ---- the PSK ---- */

static SSL_SESSION *psk_session(const opal_crypt_handshake_t *handshake, SSL *ssl)
{
    const opal_crypt_libssl_t *libssl = handshake->tls->ssl;
    const opal_crypt_tls_suite_t *suite = handshake->tls->suite;
    const unsigned char number[2] = {(unsigned char) (suite->number >> 8), (unsigned char) suite->number};
    const SSL_CIPHER *cipher = libssl->SSL_CIPHER_find(ssl, number);
    SSL_SESSION *session = NULL == cipher ? NULL : libssl->SSL_SESSION_new();

    if (NULL != session
        && (1 != libssl->SSL_SESSION_set1_master_key(session, handshake->secrets->psk.bytes, suite->hash_bytes)
            || 1 != libssl->SSL_SESSION_set_cipher(session, cipher)
            || 1 != libssl->SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))) {
        libssl->SSL_SESSION_free(session);
        session = NULL;
    }
    return session;
}

/* For the client; OpenSSL takes over the session. */
static int use_psk(SSL *ssl, const EVP_MD *hash, const unsigned char **identity, size_t *bytes, SSL_SESSION **session)
{
    const opal_crypt_handshake_t *handshake = called(ssl);

    (void) hash;                        /* needed for a second hello only, which we never send */
    *session = NULL == handshake ? NULL : psk_session(handshake, ssl);
    if (NULL == *session) {
        return 0;
    }
    *identity = handshake->packed;
    *bytes = sizeof(handshake->packed);
    return 1;
}

/* For the listener, which has read the identity before: accept the same one only. */
static int find_psk(SSL *ssl, const unsigned char *identity, size_t bytes, SSL_SESSION **session)
{
    const opal_crypt_handshake_t *handshake = called(ssl);

    *session = NULL;
    if (NULL == handshake || sizeof(handshake->packed) != bytes || 0 != memcmp(identity, handshake->packed, bytes)) {
        return 0;
    }
    *session = psk_session(handshake, ssl);
    return NULL != *session;
}

static int refuse_certificate(X509_STORE_CTX *context, void *arg)
{
    (void) context;
    (void) arg;
    return 0;
}

/* ---- traffic secrets ---- */

/* `line` is | label | space | random, hex | space | secret, hex |, and nothing else. */
static bool secret_of(const char *line, const char *label, const uint8_t random[RANDOM], uint8_t *secret, size_t bytes)
{
    const size_t label_bytes = strlen(label);
    const char *at = line + label_bytes + 1;
    uint8_t seen[RANDOM];

    return 0 == strncmp(line, label, label_bytes) && ' ' == line[label_bytes]
           && label_bytes + 1 + 2 * RANDOM + 1 + 2 * bytes == strlen(line)
           && opal_crypt_hex_read(at, seen, RANDOM) && 0 == memcmp(seen, random, RANDOM)
           && ' ' == at[2 * RANDOM] && opal_crypt_hex_read(at + 2 * RANDOM + 1, secret, bytes);
}

static void take_secret(const SSL *ssl, const char *line)
{
    opal_crypt_handshake_t *handshake = called(ssl);
    uint8_t random[RANDOM];
    size_t bytes;

    if (NULL == handshake || RANDOM != handshake->tls->ssl->SSL_get_client_random(ssl, random, RANDOM)) {
        return;
    }
    bytes = handshake->tls->suite->hash_bytes;
    if (secret_of(line, "CLIENT_TRAFFIC_SECRET_0", random, handshake->secrets->client, bytes)) {
        handshake->secrets_seen |= 1;
    } else if (secret_of(line, "SERVER_TRAFFIC_SECRET_0", random, handshake->secrets->server, bytes)) {
        handshake->secrets_seen |= 2;
    }
}

/* ---- contexts ---- */

/* Set everything, as each new context takes over the TLS settings of a configuration file. */
static bool set_rules(const opal_crypt_tls_t *tls, SSL_CTX *context)
{
    const opal_crypt_libssl_t *ssl = tls->ssl;

    ssl->SSL_CTX_clear_options(context, ~(uint64_t) 0);
    ssl->SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION
                                          | SSL_OP_CLEANSE_PLAINTEXT | NO_CERTIFICATE_COMPRESSION);
    ssl->SSL_CTX_set_security_level(context, SECURITY_LEVEL);
    ssl->SSL_CTX_set0_CA_list(context, NULL);
    (void) ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    (void) ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_READ_AHEAD, 0, NULL);
    ssl->SSL_CTX_set_keylog_callback(context, take_secret);
    return 1 == ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MAX_PROTO_VERSION, TLS1_3_VERSION, NULL)
           && 1 == ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_3_VERSION, NULL)
           && 1 == ssl->SSL_CTX_set_ciphersuites(context, tls->suite->name)
           && 1 == ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_SIGALGS_LIST, 0, (void *) (uintptr_t) "ECDSA+SHA256")
           && 1 == ssl->SSL_CTX_set_num_tickets(context, 0)
           && 1 == ssl->SSL_CTX_set_max_early_data(context, 0) && 1 == ssl->SSL_CTX_set_recv_max_early_data(context, 0)
           && 1 == ssl->SSL_CTX_set_block_padding(context, 0);
}

/* No certificate is accepted: the store is empty, and not even consulted. */
static bool set_trust(const opal_crypt_tls_t *tls, SSL_CTX *context)
{
    X509_STORE *store = tls->ssl->X509_STORE_new();

    if (NULL == store) {
        return false;
    }
    tls->ssl->SSL_CTX_set_cert_store(context, store);
    tls->ssl->SSL_CTX_set_cert_verify_callback(context, refuse_certificate, NULL);
    return true;
}

static SSL_CTX *context_make(const opal_crypt_tls_t *tls, OSSL_LIB_CTX *library, const char *properties, bool server)
{
    const opal_crypt_libssl_t *ssl = tls->ssl;
    const SSL_METHOD *method = server ? ssl->TLS_server_method() : ssl->TLS_client_method();
    SSL_CTX *context = ssl->SSL_CTX_new_ex(library, properties, method);

    if (NULL == context || !set_trust(tls, context) || !set_rules(tls, context)) {
        ssl->SSL_CTX_free(context);
        return NULL;
    }
    if (server) {
        /* No client certificate is requested; the client authenticates by the PSK. */
        ssl->SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
        ssl->SSL_CTX_set_psk_find_session_callback(context, find_psk);
    } else {
        ssl->SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
        ssl->SSL_CTX_set_psk_use_session_callback(context, use_psk);
    }
    return context;
}

/* Each handshake sets its own group; the one left in a context here is never used. */
static opal_crypt_tls_groups_t groups_there(const opal_crypt_tls_t *tls)
{
    opal_crypt_tls_groups_t left = ~0u, there = 0;
    const opal_crypt_tls_group_of_t *group;

    while (NULL != (group = opal_crypt_tls_group_take(&left))) {
        if (1 == tls->ssl->SSL_CTX_ctrl(tls->client, SSL_CTRL_SET_GROUPS_LIST, 0, (void *) (uintptr_t) group->name)) {
            there |= opal_crypt_tls_group_bit(group->group);
        }
    }
    return there;
}

opal_crypt_tls_groups_t opal_crypt_tls_groups(const opal_crypt_tls_t *tls)
{
    return tls->groups;
}

static int contexts_make(opal_crypt_tls_t *tls, opal_crypt_why_t *why)
{
    OSSL_LIB_CTX *library;
    const char *properties;
    int rc = opal_crypt_libssl_context(&library, &properties, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    tls->client = context_make(tls, library, properties, false);
    tls->server = context_make(tls, library, properties, true);
    tls->groups = NULL == tls->client ? 0 : groups_there(tls);
    tls->ssl->ERR_clear_error();
    return NULL != tls->client && NULL != tls->server
               ? OPAL_CRYPT_OK : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "tls-missing", "%s", tls->suite->name);
}

int opal_crypt_tls_create(opal_aead_cipher_t cipher, opal_crypt_tls_t **made, opal_crypt_why_t *why)
{
    const opal_crypt_tls_suite_t *suite = opal_crypt_tls_suite(cipher);
    opal_crypt_tls_t *tls;
    int rc;

    *made = NULL;
    if (NULL == suite) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "tls-missing", "a suite for keys of 192 bits");
    }
    rc = opal_crypt_libssl_keylog(why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    tls = calloc(1, sizeof(*tls));
    if (NULL == tls) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "TLS 1.3: no memory");
    }
    tls->suite = suite;
    rc = opal_crypt_libssl_load(&tls->ssl, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = contexts_make(tls, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_tls_destroy(tls);
        return rc;
    }
    *made = tls;
    return OPAL_CRYPT_OK;
}

/* After libcrypto has cleaned up, at the program's end, its objects must not be touched. */
void opal_crypt_tls_destroy(opal_crypt_tls_t *tls)
{
    if (NULL != tls && NULL != tls->ssl && !opal_crypt_library_ended()) {
        tls->ssl->SSL_CTX_free(tls->client);
        tls->ssl->SSL_CTX_free(tls->server);
    }
    free(tls);
}

SSL *opal_crypt_tls_ssl(opal_crypt_handshake_t *handshake)
{
    const opal_crypt_libssl_t *ssl = handshake->tls->ssl;
    BIO *in = ssl->BIO_new(ssl->BIO_s_mem()), *out = ssl->BIO_new(ssl->BIO_s_mem());
    SSL *made = ssl->SSL_new(handshake->listens ? handshake->tls->server : handshake->tls->client);

    if (NULL == made || NULL == in || NULL == out || 1 != ssl->SSL_set_ex_data(made, 0, handshake)
        || 1 != ssl->SSL_ctrl(made, SSL_CTRL_SET_GROUPS_LIST, 0, (void *) (uintptr_t) handshake->group->name)) {
        ssl->BIO_free(in);
        ssl->BIO_free(out);
        ssl->SSL_free(made);
        return NULL;
    }
    ssl->SSL_set_bio(made, in, out);
    handshake->in = in;
    handshake->out = out;
    if (handshake->listens) {
        ssl->SSL_set_accept_state(made);
    } else {
        ssl->SSL_set_connect_state(made);
    }
    return made;
}

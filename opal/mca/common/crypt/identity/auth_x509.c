/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Authentication by certificates from the site's CA.
 *
 *     authenticator = | chain | scheme 2 | s 2 | signature s |
 *     chain         = | count 1 | length 4 | certificate | ... |, the leaf first
 *     signature over  'ompi-crypt v1 x509' || body
 *
 * A good certificate is not enough: a CA serves many users, and the CA file may hold several CAs, each of which can
 * give our subject to anybody.  A peer may take part if its chain ends in the same authority as our own, and its
 * subject is ours or matches crypt_x509_peer.
 */
#include "auth.h"
#include "opal/mca/common/crypt/base/fork.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "x509_chain.h"
#include "x509_key.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <openssl/err.h>

#define KEY_FILE_MAX 65536

static const char title[] = "ompi-crypt v1 x509";

typedef struct x509_state {
    opal_crypt_trust_t trust;
    STACK_OF(X509) *chain;                      /* ours */
    X509 *anchor;                               /* the authority in which it ends */
    opal_crypt_secret_file_t key;               /* kept until it has signed our record */
    const char *key_path, *peer;                /* from the options */
} x509_state_t;

static bool x509_configured(const opal_crypt_options_t *options)
{
    return NULL != options->x509_cert || NULL != options->x509_key || NULL != options->x509_ca || NULL != options->x509_crl
           || NULL != options->x509_peer;
}

static void x509_close(void *opaque)
{
    x509_state_t *state = opaque;

    opal_crypt_trust_close(&state->trust);
    opal_crypt_chain_free(state->chain);
    if (!opal_crypt_library_ended()) {
        X509_free(state->anchor);
    }
    opal_crypt_secmem_free(state->key.bytes);
    free(state);
}

static int x509_read(x509_state_t *state, const opal_crypt_options_t *options,
                     opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    X509 *leaf;
    int rc;

    rc = opal_crypt_trust_open(options->x509_ca, "crypt_x509_ca", options->x509_crl, options->secret_on_netfs, &state->trust,
                               warning, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_chain_read(options->x509_cert, "crypt_x509_cert", options->secret_on_netfs, &state->chain, warning, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    leaf = sk_X509_value(state->chain, 0);
    if (0 == X509_NAME_entry_count(X509_get_subject_name(leaf))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-cert", "%s: its subject is empty",
                                 options->x509_cert);
    }
    /* Fail early, where it can be fixed: every peer would reject this certificate. */
    rc = opal_crypt_chain_verify(&state->trust, state->chain, (int64_t) time(NULL), KU_DIGITAL_SIGNATURE, options->x509_cert,
                                 OPAL_CRYPT_ERR_CONFIG, &state->anchor, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_secret_file_read(options->x509_key, "private key", 1, KEY_FILE_MAX,
                                         options->secret_on_netfs, &state->key, why);
    }
    /* A warning that others can read the key outweighs one about a certificate. */
    if (OPAL_CRYPT_OK == rc && NULL != warning && NULL != state->key.warning.topic) {
        *warning = state->key.warning;
    }
    return rc;
}

static int x509_open(const opal_crypt_options_t *options, void **opaque,
                     opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    x509_state_t *state;
    int rc;

    *opaque = NULL;
    if (NULL == options->x509_cert || NULL == options->x509_key || NULL == options->x509_ca) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-not-set", "%s",
                                 NULL == options->x509_cert ? "crypt_x509_cert"
                                 : NULL == options->x509_key ? "crypt_x509_key" : "crypt_x509_ca");
    }
    state = calloc(1, sizeof(*state));
    if (NULL == state) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    state->key_path = options->x509_key;
    state->peer = options->x509_peer;
    ERR_set_mark();
    rc = x509_read(state, options, warning, why);
    ERR_pop_to_mark();
    if (OPAL_CRYPT_OK != rc) {
        x509_close(state);
        return rc;
    }
    *opaque = state;
    return OPAL_CRYPT_OK;
}

/* The text to be signed, the caller's to free. */
static uint8_t *signed_text(const uint8_t *body, size_t body_bytes, size_t *bytes)
{
    uint8_t *text = malloc(sizeof(title) - 1 + body_bytes);

    if (NULL != text) {
        memcpy(text, title, sizeof(title) - 1);
        memcpy(text + sizeof(title) - 1, body, body_bytes);
        *bytes = sizeof(title) - 1 + body_bytes;
    }
    return text;
}

/* Sign, and verify the signature with the certificate, which reveals a key that does not match. */
static int sign_text(x509_state_t *state, const uint8_t *text, size_t text_bytes, uint8_t *out, size_t capacity,
                     size_t *bytes, opal_crypt_why_t *why)
{
    EVP_PKEY *public_key = X509_get0_pubkey(sk_X509_value(state->chain, 0)), *key = NULL;
    uint8_t signature[OPAL_CRYPT_SIGNATURE_MAX];
    size_t signature_bytes = 0, chain_bytes;
    unsigned scheme = 0;
    int rc;

    rc = opal_crypt_sign_scheme(public_key, "the certificate of this process", OPAL_CRYPT_ERR_CONFIG,
                                &scheme, why);
    opal_crypt_secret_begin();
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_private_key((const char *) state->key.bytes, state->key.count, public_key,
                                    state->key_path, &key, why);
    }
    opal_crypt_secmem_free(state->key.bytes);
    state->key.bytes = NULL;
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secret_end();
        return rc;
    }
    rc = opal_crypt_sign(key, scheme, text, text_bytes, signature, &signature_bytes);
    EVP_PKEY_free(key);
    opal_crypt_secret_end();
    if (OPAL_CRYPT_OK != rc
        || OPAL_CRYPT_OK != opal_crypt_sign_verify(public_key, scheme, text, text_bytes,
                                                   signature, signature_bytes)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-key-mismatch", "%s", state->key_path);
    }
    chain_bytes = opal_crypt_chain_pack(state->chain, out, capacity);
    if (0 == chain_bytes || chain_bytes + 4 + signature_bytes > capacity) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "record-too-long",
                                 "the certificates do not fit into a record of %d bytes",
                                 OPAL_CRYPT_RECORD_MAX);
    }
    opal_crypt_put16(out + chain_bytes, (uint16_t) scheme);
    opal_crypt_put16(out + chain_bytes + 2, (uint16_t) signature_bytes);
    memcpy(out + chain_bytes + 4, signature, signature_bytes);
    *bytes = chain_bytes + 4 + signature_bytes;
    return OPAL_CRYPT_OK;
}

static int x509_sign(void *state, const uint8_t *body, size_t body_bytes,
                     uint8_t *out, size_t capacity, size_t *bytes, opal_crypt_why_t *why)
{
    size_t text_bytes = 0;
    uint8_t *text = signed_text(body, body_bytes, &text_bytes);
    int rc;

    if (NULL == text) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    ERR_set_mark();
    rc = sign_text(state, text, text_bytes, out, capacity, bytes, why);
    ERR_pop_to_mark();
    free(text);
    return rc;
}

/* ---- verifying ---- */

static int authorize(const x509_state_t *state, X509 *leaf, X509 *anchor, opal_crypt_why_t *why)
{
    X509 *ours = sk_X509_value(state->chain, 0);
    char here[256], there[256];

    if (!opal_crypt_same_authority(state->anchor, anchor)) {
        opal_crypt_subject_text(state->anchor, here, sizeof(here));
        opal_crypt_subject_text(anchor, there, sizeof(there));
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "x509-other-ca", "authority: %s here, %s there",
                                 here, there);
    }
    if (0 == X509_NAME_cmp(X509_get_subject_name(ours), X509_get_subject_name(leaf))
        || (NULL != state->peer && opal_crypt_subject_matches(leaf, state->peer))) {
        return OPAL_CRYPT_OK;
    }
    opal_crypt_subject_text(ours, here, sizeof(here));
    opal_crypt_subject_text(leaf, there, sizeof(there));
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "x509-other-subject", "subject: %s here, %s there",
                             here, there);
}

static int check_signature(X509 *leaf, const uint8_t *tail, size_t tail_bytes,
                           const opal_crypt_claim_t *claim, opal_crypt_why_t *why)
{
    EVP_PKEY *key = X509_get0_pubkey(leaf);
    unsigned scheme = 0;
    size_t text_bytes = 0;
    uint8_t *text;
    int rc = NULL == key ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "x509-key-type", "its certificate")
           : opal_crypt_sign_scheme(key, "its certificate", OPAL_CRYPT_ERR_PEER, &scheme, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    text = signed_text(claim->body, claim->body_bytes, &text_bytes);
    if (NULL == text) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    if (tail_bytes < 4 || opal_crypt_get16(tail) != scheme
        || (size_t) opal_crypt_get16(tail + 2) != tail_bytes - 4
        || OPAL_CRYPT_OK != opal_crypt_sign_verify(key, scheme, text, text_bytes, tail + 4, tail_bytes - 4)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                               "the record was not signed by the key of its certificate");
    }
    free(text);
    return rc;
}

static int x509_verify(const void *opaque, const opal_crypt_claim_t *claim, opal_crypt_why_t *why)
{
    const x509_state_t *state = opaque;
    STACK_OF(X509) *chain;
    X509 *anchor = NULL;
    size_t used = 0;
    int rc;

    ERR_set_mark();
    chain = opal_crypt_chain_parse(claim->authenticator, claim->authenticator_bytes, &used);
    if (NULL == chain) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_PEER, "record-authenticator",
                               "its certificates cannot be read");
    } else {
        rc = check_signature(sk_X509_value(chain, 0), claim->authenticator + used,
                             claim->authenticator_bytes - used, claim, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_chain_verify(&state->trust, chain, claim->needed, KU_DIGITAL_SIGNATURE, "its certificate",
                                     OPAL_CRYPT_ERR_PEER, &anchor, why);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = authorize(state, sk_X509_value(chain, 0), anchor, why);
    }
    X509_free(anchor);
    opal_crypt_chain_free(chain);
    ERR_pop_to_mark();
    return rc;
}

const opal_crypt_auth_method_t opal_crypt_auth_x509 = {
    .auth = OPAL_CRYPT_AUTH_X509,
    .name = "x509",
    .configured = x509_configured,
    .open = x509_open,
    .close = x509_close,
    .sign = x509_sign,
    .verify = x509_verify,
};

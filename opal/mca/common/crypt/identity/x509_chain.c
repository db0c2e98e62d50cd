/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Certificates: files, records, and libcrypto's verdict with a reason that tells the user what to do.
 */
#include "x509_chain.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/trust_file.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

/* ---- files ---- */

/* A private key in the certificate's file is read by crypt/identity/x509_key.c only: libcrypto's PEM reader would
 * leave copies of it on the heap. */
static void drop_private_keys(char *pem)
{
    static const char mark[] = "PRIVATE KEY-----";

    for (char *at = pem; NULL != (at = strstr(at, mark));) {
        const char *end = strstr(at + sizeof(mark) - 1, mark);
        size_t bytes = NULL == end ? strlen(at) : (size_t) (end - at) + sizeof(mark) - 1;

        memset(at, '\n', bytes);
        at += bytes;
    }
}

/* Open a PEM file as a stream in memory. */
static int pem_open(const char *path, const char *what, const char *topic, bool allow_network,
                    opal_crypt_trust_file_t *file, BIO **stream, opal_crypt_why_t *warning,
                    opal_crypt_why_t *why)
{
    int rc = opal_crypt_trust_file_read(path, what, topic, allow_network, file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    drop_private_keys(file->bytes);
    *stream = BIO_new_mem_buf(file->bytes, (int) file->count);
    if (NULL == *stream) {
        free(file->bytes);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    if (NULL != warning && NULL == warning->topic) {
        *warning = file->warning;
    }
    return OPAL_CRYPT_OK;
}

static void pem_close(opal_crypt_trust_file_t *file, BIO *stream)
{
    BIO_free(stream);
    free(file->bytes);
}

/* Reading failed because the file has no further part. */
static bool pem_ended(void)
{
    unsigned long error = ERR_peek_last_error();

    return ERR_LIB_PEM == ERR_GET_LIB(error) && PEM_R_NO_START_LINE == ERR_GET_REASON(error);
}

/* Read all certificates of a stream; false if one is damaged. */
static bool certificates_read(BIO *stream, STACK_OF(X509) *to)
{
    const opal_crypt_library_t *library = opal_crypt_library();

    for (;;) {
        X509 *certificate = X509_new_ex(library->context, library->properties);

        if (NULL == certificate || NULL == PEM_read_bio_X509_AUX(stream, &certificate, NULL, NULL)) {
            const bool ended = NULL != certificate && pem_ended();

            X509_free(certificate);
            return ended;
        }
        if (0 == sk_X509_push(to, certificate)) {
            X509_free(certificate);
            return false;
        }
    }
}

/* ---- the site's CA ---- */

/* Returns their number; -1 if one is damaged. */
static int crls_add(BIO *stream, X509_STORE *store)
{
    const opal_crypt_library_t *library = opal_crypt_library();

    for (int count = 0;; ++count) {
        X509_CRL *crl = X509_CRL_new_ex(library->context, library->properties);
        bool got = NULL != crl && NULL != PEM_read_bio_X509_CRL(stream, &crl, NULL, NULL);
        bool good = got ? 1 == X509_STORE_add_crl(store, crl) : NULL != crl && pem_ended();

        X509_CRL_free(crl);
        if (!got || !good) {
            return good ? count : -1;
        }
    }
}

static int crls_read(const char *path, bool allow_network, X509_STORE *store, opal_crypt_why_t *warning,
                     opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    BIO *stream;
    int rc = pem_open(path, "crypt_x509_crl", "x509-crl", allow_network, &file, &stream, warning, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (crls_add(stream, store) < 1) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-crl",
                               "crypt_x509_crl %s: no revocation list can be read from it", path);
    }
    pem_close(&file, stream);
    return rc;
}

static int cas_read(const char *path, const char *what, bool allow_network, X509_STORE *store,
                    opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    STACK_OF(X509) *cas = sk_X509_new_null();
    BIO *stream;
    bool good;
    int rc = NULL == cas ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory")
           : pem_open(path, what, "x509-ca", allow_network, &file, &stream, warning, why);

    if (OPAL_CRYPT_OK != rc) {
        sk_X509_free(cas);
        return rc;
    }
    good = certificates_read(stream, cas) && sk_X509_num(cas) > 0;
    for (int i = 0; good && i < sk_X509_num(cas); ++i) {
        good = 1 == X509_STORE_add_cert(store, sk_X509_value(cas, i));
    }
    pem_close(&file, stream);
    opal_crypt_chain_free(cas);
    return good ? OPAL_CRYPT_OK
         : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-ca",
                             "%s %s: it holds no certificate, or a damaged one", what, path);
}

int opal_crypt_trust_open(const char *ca, const char *what, const char *crl, bool allow_network,
                          opal_crypt_trust_t *trust, opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    int rc = OPAL_CRYPT_OK;

    trust->crls = NULL != crl;
    trust->store = X509_STORE_new();
    if (NULL == trust->store || NULL == library) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    rc = OPAL_CRYPT_OK == rc ? cas_read(ca, what, allow_network, trust->store, warning, why) : rc;
    if (OPAL_CRYPT_OK == rc && NULL != crl) {
        rc = crls_read(crl, allow_network, trust->store, warning, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_trust_close(trust);
    }
    return rc;
}

void opal_crypt_trust_close(opal_crypt_trust_t *trust)
{
    if (!opal_crypt_library_ended()) {
        X509_STORE_free(trust->store);
    }
    trust->store = NULL;
}

/* ---- chains ---- */

void opal_crypt_chain_free(STACK_OF(X509) *chain)
{
    if (!opal_crypt_library_ended()) {
        sk_X509_pop_free(chain, X509_free);
    }
}

int opal_crypt_chain_read(const char *path, const char *what, bool allow_network, STACK_OF(X509) **chain,
                          opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    STACK_OF(X509) *made = sk_X509_new_null();
    BIO *stream;
    const char *fault;
    int rc = NULL == made ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory")
           : pem_open(path, what, "x509-cert", allow_network, &file, &stream, warning, why);

    *chain = NULL;
    if (OPAL_CRYPT_OK != rc) {
        sk_X509_free(made);
        return rc;
    }
    fault = !certificates_read(stream, made) || sk_X509_num(made) < 1 ? "it holds no certificate, or a damaged one"
          : sk_X509_num(made) > OPAL_CRYPT_CHAIN_MAX ? "too many certificates" : NULL;
    pem_close(&file, stream);
    if (NULL != fault) {
        opal_crypt_chain_free(made);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "x509-cert", "%s %s: %s", what, path, fault);
    }
    *chain = made;
    return OPAL_CRYPT_OK;
}

size_t opal_crypt_chain_pack(STACK_OF(X509) *chain, uint8_t *out, size_t capacity)
{
    size_t at = 1;

    if (capacity < 1) {
        return 0;
    }
    out[0] = (uint8_t) sk_X509_num(chain);
    for (int i = 0; i < sk_X509_num(chain); ++i) {
        int bytes = i2d_X509(sk_X509_value(chain, i), NULL);
        unsigned char *p;

        if (bytes <= 0 || (size_t) bytes + 4 > capacity - at) {
            return 0;
        }
        opal_crypt_put32(out + at, (uint32_t) bytes);
        p = out + at + 4;
        i2d_X509(sk_X509_value(chain, i), &p);
        at += 4 + (size_t) bytes;
    }
    return at;
}

STACK_OF(X509) *opal_crypt_chain_parse(const uint8_t *in, size_t bytes, size_t *used)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    STACK_OF(X509) *chain = sk_X509_new_null();
    size_t at = 1;

    if (NULL == chain || NULL == library || bytes < 1 || in[0] < 1 || in[0] > OPAL_CRYPT_CHAIN_MAX) {
        goto refused;
    }
    for (int i = 0; i < in[0]; ++i) {
        X509 *certificate;
        const unsigned char *p;
        uint32_t der_bytes;

        if (bytes - at < 4 || (der_bytes = opal_crypt_get32(in + at)) > bytes - at - 4 || 0 == der_bytes) {
            goto refused;
        }
        p = in + at + 4;
        certificate = X509_new_ex(library->context, library->properties);
        if (NULL == d2i_X509(&certificate, &p, (long) der_bytes) || p != in + at + 4 + der_bytes
            || 0 == sk_X509_push(chain, certificate)) {
            X509_free(certificate);
            goto refused;
        }
        at += 4 + der_bytes;
    }
    *used = at;
    return chain;

refused:
    opal_crypt_chain_free(chain);
    return NULL;
}

/* ---- verification ---- */

static const char *topic_of(int error)
{
    switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
        return "x509-expired";
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "x509-not-yet-valid";
    case X509_V_ERR_CERT_REVOKED:
        return "x509-revoked";
    case X509_V_ERR_UNABLE_TO_GET_CRL:
    case X509_V_ERR_UNABLE_TO_GET_CRL_ISSUER:
    case X509_V_ERR_CRL_HAS_EXPIRED:
    case X509_V_ERR_CRL_NOT_YET_VALID:
    case X509_V_ERR_CRL_SIGNATURE_FAILURE:
    case X509_V_ERR_CRL_PATH_VALIDATION_ERROR:
        return "x509-crl";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
    case X509_V_ERR_CERT_UNTRUSTED:
        return "x509-foreign-ca";
    case X509_V_ERR_EE_KEY_TOO_SMALL:
    case X509_V_ERR_CA_KEY_TOO_SMALL:
    case X509_V_ERR_CA_MD_TOO_WEAK:
        return "x509-weak-key";
    default:
        return "x509-invalid";
    }
}

/* Does a CRL of its issuer list the anchor?  Any signer of that CRL counts. */
static bool anchor_is_listed(X509_STORE_CTX *context, X509 *anchor)
{
    STACK_OF(X509_CRL) *lists = X509_STORE_CTX_get1_crls(context, X509_get_issuer_name(anchor));
    X509_REVOKED *entry;
    bool listed = false;

    for (int i = 0; i < sk_X509_CRL_num(lists); ++i) {
        listed = listed || 0 != X509_CRL_get0_by_cert(sk_X509_CRL_value(lists, i), &entry, anchor);
    }
    sk_X509_CRL_pop_free(lists, X509_CRL_free);
    return listed;
}

/* An issuing CA in the CA file is trusted as it is: no CRL of its own issuer is needed.  OpenSSL 3 demands one, but
 * has found a trust anchor by then. */
static int without_list_of_anchor(int ok, X509_STORE_CTX *context)
{
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_chain(context);
    const int depth = X509_STORE_CTX_get_error_depth(context);

    if (ok || depth <= 0 || depth != sk_X509_num(chain) - 1 || 0 != strcmp("x509-crl", topic_of(X509_STORE_CTX_get_error(context)))) {
        return ok;
    }
    if (anchor_is_listed(context, sk_X509_value(chain, depth))) {
        X509_STORE_CTX_set_error(context, X509_V_ERR_CERT_REVOKED);
        return 0;
    }
    return 1;
}

int opal_crypt_chain_verify(const opal_crypt_trust_t *trust, STACK_OF(X509) *chain, int64_t when,
                            uint32_t usage, const char *whose, int rc, X509 **anchor, opal_crypt_why_t *why)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    X509 *leaf = sk_X509_value(chain, 0);
    X509_STORE_CTX *context = X509_STORE_CTX_new_ex(library->context, library->properties);
    X509_VERIFY_PARAM *parameters;
    char subject[256];
    int error, depth;

    *anchor = NULL;
    opal_crypt_subject_text(leaf, subject, sizeof(subject));
    if (NULL == context || 1 != X509_STORE_CTX_init(context, trust->store, leaf, chain)) {
        X509_STORE_CTX_free(context);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    /* Everything in the CA file is trusted, roots or not; at least 112 bits. */
    parameters = X509_STORE_CTX_get0_param(context);
    X509_VERIFY_PARAM_set_flags(parameters, X509_V_FLAG_PARTIAL_CHAIN
                                            | (trust->crls ? X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL : 0));
    X509_STORE_CTX_set_verify_cb(context, without_list_of_anchor);
    X509_VERIFY_PARAM_set_auth_level(parameters, 2);
    X509_VERIFY_PARAM_set_time(parameters, (time_t) when);
    error = 1 == X509_verify_cert(context) ? X509_V_OK : X509_STORE_CTX_get_error(context);
    depth = X509_STORE_CTX_get_error_depth(context);
    if (X509_V_OK == error) {
        STACK_OF(X509) *built = X509_STORE_CTX_get0_chain(context);

        *anchor = sk_X509_value(built, sk_X509_num(built) - 1);
        X509_up_ref(*anchor);
    }
    X509_STORE_CTX_free(context);
    if (X509_V_OK != error) {
        return opal_crypt_refuse(why, rc, topic_of(error), "%s, %s: %s%s", whose, subject,
                                 X509_verify_cert_error_string(error), depth > 0 ? " (of its CA)" : "");
    }
    if (0 == (X509_get_key_usage(leaf) & usage)) {
        X509_free(*anchor);
        *anchor = NULL;
        return opal_crypt_refuse(why, rc, "x509-key-usage", "%s, %s", whose, subject);
    }
    return OPAL_CRYPT_OK;
}

bool opal_crypt_same_authority(X509 *a, X509 *b)
{
    return 0 == X509_NAME_cmp(X509_get_subject_name(a), X509_get_subject_name(b))
           && 1 == EVP_PKEY_eq(X509_get0_pubkey(a), X509_get0_pubkey(b));
}

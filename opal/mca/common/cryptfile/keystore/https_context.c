/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL's context for one server: only the CA that is named, every setting made that a configuration file could make,
 * and the certificate of the client, if it logs in with one.
 */
#include "https_context.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"
#include "opal/mca/common/crypt/base/trust_file.h"

#include <arpa/inet.h>
#include <stdlib.h>

enum { HTTPS_SECURITY_LEVEL = 2, HTTPS_KEY_MAX = 16384 };

/* ---- certificates ---- */

static X509 *https_next_certificate(const opal_cryptfile_https_t *https, BIO *pem)
{
    X509 *made = https->ssl->X509_new_ex(https->library, https->properties);

    if (NULL == made || NULL == https->ssl->PEM_read_bio_X509(pem, &made, NULL, NULL)) {
        https->ssl->X509_free(made);
        return NULL;
    }
    return made;
}

/* Every certificate of the file, by `use`, which returns false if it cannot be used. */
static int https_certificates(opal_cryptfile_https_t *https, const char *path, const char *what,
                              bool (*use)(opal_cryptfile_https_t *https, X509 *certificate, unsigned number), opal_crypt_why_t *why)
{
    opal_crypt_trust_file_t file;
    unsigned number = 0;
    bool good = true;
    int rc = opal_crypt_trust_file_read(path, what, "keystore-vault", https->to->allow_network, &file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    BIO *pem = https->ssl->BIO_new_mem_buf(file.bytes, (int) file.count);
    for (X509 *one; NULL != pem && good && NULL != (one = https_next_certificate(https, pem)); ++number) {
        good = use(https, one, number);
        https->ssl->X509_free(one);
    }
    https->ssl->BIO_free(pem);
    https->ssl->ERR_clear_error();
    free(file.bytes);
    return good && number > 0 ? OPAL_CRYPT_OK
                              : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "%s %.512s: no certificate in PEM that can be used", what, path);
}

static bool https_add_ca(opal_cryptfile_https_t *https, X509 *certificate, unsigned number)
{
    (void) number;
    return 1 == https->ssl->X509_STORE_add_cert(https->ssl->SSL_CTX_get_cert_store(https->context), certificate);
}

/* The client's own comes first, then those that lead to its CA. */
static bool https_add_own(opal_cryptfile_https_t *https, X509 *certificate, unsigned number)
{
    return 1 == (0 == number ? https->ssl->SSL_CTX_use_certificate(https->context, certificate)
                             : https->ssl->SSL_CTX_ctrl(https->context, SSL_CTRL_CHAIN_CERT, 1, certificate));
}

static int https_no_passphrase(char *text, int bytes, int writing, void *arg)
{
    (void) text;
    (void) bytes;
    (void) writing;
    (void) arg;
    return 0;
}

static int https_own_key(opal_cryptfile_https_t *https, opal_crypt_why_t *why)
{
    const opal_cryptfile_https_to_t *to = https->to;
    opal_crypt_secret_file_t file;
    int rc = opal_crypt_secret_file_read(to->key, "private key", 1, HTTPS_KEY_MAX, to->allow_network, &file, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    BIO *pem = https->ssl->BIO_new_mem_buf(file.bytes, (int) file.count);
    EVP_PKEY *key = NULL == pem ? NULL : https->ssl->PEM_read_bio_PrivateKey_ex(pem, NULL, https_no_passphrase, NULL, https->library, https->properties);
    const bool good = NULL != key && 1 == https->ssl->SSL_CTX_use_PrivateKey(https->context, key);
    https->ssl->EVP_PKEY_free(key);
    https->ssl->BIO_free(pem);
    https->ssl->ERR_clear_error();
    opal_crypt_secmem_free(file.bytes);
    return good ? OPAL_CRYPT_OK
                : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "keystore-vault", "private key %.512s: it cannot be read, or is not that of the certificate", to->key);
}

/* ---- the context ---- */

static bool https_rules(const opal_cryptfile_https_t *https)
{
    const opal_crypt_libssl_t *ssl = https->ssl;

    ssl->SSL_CTX_clear_options(https->context, ~(uint64_t) 0);
    ssl->SSL_CTX_set_options(https->context, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CLEANSE_PLAINTEXT);
    ssl->SSL_CTX_set_security_level(https->context, HTTPS_SECURITY_LEVEL);
    ssl->SSL_CTX_set_keylog_callback(https->context, NULL);
    ssl->SSL_CTX_set_verify(https->context, SSL_VERIFY_PEER, NULL);
    (void) ssl->SSL_CTX_ctrl(https->context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    (void) ssl->SSL_CTX_ctrl(https->context, SSL_CTRL_SET_READ_AHEAD, 0, NULL);
    return 1 == ssl->SSL_CTX_ctrl(https->context, SSL_CTRL_SET_MAX_PROTO_VERSION, 0, NULL)
           && 1 == ssl->SSL_CTX_ctrl(https->context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL);
}

static int https_make_context(opal_cryptfile_https_t *https, opal_crypt_why_t *why)
{
    int rc = opal_crypt_libssl_context(&https->library, &https->properties, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    https->context = https->ssl->SSL_CTX_new_ex(https->library, https->properties, https->ssl->TLS_client_method());
    return NULL != https->context && https_rules(https) ? OPAL_CRYPT_OK : opal_crypt_refuse(why, OPAL_CRYPT_ERR_LIBRARY, "library", "TLS: no context");
}

int opal_cryptfile_https_open(const opal_cryptfile_https_to_t *to, opal_cryptfile_https_t **made, opal_crypt_why_t *why)
{
    opal_cryptfile_https_t *https = calloc(1, sizeof(*https));
    int rc = NULL == https ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    *made = https;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    https->to = to;
    if (NULL != to->socket) {
        return OPAL_CRYPT_OK;
    }
    rc = opal_crypt_libssl_keylog(why);
    rc = OPAL_CRYPT_OK == rc ? opal_crypt_libssl_load(&https->ssl, why) : rc;
    rc = OPAL_CRYPT_OK == rc ? https_make_context(https, why) : rc;
    rc = OPAL_CRYPT_OK == rc ? https_certificates(https, to->ca, "CA", https_add_ca, why) : rc;
    if (OPAL_CRYPT_OK == rc && NULL != to->certificate) {
        rc = https_certificates(https, to->certificate, "certificate", https_add_own, why);
        rc = OPAL_CRYPT_OK == rc ? https_own_key(https, why) : rc;
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_https_close(https);
        *made = NULL;
    }
    return rc;
}

void opal_cryptfile_https_close(opal_cryptfile_https_t *https)
{
    if (NULL != https && NULL != https->ssl && !opal_crypt_library_ended()) {
        https->ssl->SSL_CTX_free(https->context);
    }
    free(https);
}

/* A certificate for an address has to name that address. */
static bool https_expect(const opal_cryptfile_https_t *https, SSL *tls)
{
    const char *host = https->to->host;
    uint8_t address[16];

    if (1 == inet_pton(AF_INET, host, address) || 1 == inet_pton(AF_INET6, host, address)) {
        return 1 == https->ssl->X509_VERIFY_PARAM_set1_ip_asc(https->ssl->SSL_get0_param(tls), host);
    }
    return 1 == https->ssl->SSL_set1_host(tls, host)
           && 1 == https->ssl->SSL_ctrl(tls, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, (void *) (uintptr_t) host);
}

SSL *opal_cryptfile_https_ssl(const opal_cryptfile_https_t *https, BIO **in, BIO **out)
{
    const opal_crypt_libssl_t *ssl = https->ssl;
    SSL *made = ssl->SSL_new(https->context);

    *in = ssl->BIO_new(ssl->BIO_s_mem());
    *out = ssl->BIO_new(ssl->BIO_s_mem());
    if (NULL == made || NULL == *in || NULL == *out || !https_expect(https, made)) {
        ssl->BIO_free(*in);
        ssl->BIO_free(*out);
        ssl->SSL_free(made);
        return NULL;
    }
    ssl->SSL_set_bio(made, *in, *out);
    ssl->SSL_set_connect_state(made);
    return made;
}

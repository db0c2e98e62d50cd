/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL's libssl, loaded on first use rather than linked: a process without a sealed transport or a key server never
 * loads it, and a program that exports functions with the same names (a statically linked BoringSSL) receives neither our calls nor
 * libssl's calls to itself.
 *
 * Call functions of libssl, and of libcrypto on its objects, only through this table.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_LIBSSL_H
#define OPAL_CRYPT_BASE_LIBSSL_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/provider.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "base.h"

#define OPAL_CRYPT_LIBSSL(F) \
    F(OPENSSL_version_major) F(CRYPTO_get_mem_functions) F(CRYPTO_malloc) \
    F(OSSL_LIB_CTX_new) F(OSSL_PROVIDER_load) \
    F(ERR_clear_error) F(X509_STORE_new) F(X509_STORE_free) \
    F(BIO_new) F(BIO_s_mem) F(BIO_read) F(BIO_write) F(BIO_ctrl_pending) F(BIO_free) \
    F(TLS_client_method) F(TLS_server_method) F(SSL_CTX_new_ex) F(SSL_CTX_free) F(SSL_CTX_ctrl) \
    F(SSL_CTX_set_ciphersuites) F(SSL_CTX_set_security_level) F(SSL_CTX_clear_options) F(SSL_CTX_set_options) \
    F(SSL_CTX_set_num_tickets) F(SSL_CTX_set_max_early_data) F(SSL_CTX_set_recv_max_early_data) \
    F(SSL_CTX_set_block_padding) F(SSL_CTX_set_keylog_callback) F(SSL_CTX_set0_CA_list) \
    F(SSL_CTX_set_verify) F(SSL_CTX_set_cert_verify_callback) F(SSL_CTX_set_cert_store) \
    F(SSL_CTX_set_psk_use_session_callback) F(SSL_CTX_set_psk_find_session_callback) \
    F(SSL_new) F(SSL_free) F(SSL_ctrl) F(SSL_set_bio) F(SSL_set_connect_state) F(SSL_set_accept_state) F(SSL_do_handshake) \
    F(SSL_get_error) F(SSL_set_ex_data) F(SSL_get_ex_data) F(SSL_get_client_random) F(SSL_session_reused) \
    F(SSL_version) F(SSL_get_current_cipher) F(SSL_CIPHER_get_protocol_id) F(SSL_CIPHER_find) F(SSL_has_pending) \
    F(SSL_SESSION_new) F(SSL_SESSION_free) F(SSL_SESSION_set1_master_key) F(SSL_SESSION_set_cipher) \
    F(SSL_SESSION_set_protocol_version) \
    F(SSL_read_ex) F(SSL_write_ex) F(SSL_get_verify_result) F(SSL_set1_host) F(SSL_get0_param) \
    F(SSL_CTX_get_cert_store) F(SSL_CTX_use_certificate) F(SSL_CTX_use_PrivateKey) F(X509_VERIFY_PARAM_set1_ip_asc) F(X509_verify_cert_error_string) \
    F(BIO_new_mem_buf) F(PEM_read_bio_X509) F(PEM_read_bio_PrivateKey_ex) F(X509_new_ex) F(X509_free) F(X509_STORE_add_cert) \
    F(EVP_PKEY_free)

#define OPAL_CRYPT_LIBSSL_MEMBER(name) __typeof__(name) *name;

typedef struct opal_crypt_libssl {
    OPAL_CRYPT_LIBSSL(OPAL_CRYPT_LIBSSL_MEMBER)
} opal_crypt_libssl_t;

#pragma GCC visibility push(default)

/* ERR_CONFIG, topic "tls-library", if it cannot be loaded.  Once loaded, it stays. */
int opal_crypt_libssl_load(const opal_crypt_libssl_t **libssl, opal_crypt_why_t *why);

/* Once it is loaded, a library context for TLS: one of our own, which a program's settings do not reach, unless FIPS has one.  It stays until the
 * process ends: OpenSSL calls it at the end of each thread that has drawn random bytes in it. */
int opal_crypt_libssl_context(OSSL_LIB_CTX **context, const char **properties, opal_crypt_why_t *why);

/* ERR_CONFIG, topic "tls-keylog", if the environment may make OpenSSL write the keys of every connection to a file. */
int opal_crypt_libssl_keylog(opal_crypt_why_t *why);

/* SSL_free, and wipe its memory as far as malloc returns it. */
void opal_crypt_libssl_free(const opal_crypt_libssl_t *libssl, SSL *ssl);

#pragma GCC visibility pop

#endif

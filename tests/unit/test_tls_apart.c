/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program that exports functions with the names of libssl's, as one does that has BoringSSL linked in: not one
 * of them is called, neither by us nor by libssl itself.
 */
#include <dlfcn.h>

#include "tls_ends.h"

static unsigned called;

/* Those that we call, and some that libssl calls itself. */
#define FAKE(name) __attribute__((visibility("default"))) void name(void); void name(void) { ++called; fprintf(stderr, "the program's %s was called\n", #name); abort(); }
FAKE(SSL_CTX_new_ex) FAKE(SSL_CTX_new) FAKE(SSL_CTX_free) FAKE(SSL_CTX_ctrl) FAKE(SSL_CTX_set_options) FAKE(SSL_new) FAKE(SSL_free)
FAKE(SSL_do_handshake) FAKE(SSL_ctrl) FAKE(SSL_clear) FAKE(SSL_get_error) FAKE(SSL_set_bio) FAKE(SSL_set0_rbio) FAKE(SSL_set0_wbio)
FAKE(SSL_SESSION_new) FAKE(SSL_SESSION_free) FAKE(SSL_SESSION_up_ref) FAKE(SSL_CIPHER_find) FAKE(SSL_CIPHER_get_id)
FAKE(SSL_CIPHER_get_handshake_digest) FAKE(SSL_get_ciphers) FAKE(SSL_CTX_set_ciphersuites) FAKE(SSL_get_psk_identity)
FAKE(SSL_CTX_up_ref) FAKE(SSL_in_init) FAKE(SSL_in_before) FAKE(SSL_get_state) FAKE(SSL_session_reused) FAKE(SSL_version)
FAKE(SSL_get_options) FAKE(SSL_CTX_get_options) FAKE(SSL_use_certificate) FAKE(TLS_client_method) FAKE(TLS_server_method) FAKE(TLS_method)
FAKE(SSL_CTX_set_security_level) FAKE(SSL_security) FAKE(SSL_get_security_level) FAKE(SSL_get_client_random) FAKE(SSL_want)

int main(void)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client, *server;
    opal_crypt_tls_t *tls;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return unit_skip("libssl cannot be loaded apart here; the run time of sanitizers forbids RTLD_DEEPBIND");
#endif
    UNIT_GROUP("names of libssl in the program");
    UNIT_REQUIRE((void *) (uintptr_t) SSL_new == dlsym(RTLD_DEFAULT, "SSL_new"));
    tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);
    UNIT_REQUIRE(NULL != tls);
    client = tls_connect(tls, &job.psk);
    server = tls_accept(tls, &job);
    UNIT_CHECK(tls_shake(client, server, 8192));
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    opal_crypt_tls_destroy(tls);
    UNIT_CHECK(0 == called);
    return unit_done();
}

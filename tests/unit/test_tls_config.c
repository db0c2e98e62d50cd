/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A configuration file of OpenSSL that changes every setting: OpenSSL's own contexts follow it, and our
 * connections are as without it, in the lengths of all that they send.
 */
#include "tests/unit/crypt_fixture.h"
#include "tls_openssl.h"

#include <sys/mman.h>
#include <unistd.h>

static const char text[] =
    "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\nsystem_default = odd\n[odd]\n"
    "MinProtocol = TLSv1.2\nMaxProtocol = TLSv1.2\nCipherString = ALL@SECLEVEL=5\n"
    "Ciphersuites = TLS_CHACHA20_POLY1305_SHA256\nGroups = P-521\nSignatureAlgorithms = RSA+SHA512\n"
    "ClientSignatureAlgorithms = RSA+SHA512\n"
    "Options = ServerPreference,PrioritizeChaCha,NoResumptionOnRenegotiation,MiddleboxCompat,-SessionTicket\n"
    "NumTickets = 5\nRecordPadding = 512\nVerifyMode = Request\n";

/* In shared memory: of a child that has no such file. */
static size_t *expected;

static void lengths(const char *what, bool control)
{
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client, *server;
    flight_t flight[3];

    UNIT_GROUP("%s", what);
    UNIT_REQUIRE(NULL != tls);
    client = tls_connect(tls, &job.psk);
    server = tls_accept(tls, &job);
    flight[0] = tls_output(client);
    UNIT_CHECK(0 == tls_input(server, &flight[0], 8192));
    flight[1] = tls_output(server);
    UNIT_CHECK(0 == tls_input(client, &flight[1], 8192));
    flight[2] = tls_output(client);
    UNIT_CHECK(0 == tls_input(server, &flight[2], 8192));
    UNIT_CHECK(TLS_STATE(client, DONE) && TLS_STATE(server, DONE));
    for (int i = 0; i < 3; ++i) {
        printf("  flight of %zu bytes\n", flight[i].bytes);
        expected[i] = control ? flight[i].bytes : expected[i];
        UNIT_CHECK(expected[i] > 0 && expected[i] == flight[i].bytes);
    }
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    opal_crypt_tls_destroy(tls);
}

/* What OpenSSL from 3.5 on may write keys to. */
static void keylog(void)
{
    const bool may = OpenSSL_version_num() >= 0x30500000L;
    opal_crypt_why_t why = {0};
    opal_crypt_tls_t *tls = NULL;
    const char *path = fixture_path("keys");

    UNIT_GROUP("with SSLKEYLOGFILE, before 3.5 and from 3.5 on");
    setenv("SSLKEYLOGFILE", path, 1);
    UNIT_CHECK((may ? OPAL_CRYPT_ERR_CONFIG : OPAL_CRYPT_OK) == opal_crypt_tls_create(OPAL_AEAD_AES_128_GCM, &tls, &why));
    UNIT_CHECK(may == (NULL == tls) && (!may || 0 == strcmp("tls-keylog", why.topic)) && 0 != access(path, F_OK));
    unsetenv("SSLKEYLOGFILE");
    opal_crypt_tls_destroy(tls);
}

int main(void)
{
    SSL_CTX *plain;
    int how = -1;

    fixture_begin();
    expected = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    UNIT_REQUIRE(MAP_FAILED != expected);
    if (0 == fork()) {
        lengths("without a configuration", true);
        _exit(unit_done());
    }
    UNIT_CHECK(wait(&how) > 0 && 0 == how);
    /* Before libcrypto's first use: it reads the file once. */
    setenv("OPENSSL_CONF", fixture_file("openssl.cnf", text, 0644), 1);
    setenv("OPENSSL_MODULES", fixture_directory, 1);
    plain = SSL_CTX_new(TLS_client_method());
    UNIT_GROUP("the file is read");
    UNIT_CHECK(NULL == plain || TLS1_2_VERSION == SSL_CTX_get_max_proto_version(plain));
    UNIT_CHECK(NULL == plain || 5 == SSL_CTX_get_security_level(plain));
    SSL_CTX_free(plain);
    lengths("with an odd configuration", false);
    keylog();
    return unit_done();
}

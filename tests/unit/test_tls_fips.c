/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Under crypt_fips=1: handshakes by the FIPS provider where there is one (Debian 13: openssl-provider-fips), with
 * its suites and P-256, and none with a suite that it lacks.
 */
#include "tests/unit/crypt_fixture.h"
#include "tls_ends.h"

#include <glob.h>

#include "opal/mca/common/crypt/base/library.h"

static const char text[] =
    "openssl_conf = init\n.include %s\n[init]\nproviders = providers\n[providers]\nfips = fips_sect\nbase = others\n"
    "default = others\n[others]\nactivate = 1\n";

/* The configuration that the module needs; false where there is no module. */
static bool configure(void)
{
    char command[1400], contents[1400];
    glob_t found;

    if (0 != glob("/usr/lib*/*/ossl-modules/fips.so", 0, NULL, &found)) {
        return false;
    }
    snprintf(command, sizeof(command), "openssl fipsinstall -quiet -module '%s' -out '%s'", found.gl_pathv[0],
             fixture_path("fipsmodule.cnf"));
    globfree(&found);
    UNIT_REQUIRE(0 == system(command));
    snprintf(contents, sizeof(contents), text, fixture_path("fipsmodule.cnf"));
    setenv("OPENSSL_CONF", fixture_file("openssl.cnf", contents, 0644), 1);
    return true;
}

static void good(opal_aead_cipher_t cipher)
{
    opal_crypt_tls_t *tls = tls_of(cipher, OPAL_CRYPT_TLS_P256);
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client, *server;

    UNIT_GROUP("%s, P-256", opal_crypt_tls_suite(cipher)->name);
    UNIT_REQUIRE(NULL != tls);
    client = tls_connect(tls, &job.psk);
    server = tls_accept(tls, &job);
    UNIT_CHECK(tls_shake(client, server, 8192));
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    opal_crypt_tls_destroy(tls);
}

int main(void)
{
    opal_crypt_why_t why = {.topic = "none"};

    fixture_begin();
    if (!configure()) {
        return unit_skip("there is no FIPS provider (Debian 13: openssl-provider-fips)");
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_library_open(true, &why));
    good(OPAL_AEAD_AES_128_GCM);
    good(OPAL_AEAD_AES_256_GCM);
    UNIT_GROUP("what the module lacks");
    opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_CHACHA20_POLY1305, OPAL_CRYPT_TLS_P256);
    if (NULL != tls) {
        /* the suite may be set, but never used */
        opal_crypt_tls_psk_t psk = tls_psk(7);
        opal_crypt_tls_identity_t identity = tls_identity();
        opal_crypt_handshake_t *client = NULL;
        UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_handshake_connect(tls, OPAL_CRYPT_TLS_P256, &identity, &psk, &client) && NULL == client);
    }
    opal_crypt_tls_destroy(tls);
    return unit_done();
}

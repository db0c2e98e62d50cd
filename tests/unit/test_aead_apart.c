/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * BoringSSL and OpenSSL in one process: each computes correctly before, while
 * and after the other does, neither sees the other's errors, and none of
 * BoringSSL's functions can be found by others.
 */
#include "tests/unit/aead_providers.h"

#if !defined(OMPI_CRYPT_HAVE_AEAD_BORINGSSL) || !defined(OMPI_CRYPT_HAVE_AEAD_OPENSSL)

int main(void)
{
    return unit_skip("the providers boringssl and openssl are not both built");
}

#else

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/sha.h>

#define ROUNDS 300

static atomic_int wrong;
static pthread_barrier_t start;

/* OpenSSL by its own interface, as an application uses it. */
static int openssl_right(void)
{
    static const uint8_t wanted[8] = { 0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea };     /* FIPS 180-2, B.1 */
    uint8_t digest[SHA256_DIGEST_LENGTH], shared[2][32];
    size_t bytes = sizeof(shared[0]);
    EVP_PKEY *keys[2] = { EVP_PKEY_Q_keygen(NULL, NULL, "X25519"), EVP_PKEY_Q_keygen(NULL, NULL, "X25519") };
    int good = 1 == EVP_Digest("abc", 3, digest, NULL, EVP_sha256(), NULL)
            && 0 == memcmp(digest, wanted, sizeof(wanted));

    for (int i = 0; i < 2; ++i) {
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new(keys[i], NULL);

        good = good && 1 == EVP_PKEY_derive_init(ctx) && 1 == EVP_PKEY_derive_set_peer(ctx, keys[!i])
            && 1 == EVP_PKEY_derive(ctx, shared[i], &bytes);
        EVP_PKEY_CTX_free(ctx);
    }
    EVP_PKEY_free(keys[0]);
    EVP_PKEY_free(keys[1]);
    return good && 0 == memcmp(shared[0], shared[1], sizeof(shared[0]));
}

/* A provider by its self-test, which includes a forgery. */
static int provider_right(const opal_aead_module_t *module)
{
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        if (OPAL_AEAD_OK != opal_aead_base_selftest(module, (opal_aead_cipher_t) c)) {
            return 0;
        }
    }
    return 1;
}

static void *use_openssl(void *unused)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; ++i) {
        if (!openssl_right() || !provider_right(&opal_aead_openssl_module)) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    return unused;
}

static void *use_boringssl(void *unused)
{
    pthread_barrier_wait(&start);
    for (int i = 0; i < ROUNDS; ++i) {
        if (!provider_right(&opal_aead_boringssl_module)) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    return unused;
}

static void test_before(void)
{
    UNIT_GROUP("OpenSSL before BoringSSL is loaded");
    UNIT_CHECK(openssl_right());
    UNIT_CHECK(OPAL_AEAD_OK == opal_aead_openssl_init() && provider_right(&opal_aead_openssl_module));
    UNIT_CHECK(NULL == dlsym(RTLD_DEFAULT, "EVP_AEAD_CTX_init"));
}

static void test_errors(void)
{
    UNIT_GROUP("errors of one are not the other's");
    ERR_clear_error();
    UNIT_CHECK(provider_right(&opal_aead_boringssl_module));    /* it refused forgeries */
    UNIT_CHECK(0 == ERR_peek_error());
    ERR_raise(ERR_LIB_USER, 42);
    UNIT_CHECK(provider_right(&opal_aead_boringssl_module));
    UNIT_CHECK(42 == ERR_GET_REASON(ERR_peek_error()));
    ERR_clear_error();
}

static void test_symbols(void)
{
    Dl_info info;

    UNIT_GROUP("BoringSSL's functions are found by nobody else");
    UNIT_CHECK(NULL == dlsym(RTLD_DEFAULT, "EVP_AEAD_CTX_init"));
    UNIT_CHECK(0 != dladdr(dlsym(RTLD_DEFAULT, "EVP_DigestInit_ex"), &info)
               && NULL != strstr(info.dli_fname, "libcrypto.so.3"));
}

static void test_together(void)
{
    pthread_t threads[4];

    UNIT_GROUP("both at once, by two threads each");
    pthread_barrier_init(&start, NULL, 4);
    for (int i = 0; i < 4; ++i) {
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, i % 2 ? use_openssl : use_boringssl, NULL));
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start);
    UNIT_CHECK(0 == atomic_load(&wrong));
}

int main(void)
{
    test_before();
    if (OPAL_AEAD_OK != opal_aead_boringssl_init()) {
        return unit_skip("BoringSSL cannot be loaded apart here; the run time of sanitizers forbids RTLD_DEEPBIND");
    }
    UNIT_CHECK(provider_right(&opal_aead_boringssl_module) && openssl_right());
    test_errors();
    test_symbols();
    test_together();
    UNIT_GROUP("OpenSSL after BoringSSL");
    opal_aead_boringssl_fini();
    UNIT_CHECK(openssl_right() && provider_right(&opal_aead_openssl_module));
    opal_aead_openssl_fini();
    UNIT_CHECK(openssl_right());
    return unit_done();
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * X25519 against RFC 7748, P-256, and the keys that must be refused.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

#include "opal/mca/common/crypt/identity/kex.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <openssl/err.h>

/* out = X25519(scalar, point) */
static int multiply(const uint8_t scalar[32], const uint8_t point[32], uint8_t out[32])
{
    opal_crypt_keypair_t pair;
    int rc = opal_crypt_keypair_from_private(scalar, &pair);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_kex_derive(&pair, point, out);
        opal_crypt_keypair_wipe(&pair);
    }
    return rc;
}

static void rfc7748(const char *scalar_hex, const char *point_hex, const char *result_hex)
{
    uint8_t scalar[32], point[32], want[32], got[32];

    vector_hex(scalar_hex, scalar, 32);
    vector_hex(point_hex, point, 32);
    vector_hex(result_hex, want, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == multiply(scalar, point, got));
    UNIT_EQUAL_BYTES(want, got, 32);
}

static void test_x25519(void)
{
    uint8_t k[32] = { 9 }, u[32] = { 9 }, next[32], want[32];
    opal_crypt_keypair_t alice, bob;

    UNIT_GROUP("RFC 7748 5.2: scalar multiplication");
    rfc7748("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
    rfc7748("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957");

    UNIT_GROUP("RFC 7748 5.2: 1 and 1,000 iterations");
    for (int i = 1; i <= 1000; ++i) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == multiply(k, u, next));
        memcpy(u, k, 32);
        memcpy(k, next, 32);
        if (1 == i) {
            vector_hex("422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079", want, 32);
            UNIT_EQUAL_BYTES(want, k, 32);
        }
    }
    vector_hex("684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51", want, 32);
    UNIT_EQUAL_BYTES(want, k, 32);

    UNIT_GROUP("RFC 7748 6.1: Diffie-Hellman");
    vector_hex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a", k, 32);
    vector_hex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb", u, 32);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_keypair_from_private(k, &alice));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_keypair_from_private(u, &bob));
    vector_hex("8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a", want, 32);
    UNIT_EQUAL_BYTES(want, alice.public, 32);
    vector_hex("de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f", want, 32);
    UNIT_EQUAL_BYTES(want, bob.public, 32);
    vector_hex("4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742", want, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kex_derive(&alice, bob.public, next));
    UNIT_EQUAL_BYTES(want, next, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kex_derive(&bob, alice.public, next));
    UNIT_EQUAL_BYTES(want, next, 32);
    opal_crypt_keypair_wipe(&alice);
    opal_crypt_keypair_wipe(&bob);
}

static void test_zero_secrets(void)
{
    /* The points of small order, RFC 7748 section 6.1 and its discussions. */
    static const char *const points[] = {
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    };
    opal_crypt_keypair_t pair;
    uint8_t point[32], secret[32], zeros[32] = { 0 };

    UNIT_GROUP("a secret of zeros is refused, and wiped");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_keypair_make(OPAL_CRYPT_KEX_X25519, &pair));
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); ++i) {
        vector_hex(points[i], point, 32);
        memset(secret, 1, sizeof(secret));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_kex_derive(&pair, point, secret));
        UNIT_EQUAL_BYTES(zeros, secret, 32);
    }
    UNIT_CHECK(0 == ERR_peek_error());
    opal_crypt_keypair_wipe(&pair);
}

static void reversed(const char *hex, uint8_t out[32])
{
    uint8_t bytes[32];

    vector_hex(hex, bytes, 32);
    for (int i = 0; i < 32; ++i) {
        out[i] = bytes[31 - i];
    }
}

static void test_p256(void)
{
    opal_crypt_keypair_t alice, bob;
    uint8_t first[32], second[32], point[65];

    UNIT_GROUP("P-256: RFC 5903 8.1");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_keypair_make(OPAL_CRYPT_KEX_P256, &alice));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_keypair_make(OPAL_CRYPT_KEX_P256, &bob));
    UNIT_CHECK(0 != memcmp(alice.private, bob.private, 32) && 0 != memcmp(alice.public, bob.public, 65));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kex_derive(&alice, bob.public, first));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kex_derive(&bob, alice.public, second));
    UNIT_EQUAL_BYTES(first, second, 32);

    reversed("c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433", alice.private);
    vector_hex("04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180"
               "5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3", alice.public, 65);
    vector_hex("04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63"
               "56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab", point, 65);
    vector_hex("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de", second, 32);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kex_derive(&alice, point, first));
    UNIT_EQUAL_BYTES(first, second, 32);

    UNIT_GROUP("P-256: what is no uncompressed point of the curve is refused");
    point[64] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_kex_derive(&alice, point, first));
    point[64] ^= 1;
    for (int form = 0; form < 256; ++form) {
        point[0] = (uint8_t) form;
        UNIT_CHECK((0x04 == form ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH)
                   == opal_crypt_kex_derive(&alice, point, first));
    }
    memset(point, 0, sizeof(point));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_kex_derive(&alice, point, first));
    UNIT_CHECK(0 == ERR_peek_error());
    opal_crypt_keypair_wipe(&alice);
    opal_crypt_keypair_wipe(&bob);
    UNIT_CHECK(NULL == alice.private);
}

int main(void)
{
    test_x25519();
    test_zero_secrets();
    test_p256();
    return unit_done();
}

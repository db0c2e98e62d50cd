/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HKDF against RFC 5869, HMAC against RFC 4231, and the list of labels.
 */
#include "tests/unit/unit.h"
#include "tests/unit/vectors.h"

#include "opal/mca/common/crypt/base/kdf.h"

static void rfc5869(const char *name, const char *ikm, const char *salt, const char *info,
                    const char *prk, const char *okm)
{
    uint8_t key[128], salted[128], context[128], want[128], got_prk[32], got[128];
    size_t key_bytes = vector_hex(ikm, key, sizeof(key));
    size_t salt_bytes = vector_hex(salt, salted, sizeof(salted));
    size_t info_bytes = vector_hex(info, context, sizeof(context));
    size_t bytes;

    UNIT_GROUP("RFC 5869 %s", name);
    UNIT_CHECK(0 == opal_crypt_hkdf_extract(salted, salt_bytes, key, key_bytes, got_prk));
    vector_hex(prk, want, sizeof(want));
    UNIT_EQUAL_BYTES(want, got_prk, 32);
    bytes = vector_hex(okm, want, sizeof(want));
    UNIT_CHECK(0 == opal_crypt_hkdf_expand(got_prk, context, info_bytes, got, bytes));
    UNIT_EQUAL_BYTES(want, got, bytes);
}

static void test_rfc5869(void)
{
    rfc5869("A.1", "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "000102030405060708090a0b0c",
            "f0f1f2f3f4f5f6f7f8f9",
            "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5",
            "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865");
    rfc5869("A.2",
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f"
            "303132333435363738393a3b3c3d3e3f404142434445464748494a4b4c4d4e4f",
            "606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f808182838485868788898a8b8c8d8e8f"
            "909192939495969798999a9b9c9d9e9fa0a1a2a3a4a5a6a7a8a9aaabacadaeaf",
            "b0b1b2b3b4b5b6b7b8b9babbbcbdbebfc0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf"
            "e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff",
            "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244",
            "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09"
            "da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87");
    rfc5869("A.3", "0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b0b", "", "",
            "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04",
            "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8");
}

static void test_hmac(void)
{
    static const char text[] = "This is a test using a larger than block-size key and a larger than "
                               "block-size data.";
    uint8_t key[32] = { 0 }, mac[32], whole[32], want[32];
    opal_crypt_input_t pieces[] = { { text, 10 }, { text + 10, 0 }, { text + 10, sizeof(text) - 11 } };
    opal_crypt_input_t one = { text, sizeof(text) - 1 }, hi = { "Hi There", 8 };

    UNIT_GROUP("HMAC-SHA256: RFC 4231 case 1, and pieces are joined");
    memset(key, 0x0b, 20);      /* a key shorter than a block is padded with zeros */
    vector_hex("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7", want, sizeof(want));
    UNIT_CHECK(0 == opal_crypt_hmac(key, &hi, 1, mac));
    UNIT_EQUAL_BYTES(want, mac, 32);
    UNIT_CHECK(0 == opal_crypt_hmac(key, &one, 1, whole) && 0 == opal_crypt_hmac(key, pieces, 3, mac));
    UNIT_EQUAL_BYTES(whole, mac, 32);

    UNIT_GROUP("SHA-256: FIPS 180 'abc', in pieces too");
    vector_hex("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", want, sizeof(want));
    pieces[0] = (opal_crypt_input_t) { "a", 1 };
    pieces[1] = (opal_crypt_input_t) { "", 0 };
    pieces[2] = (opal_crypt_input_t) { "bc", 2 };
    UNIT_CHECK(0 == opal_crypt_sha256(pieces, 3, mac));
    UNIT_EQUAL_BYTES(want, mac, 32);
}

static void test_labels(void)
{
    UNIT_GROUP("every use has a label of its own");
    for (int a = 0; a < OPAL_CRYPT_LABELS; ++a) {
        const char *text = opal_crypt_label_text((opal_crypt_label_t) a);

        UNIT_REQUIRE(NULL != text && strlen(text) < 256);
        for (int b = a + 1; b < OPAL_CRYPT_LABELS; ++b) {
            const char *other = opal_crypt_label_text((opal_crypt_label_t) b);

            UNIT_REQUIRE(NULL != other);
            UNIT_CHECK(0 != strcmp(text, other));
        }
    }
    UNIT_CHECK(NULL == opal_crypt_label_text(OPAL_CRYPT_LABELS));
}

static void test_expand(void)
{
    static const char label[] = "ompi-crypt v1 epoch key";
    uint8_t secret[32], info[64], want[48], got[48], context[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    uint8_t big[OPAL_CRYPT_KDF_CONTEXT_MAX + 1] = { 0 };

    UNIT_GROUP("info is | bytes 2 | label length 1 | label | context |");
    memset(secret, 0x5e, sizeof(secret));
    info[0] = 0;
    info[1] = 48;
    info[2] = sizeof(label) - 1;
    memcpy(info + 3, label, sizeof(label) - 1);
    memcpy(info + 3 + sizeof(label) - 1, context, 8);
    UNIT_CHECK(0 == opal_crypt_hkdf_expand(secret, info, 3 + sizeof(label) - 1 + 8, want, 48));
    UNIT_CHECK(0 == opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABEL_EPOCH_KEY, context, 8, got, 48));
    UNIT_EQUAL_BYTES(want, got, 48);

    UNIT_GROUP("a shorter key is not the beginning of a longer one");
    UNIT_CHECK(0 == opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABEL_EPOCH_KEY, context, 8, got, 16));
    UNIT_CHECK(0 != memcmp(want, got, 16));

    UNIT_GROUP("what is out of bounds is refused, and leaves zeros");
    memset(got, 1, sizeof(got));
    memset(want, 0, sizeof(want));
    UNIT_CHECK(0 != opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABELS, NULL, 0, got, 48));
    UNIT_EQUAL_BYTES(want, got, 48);
    UNIT_CHECK(0 != opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABEL_CHOP, NULL, 0, got, 0));
    memset(got, 1, sizeof(got));
    UNIT_CHECK(0 != opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABEL_CHOP, big, sizeof(big), got, 48));
    UNIT_EQUAL_BYTES(want, got, 48);
    UNIT_CHECK(0 == opal_crypt_kdf_expand(secret, OPAL_CRYPT_LABEL_CHOP, big, sizeof(big) - 1, got, 48));
}

int main(void)
{
    test_rfc5869();
    test_hmac();
    test_labels();
    test_expand();
    return unit_done();
}

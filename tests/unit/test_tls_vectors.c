/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * tests/vectors/transport-v1.txt, which another implementation wrote, and which has keys and a record of RFC 8448:
 * we derive and seal the same bytes, and open them.
 */
#include "tls_ends.h"
#include "vectors.h"

#include "opal/mca/common/crypt/tls/records_object.h"

static uint64_t number_of(const vector_block_t *vector, const char *name)
{
    return strtoull(vector_text(vector, name), NULL, 10);
}

static opal_aead_cipher_t cipher_of(const vector_block_t *vector)
{
    const char *name = vector_text(vector, "cipher");

    return 0 == strcmp(name, "AES-128-GCM") ? OPAL_AEAD_AES_128_GCM
         : 0 == strcmp(name, "AES-256-GCM") ? OPAL_AEAD_AES_256_GCM : OPAL_AEAD_CHACHA20_POLY1305;
}

static void plaintext(unsigned number, uint8_t *plain, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        plain[i] = (uint8_t) (i * 31 + i / 251 + number + 1);
    }
}

static void identity(const vector_block_t *vector)
{
    opal_crypt_tls_identity_t made = {.link = (uint16_t) number_of(vector, "link"),
                                      .attempt = (uint32_t) number_of(vector, "attempt")};
    uint8_t expected[OPAL_CRYPT_TLS_IDENTITY_BYTES], packed[OPAL_CRYPT_TLS_IDENTITY_BYTES];
    const char *nspace = vector_text(vector, "nspace");

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make(nspace, (uint32_t) number_of(vector, "claimed_rank"),
                                                         (uint32_t) number_of(vector, "claimed_instance"), &made.claimed));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_name_make(nspace, (uint32_t) number_of(vector, "wanted_rank"),
                                                         (uint32_t) number_of(vector, "wanted_instance"), &made.wanted));
    opal_crypt_tls_identity_pack(&made, packed);
    UNIT_REQUIRE(sizeof(expected) == vector_bytes(vector, "identity", expected, sizeof(expected)));
    UNIT_EQUAL_BYTES(packed, expected, sizeof(packed));
}

static opal_crypt_tls_groups_t set_of(const vector_block_t *vector, const char *name)
{
    uint8_t numbers[16];
    const size_t bytes = vector_bytes(vector, name, numbers, sizeof(numbers));
    opal_crypt_tls_groups_t set = 0;

    for (size_t at = 0; at < bytes; at += 2) {
        set |= opal_crypt_tls_group_bit(opal_crypt_get16(numbers + at));
    }
    return set;
}

static void groups(const vector_block_t *vector)
{
    opal_crypt_tls_groups_t both = set_of(vector, "ours") & set_of(vector, "theirs");
    const opal_crypt_tls_group_of_t *group = opal_crypt_tls_group_take(&both);

    UNIT_CHECK((NULL == group ? 0 : opal_crypt_tls_group_bit(group->group)) == set_of(vector, "group"));
}

static void psk(const vector_block_t *vector)
{
    uint8_t prk[32], context[65 + 65 + 32], expected[48], made[48];
    size_t bytes = 0, want;

    UNIT_REQUIRE(32 == vector_bytes(vector, "prk", prk, sizeof(prk)));
    bytes += vector_bytes(vector, "pk_client", context, 65);
    bytes += vector_bytes(vector, "pk_server", context + bytes, 65);
    bytes += vector_bytes(vector, "th", context + bytes, 32);
    want = vector_bytes(vector, "psk", expected, sizeof(expected));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_TRANSPORT, context, bytes, made, want));
    UNIT_EQUAL_BYTES(made, expected, want);
}

static void keys(const vector_block_t *vector)
{
    const opal_aead_cipher_t cipher = cipher_of(vector);
    const opal_crypt_tls_suite_t *suite = opal_crypt_tls_suite(cipher);
    uint8_t secret[48], expected[48], made[48];

    UNIT_REQUIRE(suite->hash_bytes == vector_bytes(vector, "secret", secret, sizeof(secret)));
    UNIT_CHECK(opal_aead_raw_key_bytes(cipher) == vector_bytes(vector, "key", expected, sizeof(expected)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_expand(suite->sha384, secret, "key", made, opal_aead_raw_key_bytes(cipher)));
    UNIT_EQUAL_BYTES(made, expected, opal_aead_raw_key_bytes(cipher));
    UNIT_CHECK(12 == vector_bytes(vector, "iv", expected, sizeof(expected)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_expand(suite->sha384, secret, "iv", made, 12));
    UNIT_EQUAL_BYTES(made, expected, 12);
    if (0 == strcmp("keys", vector_text(vector, "kind"))) {
        UNIT_CHECK(suite->hash_bytes == vector_bytes(vector, "next", expected, sizeof(expected)));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_expand(suite->sha384, secret, "traffic upd", made, suite->hash_bytes));
        UNIT_EQUAL_BYTES(made, expected, suite->hash_bytes);
    }
}

/* Both ends of the vector's one direction. */
static opal_crypt_tls_records_t *records_of(const vector_block_t *vector, uint64_t renew)
{
    opal_crypt_tls_records_t *records = NULL;
    uint8_t secret[48] = {0};

    (void) vector_bytes(vector, "secret", secret, sizeof(secret));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, cipher_of(vector), renew,
                                                                secret, secret, &records));
    return records;
}

/* What one seal wrote, against the vector, and opened. */
static void compare(const vector_block_t *vector, opal_crypt_tls_records_t *to, uint8_t *wire, size_t wire_bytes,
                    const uint8_t *plain, size_t bytes)
{
    const opal_crypt_input_t all = {wire, wire_bytes};
    uint8_t expected[1000], hash[32], expected_hash[32], *back = calloc(1, bytes + 1);
    opal_crypt_tls_record_kind_t kind = OPAL_CRYPT_TLS_RECORD_CLOSED;
    size_t one, got = 0, plain_bytes;

    UNIT_REQUIRE(32 == vector_bytes(vector, "sha256", expected_hash, 32));
    UNIT_CHECK(wire_bytes == number_of(vector, "bytes") && OPAL_CRYPT_OK == opal_crypt_sha256(&all, 1, hash));
    UNIT_EQUAL_BYTES(hash, expected_hash, 32);
    if (wire_bytes < 1000) {
        UNIT_CHECK(wire_bytes == vector_bytes(vector, "records", expected, sizeof(expected)));
        UNIT_EQUAL_BYTES(wire, expected, wire_bytes);
    }
    for (size_t at = 0; at < wire_bytes; at += one) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_next(to, wire + at, wire_bytes - at, &one) && one > 0);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open(to, wire + at, one, back + got, bytes - got, &plain_bytes, &kind));
        got += plain_bytes;
    }
    UNIT_CHECK(got == bytes && 0 == memcmp(back, plain, bytes));
    free(back);
}

/* The records of a block follow those of the blocks before it: all sizes are sealed again, up to its own. */
static void records(const vector_block_t *vector, bool close)
{
    static uint8_t plain[20000], wire[40000];
    const unsigned number = close ? UINT32_MAX : (unsigned) number_of(vector, "number");
    opal_crypt_tls_records_t *from = records_of(vector, number_of(vector, "renew")), *to = records_of(vector, number_of(vector, "renew"));
    const char *sizes = vector_text(vector, "sizes");
    uint8_t expected[OPAL_CRYPT_TLS_RECORD_CLOSE];
    char *next;

    for (unsigned n = 0; n <= number && 0 != *sizes; ++n, sizes = next) {
        const size_t bytes = strtoul(sizes, &next, 10);
        const struct iovec piece = {plain, bytes};
        opal_crypt_tls_record_kind_t kind;
        size_t wire_bytes = 0, one, plain_bytes;

        plaintext(n, plain, bytes);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(from, &piece, 1, wire, sizeof(wire), &wire_bytes));
        if (n == number) {
            compare(vector, to, wire, wire_bytes, plain, bytes);
            break;
        }
        for (size_t at = 0; at < wire_bytes; at += one) {
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_next(to, wire + at, wire_bytes - at, &one) && one > 0);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open(to, wire + at, one, plain, sizeof(plain), &plain_bytes, &kind));
        }
    }
    if (close) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_close(from, wire));
        UNIT_CHECK(sizeof(expected) == vector_bytes(vector, "records", expected, sizeof(expected)));
        UNIT_EQUAL_BYTES(wire, expected, sizeof(expected));
    }
    opal_crypt_tls_records_destroy(from);
    opal_crypt_tls_records_destroy(to);
}

static void rfc8448(const vector_block_t *vector)
{
    opal_crypt_tls_records_t *from = records_of(vector, OPAL_CRYPT_TLS_RECORDS_RENEW);
    uint8_t plain[50], expected[72], wire[200];
    const struct iovec piece = {plain, sizeof(plain)};
    size_t wire_bytes;

    keys(vector);
    UNIT_CHECK(50 == vector_bytes(vector, "plain", plain, sizeof(plain)));
    UNIT_CHECK(72 == vector_bytes(vector, "records", expected, sizeof(expected)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(from, &piece, 1, wire, sizeof(wire), &wire_bytes) && 72 == wire_bytes);
    UNIT_EQUAL_BYTES(wire, expected, 72);
    opal_crypt_tls_records_destroy(from);
}

int main(void)
{
    FILE *file = vector_file("transport-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned seen = 0;

    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    UNIT_GROUP("vectors");
    while (vector_next(file, &vector)) {
        const char *kind = vector_text(&vector, "kind");
        ++seen;
        if (0 == strcmp(kind, "rfc8448")) {
            rfc8448(&vector);
        } else if (0 == strcmp(kind, "identity")) {
            identity(&vector);
        } else if (0 == strcmp(kind, "psk")) {
            psk(&vector);
        } else if (0 == strcmp(kind, "group")) {
            groups(&vector);
        } else if (0 == strcmp(kind, "addresses") || 0 == strcmp(kind, "header") || 0 == strcmp(kind, "no header")
                   || 0 == strcmp(kind, "conversation")) {
            --seen;                             /* test_btl_vectors's */
        } else if (0 == strcmp(kind, "keys")) {
            keys(&vector);
        } else {
            UNIT_REQUIRE(0 == strcmp(kind, "records") || 0 == strcmp(kind, "close"));
            records(&vector, 0 == strcmp(kind, "close"));
        }
    }
    fclose(file);
    UNIT_CHECK(1 + 2 + 4 + 25 + 3 * (1 + 4 + 1 + 3 + 1 + 3 + 1) == seen);
    return unit_done();
}

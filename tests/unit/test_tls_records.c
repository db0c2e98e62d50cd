/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Records: what is sealed opens, in one piece and in many, to memory of any size; the key is renewed;
 * and whatever was changed, deleted, repeated, moved or made for another purpose ends the connection.
 */
#include "tls_ends.h"

#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/tls/records_object.h"

#define MOST    OPAL_CRYPT_TLS_RECORD_PLAIN_MAX
#define OVER    OPAL_CRYPT_TLS_RECORD_OVERHEAD

typedef struct pair {
    opal_crypt_tls_records_t *a, *b;
} pair_t;

static uint8_t data[100000], wire[200000], back[100001];

static pair_t pair_make(opal_aead_cipher_t cipher, uint64_t renew)
{
    uint8_t secrets[2][48];
    pair_t pair;

    opal_crypt_random(secrets, sizeof(secrets));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, cipher, renew, secrets[0],
                                                                secrets[1], &pair.a));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, cipher, renew, secrets[1],
                                                                secrets[0], &pair.b));
    return pair;
}

static void pair_free(pair_t *pair)
{
    opal_crypt_tls_records_destroy(pair->a);
    opal_crypt_tls_records_destroy(pair->b);
}

static size_t seal(opal_crypt_tls_records_t *records, const void *plain, size_t bytes, uint8_t *to)
{
    const struct iovec piece = {(void *) (uintptr_t) plain, bytes};
    size_t wire_bytes = 0;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(records, &piece, 1, to, sizeof(wire) - (size_t) (to - wire), &wire_bytes));
    return wire_bytes;
}

static int open_one(opal_crypt_tls_records_t *records, uint8_t *from, size_t bytes, size_t capacity, size_t *plain_bytes)
{
    opal_crypt_tls_record_kind_t kind;
    int rc;

    memset(back, 0xee, sizeof(back));
    rc = opal_crypt_tls_records_open(records, from, bytes, back, capacity, plain_bytes, &kind);
    return OPAL_CRYPT_OK == rc && OPAL_CRYPT_TLS_RECORD_DATA != kind ? 1 + (int) kind : rc;
}

/* Refused now, and for ever, in both directions; no byte of plaintext came out. */
static bool ended(pair_t *pair, uint8_t *from, size_t bytes)
{
    const struct iovec piece = {data, 10};
    size_t plain_bytes = 7, wire_bytes = 7;
    uint8_t good[100];
    bool right;

    (void) seal(pair->a, data, 10, good);
    right = OPAL_CRYPT_ERR_AUTH == open_one(pair->b, from, bytes, MOST + 1, &plain_bytes) && 0 == plain_bytes;
    for (size_t i = 0; i < MOST; ++i) {
        right = right && (0 == back[i] || 0xee == back[i]);
    }
    return right && OPAL_CRYPT_ERR_AUTH == open_one(pair->b, good, 10 + OVER, 100, &plain_bytes)
           && OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_next(pair->b, good, 10 + OVER, &plain_bytes)
           && OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_seal(pair->b, &piece, 1, wire, sizeof(wire), &wire_bytes)
           && 0 == wire_bytes && opal_crypt_all_zero(pair->b->in.secret, 48) && !opal_crypt_tls_records_closed(pair->b);
}

static void sizes(opal_aead_cipher_t cipher)
{
    static const size_t lengths[] = {1, 2, 5, 6, 63, 64, 65, 1000, MOST - 1, MOST, MOST + 1, 2 * MOST, 5 * MOST + 77, 100000};
    pair_t pair = pair_make(cipher, 5);

    UNIT_GROUP("every size, %s", opal_crypt_tls_suite(cipher)->name);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        UNIT_CHECK(tls_carry(pair.a, pair.b, data, lengths[i]) && tls_carry(pair.b, pair.a, data, lengths[i]));
    }
    UNIT_CHECK(0 == opal_crypt_tls_records_bytes(pair.a, 0)
               && SIZE_MAX == opal_crypt_tls_records_bytes(pair.a, SIZE_MAX));
    pair_free(&pair);
}

static void pieces(void)
{
    pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
    struct iovec many[60];
    size_t at = 0, wire_bytes, one, plain_bytes, got = 0;

    UNIT_GROUP("scattered pieces");
    for (int i = 0; i < 60; ++i) {
        many[i] = (struct iovec) {data + at, 0 == i % 7 ? 0 : (size_t) (i * i)};
        at += many[i].iov_len;
    }
    UNIT_CHECK(at > 3 * MOST);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_seal(pair.a, many, 60, wire, sizeof(wire), &wire_bytes));
    UNIT_CHECK(wire_bytes == at + (at / MOST + 1) * OVER);
    for (size_t from = 0; from < wire_bytes; from += one) {
        opal_crypt_tls_record_kind_t kind;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_next(pair.b, wire + from, wire_bytes - from, &one) && one > OVER);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_open(pair.b, wire + from, one, back + got, at - got, &plain_bytes, &kind));
        got += plain_bytes;
    }
    UNIT_CHECK(got == at);
    UNIT_EQUAL_BYTES(back, data, at);
    /* no room, nothing to seal, a sum that overflows */
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_seal(pair.a, many, 60, wire, wire_bytes - 1, &wire_bytes) && 0 == wire_bytes);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_seal(pair.a, many, 1, wire, sizeof(wire), &wire_bytes));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_seal(pair.a, many, 0, wire, sizeof(wire), &wire_bytes));
    many[0].iov_len = SIZE_MAX;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_seal(pair.a, many, 2, wire, sizeof(wire), &wire_bytes));
    many[0].iov_len = SIZE_MAX / 2;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_seal(pair.a, (struct iovec[]) {many[0], many[0], many[0]}, 3, wire, sizeof(wire), &wire_bytes));
    UNIT_CHECK(tls_carry(pair.a, pair.b, data, 10));
    pair_free(&pair);
}

/* The caller's memory behind a record is its own. */
static void capacities(void)
{
    static const size_t lengths[] = {1, 4, 5, 6, 64, 65, 5000, MOST};
    pair_t pair = pair_make(OPAL_AEAD_AES_256_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
    size_t plain_bytes;

    UNIT_GROUP("room: none, exactly enough, more");
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
        for (size_t more = 0; more < 3; ++more) {
            const size_t n = lengths[i], bytes = seal(pair.a, data, n, wire);
            UNIT_CHECK(bytes == n + OVER);
            UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == open_one(pair.b, wire, bytes, n - 1, &plain_bytes) && 0 == plain_bytes);
            UNIT_CHECK(0xee == back[0] && 0xee == back[n]);
            UNIT_CHECK(OPAL_CRYPT_OK == open_one(pair.b, wire, bytes, n + more, &plain_bytes) && n == plain_bytes);
            UNIT_EQUAL_BYTES(back, data, n);
            UNIT_CHECK(0xee == back[n + more] && (0xee == back[n] || 0 == back[n]));
        }
    }
    pair_free(&pair);
}

static void every_byte(size_t n)
{
    UNIT_GROUP("every byte of a record of %zu changed, every length cut", n);
    for (size_t at = 0; at < n + OVER; ++at) {
        pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
        const size_t bytes = seal(pair.a, data, n, wire);
        wire[at] ^= (uint8_t) (1 << at % 8);
        UNIT_CHECK(ended(&pair, wire, bytes));
        pair_free(&pair);
        if (at > 0) {
            pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
            UNIT_CHECK(bytes == seal(pair.a, data, n, wire) && ended(&pair, wire, at));
            pair_free(&pair);
        }
    }
}

static void order(void)
{
    uint8_t first[200], second[200];
    size_t plain_bytes, one, other;

    for (int how = 0; how < 4; ++how) {
        static const char *const names[] = {"deleted", "repeated", "reordered", "from the other direction"};
        pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
        UNIT_GROUP("a record that was %s", names[how]);
        one = seal(pair.a, data, 100, first);
        other = seal(pair.a, data + 100, 100, second);
        if (1 == how) {
            uint8_t again[200];
            memcpy(again, first, one);
            UNIT_CHECK(OPAL_CRYPT_OK == open_one(pair.b, first, one, 200, &plain_bytes));
            UNIT_CHECK(ended(&pair, again, one));
        } else if (3 == how) {
            one = seal(pair.b, data, 100, first);
            UNIT_CHECK(ended(&pair, first, one));
        } else {
            UNIT_CHECK(ended(&pair, second, other));
        }
        pair_free(&pair);
    }
}

/* What only a holder of the key can seal: other types, padding, other messages. */
static size_t insider(pair_t *pair, const uint8_t *inner, size_t bytes)
{
    record_direction_t *out = &pair->a->out;
    opal_crypt_box_t box = {.aead = pair->a->aead, .key = out->key, .id = out->id, .bound = wire, .bound_bytes = 5};

    wire[0] = 23;
    wire[1] = wire[2] = 3;
    opal_crypt_put16(wire + 3, (uint16_t) (bytes + 16));
    opal_crypt_nonce_record(out->iv, out->sequence++, box.nonce);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_box_seal(&box, inner, bytes, wire + 5, wire + 5 + bytes));
    return bytes + 21;
}

static void insiders(void)
{
    static const struct {
        const char *what;
        size_t bytes;
        uint8_t inner[16];
    } cases[] = {
        {"nothing", 1, {23}},
        {"zeros only", 5, {0}},
        {"padding", 7, {'a', 'b', 23, 0, 0, 0, 0}},
        {"a type that is none", 3, {'a', 'b', 99}},
        {"an alert that is not close_notify", 3, {2, 10, 21}},
        {"a close_notify that is fatal", 3, {2, 0, 21}},
        {"a longer alert", 4, {1, 0, 0, 21}},
        {"a KeyUpdate that asks for another", 6, {24, 0, 0, 1, 1, 22}},
        {"a KeyUpdate cut short", 5, {24, 0, 0, 1, 22}},
        {"two KeyUpdates", 11, {24, 0, 0, 1, 0, 24, 0, 0, 1, 0, 22}},
        {"a ticket", 10, {4, 0, 0, 5, 0, 0, 0, 0, 0, 22}},
        {"a KeyUpdate as data of a ChangeCipherSpec", 6, {24, 0, 0, 1, 0, 20}},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
        UNIT_GROUP("sealed by the peer: %s", cases[i].what);
        uint8_t copy[64];
        const size_t bytes = insider(&pair, cases[i].inner, cases[i].bytes);
        memcpy(copy, wire, bytes);
        UNIT_CHECK(ended(&pair, copy, bytes));
        pair_free(&pair);
    }
}

static void renewal(void)
{
    pair_t pair = pair_make(OPAL_AEAD_AES_256_GCM, 4);
    uint8_t before[48];
    size_t plain_bytes, bytes;

    UNIT_GROUP("a key is renewed");
    memcpy(before, pair.a->out.secret, 48);
    for (int i = 0; i < 3; ++i) {
        UNIT_CHECK(10 + OVER == (bytes = seal(pair.a, data, 10, wire)));
        UNIT_CHECK(OPAL_CRYPT_OK == open_one(pair.b, wire, bytes, 100, &plain_bytes));
    }
    bytes = seal(pair.a, data, 10, wire);
    UNIT_CHECK(10 + OVER + OPAL_CRYPT_TLS_RECORD_KEY_UPDATE == bytes);
    UNIT_CHECK(0 != memcmp(before, pair.a->out.secret, 48) && 1 == pair.a->out.sequence);
    /* without any room, and never into the caller's memory */
    UNIT_CHECK(1 + OPAL_CRYPT_TLS_RECORD_RENEWED == open_one(pair.b, wire, OPAL_CRYPT_TLS_RECORD_KEY_UPDATE, 0, &plain_bytes));
    UNIT_CHECK(0 == plain_bytes && 0xee == back[0]);
    UNIT_EQUAL_BYTES(pair.a->out.secret, pair.b->in.secret, 48);
    UNIT_CHECK(OPAL_CRYPT_OK == open_one(pair.b, wire + OPAL_CRYPT_TLS_RECORD_KEY_UPDATE, 10 + OVER, 100, &plain_bytes) && 10 == plain_bytes);
    /* the room that is asked for is enough, whenever the next one is due */
    for (size_t n = 1; n < 20; ++n) {
        UNIT_CHECK(tls_carry(pair.a, pair.b, data, n * 5000));
    }
    pair_free(&pair);

    UNIT_GROUP("a peer that does not renew");
    pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
    pair.a->out.sequence = pair.b->in.sequence = OPAL_CRYPT_TLS_RECORDS_BEAR - 1;
    bytes = seal(pair.a, data, 100, wire);
    UNIT_CHECK(ended(&pair, wire, bytes));
    pair_free(&pair);

    UNIT_GROUP("a KeyUpdate that was deleted");
    pair = pair_make(OPAL_AEAD_AES_128_GCM, 2);
    bytes = seal(pair.a, data, 10, wire);
    UNIT_CHECK(OPAL_CRYPT_OK == open_one(pair.b, wire, bytes, 100, &plain_bytes));
    (void) seal(pair.a, data, 10, wire);
    memmove(wire, wire + OPAL_CRYPT_TLS_RECORD_KEY_UPDATE, 10 + OVER);
    UNIT_CHECK(ended(&pair, wire, 10 + OVER));
    pair_free(&pair);
}

static void closing(void)
{
    pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
    const struct iovec piece = {data, 10};
    uint8_t end[OPAL_CRYPT_TLS_RECORD_CLOSE];
    size_t plain_bytes, wire_bytes;

    UNIT_GROUP("the sealed end");
    UNIT_CHECK(tls_carry(pair.a, pair.b, data, 100));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_close(pair.a, end));
    UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_tls_records_close(pair.a, wire));
    UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_tls_records_seal(pair.a, &piece, 1, wire, sizeof(wire), &wire_bytes));
    UNIT_CHECK(opal_crypt_all_zero(pair.a->out.secret, 48));
    UNIT_CHECK(!opal_crypt_tls_records_closed(pair.b));
    memcpy(wire, end, sizeof(end));
    UNIT_CHECK(1 + OPAL_CRYPT_TLS_RECORD_CLOSED == open_one(pair.b, wire, sizeof(end), 0, &plain_bytes) && 0 == plain_bytes);
    UNIT_CHECK(opal_crypt_tls_records_closed(pair.b) && opal_crypt_all_zero(pair.b->in.secret, 48));
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == open_one(pair.b, end, sizeof(end), 0, &plain_bytes));
    /* the other direction goes on */
    UNIT_CHECK(tls_carry(pair.b, pair.a, data, 1000));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_close(pair.b, wire));
    UNIT_CHECK(1 + OPAL_CRYPT_TLS_RECORD_CLOSED == open_one(pair.a, wire, sizeof(end), 0, &plain_bytes));
    pair_free(&pair);
}

static void headers(void)
{
    static const uint8_t wrong[][5] = {
        {22, 3, 3, 0, 30}, {21, 3, 3, 0, 18}, {20, 3, 3, 0, 1}, {0, 3, 3, 0, 30}, {23, 3, 1, 0, 30}, {23, 3, 4, 0, 30},
        {23, 2, 3, 0, 30}, {23, 3, 3, 0, 17}, {23, 3, 3, 0, 0}, {23, 3, 3, 0x40, 0x12}, {23, 3, 3, 0xff, 0xff}};
    size_t bytes;

    UNIT_GROUP("a header is refused before the rest is waited for");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); ++i) {
        pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_tls_records_next(pair.b, wrong[i], 5, &bytes) && 0 == bytes);
        UNIT_CHECK(!tls_carry(pair.a, pair.b, data, 1));
        pair_free(&pair);
    }
    pair_t pair = pair_make(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_RECORDS_RENEW);
    const uint8_t most[5] = {23, 3, 3, 0x40, 0x11};
    for (size_t i = 0; i < 5; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_next(pair.b, most, i, &bytes) && 0 == bytes);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_records_next(pair.b, most, 5, &bytes) && OPAL_CRYPT_TLS_RECORD_MAX == bytes);
    UNIT_CHECK(tls_carry(pair.a, pair.b, data, 1));
    pair_free(&pair);
}

static void creating(void)
{
    opal_crypt_tls_records_t *records = NULL;
    const uint8_t secret[48] = {1};
    opal_aead_module_t poor = opal_aead_openssl_module;

    UNIT_GROUP("what cannot be made");
    poor.ciphers &= ~OPAL_AEAD_BIT(OPAL_AEAD_AES_256_GCM);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_create(&poor, OPAL_AEAD_AES_256_GCM, 2, secret, secret, &records));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_192_GCM, 2, secret, secret, &records));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, 1, secret, secret, &records));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM,
                                                                      OPAL_CRYPT_TLS_RECORDS_RENEW + 1, secret, secret, &records));
    UNIT_CHECK(NULL == records);
}

/* ---- a provider that fails ---- */

static int calls_left;

/* It writes nothing: what is sealed in place is still plaintext. */
static int failing_seal(opal_aead_context_t *context, const void *key, const uint8_t nonce[OPAL_AEAD_NONCE_BYTES], const void *aad,
                        size_t aad_bytes, const void *plain, size_t bytes, void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    return 0 == calls_left-- ? OPAL_AEAD_ERROR
                             : opal_aead_openssl_module.seal(context, key, nonce, aad, aad_bytes, plain, bytes, cipher, tag);
}

static int failing_key(opal_aead_cipher_t cipher, const uint8_t *raw, void *key)
{
    return 0 == calls_left-- ? OPAL_AEAD_ERROR : opal_aead_openssl_module.key_init(cipher, raw, key);
}

static void failing(void)
{
    static opal_aead_module_t poor;     /* this thread keeps a context of it */
    opal_crypt_tls_records_t *records = NULL;
    const struct iovec piece = {data, 3 * MOST};
    uint8_t secret[48];
    size_t wire_bytes = 7;

    poor = opal_aead_openssl_module;
    poor.seal = failing_seal;
    poor.seal_joined = NULL;
    for (int fails = 0; fails < 4; ++fails) {
        UNIT_GROUP("record %d of a run cannot be sealed: nothing of the run is sent, and nothing after it", fails);
        opal_crypt_random(secret, sizeof(secret));
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&poor, OPAL_AEAD_AES_128_GCM, 3, secret, secret, &records));
        calls_left = fails;
        memset(wire, 0xee, sizeof(wire));
        UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_tls_records_seal(records, &piece, 1, wire, sizeof(wire), &wire_bytes) && 0 == wire_bytes);
        for (size_t i = 0; i < 3 * MOST; i += MOST) {
            UNIT_CHECK(NULL == memmem(wire, sizeof(wire), data + i, 32));
        }
        UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_tls_records_seal(records, &piece, 1, wire, sizeof(wire), &wire_bytes) && 0 == wire_bytes);
        UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_tls_records_close(records, wire) && opal_crypt_all_zero(records->out.secret, 48));
        opal_crypt_tls_records_destroy(records);
    }
    UNIT_GROUP("the end cannot be sealed, a key cannot be made");
    opal_crypt_random(secret, sizeof(secret));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&poor, OPAL_AEAD_AES_128_GCM, 3, secret, secret, &records));
    calls_left = 0;
    UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_tls_records_close(records, wire) && opal_crypt_all_zero(records->out.secret, 48));
    opal_crypt_tls_records_destroy(records);
    poor.key_init = failing_key;
    for (int fails = 0; fails < 2; ++fails) {
        calls_left = fails;
        UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_crypt_tls_records_create(&poor, OPAL_AEAD_AES_128_GCM, 3, secret, secret, &records));
        UNIT_CHECK(NULL == records);
    }
}

int main(void)
{
    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    for (size_t i = 0; i < sizeof(data); ++i) {
        data[i] = (uint8_t) (i * 31 + i / 251 + 1);
    }
    sizes(OPAL_AEAD_AES_128_GCM);
    sizes(OPAL_AEAD_AES_256_GCM);
    sizes(OPAL_AEAD_CHACHA20_POLY1305);
    pieces();
    capacities();
    every_byte(1);
    every_byte(100);
    order();
    insiders();
    renewal();
    closing();
    headers();
    creating();
    failing();
    return unit_done();
}

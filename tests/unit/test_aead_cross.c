/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every provider opens what every other sealed: short texts of every length,
 * lengths around 4 KiB, 64 KiB and 1 MiB, at odd addresses, in place and not,
 * with additional data and without.  Sealed bytes are the same from
 * all, and nothing is written outside them.
 *
 *     test_aead_cross            these
 *     test_aead_cross long       one text of more than 2 GiB (3 GiB of memory)
 */
#include "tests/unit/aead_providers.h"

#define SHORT_MOST 1100
#define TEXT_MOST  ((size_t) (1 << 20) + 64)
#define LONG_BYTES (((size_t) 1 << 31) + 17)
#define AAD_MOST   5000
#define GUARD      64
#define ODD        16           /* addresses are shifted by less than this */

static uint8_t *plain, *sealed, *opened;        /* TEXT_MOST + ODD + GUARD each */
static uint8_t aad_bytes[AAD_MOST];
static keyed_t keyed[PROVIDERS_MOST];
static int keyed_count;

typedef struct {
    size_t bytes, aad;
    int in_at, out_at;
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES];
} message_t;

/* Everything about a message follows from its length. */
static message_t message_of(size_t bytes)
{
    message_t m = { .bytes = bytes };

    m.aad = 0 == bytes % 5 ? 0 : 0 == bytes % 97 ? AAD_MOST : bytes * 13 % 90;
    m.in_at = (int) (bytes * 5 % ODD);
    m.out_at = (int) (bytes * 7 % ODD);
    fill(m.nonce, sizeof(m.nonce), bytes + 1);
    return m;
}

static int seal(keyed_t *k, const message_t *m, const uint8_t *in, uint8_t *out, uint8_t *tag)
{
    return k->module->seal(k->context, k->key, m->nonce, aad_bytes, m->aad, in, m->bytes, out, tag);
}

static int open_(keyed_t *k, const message_t *m, const uint8_t *in, const uint8_t *tag, uint8_t *out)
{
    return k->module->open(k->context, k->key, m->nonce, aad_bytes, m->aad, in, m->bytes, tag, out);
}

static int guarded(const uint8_t *end)
{
    for (int i = 0; i < GUARD; ++i) {
        if (0xee != end[i]) {
            return 0;
        }
    }
    return 1;
}

/* Sealed by one provider, in place and not, opened by all. */
static int by_all(keyed_t *sealer, const message_t *m, uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    uint8_t *const text = plain + m->in_at, *const cipher = sealed + m->out_at, *const back = opened + m->in_at;
    uint8_t other_tag[OPAL_AEAD_TAG_BYTES];

    memset(cipher, 0xee, m->bytes + GUARD);
    if (OPAL_AEAD_OK != seal(sealer, m, text, cipher, tag) || !guarded(cipher + m->bytes)) {
        return 0;
    }
    memcpy(back, text, m->bytes);
    memset(back + m->bytes, 0xee, GUARD);
    if (OPAL_AEAD_OK != seal(sealer, m, back, back, other_tag) || 0 != memcmp(back, cipher, m->bytes)
        || 0 != memcmp(tag, other_tag, sizeof(other_tag)) || !guarded(back + m->bytes)) {
        return 0;
    }
    for (int i = 0; i < keyed_count; ++i) {
        if (OPAL_AEAD_OK != open_(&keyed[i], m, back, tag, back) || 0 != memcmp(back, text, m->bytes)) {
            return 0;
        }
        memset(back, 0xee, m->bytes);
        if (OPAL_AEAD_OK != open_(&keyed[i], m, cipher, tag, back) || 0 != memcmp(back, text, m->bytes)
            || !guarded(back + m->bytes)) {
            return 0;
        }
        memcpy(back, cipher, m->bytes);     /* for the next one in place */
    }
    return 1;
}

static int crosses(size_t bytes)
{
    const message_t m = message_of(bytes);
    uint8_t tag[OPAL_AEAD_TAG_BYTES], first[OPAL_AEAD_TAG_BYTES];

    for (int i = 0; i < keyed_count; ++i) {
        if (!by_all(&keyed[i], &m, tag)) {
            fprintf(stderr, "  %s, %zu bytes\n", keyed[i].module->name, bytes);
            return 0;
        }
        if (0 == i) {
            memcpy(first, tag, sizeof(first));
        } else if (0 != memcmp(first, tag, sizeof(first))) {
            return 0;
        }
    }
    return 1;
}

/* Keys of all providers that have the cipher; their number. */
static int keys_new(opal_aead_cipher_t cipher)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];

    fill(raw, sizeof(raw), 77 + (uint64_t) cipher);
    keyed_count = 0;
    for (int p = 0; p < provider_count; ++p) {
        if (can(providers[p], cipher)) {
            keyed[keyed_count++] = keyed_new(providers[p], cipher, raw);
        }
    }
    return keyed_count;
}

static void keys_free(void)
{
    while (0 < keyed_count) {
        keyed_free(&keyed[--keyed_count]);
    }
}

static void test_lengths(opal_aead_cipher_t cipher)
{
    static const int beside[] = { -17, -16, -1, 0, 1, 15, 16, 17 };
    static const size_t around[] = { (size_t) 4 << 10, (size_t) 64 << 10, (size_t) 1 << 20 };

    UNIT_GROUP("%s: %d providers open what each other sealed", opal_aead_cipher_name(cipher), keys_new(cipher));
    for (size_t bytes = 0; bytes <= SHORT_MOST; ++bytes) {
        UNIT_CHECK(crosses(bytes));
    }
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); ++i) {
        for (size_t j = 0; j < sizeof(beside) / sizeof(beside[0]); ++j) {
            UNIT_CHECK(crosses(around[i] + (size_t) beside[j]));
        }
    }
    keys_free();
}

/* ---- more than 2 GiB: each seals, the next one opens, in place ---- */

static void count_into(uint8_t *text)
{
    for (size_t i = 0; i + 8 <= LONG_BYTES; i += 8) {
        const uint64_t value = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(text + i, &value, 8);
    }
}

static int counts(const uint8_t *text)
{
    for (size_t i = 0; i + 8 <= LONG_BYTES; i += 8) {
        const uint64_t value = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
        if (0 != memcmp(text + i, &value, 8)) {
            return 0;
        }
    }
    return zeros_only(text + LONG_BYTES / 8 * 8, LONG_BYTES % 8);
}

static int test_long(opal_aead_cipher_t cipher)
{
    message_t m = message_of(11);
    uint8_t tag[OPAL_AEAD_TAG_BYTES], first[OPAL_AEAD_TAG_BYTES];
    uint8_t *text = calloc(1, LONG_BYTES);

    if (NULL == text) {
        return unit_skip("no memory for 2 GiB");
    }
    m.bytes = LONG_BYTES;
    UNIT_GROUP("%s: %zu bytes through %d providers", opal_aead_cipher_name(cipher), LONG_BYTES, keys_new(cipher));
    count_into(text);
    for (int i = 0; i < keyed_count; ++i) {
        UNIT_CHECK(OPAL_AEAD_OK == seal(&keyed[i], &m, text, text, tag));
        if (0 == i) {
            memcpy(first, tag, sizeof(first));
        }
        UNIT_EQUAL_BYTES(first, tag, sizeof(first));
        UNIT_REQUIRE(OPAL_AEAD_OK == open_(&keyed[(i + 1) % keyed_count], &m, text, tag, text));
        UNIT_REQUIRE(counts(text));
    }
    for (int i = 0; i < keyed_count; ++i) {     /* a forgery in the last byte */
        UNIT_CHECK(OPAL_AEAD_OK == seal(&keyed[i], &m, text, text, tag));
        text[LONG_BYTES - 1] ^= 1;
        UNIT_CHECK(OPAL_AEAD_REFUSED == open_(&keyed[i], &m, text, tag, text));
        UNIT_CHECK(zeros_only(text, LONG_BYTES));
    }
    keys_free();
    free(text);
    return 0;
}

int main(int argc, char **argv)
{
    int rc = 0;

    providers_init();
    fill(aad_bytes, sizeof(aad_bytes), 5);
    if (1 < argc && 0 == strcmp("long", argv[1])) {
        for (int c = 0; 0 == rc && c < OPAL_AEAD_CIPHERS; ++c) {
            rc = test_long((opal_aead_cipher_t) c);
        }
    } else {
        plain = malloc(TEXT_MOST + ODD + GUARD);
        sealed = malloc(TEXT_MOST + ODD + GUARD);
        opened = malloc(TEXT_MOST + ODD + GUARD);
        UNIT_REQUIRE(NULL != plain && NULL != sealed && NULL != opened);
        fill(plain, TEXT_MOST + ODD, 3);
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            test_lengths((opal_aead_cipher_t) c);
        }
        free(plain);
        free(sealed);
        free(opened);
    }
    providers_fini();
    return 0 != rc ? rc : unit_done();
}

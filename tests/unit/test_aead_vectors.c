/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Known answers of NIST and Wycheproof (tests/vectors) through every provider:
 * sealing and opening, in place and disjoint, the additional data in one to
 * four pieces; bad cases are refused and leave zeros.
 */
#include "tests/unit/aead_providers.h"

#define LINE_MOST  32768
#define BYTES_MOST 4096

typedef struct {
    uint8_t bytes[BYTES_MOST];
    size_t count;
    int given;
} field_t;

typedef struct {
    opal_aead_cipher_t cipher;
    int good;
    field_t key, nonce, aad, plain, text, tag;
    char name[64];
} case_t;

static char line[LINE_MOST];
static case_t now;

static void parse_field(const char *hex, field_t *field)
{
    field->count = 0;
    field->given = 0 != strcmp("?", hex);
    if (0 == strcmp("-", hex) || !field->given) {
        return;
    }
    UNIT_REQUIRE(0 == strlen(hex) % 2 && strlen(hex) / 2 <= BYTES_MOST);
    for (; '\0' != hex[0]; hex += 2) {
        unsigned value;

        UNIT_REQUIRE(1 == sscanf(hex, "%2x", &value));
        field->bytes[field->count++] = (uint8_t) value;
    }
}

static void parse_case(void)
{
    field_t *const fields[] = { &now.key, &now.nonce, &now.aad, &now.plain, &now.text, &now.tag };
    const char *word = strtok(line, " \n");
    int cipher = 0;

    while (cipher < OPAL_AEAD_CIPHERS && 0 != strcmp(word, opal_aead_cipher_name((unsigned) cipher))) {
        ++cipher;
    }
    UNIT_REQUIRE(cipher < OPAL_AEAD_CIPHERS);
    now.cipher = (opal_aead_cipher_t) cipher;
    word = strtok(NULL, " \n");
    now.good = 0 == strcmp("good", word);
    UNIT_REQUIRE(now.good || 0 == strcmp("bad", word));
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        word = strtok(NULL, " \n");
        UNIT_REQUIRE(NULL != word);
        parse_field(word, fields[i]);
    }
    word = strtok(NULL, " \n");
    UNIT_REQUIRE(NULL != word);
    snprintf(now.name, sizeof(now.name), "%s", word);
    UNIT_REQUIRE(!now.good || (now.plain.given && now.plain.count == now.text.count));
}

/* One case, in place or not. */
static int passes(keyed_t *k, int in_place)
{
    static uint8_t first[BYTES_MOST], second[BYTES_MOST];
    const opal_aead_module_t *m = k->module;
    const size_t bytes = now.text.count;
    uint8_t *const out = in_place ? first : second;
    uint8_t tag[OPAL_AEAD_TAG_BYTES];
    int rc;

    if (now.good) {
        memcpy(first, now.plain.bytes, bytes);
        rc = m->seal(k->context, k->key, now.nonce.bytes, now.aad.bytes, now.aad.count, first, bytes, out, tag);
        if (OPAL_AEAD_OK != rc || 0 != memcmp(out, now.text.bytes, bytes) || 0 != memcmp(tag, now.tag.bytes, sizeof(tag))) {
            return 0;
        }
    }
    memcpy(first, now.text.bytes, bytes);
    memset(second, 0xee, bytes);
    rc = m->open(k->context, k->key, now.nonce.bytes, now.aad.bytes, now.aad.count, first, bytes, now.tag.bytes, out);
    return now.good ? OPAL_AEAD_OK == rc && 0 == memcmp(out, now.plain.bytes, bytes)
                    : OPAL_AEAD_REFUSED == rc && zeros_only(out, bytes);
}

static void run_case(unsigned long *done)
{
    UNIT_REQUIRE(now.key.count == opal_aead_raw_key_bytes(now.cipher) && OPAL_AEAD_TAG_BYTES == now.tag.count);
    for (int p = 0; p < provider_count; ++p) {
        keyed_t k;

        if (!can(providers[p], now.cipher)) {
            continue;
        }
        k = keyed_new(providers[p], now.cipher, now.key.bytes);
        if (!UNIT_CHECK(passes(&k, 0) && passes(&k, 1))) {
            fprintf(stderr, "  %s %s\n", k.module->name, now.name);
        }
        keyed_free(&k);
        done[p]++;
    }
}

/* `other_nonces`: cases that the interface has no words for. */
static void run_file(const char *name, unsigned long other_nonces)
{
    const char *directory = getenv("srcdir");
    unsigned long wanted = 0, seen = 0, other = 0, done[PROVIDERS_MOST] = { 0 };
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/../vectors/%s", NULL == directory ? "." : directory, name);
    file = fopen(path, "r");
    if (NULL == file) {
        perror(path);
    }
    UNIT_REQUIRE(NULL != file);
    while (NULL != fgets(line, sizeof(line), file)) {
        if ('#' == line[0]) {
            sscanf(line, "# cases: %lu", &wanted);
            continue;
        }
        parse_case();
        ++seen;
        if (OPAL_AEAD_NONCE_BYTES != now.nonce.count) {
            ++other;
        } else {
            run_case(done);
        }
    }
    fclose(file);
    UNIT_GROUP("%s: %lu cases, %lu of them with nonces of other sizes", name, seen, other);
    for (int p = 0; p < provider_count; ++p) {
        printf("  %-10s %lu\n", providers[p]->module->name, done[p]);
    }
    UNIT_CHECK(0 < wanted && wanted == seen && other == other_nonces);
}

int main(void)
{
    providers_init();
    run_file("nist-gcm.txt", 0);
    run_file("wycheproof-gcm.txt", 119);
    run_file("wycheproof-chacha20-poly1305.txt", 9);
    providers_fini();
    return unit_done();
}

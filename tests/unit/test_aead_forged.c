/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every provider refuses a message of which any one byte was changed, in the
 * text, the tag, the additional data, the nonce or the key, that was cut,
 * grown, or shifted between additional data and text, and leaves zeros.
 */
#include "tests/unit/aead_providers.h"

#define TEXT_MOST 1100
#define AAD_BYTES 61

typedef struct {
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], aad[AAD_BYTES], tag[OPAL_AEAD_TAG_BYTES], text[TEXT_MOST + 1];
    size_t aad_bytes, text_bytes;
} message_t;

/* Opened in place and not. */
static int refused(keyed_t *k, const message_t *m)
{
    uint8_t out[TEXT_MOST + 1];

    for (int in_place = 0; in_place <= 1; ++in_place) {
        memset(out, 0xee, sizeof(out));
        if (in_place) {
            memcpy(out, m->text, m->text_bytes);
        }
        if (OPAL_AEAD_REFUSED != k->module->open(k->context, k->key, m->nonce, m->aad, m->aad_bytes,
                                                 in_place ? out : m->text, m->text_bytes, m->tag, out)
            || !zeros_only(out, m->text_bytes)) {
            return 0;
        }
    }
    return 1;
}

static int opens(keyed_t *k, const message_t *m, const uint8_t *plain)
{
    uint8_t out[TEXT_MOST + 1];

    return OPAL_AEAD_OK == k->module->open(k->context, k->key, m->nonce, m->aad, m->aad_bytes,
                                           m->text, m->text_bytes, m->tag, out)
        && 0 == memcmp(out, plain, m->text_bytes);
}

/* One bit of each byte of a field, another bit from byte to byte. */
static void flip_all(keyed_t *k, message_t *m, uint8_t *field, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        field[i] ^= (uint8_t) (1u << i % 8);
        UNIT_CHECK(refused(k, m));
        field[i] ^= (uint8_t) (1u << i % 8);
    }
}

/* Bytes that only change their place. */
static void shift_all(keyed_t *k, const message_t *m)
{
    message_t other = *m;

    if (0 < m->text_bytes) {
        other.text_bytes--;
        UNIT_CHECK(refused(k, &other));
    }
    other = *m;
    other.text[other.text_bytes++] = 0;
    UNIT_CHECK(refused(k, &other));
    other = *m;
    other.aad_bytes--;
    UNIT_CHECK(refused(k, &other));
    other.text_bytes++;                         /* the last byte of aad, before the text */
    other.text[0] = m->aad[m->aad_bytes - 1];
    memcpy(other.text + 1, m->text, m->text_bytes);
    UNIT_CHECK(refused(k, &other));
}

static void forge(const provider_t *p, opal_aead_cipher_t cipher, size_t text_bytes)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES], plain[TEXT_MOST];
    message_t m = { .aad_bytes = AAD_BYTES, .text_bytes = text_bytes };
    keyed_t k, other;

    fill(raw, sizeof(raw), text_bytes);
    fill(plain, sizeof(plain), text_bytes + 1);
    fill(m.aad, sizeof(m.aad), text_bytes + 2);
    fill(m.nonce, sizeof(m.nonce), text_bytes + 3);
    k = keyed_new(p, cipher, raw);
    UNIT_REQUIRE(OPAL_AEAD_OK == p->module->seal(k.context, k.key, m.nonce, m.aad, m.aad_bytes,
                                                 plain, text_bytes, m.text, m.tag));
    UNIT_CHECK(opens(&k, &m, plain));
    flip_all(&k, &m, m.text, text_bytes);
    flip_all(&k, &m, m.tag, sizeof(m.tag));
    flip_all(&k, &m, m.aad, sizeof(m.aad));
    flip_all(&k, &m, m.nonce, sizeof(m.nonce));
    shift_all(&k, &m);
    for (size_t i = 0; i < opal_aead_raw_key_bytes(cipher); ++i) {
        raw[i] ^= (uint8_t) (1u << i % 8);
        other = keyed_new(p, cipher, raw);
        UNIT_CHECK(refused(&other, &m));
        keyed_free(&other);
        raw[i] ^= (uint8_t) (1u << i % 8);
    }
    UNIT_CHECK(opens(&k, &m, plain));   /* the key still works after all this */
    keyed_free(&k);
}

int main(void)
{
    static const size_t lengths[] = { 0, 1, 15, 16, 17, 63, 64, 65, 300, 1100 };

    providers_init();
    for (int p = 0; p < provider_count; ++p) {
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (can(providers[p], (opal_aead_cipher_t) c)) {
                UNIT_GROUP("%s, %s: every changed byte is refused", providers[p]->module->name,
                           opal_aead_cipher_name((unsigned) c));
                for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
                    forge(providers[p], (opal_aead_cipher_t) c, lengths[i]);
                }
            }
        }
    }
    providers_fini();
    return unit_done();
}

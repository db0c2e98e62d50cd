/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Providers that seal a text in pieces: the same bytes as for a contiguous text, wherever it is cut.
 */
#include "tests/unit/aead_providers.h"

#define TEXT_MOST 16400
#define AAD_BYTES 5

typedef struct {
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], tag[OPAL_AEAD_TAG_BYTES], plain[TEXT_MOST], sealed[TEXT_MOST];
    uint8_t aad[AAD_BYTES];
    size_t bytes;
} joined_t;

static int sealed_so(keyed_t *k, const joined_t *m, const opal_aead_piece_t *pieces, int count)
{
    static uint8_t out[TEXT_MOST];
    uint8_t tag[OPAL_AEAD_TAG_BYTES];

    return OPAL_AEAD_OK == k->module->seal_joined(k->context, k->key, m->nonce, m->aad, AAD_BYTES, pieces, count, out, tag)
        && 0 == memcmp(out, m->sealed, m->bytes) && 0 == memcmp(tag, m->tag, sizeof(tag));
}

static void cut_everywhere(keyed_t *k, const joined_t *m)
{
    const size_t step = m->bytes < 100 ? 1 : m->bytes / 37;

    for (size_t cut = 0; cut <= m->bytes; cut += step) {
        const size_t rest = m->bytes - cut, half = rest / 2;
        const opal_aead_piece_t pieces[5] = {
            { m->plain, cut }, { NULL, 0 }, { m->plain + cut, half }, { m->plain + cut + half, rest - half }, { m->plain, 0 }
        };

        UNIT_CHECK(sealed_so(k, m, pieces, 5));
    }
    UNIT_CHECK(sealed_so(k, m, &(opal_aead_piece_t) { m->plain, m->bytes }, 1));
}

static void one_length(const provider_t *p, opal_aead_cipher_t cipher, size_t bytes)
{
    static joined_t m;
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    keyed_t k;

    fill(raw, sizeof(raw), bytes);
    fill(m.nonce, sizeof(m.nonce), bytes + 1);
    fill(m.aad, sizeof(m.aad), bytes + 2);
    fill(m.plain, bytes, bytes + 3);
    m.bytes = bytes;
    k = keyed_new(p, cipher, raw);
    UNIT_REQUIRE(OPAL_AEAD_OK == p->module->seal(k.context, k.key, m.nonce, m.aad, AAD_BYTES, m.plain, bytes, m.sealed, m.tag));
    cut_everywhere(&k, &m);
    keyed_free(&k);
}

int main(void)
{
    static const size_t lengths[] = { 1, 2, 15, 16, 17, 33, 255, 256, 257, 4097, 16385 };

    providers_init();
    for (int p = 0; p < provider_count; ++p) {
        for (int c = 0; c < OPAL_AEAD_CIPHERS && NULL != providers[p]->module->seal_joined; ++c) {
            if (can(providers[p], (opal_aead_cipher_t) c)) {
                UNIT_GROUP("%s, %s: joined of pieces", providers[p]->module->name,
                           opal_aead_cipher_name((unsigned) c));
                for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); ++i) {
                    one_length(providers[p], (opal_aead_cipher_t) c, lengths[i]);
                }
            }
        }
    }
    providers_fini();
    return unit_done();
}

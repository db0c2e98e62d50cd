/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Intel's library returns nothing from its calls.  One that rejects what it was given
 * does nothing, and plaintext stays where the ciphertext belongs: the module must
 * return an error and leave zeros, sealing and opening, in place and not.
 *
 * Here the library's functions do nothing, for every cipher.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "tests/unit/aead_providers.h"

#if !__has_include(<intel-ipsec-mb.h>)
int main(void)
{
    printf("skipped: there is no intel-ipsec-mb.h\n");
    return 77;
}
#else
#include <dlfcn.h>
#include <intel-ipsec-mb.h>

#define TEXT 100

static void whole(const struct gcm_key_data *key, struct gcm_context_data *context, uint8_t *out, const uint8_t *in,
                  uint64_t bytes, const uint8_t *iv, const uint8_t *aad, uint64_t aad_bytes, uint8_t *tag, uint64_t tag_bytes)
{
    (void) key; (void) context; (void) out; (void) in; (void) bytes; (void) iv; (void) aad; (void) aad_bytes;
    (void) tag; (void) tag_bytes;
}

static void end(const struct gcm_key_data *key, struct gcm_context_data *context, uint8_t *tag, uint64_t tag_bytes)
{
    (void) key; (void) context; (void) tag; (void) tag_bytes;
}

static void chacha_end(struct chacha20_poly1305_context_data *context, void *tag, const uint64_t tag_bytes)
{
    (void) context; (void) tag; (void) tag_bytes;
}

/* Stands in for the library's, for the module that is linked to this program. */
void init_mb_mgr_auto(IMB_MGR *m, IMB_ARCH *architecture)
{
    void (*real)(IMB_MGR *, IMB_ARCH *);

    *(void **) &real = dlsym(RTLD_NEXT, "init_mb_mgr_auto");
    UNIT_REQUIRE(NULL != real);
    real(m, architecture);
    m->gcm128_enc = m->gcm128_dec = m->gcm192_enc = m->gcm192_dec = m->gcm256_enc = m->gcm256_dec = whole;
    m->gcm128_enc_finalize = m->gcm128_dec_finalize = m->gcm192_enc_finalize = end;
    m->gcm192_dec_finalize = m->gcm256_enc_finalize = m->gcm256_dec_finalize = end;
    m->chacha20_poly1305_finalize = chacha_end;
}

static void rejected(const provider_t *p, opal_aead_cipher_t cipher, size_t bytes)
{
    static const uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES] = {1}, nonce[OPAL_AEAD_NONCE_BYTES] = {2};
    uint8_t *in = malloc(bytes), *out = malloc(bytes), tag[OPAL_AEAD_TAG_BYTES];
    keyed_t k = keyed_new(p, cipher, raw);

    UNIT_REQUIRE(NULL != in && NULL != out);
    for (int in_place = 0; in_place <= 1; ++in_place) {
        for (int opening = 0; opening <= 1; ++opening) {
            memset(in, 0x5a, bytes);
            memset(out, 0x5a, bytes);
            memset(tag, 0, sizeof(tag));
            UNIT_CHECK(OPAL_AEAD_ERROR == (opening ? k.module->open(k.context, k.key, nonce, NULL, 0, in_place ? out : in,
                                                                    bytes, tag, out)
                                                   : k.module->seal(k.context, k.key, nonce, NULL, 0, in_place ? out : in,
                                                                    bytes, out, tag)));
            UNIT_CHECK(zeros_only(out, bytes));
        }
    }
    keyed_free(&k);
    free(in);
    free(out);
}

int main(void)
{
    const provider_t *p = NULL;

    providers_init();
    for (int i = 0; i < provider_count; ++i) {
        p = 0 == strcmp(providers[i]->module->name, "ipsecmb") ? providers[i] : p;
    }
    if (NULL == p) {
        printf("skipped: ipsecmb cannot be used here\n");
        return 77;
    }
    UNIT_GROUP("a call that the library rejects");
    for (int cipher = 0; cipher < OPAL_AEAD_CIPHERS; ++cipher) {
        rejected(p, (opal_aead_cipher_t) cipher, TEXT);
        rejected(p, (opal_aead_cipher_t) cipher, 1);
    }
    providers_fini();
    return unit_done();
}
#endif

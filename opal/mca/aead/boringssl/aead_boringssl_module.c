/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seal and open with BoringSSL.  The expanded key is an EVP_AEAD_CTX, which BoringSSL only reads once made and which
 * holds all its state itself.
 *
 * BoringSSL leaves GHASH's key, and ChaCha20's, on the stack: every caller that passes it a key wipes them.
 */
#include <stdio.h>

#include "opal/mca/aead/aead_util.h"
#include "aead_boringssl_library.h"

OPAL_AEAD_PROVIDER(boringssl);

typedef struct {
    EVP_AEAD_CTX ctx;
    opal_aead_cipher_t cipher;
} boringssl_key_t;

_Static_assert(_Alignof(boringssl_key_t) <= OPAL_AEAD_KEY_ALIGN, "it fits our keys");

static const opal_aead_boringssl_library_t *library;

/* ---- start and end ---- */

int opal_aead_boringssl_init(void)
{
    library = opal_aead_boringssl_library();
    if (NULL == library) {
        return OPAL_AEAD_ERROR;
    }
    opal_aead_boringssl_module.ciphers = OPAL_AEAD_ALL;
    return OPAL_AEAD_OK;
}

void opal_aead_boringssl_fini(void)
{
    opal_aead_boringssl_module.ciphers = 0;
}

int opal_aead_boringssl_priority(opal_aead_cipher_t cipher)
{
    (void) cipher;
    return 40;
}

/* BoringSSL has no releases; this number counts its interfaces. */
static const char *version(void)
{
    static char text[48];

    snprintf(text, sizeof(text), "BoringSSL, API %d", BORINGSSL_API_VERSION);
    return text;
}

/* ---- keys ---- */

static const EVP_AEAD *aead_of(opal_aead_cipher_t cipher)
{
    switch (cipher) {
    case OPAL_AEAD_AES_128_GCM:
        return library->aes_128_gcm();
    case OPAL_AEAD_AES_192_GCM:
        return library->aes_192_gcm();
    case OPAL_AEAD_AES_256_GCM:
        return library->aes_256_gcm();
    default:
        return library->chacha20_poly1305();
    }
}

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *block)
{
    boringssl_key_t *key = block;
    int rc;

    if (0 == (opal_aead_boringssl_module.ciphers & OPAL_AEAD_BIT(cipher))) {
        return OPAL_AEAD_ERROR;
    }
    memset(key, 0, sizeof(*key));
    key->cipher = cipher;
    rc = library->init(&key->ctx, aead_of(cipher), raw, opal_aead_raw_key_bytes(cipher), OPAL_AEAD_TAG_BYTES, NULL);
    opal_aead_traces_wipe();
    if (1 != rc) {
        library->clear_error();
        return OPAL_AEAD_ERROR;
    }
    return OPAL_AEAD_OK;
}

static void key_wipe(void *block)
{
    boringssl_key_t *key = block;

    if (NULL != library) {
        library->cleanup(&key->ctx);
    }
    opal_aead_wipe(key, sizeof(*key));
}

/* ---- messages ---- */

static int seal(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    const boringssl_key_t *key = block;
    size_t tag_bytes;
    int rc;

    (void) context;
    if (!opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = library->seal(&key->ctx, cipher, tag, &tag_bytes, OPAL_AEAD_TAG_BYTES,
                       nonce, OPAL_AEAD_NONCE_BYTES, plain, text_bytes, NULL, 0, aad, aad_bytes);
    opal_aead_traces_wipe();
    if (1 != rc) {
        library->clear_error();
        opal_aead_wipe(cipher, text_bytes);
        return OPAL_AEAD_ERROR;
    }
    return OPAL_AEAD_OK;
}

static int open_(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                 const void *aad, size_t aad_bytes,
                 const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    const boringssl_key_t *key = block;
    int rc;

    (void) context;
    if (!opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = library->open(&key->ctx, plain, nonce, OPAL_AEAD_NONCE_BYTES, cipher, text_bytes,
                       tag, OPAL_AEAD_TAG_BYTES, aad, aad_bytes);
    opal_aead_traces_wipe();
    if (1 != rc) {
        library->clear_error();
        opal_aead_wipe(plain, text_bytes);
        return OPAL_AEAD_REFUSED;
    }
    return OPAL_AEAD_OK;
}

opal_aead_module_t opal_aead_boringssl_module = {
    .name = "boringssl",
    .version = version,
    .key_bytes = sizeof(boringssl_key_t),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = opal_aead_no_context_new,
    .context_free = opal_aead_no_context_free,
    .seal = seal,
    .open = open_
};

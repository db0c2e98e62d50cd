/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seal and open with libsodium.  The expanded key is libsodium's own state, which it only reads once made.
 *
 * libsodium leaves round keys on the stack and in registers: every caller that passes it a key wipes them.
 */
#include <stdio.h>

#include <sodium.h>

#include "opal/mca/aead/aead_util.h"

OPAL_AEAD_PROVIDER(sodium);

_Static_assert(OPAL_AEAD_NONCE_BYTES == crypto_aead_aes256gcm_NPUBBYTES
               && OPAL_AEAD_TAG_BYTES == crypto_aead_aes256gcm_ABYTES
               && OPAL_AEAD_KEY_MAX_BYTES == crypto_aead_aes256gcm_KEYBYTES, "libsodium's sizes are ours");
_Static_assert(_Alignof(crypto_aead_aes256gcm_state) <= OPAL_AEAD_KEY_ALIGN, "its state fits our keys");

/* ---- start and end ---- */

int opal_aead_sodium_init(void)
{
    if (0 > sodium_init() || !crypto_aead_aes256gcm_is_available()) {
        return OPAL_AEAD_ERROR;
    }
    opal_aead_sodium_module.ciphers = OPAL_AEAD_BIT(OPAL_AEAD_AES_256_GCM);
    return OPAL_AEAD_OK;
}

void opal_aead_sodium_fini(void)
{
    opal_aead_sodium_module.ciphers = 0;
}

int opal_aead_sodium_priority(opal_aead_cipher_t cipher)
{
    (void) cipher;
    return 20;
}

static const char *version(void)
{
    static char text[48];

    snprintf(text, sizeof(text), "libsodium %s", sodium_version_string());
    return text;
}

/* ---- keys ---- */

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *key)
{
    int rc;

    if (0 == (opal_aead_sodium_module.ciphers & OPAL_AEAD_BIT(cipher))) {
        return OPAL_AEAD_ERROR;
    }
    rc = crypto_aead_aes256gcm_beforenm(key, raw);
    opal_aead_traces_wipe();
    return 0 == rc ? OPAL_AEAD_OK : OPAL_AEAD_ERROR;
}

static void key_wipe(void *key)
{
    opal_aead_wipe(key, sizeof(crypto_aead_aes256gcm_state));
}

/* ---- messages ---- */

static int seal(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    int rc;

    (void) context;
    if (!opal_aead_text_fits(OPAL_AEAD_AES_256_GCM, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = crypto_aead_aes256gcm_encrypt_detached_afternm(cipher, tag, NULL, plain, text_bytes,
                                                        aad, aad_bytes, NULL, nonce, key);
    opal_aead_traces_wipe();
    return 0 == rc ? OPAL_AEAD_OK : OPAL_AEAD_ERROR;
}

static int open_(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                 const void *aad, size_t aad_bytes,
                 const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    int rc;

    (void) context;
    if (!opal_aead_text_fits(OPAL_AEAD_AES_256_GCM, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = crypto_aead_aes256gcm_decrypt_detached_afternm(plain, NULL, cipher, text_bytes, tag,
                                                        aad, aad_bytes, nonce, key);
    opal_aead_traces_wipe();
    if (0 != rc) {
        opal_aead_wipe(plain, text_bytes);
        return OPAL_AEAD_REFUSED;
    }
    return OPAL_AEAD_OK;
}

opal_aead_module_t opal_aead_sodium_module = {
    .name = "sodium",
    .version = version,
    .key_bytes = sizeof(crypto_aead_aes256gcm_state),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = opal_aead_no_context_new,
    .context_free = opal_aead_no_context_free,
    .seal = seal,
    .open = open_
};

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * OpenSSL as a first implementation calls it, and as the papers' naive library
 * did: for every message a new context, a look-up of the algorithm by the
 * library, a key expansion.  It exists to be compared with and is reachable
 * from the benchmarks only.
 */
#include <limits.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "opal/mca/aead/aead_util.h"
#include "speed.h"

typedef struct naive_key {
    opal_aead_cipher_t cipher;
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
} naive_key_t;

static const char *version(void)
{
    return OpenSSL_version(OPENSSL_VERSION);
}

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *key)
{
    naive_key_t *mine = key;
    mine->cipher = cipher;
    memcpy(mine->raw, raw, opal_aead_raw_key_bytes(cipher));
    return OPAL_AEAD_OK;
}

static void key_wipe(void *key)
{
    OPENSSL_cleanse(key, sizeof(naive_key_t));
}

static const EVP_CIPHER *lookup(opal_aead_cipher_t cipher)
{
    switch (cipher) {
    case OPAL_AEAD_AES_128_GCM: return EVP_aes_128_gcm();
    case OPAL_AEAD_AES_192_GCM: return EVP_aes_192_gcm();
    case OPAL_AEAD_AES_256_GCM: return EVP_aes_256_gcm();
    default: return EVP_chacha20_poly1305();
    }
}

/* A context with key and nonce set and the additional data taken in. */
static EVP_CIPHER_CTX *begin(const naive_key_t *key, const uint8_t *nonce, const void *aad,
                             size_t aad_bytes, size_t text_bytes, int encrypt)
{
    EVP_CIPHER_CTX *context = text_bytes > INT_MAX ? NULL : EVP_CIPHER_CTX_new();
    int written;

    if (NULL == context || 1 != EVP_CipherInit_ex(context, lookup(key->cipher), NULL, key->raw, nonce, encrypt)) {
        goto failed;
    }
    if (aad_bytes > INT_MAX || (aad_bytes > 0 && 1 != EVP_CipherUpdate(context, NULL, &written, aad, (int) aad_bytes))) {
        goto failed;
    }
    return context;

failed:
    EVP_CIPHER_CTX_free(context);
    return NULL;
}

static int seal(opal_aead_context_t *unused, const void *key, const uint8_t nonce[OPAL_AEAD_NONCE_BYTES],
                const void *aad, size_t aad_bytes, const void *plain, size_t text_bytes,
                void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    EVP_CIPHER_CTX *context = begin(key, nonce, aad, aad_bytes, text_bytes, 1);
    int written, rc = OPAL_AEAD_ERROR;

    (void) unused;
    if (NULL != context && 1 == EVP_EncryptUpdate(context, cipher, &written, plain, (int) text_bytes)
        && 1 == EVP_EncryptFinal_ex(context, (uint8_t *) cipher + written, &written)
        && 1 == EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, OPAL_AEAD_TAG_BYTES, tag)) {
        rc = OPAL_AEAD_OK;
    }
    EVP_CIPHER_CTX_free(context);
    return rc;
}

static int open_sealed(opal_aead_context_t *unused, const void *key, const uint8_t nonce[OPAL_AEAD_NONCE_BYTES],
                       const void *aad, size_t aad_bytes, const void *cipher, size_t text_bytes,
                       const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain)
{
    EVP_CIPHER_CTX *context = begin(key, nonce, aad, aad_bytes, text_bytes, 0);
    uint8_t expected[OPAL_AEAD_TAG_BYTES];
    int written, rc = OPAL_AEAD_ERROR;

    (void) unused;
    memcpy(expected, tag, sizeof(expected));
    if (NULL != context && 1 == EVP_DecryptUpdate(context, plain, &written, cipher, (int) text_bytes)
        && 1 == EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, OPAL_AEAD_TAG_BYTES, expected)) {
        rc = 1 == EVP_DecryptFinal_ex(context, (uint8_t *) plain + written, &written)
           ? OPAL_AEAD_OK : OPAL_AEAD_REFUSED;
    }
    if (OPAL_AEAD_REFUSED == rc) {
        OPENSSL_cleanse(plain, text_bytes);
    }
    EVP_CIPHER_CTX_free(context);
    return rc;
}

const opal_aead_module_t mpicrypt_speed_naive = {
    .name = "openssl-naive",
    .ciphers = OPAL_AEAD_ALL,
    .version = version,
    .key_bytes = sizeof(naive_key_t),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = opal_aead_no_context_new,
    .context_free = opal_aead_no_context_free,
    .seal = seal,
    .open = open_sealed
};

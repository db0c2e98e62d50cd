/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seal and open with libcrypto.  Ciphers are fetched once per process and EVP contexts cached per key and thread
 * (aead_openssl_cache.c): a message costs one EVP_CipherInit_ex2 with its nonce and no fetch or allocation.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/params.h>
#include <openssl/provider.h>

#include "opal/mca/aead/aead_util.h"
#include "aead_openssl.h"

/* EVP lengths are int: long texts are processed in pieces of whole blocks. */
#define PIECE ((size_t) 1 << 30)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static EVP_CIPHER *fetched[OPAL_AEAD_CIPHERS];
static atomic_bool ended;               /* libcrypto has cleaned up, at exit */
static int end_is_watched;

/* ---- start and end ---- */

static void on_end(void)
{
    atomic_store(&ended, true);
}

const EVP_CIPHER *opal_aead_openssl_cipher(opal_aead_cipher_t cipher)
{
    return atomic_load_explicit(&ended, memory_order_relaxed) ? NULL : fetched[cipher];
}

/* The FIPS provider's implementation is preferred if that provider is active. */
int opal_aead_openssl_init(void)
{
    int rc = OPAL_AEAD_ERROR;

    pthread_mutex_lock(&lock);
    opal_aead_openssl_take_over();
    if (atomic_load(&ended)) {
        goto out;
    }
    if (!end_is_watched) {
        end_is_watched = OPENSSL_atexit(on_end);
        if (!end_is_watched) {
            goto out;
        }
    }
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        if (NULL == fetched[c]) {
            ERR_set_mark();             /* leave no errors of ours to the application */
            fetched[c] = EVP_CIPHER_fetch(NULL, opal_aead_cipher_name(c), "?fips=yes");
            ERR_pop_to_mark();
        }
        if (NULL != fetched[c]) {
            opal_aead_openssl_module.ciphers |= OPAL_AEAD_BIT(c);
            rc = OPAL_AEAD_OK;
        }
    }
out:
    pthread_mutex_unlock(&lock);
    return rc;
}

void opal_aead_openssl_fini(void)
{
    pthread_mutex_lock(&lock);
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        if (!atomic_load(&ended)) {
            EVP_CIPHER_free(fetched[c]);
        }
        fetched[c] = NULL;
    }
    opal_aead_openssl_module.ciphers = 0;
    pthread_mutex_unlock(&lock);
}

int opal_aead_openssl_is_fips(void)
{
    for (int c = OPAL_AEAD_AES_128_GCM; c <= OPAL_AEAD_AES_256_GCM; ++c) {
        if (NULL == fetched[c]
            || 0 != strcmp("fips", OSSL_PROVIDER_get0_name(EVP_CIPHER_get0_provider(fetched[c])))) {
            return 0;
        }
    }
    return 1;
}

/* Since 3.1 libcrypto has AES-GCM for wide vectors. */
int opal_aead_openssl_priority(opal_aead_cipher_t cipher)
{
    return OPAL_AEAD_CHACHA20_POLY1305 == cipher ? 70 : opal_aead_cpu_wide_aes() && 0x30100000UL <= OpenSSL_version_num() ? 70 : 50;
}

static const char *version(void)
{
    static char text[48];

    snprintf(text, sizeof(text), "OpenSSL %s", OpenSSL_version(OPENSSL_VERSION_STRING));
    return text;
}

static const char *note(void)
{
    return OPAL_AEAD_OPENSSL_NO_CORE_FILES == opal_aead_openssl_guard()
         ? "core files are off: OpenSSL was used before (by the application or btl/crypt), or has an allocator of the application's, so its memory cannot be kept out of them"
         : NULL;
}

/* ---- keys ---- */

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *block)
{
    opal_aead_openssl_key_t *key = block;

    if (NULL == opal_aead_openssl_cipher(cipher)) {
        return OPAL_AEAD_ERROR;
    }
    memset(key, 0, sizeof(*key));
    key->cipher = cipher;
    memcpy(key->raw, raw, opal_aead_raw_key_bytes(cipher));
    opal_aead_vectors_wipe();
    key->id = opal_aead_openssl_key_id();
    return OPAL_AEAD_OK;
}

static void key_wipe(void *block)
{
    opal_aead_openssl_key_t *key = block;

    if (0 != key->id) {
        opal_aead_openssl_key_gone(key->id);
    }
    opal_aead_wipe(key, sizeof(*key));
}

/* ---- messages ---- */

/* NULL out: additional data. */
static int feed(EVP_CIPHER_CTX *evp, const uint8_t *in, size_t bytes, uint8_t *out)
{
    int written;

    while (0 < bytes) {
        const size_t now = bytes < PIECE ? bytes : PIECE;

        if (1 != EVP_CipherUpdate(evp, out, &written, in, (int) now)) {
            return 0;
        }
        in += now;
        out = NULL == out ? NULL : out + now;
        bytes -= now;
    }
    return 1;
}

/* For more than 16 blocks of text or additional data libcrypto's GCM for wide vectors puts powers of GHASH's key on
 * the stack, and leaves them there.  Its ChaCha20 leaves the key there at any length, if the CPU has no AVX-512. */
#define STACK_STAYS_CLEAN 128

static void wipe_traces(opal_aead_cipher_t cipher, size_t aad_bytes, size_t text_bytes)
{
    if (OPAL_AEAD_CHACHA20_POLY1305 != cipher && text_bytes <= STACK_STAYS_CLEAN && aad_bytes <= STACK_STAYS_CLEAN) {
        opal_aead_vectors_wipe();
    } else {
        opal_aead_traces_wipe();
    }
}

static int seal_joined(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                       const void *aad, size_t aad_bytes,
                       const opal_aead_piece_t *plain, int plain_count, void *cipher, uint8_t *tag)
{
    const opal_aead_openssl_key_t *key = block;
    EVP_CIPHER_CTX *evp = opal_aead_openssl_context_for(context, key);
    OSSL_PARAM get_tag[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag, OPAL_AEAD_TAG_BYTES),
        OSSL_PARAM_END
    };
    uint8_t none[EVP_MAX_BLOCK_LENGTH], *out = cipher;
    size_t text_bytes = 0;
    int written;
    bool good;

    for (int i = 0; i < plain_count; ++i) {
        if (__builtin_add_overflow(text_bytes, plain[i].bytes, &text_bytes)) {
            return OPAL_AEAD_ERROR;
        }
    }
    if (NULL == evp || !opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    good = 1 == EVP_EncryptInit_ex2(evp, NULL, NULL, nonce, NULL) && feed(evp, aad, aad_bytes, NULL);
    for (int i = 0; i < plain_count && good; out += plain[i++].bytes) {
        good = feed(evp, plain[i].base, plain[i].bytes, out);
    }
    good = good && 1 == EVP_EncryptFinal_ex(evp, none, &written)
        && 1 == EVP_CIPHER_CTX_get_params(evp, get_tag);
    wipe_traces(key->cipher, aad_bytes, text_bytes);
    if (!good) {
        opal_aead_wipe(cipher, text_bytes);
        return OPAL_AEAD_ERROR;
    }
    return OPAL_AEAD_OK;
}

static int seal(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    const opal_aead_piece_t piece = {plain, text_bytes};

    return seal_joined(context, block, nonce, aad, aad_bytes, &piece, 1, cipher, tag);
}

static int open_(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                 const void *aad, size_t aad_bytes,
                 const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    const opal_aead_openssl_key_t *key = block;
    EVP_CIPHER_CTX *evp = opal_aead_openssl_context_for(context, key);
    uint8_t tag_copy[OPAL_AEAD_TAG_BYTES];
    OSSL_PARAM set_tag[] = {
        OSSL_PARAM_octet_string(OSSL_CIPHER_PARAM_AEAD_TAG, tag_copy, OPAL_AEAD_TAG_BYTES),
        OSSL_PARAM_END
    };
    uint8_t none[EVP_MAX_BLOCK_LENGTH];
    int written, rc = OPAL_AEAD_ERROR;

    if (NULL == evp || !opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    memcpy(tag_copy, tag, sizeof(tag_copy));
    if (1 == EVP_DecryptInit_ex2(evp, NULL, NULL, nonce, set_tag)
        && feed(evp, aad, aad_bytes, NULL)
        && feed(evp, cipher, text_bytes, plain)) {
        rc = 1 == EVP_DecryptFinal_ex(evp, none, &written) ? OPAL_AEAD_OK : OPAL_AEAD_REFUSED;
    }
    wipe_traces(key->cipher, aad_bytes, text_bytes);
    if (OPAL_AEAD_OK != rc) {
        opal_aead_wipe(plain, text_bytes);
    }
    return rc;
}

opal_aead_module_t opal_aead_openssl_module = {
    .name = "openssl",
    .version = version,
    .note = note,
    .key_bytes = sizeof(opal_aead_openssl_key_t),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = opal_aead_openssl_context_new,
    .context_free = opal_aead_openssl_context_free,
    .seal = seal,
    .open = open_,
    .seal_joined = seal_joined
};

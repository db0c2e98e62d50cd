/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider PLAINTEXT: it copies texts, and ignores tags.  It serves to measure what copies, waits and hand-overs
 * cost besides the cipher.
 *
 * It is compiled only if configure was given --enable-no-crypto.  Then it replaces every other provider
 * (cryptproc_provider.c), each job reports it, and processes of other builds refuse to talk to it
 * (cryptproc_record.c).  It is not a component: no parameter, environment or file can bring it into another build, and
 * anything that copies like it fails the self-test of the aead framework.
 */
#include "cryptproc_internal.h"

#include <string.h>

#ifdef OPAL_CRYPT_TEST_NO_CRYPTO

static const char *version(void)
{
    return "no encryption";
}

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *key)
{
    (void) cipher, (void) raw;
    memset(key, 0, OPAL_AEAD_KEY_ALIGN);
    return OPAL_AEAD_OK;
}

static void key_wipe(void *key)
{
    (void) key;
}

static int context_new(opal_aead_context_t **context)
{
    static char one;                /* shared by all: it has no contents */

    *context = (opal_aead_context_t *) &one;
    return OPAL_AEAD_OK;
}

static void context_free(opal_aead_context_t *context)
{
    (void) context;
}

static int copy_in(opal_aead_context_t *context, const void *key, const uint8_t *nonce, const void *aad,
                   size_t aad_bytes, const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    (void) context, (void) key, (void) nonce, (void) aad, (void) aad_bytes;
    memmove(cipher, plain, text_bytes);
    memset(tag, 0, OPAL_AEAD_TAG_BYTES);
    return OPAL_AEAD_OK;
}

static int copy_out(opal_aead_context_t *context, const void *key, const uint8_t *nonce, const void *aad,
                    size_t aad_bytes, const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    (void) context, (void) key, (void) nonce, (void) aad, (void) aad_bytes, (void) tag;
    memmove(plain, cipher, text_bytes);
    return OPAL_AEAD_OK;
}

static const opal_aead_module_t plaintext = {
    .name = "PLAINTEXT",
    .ciphers = OPAL_AEAD_ALL,
    .version = version,
    .key_bytes = OPAL_AEAD_KEY_ALIGN,
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = context_new,
    .context_free = context_free,
    .seal = copy_in,
    .open = copy_out
};

const opal_aead_module_t *opal_cryptproc_plaintext(void)
{
    return &plaintext;
}

#else

const opal_aead_module_t *opal_cryptproc_plaintext(void)
{
    return NULL;
}

#endif

bool opal_cryptproc_encrypts(void)
{
    return NULL == opal_cryptproc_plaintext();
}

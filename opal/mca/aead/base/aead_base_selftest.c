/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The self-test that a provider passes before it is used: a published answer
 * for each cipher, and one message long enough to reach the code that works on
 * many blocks at once.
 */
#include <string.h>

#include "opal/mca/aead/aead_util.h"
#include "opal/mca/aead/base/aead_base_choose.h"

#define SHORT_BYTES 60
#define LONG_BYTES  4099        /* the last block is not whole */
#define LONG_AAD    37

/* A known answer.  The key block is the caller's, large enough. */
typedef struct {
    const uint8_t *raw_key, *nonce, *aad, *plain, *cipher, *tag;
    size_t aad_bytes, text_bytes;       /* cipher may be NULL: the tag covers it */
} answer_t;

/* McGrew and Viega, "The Galois/Counter Mode of Operation (GCM)", test cases
 * 4, 10 and 16: one nonce, additional data and text under three key lengths. */
static const uint8_t gcm_key[32] = {
    0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08,
    0xfe, 0xff, 0xe9, 0x92, 0x86, 0x65, 0x73, 0x1c, 0x6d, 0x6a, 0x8f, 0x94, 0x67, 0x30, 0x83, 0x08
};
static const uint8_t gcm_nonce[OPAL_AEAD_NONCE_BYTES] = {
    0xca, 0xfe, 0xba, 0xbe, 0xfa, 0xce, 0xdb, 0xad, 0xde, 0xca, 0xf8, 0x88
};
static const uint8_t gcm_aad[20] = {
    0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef, 0xfe, 0xed, 0xfa, 0xce, 0xde, 0xad, 0xbe, 0xef,
    0xab, 0xad, 0xda, 0xd2
};
static const uint8_t gcm_plain[SHORT_BYTES] = {
    0xd9, 0x31, 0x32, 0x25, 0xf8, 0x84, 0x06, 0xe5, 0xa5, 0x59, 0x09, 0xc5, 0xaf, 0xf5, 0x26, 0x9a,
    0x86, 0xa7, 0xa9, 0x53, 0x15, 0x34, 0xf7, 0xda, 0x2e, 0x4c, 0x30, 0x3d, 0x8a, 0x31, 0x8a, 0x72,
    0x1c, 0x3c, 0x0c, 0x95, 0x95, 0x68, 0x09, 0x53, 0x2f, 0xcf, 0x0e, 0x24, 0x49, 0xa6, 0xb5, 0x25,
    0xb1, 0x6a, 0xed, 0xf5, 0xaa, 0x0d, 0xe6, 0x57, 0xba, 0x63, 0x7b, 0x39
};
static const uint8_t gcm_cipher[3][SHORT_BYTES] = {
    {
        0x42, 0x83, 0x1e, 0xc2, 0x21, 0x77, 0x74, 0x24, 0x4b, 0x72, 0x21, 0xb7, 0x84, 0xd0, 0xd4, 0x9c,
        0xe3, 0xaa, 0x21, 0x2f, 0x2c, 0x02, 0xa4, 0xe0, 0x35, 0xc1, 0x7e, 0x23, 0x29, 0xac, 0xa1, 0x2e,
        0x21, 0xd5, 0x14, 0xb2, 0x54, 0x66, 0x93, 0x1c, 0x7d, 0x8f, 0x6a, 0x5a, 0xac, 0x84, 0xaa, 0x05,
        0x1b, 0xa3, 0x0b, 0x39, 0x6a, 0x0a, 0xac, 0x97, 0x3d, 0x58, 0xe0, 0x91
    },
    {
        0x39, 0x80, 0xca, 0x0b, 0x3c, 0x00, 0xe8, 0x41, 0xeb, 0x06, 0xfa, 0xc4, 0x87, 0x2a, 0x27, 0x57,
        0x85, 0x9e, 0x1c, 0xea, 0xa6, 0xef, 0xd9, 0x84, 0x62, 0x85, 0x93, 0xb4, 0x0c, 0xa1, 0xe1, 0x9c,
        0x7d, 0x77, 0x3d, 0x00, 0xc1, 0x44, 0xc5, 0x25, 0xac, 0x61, 0x9d, 0x18, 0xc8, 0x4a, 0x3f, 0x47,
        0x18, 0xe2, 0x44, 0x8b, 0x2f, 0xe3, 0x24, 0xd9, 0xcc, 0xda, 0x27, 0x10
    },
    {
        0x52, 0x2d, 0xc1, 0xf0, 0x99, 0x56, 0x7d, 0x07, 0xf4, 0x7f, 0x37, 0xa3, 0x2a, 0x84, 0x42, 0x7d,
        0x64, 0x3a, 0x8c, 0xdc, 0xbf, 0xe5, 0xc0, 0xc9, 0x75, 0x98, 0xa2, 0xbd, 0x25, 0x55, 0xd1, 0xaa,
        0x8c, 0xb0, 0x8e, 0x48, 0x59, 0x0d, 0xbb, 0x3d, 0xa7, 0xb0, 0x8b, 0x10, 0x56, 0x82, 0x88, 0x38,
        0xc5, 0xf6, 0x1e, 0x63, 0x93, 0xba, 0x7a, 0x0a, 0xbc, 0xc9, 0xf6, 0x62
    }
};
static const uint8_t gcm_tag[3][OPAL_AEAD_TAG_BYTES] = {
    { 0x5b, 0xc9, 0x4f, 0xbc, 0x32, 0x21, 0xa5, 0xdb, 0x94, 0xfa, 0xe9, 0x5a, 0xe7, 0x12, 0x1a, 0x47 },
    { 0x25, 0x19, 0x49, 0x8e, 0x80, 0xf1, 0x47, 0x8f, 0x37, 0xba, 0x55, 0xbd, 0x6d, 0x27, 0x61, 0x8c },
    { 0x76, 0xfc, 0x6e, 0xce, 0x0f, 0x4e, 0x17, 0x68, 0xcd, 0xdf, 0x88, 0x53, 0xbb, 0x2d, 0x55, 0x1b }
};

/* RFC 8439, section 2.8.2.  The ciphertext is checked through its tag. */
static const uint8_t chacha_key[32] = {
    0x80, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x8b, 0x8c, 0x8d, 0x8e, 0x8f,
    0x90, 0x91, 0x92, 0x93, 0x94, 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0x9b, 0x9c, 0x9d, 0x9e, 0x9f
};
static const uint8_t chacha_nonce[OPAL_AEAD_NONCE_BYTES] = {
    0x07, 0x00, 0x00, 0x00, 0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47
};
static const uint8_t chacha_aad[12] = {
    0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7
};
static const char chacha_plain[] =
    "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the future, "
    "sunscreen would be it.";
static const uint8_t chacha_tag[OPAL_AEAD_TAG_BYTES] = {
    0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a, 0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60, 0x06, 0x91
};

/* The long message: key byte i = i, nonce byte i = 0xa0 + i, additional data
 * byte i = 3 i, text byte i = 7 i + i / 256, all modulo 256. */
static const uint8_t long_tag[OPAL_AEAD_CIPHERS][OPAL_AEAD_TAG_BYTES] = {
    [OPAL_AEAD_AES_128_GCM] =
    { 0x07, 0x66, 0xd5, 0xa8, 0xe7, 0xc8, 0x72, 0x69, 0x41, 0xd5, 0x67, 0xcf, 0x7c, 0x35, 0x34, 0x77 },
    [OPAL_AEAD_AES_192_GCM] =
    { 0x1a, 0xde, 0x91, 0x52, 0xb5, 0x8b, 0x2e, 0x09, 0x92, 0xf2, 0xe1, 0x8f, 0x1d, 0x2a, 0x24, 0x1d },
    [OPAL_AEAD_AES_256_GCM] =
    { 0x33, 0xa1, 0x0c, 0x2b, 0x87, 0xc4, 0x9c, 0x98, 0x3a, 0x00, 0x00, 0x27, 0x70, 0x30, 0x85, 0x2b },
    [OPAL_AEAD_CHACHA20_POLY1305] =
    { 0x95, 0xf5, 0x87, 0x87, 0x0a, 0x0a, 0x4d, 0x20, 0x94, 0x12, 0x09, 0xf6, 0x4f, 0x95, 0x85, 0x77 }
};

static bool all_zero(const uint8_t *bytes, size_t count)
{
    uint8_t all = 0;

    for (size_t i = 0; i < count; ++i) {
        all |= bytes[i];
    }
    return 0 == all;
}

/* The same, of pieces, and with the last byte apart.  `text` has what was sealed. */
static bool answers_in_parts(const opal_aead_module_t *module, opal_aead_context_t *context, const void *key,
                             const opal_aead_aad_t *aad, const answer_t *answer, const uint8_t *text)
{
    const size_t bytes = answer->text_bytes;
    const opal_aead_piece_t plain[3] = {
        { answer->plain, 21 }, { answer->plain + 21, bytes - 22 }, { answer->plain + bytes - 1, 1 }
    };
    uint8_t got[LONG_BYTES], tag[OPAL_AEAD_TAG_BYTES], last;

    memset(got, 0, sizeof(got));
    if (OPAL_AEAD_OK != module->seal_joined(context, key, answer->nonce, aad, 2, plain, 3, got, tag)
        || 0 != memcmp(tag, answer->tag, sizeof(tag)) || 0 != memcmp(got, text, bytes)
        || OPAL_AEAD_OK != module->open_apart(context, key, answer->nonce, aad, 2, text, bytes - 1, tag, got, &last)
        || 0 != memcmp(got, answer->plain, bytes - 1) || answer->plain[bytes - 1] != last) {
        return false;
    }
    tag[0] ^= 0x80;
    return OPAL_AEAD_REFUSED == module->open_apart(context, key, answer->nonce, aad, 2, text, bytes - 1, tag, got, &last)
        && all_zero(got, bytes - 1) && 0 == last;
}

/* Sealed as expected, opened again, a forgery refused and wiped. */
static bool answers(const opal_aead_module_t *module, opal_aead_cipher_t cipher,
                    opal_aead_context_t *context, void *key, const answer_t *answer)
{
    const opal_aead_aad_t aad[2] = {        /* in two pieces */
        { answer->aad, 5 },
        { answer->aad + 5, answer->aad_bytes - 5 }
    };
    uint8_t text[LONG_BYTES];
    uint8_t tag[OPAL_AEAD_TAG_BYTES];
    const size_t bytes = answer->text_bytes;
    bool good = false;

    if (OPAL_AEAD_OK != module->key_init(cipher, answer->raw_key, key)) {
        return false;
    }
    if (OPAL_AEAD_OK != module->seal(context, key, answer->nonce, aad, 2, answer->plain, bytes, text, tag)
        || 0 != memcmp(tag, answer->tag, sizeof(tag))
        || (NULL != answer->cipher && 0 != memcmp(text, answer->cipher, bytes))
        || ((NULL == module->seal_joined) != (NULL == module->open_apart))
        || (NULL != module->seal_joined && !answers_in_parts(module, context, key, aad, answer, text))
        || OPAL_AEAD_OK != module->open(context, key, answer->nonce, aad, 2, text, bytes, tag, text)
        || 0 != memcmp(text, answer->plain, bytes)) {
        goto out;
    }
    if (OPAL_AEAD_OK != module->seal(context, key, answer->nonce, aad, 2, text, bytes, text, tag)) {
        goto out;
    }
    tag[15] ^= 1;
    good = OPAL_AEAD_REFUSED == module->open(context, key, answer->nonce, aad, 2, text, bytes, tag, text)
        && all_zero(text, bytes);
out:
    module->key_wipe(key);
    return good;
}

static bool short_answer(const opal_aead_module_t *module, opal_aead_cipher_t cipher,
                         opal_aead_context_t *context, void *key)
{
    answer_t answer = {
        chacha_key, chacha_nonce, chacha_aad, (const uint8_t *) chacha_plain, NULL, chacha_tag,
        sizeof(chacha_aad), sizeof(chacha_plain) - 1
    };

    if (OPAL_AEAD_CHACHA20_POLY1305 != cipher) {
        answer = (answer_t) {
            gcm_key, gcm_nonce, gcm_aad, gcm_plain, gcm_cipher[cipher], gcm_tag[cipher],
            sizeof(gcm_aad), SHORT_BYTES
        };
    }
    return answers(module, cipher, context, key, &answer);
}

static bool long_answer(const opal_aead_module_t *module, opal_aead_cipher_t cipher,
                        opal_aead_context_t *context, void *key)
{
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES], nonce[OPAL_AEAD_NONCE_BYTES], aad[LONG_AAD], text[LONG_BYTES];
    const answer_t answer = { raw, nonce, aad, text, NULL, long_tag[cipher], LONG_AAD, LONG_BYTES };

    for (size_t i = 0; i < LONG_BYTES; ++i) {
        text[i] = (uint8_t) (7 * i + i / 256);
    }
    for (size_t i = 0; i < LONG_AAD; ++i) {
        aad[i] = (uint8_t) (3 * i);
    }
    for (size_t i = 0; i < sizeof(raw); ++i) {
        raw[i] = (uint8_t) i;
    }
    for (size_t i = 0; i < sizeof(nonce); ++i) {
        nonce[i] = (uint8_t) (0xa0 + i);
    }
    return answers(module, cipher, context, key, &answer);
}

int opal_aead_base_selftest(const opal_aead_module_t *module, opal_aead_cipher_t cipher)
{
    const size_t key_bytes = module->key_bytes(cipher);
    opal_aead_context_t *context = NULL;
    void *key = opal_aead_pages_alloc(key_bytes);      /* page-aligned */
    int rc = OPAL_AEAD_ERROR;

    if (NULL != key && OPAL_AEAD_OK == module->context_new(&context)
        && short_answer(module, cipher, context, key) && long_answer(module, cipher, context, key)) {
        rc = OPAL_AEAD_OK;
    }
    if (NULL != context) {
        module->context_free(context);
    }
    opal_aead_pages_free(key, key_bytes);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seal and open with libipsec-mb.
 *
 * One IMB_MGR serves the process: the direct calls only read its functions for this CPU.  Expanded keys are in the
 * caller's memory and read-only after key_init; whatever else a message needs is in the context.
 *
 * The library computes tags and never compares them: open does, in constant
 * time, and wipes the text of a message that it refuses.
 */
#include <pthread.h>
#include <stdio.h>

#include <intel-ipsec-mb.h>

#include "opal/mca/aead/aead_util.h"

OPAL_AEAD_PROVIDER(ipsecmb);

/* The longest text for one call; longer ones are processed in pieces. */
#define PIECE ((size_t) 1 << 30)

struct opal_aead_context {
    union {
        struct gcm_context_data gcm;
        struct chacha20_poly1305_context_data chacha;
    } state __attribute__((aligned(64)));
};

typedef struct {
    union {
        struct gcm_key_data gcm;
        uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    } data __attribute__((aligned(OPAL_AEAD_KEY_ALIGN)));
    opal_aead_cipher_t cipher;
} ipsecmb_key_t;

/* The library's functions for one key length. */
typedef struct {
    aes_gcm_pre_t expand;
    aes_gcm_init_t begin;
    aes_gcm_enc_dec_t seal, open;
    aes_gcm_enc_dec_update_t seal_more, open_more;
    aes_gcm_enc_dec_finalize_t seal_end, open_end;
} gcm_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static IMB_MGR *manager;
static gcm_t gcm[OPAL_AEAD_CIPHERS];       /* ChaCha20-Poly1305's stays empty */

/* ---- start and end ---- */

static void take_functions(const IMB_MGR *m)
{
    gcm[OPAL_AEAD_AES_128_GCM] = (gcm_t) {
        m->gcm128_pre, m->gcm128_init, m->gcm128_enc, m->gcm128_dec,
        m->gcm128_enc_update, m->gcm128_dec_update, m->gcm128_enc_finalize, m->gcm128_dec_finalize
    };
    gcm[OPAL_AEAD_AES_192_GCM] = (gcm_t) {
        m->gcm192_pre, m->gcm192_init, m->gcm192_enc, m->gcm192_dec,
        m->gcm192_enc_update, m->gcm192_dec_update, m->gcm192_enc_finalize, m->gcm192_dec_finalize
    };
    gcm[OPAL_AEAD_AES_256_GCM] = (gcm_t) {
        m->gcm256_pre, m->gcm256_init, m->gcm256_enc, m->gcm256_dec,
        m->gcm256_enc_update, m->gcm256_dec_update, m->gcm256_enc_finalize, m->gcm256_dec_finalize
    };
}

/* The library's emulation of AES, for CPUs without it, is not used. */
static bool usable(IMB_MGR *m)
{
    const uint64_t needed = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;

    return 0 == imb_get_errno(m) && needed == (m->features & needed)
        && (0 == (m->features & IMB_FEATURE_SELF_TEST) || 0 != (m->features & IMB_FEATURE_SELF_TEST_PASS));
}

int opal_aead_ipsecmb_init(void)
{
    int rc = OPAL_AEAD_ERROR;

    pthread_mutex_lock(&lock);
    if (NULL == manager) {
        manager = alloc_mb_mgr(0);
        if (NULL == manager) {
            goto out;
        }
        init_mb_mgr_auto(manager, NULL);
        if (!usable(manager)) {
            free_mb_mgr(manager);
            manager = NULL;
            goto out;
        }
        take_functions(manager);
        opal_aead_ipsecmb_module.ciphers = OPAL_AEAD_ALL;
    }
    rc = OPAL_AEAD_OK;
out:
    pthread_mutex_unlock(&lock);
    return rc;
}

void opal_aead_ipsecmb_fini(void)
{
    pthread_mutex_lock(&lock);
    if (NULL != manager) {
        free_mb_mgr(manager);
        manager = NULL;
    }
    opal_aead_ipsecmb_module.ciphers = 0;
    pthread_mutex_unlock(&lock);
}

int opal_aead_ipsecmb_priority(opal_aead_cipher_t cipher)
{
    return OPAL_AEAD_CHACHA20_POLY1305 == cipher ? 60 : opal_aead_cpu_wide_aes() ? 80 : 55;
}

static const char *version(void)
{
    static char text[64];

    snprintf(text, sizeof(text), "intel-ipsec-mb %s", imb_get_version_str());
    return text;
}

/* ---- keys and contexts ---- */

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *block)
{
    ipsecmb_key_t *key = block;

    if (NULL == manager || 0 == (opal_aead_ipsecmb_module.ciphers & OPAL_AEAD_BIT(cipher))) {
        return OPAL_AEAD_ERROR;
    }
    key->cipher = cipher;
    if (OPAL_AEAD_CHACHA20_POLY1305 == cipher) {
        memcpy(key->data.raw, raw, OPAL_AEAD_KEY_MAX_BYTES);
    } else {
        gcm[cipher].expand(raw, &key->data.gcm);
    }
    opal_aead_vectors_wipe();
    return OPAL_AEAD_OK;
}

static void key_wipe(void *key)
{
    opal_aead_wipe(key, sizeof(ipsecmb_key_t));
}

static int context_new(opal_aead_context_t **context)
{
    *context = opal_aead_pages_alloc(sizeof(**context));
    return NULL == *context ? OPAL_AEAD_ERROR : OPAL_AEAD_OK;
}

static void context_free(opal_aead_context_t *context)
{
    if (NULL != context) {
        opal_aead_pages_free(context, sizeof(*context));
    }
}

/* ---- messages: what seal and open share ---- */

/* For a message that takes several calls: begin, some text, some more, end. */
static void begin(opal_aead_context_t *context, const ipsecmb_key_t *key, const uint8_t *nonce, const uint8_t *aad,
                  size_t aad_bytes)
{
    if (OPAL_AEAD_CHACHA20_POLY1305 == key->cipher) {
        manager->chacha20_poly1305_init(key->data.raw, &context->state.chacha, nonce, aad, aad_bytes);
    } else {
        gcm[key->cipher].begin(&key->data.gcm, &context->state.gcm, nonce, aad, aad_bytes);
    }
}

static void some(opal_aead_context_t *context, const ipsecmb_key_t *key, bool sealing, const uint8_t *in, size_t bytes,
                 uint8_t *out)
{
    const gcm_t *g = &gcm[key->cipher];

    for (size_t now; 0 < bytes; in += now, out += now, bytes -= now) {
        now = bytes < PIECE ? bytes : PIECE;
        if (OPAL_AEAD_CHACHA20_POLY1305 == key->cipher) {
            (sealing ? manager->chacha20_poly1305_enc_update : manager->chacha20_poly1305_dec_update)(
                key->data.raw, &context->state.chacha, out, in, now);
        } else {
            (sealing ? g->seal_more : g->open_more)(&key->data.gcm, &context->state.gcm, out, in, now);
        }
    }
}

static void end(opal_aead_context_t *context, const ipsecmb_key_t *key, bool sealing, uint8_t *tag)
{
    const gcm_t *g = &gcm[key->cipher];

    if (OPAL_AEAD_CHACHA20_POLY1305 == key->cipher) {
        manager->chacha20_poly1305_finalize(&context->state.chacha, tag, OPAL_AEAD_TAG_BYTES);
    } else {
        (sealing ? g->seal_end : g->open_end)(&key->data.gcm, &context->state.gcm, tag, OPAL_AEAD_TAG_BYTES);
    }
}

static bool at_once(const ipsecmb_key_t *key, size_t bytes)
{
    return OPAL_AEAD_CHACHA20_POLY1305 != key->cipher && bytes <= PIECE;
}

/* ---- messages ---- */

/* The library's calls return nothing.  One that rejects its arguments leaves plaintext in place of the ciphertext; its
 * error number is the process's, which another thread may have cleared.  But then it has written no tag: this
 * placeholder is still there. */
static const uint8_t no_tag[OPAL_AEAD_TAG_BYTES] = "no tag was made";

static bool arguments_fit(const ipsecmb_key_t *key, const uint8_t *nonce, const void *in, size_t text_bytes, const void *out,
                          const uint8_t *tag)
{
    return NULL != manager && NULL != nonce && NULL != tag && (0 == text_bytes || (NULL != in && NULL != out))
        && opal_aead_text_fits(key->cipher, text_bytes);
}

/* Check and clean up after a call of the library. */
static int sealed(void *cipher, size_t text_bytes, const uint8_t *tag)
{
    opal_aead_vectors_wipe();
    if (0 == memcmp(tag, no_tag, sizeof(no_tag))) {
        opal_aead_wipe(cipher, text_bytes);
        return OPAL_AEAD_ERROR;
    }
    return OPAL_AEAD_OK;
}

static int opened(void *plain, size_t text_bytes, const uint8_t *tag, uint8_t expected[OPAL_AEAD_TAG_BYTES])
{
    int rc = OPAL_AEAD_OK;

    opal_aead_vectors_wipe();
    if (0 == memcmp(expected, no_tag, sizeof(no_tag))) {
        rc = OPAL_AEAD_ERROR;
    } else if (opal_aead_tags_differ(expected, tag)) {
        rc = OPAL_AEAD_REFUSED;
    }
    if (OPAL_AEAD_OK != rc) {
        opal_aead_wipe(plain, text_bytes);
    }
    opal_aead_wipe(expected, OPAL_AEAD_TAG_BYTES);      /* it could be used for a forgery */
    return rc;
}

static int seal(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    const ipsecmb_key_t *key = block;
    const gcm_t *g = &gcm[key->cipher];

    if (!arguments_fit(key, nonce, plain, text_bytes, cipher, tag)) {
        return OPAL_AEAD_ERROR;
    }
    memcpy(tag, no_tag, sizeof(no_tag));
    if (at_once(key, text_bytes)) {
        g->seal(&key->data.gcm, &context->state.gcm, cipher, plain, text_bytes, nonce,
                aad, aad_bytes, tag, OPAL_AEAD_TAG_BYTES);
    } else {
        begin(context, key, nonce, aad, aad_bytes);
        some(context, key, true, plain, text_bytes, cipher);
        end(context, key, true, tag);
    }
    return sealed(cipher, text_bytes, tag);
}

static int seal_joined(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                       const void *aad, size_t aad_bytes,
                       const opal_aead_piece_t *plain, int plain_count, void *cipher, uint8_t *tag)
{
    const ipsecmb_key_t *key = block;
    size_t text_bytes = 0;
    uint8_t *out = cipher;

    for (int i = 0; i < plain_count; ++i) {
        if (__builtin_add_overflow(text_bytes, plain[i].bytes, &text_bytes) || (0 < plain[i].bytes && NULL == plain[i].base)) {
            return OPAL_AEAD_ERROR;
        }
    }
    if (!arguments_fit(key, nonce, cipher, text_bytes, cipher, tag)) {
        return OPAL_AEAD_ERROR;
    }
    memcpy(tag, no_tag, sizeof(no_tag));
    begin(context, key, nonce, aad, aad_bytes);
    for (int i = 0; i < plain_count; out += plain[i++].bytes) {
        some(context, key, true, plain[i].base, plain[i].bytes, out);
    }
    end(context, key, true, tag);
    return sealed(cipher, text_bytes, tag);
}

static int open_(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                 const void *aad, size_t aad_bytes,
                 const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    const ipsecmb_key_t *key = block;
    const gcm_t *g = &gcm[key->cipher];
    uint8_t expected[OPAL_AEAD_TAG_BYTES];

    if (!arguments_fit(key, nonce, cipher, text_bytes, plain, tag)) {
        return OPAL_AEAD_ERROR;
    }
    memcpy(expected, no_tag, sizeof(no_tag));
    if (at_once(key, text_bytes)) {
        g->open(&key->data.gcm, &context->state.gcm, plain, cipher, text_bytes, nonce,
                aad, aad_bytes, expected, OPAL_AEAD_TAG_BYTES);
    } else {
        begin(context, key, nonce, aad, aad_bytes);
        some(context, key, false, cipher, text_bytes, plain);
        end(context, key, false, expected);
    }
    return opened(plain, text_bytes, tag, expected);
}

opal_aead_module_t opal_aead_ipsecmb_module = {
    .name = "ipsecmb",
    .version = version,
    .key_bytes = sizeof(ipsecmb_key_t),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = context_new,
    .context_free = context_free,
    .seal = seal,
    .open = open_,
    .seal_joined = seal_joined
};

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys and contexts for Crypto++.  Its objects change during use, so they belong to a context, which keeps one per key
 * and direction, as many as it has slots:
 *
 *     2 id + opening --mod SLOTS--> | use | object |   use equal: use it
 *                                                      not equal: make anew
 *
 * Objects of wiped keys are freed, which wipes them, at the next use of the context (aead_gone.h); in a forked child
 * all get another key (aead_live.h).
 *
 * The objects keep round keys on the heap and offer no other place.  So the process is made to dump no core files once
 * the first context is made; `note` of the module says so in reports.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "opal/mca/aead/aead_gone.h"
#include "opal/mca/aead/aead_live.h"
#include "opal/mca/aead/aead_util.h"
#include "aead_cryptopp_cipher.h"

OPAL_AEAD_PROVIDER(cryptopp);

#define SLOTS 32

/* An expanded key.  The id is never used twice in a process; 0: wiped. */
typedef struct {
    uint64_t id;
    opal_aead_cipher_t cipher;
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
} cryptopp_key_t;

struct opal_aead_context {
    opal_aead_live_t live;
    uint64_t gone_seen;
    uint64_t uses[SLOTS];               /* 0: empty */
    opal_aead_cryptopp_cipher_t *objects[SLOTS];
};

static opal_aead_gone_t gone = OPAL_AEAD_GONE_INIT;
static opal_aead_live_list_t contexts = OPAL_AEAD_LIVE_LIST_INIT;

static pthread_once_t protect_once = PTHREAD_ONCE_INIT;
static bool no_core_files, watched;
static atomic_bool prepared;

/* ---- start and end ---- */

static void before_fork(void)
{
    opal_aead_live_lock(&contexts);
}

static void in_parent(void)
{
    opal_aead_live_unlock(&contexts);
}

static void in_child(void)
{
    for (opal_aead_live_t *live = contexts.first; NULL != live; live = live->next) {
        opal_aead_context_t *context = (opal_aead_context_t *) live;

        for (int slot = 0; slot < SLOTS; ++slot) {
            opal_aead_cryptopp_cipher_forget(context->objects[slot]);
            context->uses[slot] = 0;
        }
    }
    opal_aead_live_unlock(&contexts);
}

static void protect(void)
{
    no_core_files = opal_aead_no_core_files();
    watched = 0 == pthread_atfork(before_fork, in_parent, in_child);
    atomic_store(&prepared, true);
}

int opal_aead_cryptopp_init(void)
{
    opal_aead_cryptopp_module.ciphers = OPAL_AEAD_ALL;
    return OPAL_AEAD_OK;
}

void opal_aead_cryptopp_fini(void)
{
    opal_aead_cryptopp_module.ciphers = 0;
}

int opal_aead_cryptopp_priority(opal_aead_cipher_t cipher)
{
    (void) cipher;
    return 30;
}

static const char *version(void)
{
    static char text[32];
    const int number = opal_aead_cryptopp_version();

    snprintf(text, sizeof(text), "Crypto++ %d.%d", number / 100, number / 10 % 10);
    return text;
}

static const char *note(void)
{
    return atomic_load(&prepared)
         ? "core files are off: Crypto++'s memory cannot be kept out of them" : NULL;
}

/* ---- keys ---- */

static int key_init(opal_aead_cipher_t cipher, const uint8_t *raw, void *block)
{
    cryptopp_key_t *key = block;

    if (0 == (opal_aead_cryptopp_module.ciphers & OPAL_AEAD_BIT(cipher))) {
        return OPAL_AEAD_ERROR;
    }
    memset(key, 0, sizeof(*key));
    key->cipher = cipher;
    memcpy(key->raw, raw, opal_aead_raw_key_bytes(cipher));
    key->id = opal_aead_gone_new_id(&gone);
    return OPAL_AEAD_OK;
}

static void key_wipe(void *block)
{
    cryptopp_key_t *key = block;

    if (0 != key->id) {
        opal_aead_gone_add(&gone, key->id);
    }
    opal_aead_wipe(key, sizeof(*key));
}

/* ---- contexts ---- */

/* Clear the objects of one key, or, with id 0, all. */
static void clear_key(opal_aead_context_t *context, uint64_t id)
{
    opal_aead_live_lock(&contexts);
    for (int slot = 0; slot < SLOTS; ++slot) {
        if (0 == id || id == context->uses[slot] / 2) {
            opal_aead_cryptopp_cipher_free(context->objects[slot]);
            context->objects[slot] = NULL;
            context->uses[slot] = 0;
        }
    }
    opal_aead_live_unlock(&contexts);
}

static int context_new(opal_aead_context_t **context)
{
    *context = NULL;
    pthread_once(&protect_once, protect);
    if (!no_core_files || !watched) {
        return OPAL_AEAD_ERROR;
    }
    *context = calloc(1, sizeof(**context));
    if (NULL == *context) {
        return OPAL_AEAD_ERROR;
    }
    (*context)->gone_seen = opal_aead_gone_now(&gone);
    opal_aead_live_add(&contexts, &(*context)->live);
    return OPAL_AEAD_OK;
}

static void context_free(opal_aead_context_t *context)
{
    if (NULL != context) {
        clear_key(context, 0);
        opal_aead_live_lock(&contexts);
        opal_aead_live_remove(&context->live);
        opal_aead_live_unlock(&contexts);
        free(context);
    }
}

static opal_aead_cryptopp_cipher_t *object_for(opal_aead_context_t *context, const cryptopp_key_t *key,
                                               int opening)
{
    const uint64_t use = 2 * key->id + (uint64_t) opening;
    const int slot = (int) (use % SLOTS);

    if (0 == key->id) {
        return NULL;
    }
    opal_aead_gone_visit(&gone, &context->gone_seen, context, clear_key);
    if (use != context->uses[slot]) {
        opal_aead_live_lock(&contexts);
        opal_aead_cryptopp_cipher_free(context->objects[slot]);
        context->objects[slot] = opal_aead_cryptopp_cipher_new(key->cipher, key->raw, opening);
        context->uses[slot] = NULL == context->objects[slot] ? 0 : use;
        opal_aead_live_unlock(&contexts);
        opal_aead_traces_wipe();
    }
    return context->objects[slot];
}

/* ---- messages ---- */

static int seal(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                const void *aad, size_t aad_bytes,
                const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    const cryptopp_key_t *key = block;
    opal_aead_cryptopp_cipher_t *object = object_for(context, key, 0);
    int rc;

    if (NULL == object || !opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = opal_aead_cryptopp_cipher_run(object, nonce, aad, aad_bytes, plain, text_bytes, cipher, tag);
    opal_aead_traces_wipe();
    if (OPAL_AEAD_OK != rc) {
        opal_aead_wipe(cipher, text_bytes);
    }
    return rc;
}

static int open_(opal_aead_context_t *context, const void *block, const uint8_t *nonce,
                 const void *aad, size_t aad_bytes,
                 const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    const cryptopp_key_t *key = block;
    opal_aead_cryptopp_cipher_t *object = object_for(context, key, 1);
    uint8_t expected[OPAL_AEAD_TAG_BYTES];
    int rc;

    if (NULL == object || !opal_aead_text_fits(key->cipher, text_bytes)) {
        return OPAL_AEAD_ERROR;
    }
    rc = opal_aead_cryptopp_cipher_run(object, nonce, aad, aad_bytes, cipher, text_bytes, plain, expected);
    opal_aead_traces_wipe();
    if (OPAL_AEAD_OK == rc && opal_aead_tags_differ(expected, tag)) {
        rc = OPAL_AEAD_REFUSED;
    }
    if (OPAL_AEAD_OK != rc) {
        opal_aead_wipe(plain, text_bytes);
    }
    opal_aead_wipe(expected, sizeof(expected));     /* it could be used for a forgery */
    return rc;
}

opal_aead_module_t opal_aead_cryptopp_module = {
    .name = "cryptopp",
    .version = version,
    .note = note,
    .key_bytes = sizeof(cryptopp_key_t),
    .key_init = key_init,
    .key_wipe = key_wipe,
    .context_new = context_new,
    .context_free = context_free,
    .seal = seal,
    .open = open_
};

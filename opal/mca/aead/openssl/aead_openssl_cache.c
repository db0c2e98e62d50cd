/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A context holds, for every cipher used, a table of EVP contexts, indexed by the id of the key.  The whole table is
 * made at the first use of its cipher, so that no later message allocates: a key that is not in the table is loaded
 * into the EVP context that its id maps to.
 *
 *     key id --mod SLOTS--> | id | EVP_CIPHER_CTX |   id equal: use it
 *                                                     not equal: load the key
 *
 * Slots of wiped keys are cleared at the next use of the context (aead_gone.h); in a forked child all are, unless they
 * are in our own pages (aead_live.h).
 */
#include <stddef.h>
#include <stdlib.h>

#include "opal/mca/aead/aead_gone.h"
#include "opal/mca/aead/aead_live.h"
#include "opal/mca/aead/aead_util.h"
#include "aead_openssl.h"

#define SLOTS 32

typedef struct {
    uint64_t ids[SLOTS];                /* 0: empty */
    EVP_CIPHER_CTX *evp[SLOTS];
} table_t;

struct opal_aead_context {
    opal_aead_live_t live;
    uint64_t gone_seen;
    table_t *tables[OPAL_AEAD_CIPHERS];
};

static opal_aead_gone_t gone = OPAL_AEAD_GONE_INIT;
static opal_aead_live_list_t contexts = OPAL_AEAD_LIVE_LIST_INIT;
static pthread_once_t watch_once = PTHREAD_ONCE_INIT;
static bool watched;

static const uint8_t zeros[OPAL_AEAD_KEY_MAX_BYTES];

uint64_t opal_aead_openssl_key_id(void)
{
    return opal_aead_gone_new_id(&gone);
}

void opal_aead_openssl_key_gone(uint64_t id)
{
    opal_aead_gone_add(&gone, id);
}

static void clear_slot(table_t *table, int slot)
{
    if (0 != table->ids[slot]) {
        (void) EVP_EncryptInit_ex2(table->evp[slot], NULL, zeros, zeros, NULL);
        table->ids[slot] = 0;
    }
}

/* Clear the slots of one key, or, with id 0, all. */
static void clear_key(opal_aead_context_t *context, uint64_t id)
{
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        table_t *table = context->tables[c];

        for (int slot = 0; NULL != table && slot < SLOTS; ++slot) {
            if (0 == id || id == table->ids[slot]) {
                clear_slot(table, slot);
            }
        }
    }
}

/* ---- fork ---- */

static void before_fork(void)
{
    opal_aead_live_lock(&contexts);
}

static void in_parent(void)
{
    opal_aead_live_unlock(&contexts);
}

/* Also clear empty slots: a key may have been on its way there.  Neither call allocates, or takes a lock. */
static void in_child(void)
{
    for (opal_aead_live_t *live = contexts.first; NULL != live; live = live->next) {
        const opal_aead_context_t *context = (opal_aead_context_t *) live;

        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            table_t *table = context->tables[c];

            for (int slot = 0; slot < SLOTS && NULL != table
                               && NULL != opal_aead_openssl_cipher((opal_aead_cipher_t) c); ++slot) {
                table->ids[slot] = 0;
                if (!opal_aead_openssl_in_own_pages(table->evp[slot])) {        /* ours are zeros already */
                    (void) EVP_EncryptInit_ex2(table->evp[slot], NULL, zeros, zeros, NULL);
                }
            }
        }
    }
    opal_aead_live_unlock(&contexts);
}

static void watch(void)
{
    watched = 0 == pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- tables and contexts ---- */

static void table_free(table_t *table)
{
    if (NULL != table) {
        for (int slot = 0; slot < SLOTS; ++slot) {
            EVP_CIPHER_CTX_free(table->evp[slot]);
        }
        free(table);
    }
}

/* Keying an EVP context once makes libcrypto allocate all it will ever need. */
static table_t *table_new(const EVP_CIPHER *cipher)
{
    table_t *table = calloc(1, sizeof(*table));

    if (NULL == table) {
        return NULL;
    }
    opal_aead_openssl_secret_begin();
    for (int slot = 0; slot < SLOTS; ++slot) {
        table->evp[slot] = EVP_CIPHER_CTX_new();
        if (NULL == table->evp[slot]
            || 1 != EVP_EncryptInit_ex2(table->evp[slot], cipher, zeros, zeros, NULL)) {
            table_free(table);
            table = NULL;
            break;
        }
    }
    opal_aead_openssl_secret_end();
    return table;
}

int opal_aead_openssl_context_new(opal_aead_context_t **context)
{
    *context = NULL;
    pthread_once(&watch_once, watch);
    if (!watched || OPAL_AEAD_OPENSSL_NOT_GUARDED == opal_aead_openssl_guard()) {
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

void opal_aead_openssl_context_free(opal_aead_context_t *context)
{
    if (NULL == context) {
        return;
    }
    opal_aead_live_lock(&contexts);
    opal_aead_live_remove(&context->live);
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        /* After libcrypto's end its contexts can be neither freed nor used. */
        if (NULL != opal_aead_openssl_cipher((opal_aead_cipher_t) c)) {
            table_free(context->tables[c]);
        }
    }
    opal_aead_live_unlock(&contexts);
    free(context);
}

EVP_CIPHER_CTX *opal_aead_openssl_context_for(opal_aead_context_t *context,
                                              const opal_aead_openssl_key_t *key)
{
    const EVP_CIPHER *cipher = opal_aead_openssl_cipher(key->cipher);
    const int slot = (int) (key->id % SLOTS);
    table_t *table;

    if (NULL == cipher || 0 == key->id) {
        return NULL;
    }
    opal_aead_gone_visit(&gone, &context->gone_seen, context, clear_key);
    table = context->tables[key->cipher];
    if (NULL == table) {
        table = OPAL_AEAD_OPENSSL_NOT_GUARDED == opal_aead_openssl_guard() ? NULL : table_new(cipher);
        opal_aead_live_lock(&contexts);
        context->tables[key->cipher] = table;
        opal_aead_live_unlock(&contexts);
        if (NULL == table) {
            return NULL;
        }
    }
    if (key->id != table->ids[slot]) {
        table->ids[slot] = 0;
        if (1 != EVP_EncryptInit_ex2(table->evp[slot], NULL, key->raw, NULL, NULL)) {
            return NULL;
        }
        table->ids[slot] = key->id;
    }
    return table->evp[slot];
}

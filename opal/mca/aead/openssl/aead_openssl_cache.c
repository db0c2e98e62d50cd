/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A context holds, for every cipher it met, a table of EVP contexts, indexed
 * by the id of the key.  All of a table is made at the first use of its cipher,
 * so that no later message allocates: a key that is not in the table is loaded
 * into the EVP context that its id falls on.
 *
 *     key id --mod SLOTS--> | id | EVP_CIPHER_CTX |   id equal: use it
 *                                                     not equal: load the key
 *
 * Slots of wiped keys are cleared at the next use of the context (aead_gone.h).
 */
#include <stdlib.h>

#include "opal/mca/aead/aead_gone.h"
#include "opal/mca/aead/aead_util.h"
#include "aead_openssl.h"

#define SLOTS 32

typedef struct {
    uint64_t ids[SLOTS];                /* 0: empty */
    EVP_CIPHER_CTX *evp[SLOTS];
} table_t;

struct opal_aead_context {
    uint64_t gone_seen;
    table_t *tables[OPAL_AEAD_CIPHERS];
};

static opal_aead_gone_t gone = OPAL_AEAD_GONE_INIT;

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

/* Of one key, or with id 0 of all. */
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

static void table_free(table_t *table)
{
    if (NULL != table) {
        for (int slot = 0; slot < SLOTS; ++slot) {
            EVP_CIPHER_CTX_free(table->evp[slot]);
        }
        free(table);
    }
}

/* Keying an EVP context once makes libcrypto allocate all it ever needs. */
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
    if (OPAL_AEAD_OPENSSL_NOT_GUARDED == opal_aead_openssl_guard()) {
        return OPAL_AEAD_ERROR;
    }
    *context = calloc(1, sizeof(**context));
    if (NULL == *context) {
        return OPAL_AEAD_ERROR;
    }
    (*context)->gone_seen = opal_aead_gone_now(&gone);
    return OPAL_AEAD_OK;
}

void opal_aead_openssl_context_free(opal_aead_context_t *context)
{
    if (NULL == context) {
        return;
    }
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        /* After libcrypto's end its contexts can be neither freed nor used. */
        if (NULL != opal_aead_openssl_cipher((opal_aead_cipher_t) c)) {
            table_free(context->tables[c]);
        }
    }
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
        table = context->tables[key->cipher] = table_new(cipher);
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

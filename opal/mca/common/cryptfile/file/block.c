/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening one block.
 *
 * A sealer is one S with its key and its counter.  It is drawn at the first
 * seal and replaced when 2^42 bytes have been sealed; old ones stay until the
 * end, because another thread may still be sealing with a counter of theirs.
 *
 * To open, the key of the block's S is derived, and kept if the block opened:
 * a block that does not open leaves no trace, so an attacker cannot fill the table.
 */
#include "block.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define OPENERS 1024u                   /* a power of two; half of it is used */

typedef struct sealer {
    struct sealer *older;
    atomic_uint_fast64_t next;
    uint64_t limit;                     /* counters below this may be taken */
    uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES];
    void *key;                          /* expanded, secret memory */
    uint8_t id[32];                     /* names the key in test builds */
} sealer_t;

typedef struct opener {
    uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES];
    void *key;                          /* NULL: free */
} opener_t;

struct opal_cryptfile_blocks {
    const opal_aead_module_t *aead;
    opal_aead_cipher_t cipher;
    uint32_t block_bytes, region;
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    uint8_t *data_key;                  /* secret memory */
    uint64_t salt_limit;
    pthread_mutex_t draw;               /* held while a sealer is replaced */
    _Atomic(sealer_t *) sealer;
    pthread_rwlock_t table;
    opener_t openers[OPENERS];
    unsigned opener_count;
};

static_assert(16 + 4 + 4 + 8 + 4 == OPAL_CRYPTFILE_BLOCK_AAD_BYTES, "AAD");

int opal_cryptfile_blocks_create(const opal_cryptfile_blocks_of_t *of,
                                 opal_cryptfile_blocks_t **blocks)
{
    opal_cryptfile_blocks_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    made->data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
    if (NULL == made->data_key) {
        free(made);
        return OPAL_CRYPT_ERR_MEMORY;
    }
    memcpy(made->data_key, of->data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    memcpy(made->uuid, of->uuid, sizeof(made->uuid));
    made->aead = of->aead;
    made->cipher = of->cipher;
    made->block_bytes = of->block_bytes;
    made->region = of->region;
    made->salt_limit = 0 == of->salt_limit ? OPAL_CRYPTFILE_SALT_LIMIT_BYTES : of->salt_limit;
    pthread_mutex_init(&made->draw, NULL);
    pthread_rwlock_init(&made->table, NULL);
    atomic_init(&made->sealer, NULL);
    *blocks = made;
    return OPAL_CRYPT_OK;
}

static void free_key(const opal_aead_module_t *aead, void *key)
{
    if (NULL != key) {
        aead->key_wipe(key);
        opal_crypt_secmem_free(key);
    }
}

void opal_cryptfile_blocks_destroy(opal_cryptfile_blocks_t *blocks)
{
    if (NULL == blocks) {
        return;
    }
    for (sealer_t *sealer = atomic_load(&blocks->sealer); NULL != sealer;) {
        sealer_t *older = sealer->older;
        free_key(blocks->aead, sealer->key);
        free(sealer);
        sealer = older;
    }
    for (unsigned i = 0; i < OPENERS; ++i) {
        free_key(blocks->aead, blocks->openers[i].key);
    }
    pthread_rwlock_destroy(&blocks->table);
    pthread_mutex_destroy(&blocks->draw);
    opal_crypt_secmem_free(blocks->data_key);
    free(blocks);
}

/* The expanded block key of S, in secret memory of the caller. */
static int derive_key(const opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES],
                      void **key, uint8_t id[32])
{
    uint8_t context[OPAL_CRYPTFILE_UUID_BYTES + 4 + 1 + OPAL_CRYPTFILE_SALT_BYTES];
    uint8_t *raw = opal_crypt_secmem_alloc(OPAL_AEAD_KEY_MAX_BYTES);
    void *made = opal_crypt_secmem_alloc(blocks->aead->key_bytes);
    int rc = OPAL_CRYPT_ERR_MEMORY;

    if (NULL == raw || NULL == made) {
        goto undo;
    }
    memcpy(context, blocks->uuid, OPAL_CRYPTFILE_UUID_BYTES);
    opal_crypt_le_put32(context + OPAL_CRYPTFILE_UUID_BYTES, blocks->region);
    context[OPAL_CRYPTFILE_UUID_BYTES + 4] = (uint8_t) (1 + blocks->cipher);
    memcpy(context + OPAL_CRYPTFILE_UUID_BYTES + 5, salt, OPAL_CRYPTFILE_SALT_BYTES);
    rc = opal_crypt_kdf_expand(blocks->data_key, OPAL_CRYPT_LABEL_FILE_BLOCK, context, sizeof(context),
                               raw, opal_aead_raw_key_bytes(blocks->cipher));
    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_nonce_log_key(raw, opal_aead_raw_key_bytes(blocks->cipher), id);
        rc = OPAL_AEAD_OK == blocks->aead->key_init(blocks->cipher, raw, made) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
    }
undo:
    opal_crypt_secmem_free(raw);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(made);
        return rc;
    }
    *key = made;
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_blocks_seal_key(const opal_cryptfile_blocks_t *blocks, uint8_t key[OPAL_CRYPT_SECRET_BYTES])
{
    return opal_crypt_kdf_expand(blocks->data_key, OPAL_CRYPT_LABEL_FILE_SEAL, blocks->uuid, sizeof(blocks->uuid), key,
                                 OPAL_CRYPT_SECRET_BYTES);
}

size_t opal_cryptfile_blocks_salts(const opal_cryptfile_blocks_t *blocks, uint8_t *salt, size_t which)
{
    size_t count = 0;

    for (const sealer_t *sealer = atomic_load(&blocks->sealer); NULL != sealer; sealer = sealer->older, ++count) {
        if (NULL != salt && count == which) {
            memcpy(salt, sealer->salt, sizeof(sealer->salt));
        }
    }
    return count;
}

bool opal_cryptfile_blocks_drew(const opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES])
{
    const sealer_t *sealer = atomic_load(&blocks->sealer);

    while (NULL != sealer && 0 != memcmp(sealer->salt, salt, OPAL_CRYPTFILE_SALT_BYTES)) {
        sealer = sealer->older;
    }
    return NULL != sealer;
}

/* 36 bytes; within a region only `block` and `plain_bytes` vary. */
static void make_aad(const opal_cryptfile_blocks_t *blocks, uint64_t block, uint32_t plain_bytes,
                     uint8_t aad[OPAL_CRYPTFILE_BLOCK_AAD_BYTES])
{
    memcpy(aad, blocks->uuid, OPAL_CRYPTFILE_UUID_BYTES);
    opal_crypt_le_put32(aad + 16, blocks->region);
    opal_crypt_le_put32(aad + 20, blocks->block_bytes);
    opal_crypt_le_put64(aad + 24, block);
    opal_crypt_le_put32(aad + 32, plain_bytes);
}

/* ---- sealing ---- */

/* Replace `spent` by a fresh S, unless another thread already has. */
static int draw_sealer(opal_cryptfile_blocks_t *blocks, sealer_t *spent)
{
    int rc = OPAL_CRYPT_OK;

    pthread_mutex_lock(&blocks->draw);
    if (spent == atomic_load(&blocks->sealer)) {
        sealer_t *fresh = calloc(1, sizeof(*fresh));
        rc = OPAL_CRYPT_ERR_MEMORY;
        if (NULL != fresh) {
            opal_crypt_random(fresh->salt, sizeof(fresh->salt));
            rc = derive_key(blocks, fresh->salt, &fresh->key, fresh->id);
        }
        if (OPAL_CRYPT_OK == rc) {
            atomic_init(&fresh->next, 0);
            fresh->limit = blocks->salt_limit / blocks->block_bytes;
            fresh->older = spent;
            atomic_store(&blocks->sealer, fresh);
        } else {
            free(fresh);
        }
    }
    pthread_mutex_unlock(&blocks->draw);
    return rc;
}

/* A counter that no other block under this S gets. */
static int take_counter(opal_cryptfile_blocks_t *blocks, sealer_t **sealer, uint64_t *counter)
{
    for (;;) {
        *sealer = atomic_load(&blocks->sealer);
        if (NULL != *sealer) {
            *counter = atomic_fetch_add(&(*sealer)->next, 1);
            if (*counter < (*sealer)->limit) {
                return OPAL_CRYPT_OK;
            }
        }
        int rc = draw_sealer(blocks, *sealer);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
}

int opal_cryptfile_block_seal(opal_cryptfile_blocks_t *blocks, uint64_t block,
                              const void *plain, uint32_t plain_bytes,
                              void *cipher, opal_cryptfile_slot_t *slot)
{
    uint8_t aad[OPAL_CRYPTFILE_BLOCK_AAD_BYTES];
    opal_crypt_box_t box = {.aead = blocks->aead, .bound = aad, .bound_bytes = sizeof(aad)};
    sealer_t *sealer;

    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    if (0 == plain_bytes || plain_bytes > blocks->block_bytes || block >= OPAL_CRYPTFILE_BLOCKS_END) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    slot->used = true;
    slot->pending = false;
    slot->redo = 0;
    slot->plain_bytes = plain_bytes;
    int rc = take_counter(blocks, &sealer, &slot->counter);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    memcpy(slot->salt, sealer->salt, sizeof(slot->salt));
    make_aad(blocks, block, plain_bytes, aad);
    box.key = sealer->key;
    box.id = sealer->id;
    opal_crypt_nonce_block(slot->counter, box.nonce);
    return opal_crypt_box_seal(&box, plain, plain_bytes, cipher, slot->tag);
}

/* ---- opening ---- */

/* Where S is in the table, or would be.  An honest S is random, and only a
 * key that opened a block gets in. */
static opener_t *opener_of(opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES])
{
    unsigned at = opal_crypt_le_get32(salt) & (OPENERS - 1);

    while (NULL != blocks->openers[at].key &&
           0 != memcmp(blocks->openers[at].salt, salt, OPAL_CRYPTFILE_SALT_BYTES)) {
        at = (at + 1) & (OPENERS - 1);
    }
    return &blocks->openers[at];
}

static void *known_key(opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES])
{
    void *key;

    pthread_rwlock_rdlock(&blocks->table);
    key = opener_of(blocks, salt)->key;
    pthread_rwlock_unlock(&blocks->table);
    return key;
}

/* Keep the key for the next block of this S, if there is room. */
static void keep_key(opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES], void *key)
{
    pthread_rwlock_wrlock(&blocks->table);
    opener_t *opener = opener_of(blocks, salt);
    if (NULL == opener->key && blocks->opener_count < OPENERS / 2) {
        memcpy(opener->salt, salt, sizeof(opener->salt));
        opener->key = key;
        ++blocks->opener_count;
        key = NULL;
    }
    pthread_rwlock_unlock(&blocks->table);
    free_key(blocks->aead, key);
}

int opal_cryptfile_block_open(opal_cryptfile_blocks_t *blocks, uint64_t block,
                              const opal_cryptfile_slot_t *slot,
                              const void *cipher, void *plain)
{
    uint8_t aad[OPAL_CRYPTFILE_BLOCK_AAD_BYTES], id[32];
    /* A trial: the slot may be the older of two, and a write may have been cut short. */
    opal_crypt_box_t box = {.aead = blocks->aead, .bound = aad, .bound_bytes = sizeof(aad), .trial = true};
    void *known, *key;

    if (opal_crypt_forked()) {
        memset(plain, 0, slot->plain_bytes);
        return OPAL_CRYPT_ERR_FORKED;
    }
    known = key = known_key(blocks, slot->salt);
    if (NULL == key) {
        int rc = derive_key(blocks, slot->salt, &key, id);
        if (OPAL_CRYPT_OK != rc) {
            memset(plain, 0, slot->plain_bytes);
            return rc;
        }
    }
    make_aad(blocks, block, slot->plain_bytes, aad);
    box.key = key;
    opal_crypt_nonce_block(slot->counter, box.nonce);
    int rc = opal_crypt_box_open(&box, cipher, slot->plain_bytes, slot->tag, plain);
    if (NULL == known) {
        if (OPAL_CRYPT_OK == rc) {
            keep_key(blocks, slot->salt, key);
        } else {
            free_key(blocks->aead, key);
        }
    }
    return rc;
}

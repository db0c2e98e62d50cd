/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The subkey and the nonce prefix of one chopped message.
 *
 *     subkey || prefix 7 = AES_K(j || 0^9 || counter 6), j = 0, 1 (and 2)
 *
 * K is the epoch's chopping key and is as long as the cipher's key (32 bytes for ChaCha20-Poly1305); so is the subkey:
 * 2 blocks for 16 and 24 bytes, 3 for 32.  K is used for this PRF only: the CryptMPI paper shows how a key that also
 * seals small messages reveals the subkeys.
 *
 * Blocks of secret memory that hold an expanded subkey are kept in a pool: a message allocates none if an earlier one
 * has ended.
 */
#include "chop.h"
#include "opal/mca/common/crypt/base/nonce_log.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <assert.h>
#include <string.h>

#define BLOCK 16

typedef opal_crypt_chop_t chop_t;

static_assert(OPAL_AEAD_KEY_MAX_BYTES + OPAL_CRYPT_PREFIX_BYTES <= sizeof(((chop_t *) 0)->derived),
              "subkey and prefix");

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static chop_t *pool;

static chop_t *pool_take(size_t block_bytes)
{
    chop_t **link, *chop;

    pthread_mutex_lock(&pool_lock);
    for (link = &pool; NULL != (chop = *link); link = &chop->next) {
        if (chop->block_bytes == block_bytes) {
            *link = chop->next;
            break;
        }
    }
    pthread_mutex_unlock(&pool_lock);
    if (NULL == chop) {
        chop = opal_crypt_secmem_alloc(block_bytes);
        if (NULL != chop) {
            chop->block_bytes = block_bytes;
        }
    }
    return chop;
}

static void pool_give(chop_t *chop)
{
    const size_t block_bytes = chop->block_bytes;

    opal_crypt_wipe(chop, sizeof(*chop));
    chop->block_bytes = block_bytes;
    pthread_mutex_lock(&pool_lock);
    chop->next = pool;
    pool = chop;
    pthread_mutex_unlock(&pool_lock);
}

void opal_crypt_chop_finalize(void)
{
    pthread_mutex_lock(&pool_lock);
    while (NULL != pool) {
        chop_t *chop = pool;
        pool = chop->next;
        opal_crypt_secmem_free(chop);
    }
    pthread_mutex_unlock(&pool_lock);
}

int opal_crypt_chop_make(const opal_crypt_session_t *session,
                         const opal_crypt_epoch_t *epoch, uint64_t counter, chop_t **made)
{
    const size_t key_bytes = opal_aead_raw_key_bytes(session->cipher);
    const int blocks = (int) ((key_bytes + OPAL_CRYPT_PREFIX_BYTES + BLOCK - 1) / BLOCK);
    opal_crypt_thread_t *thread = opal_crypt_thread();
    uint8_t in[3 * BLOCK] = {0};
    chop_t *chop = NULL == thread ? NULL
                                  : pool_take(sizeof(*chop) + session->aead->key_bytes);

    if (NULL == chop) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (int j = 0; j < blocks; ++j) {
        in[BLOCK * j] = (uint8_t) j;
        opal_crypt_put48(in + BLOCK * j + 10, counter);
    }
    int rc = opal_crypt_thread_aes(thread, epoch->chop, key_bytes, in, chop->derived, blocks);
    if (OPAL_CRYPT_OK == rc
        && OPAL_AEAD_OK != session->aead->key_init(session->cipher, chop->derived, chop->key)) {
        rc = OPAL_CRYPT_ERR_LIBRARY;
    }
    if (OPAL_CRYPT_OK != rc) {
        pool_give(chop);
        return rc;
    }
    opal_crypt_nonce_log_key(chop->derived, key_bytes, chop->id);
    memcpy(chop->prefix, chop->derived + key_bytes, OPAL_CRYPT_PREFIX_BYTES);
    opal_crypt_wipe(chop->derived, sizeof(chop->derived));
    chop->aead = session->aead;
    *made = chop;
    return OPAL_CRYPT_OK;
}

void opal_crypt_chop_end(chop_t *chop)
{
    if (NULL != chop && !opal_crypt_forked()) {         /* in a child it is zeros */
        chop->aead->key_wipe(chop->key);
        pool_give(chop);
    }
}

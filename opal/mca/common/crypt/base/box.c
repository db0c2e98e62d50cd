/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening: see the drawing in box.h.
 */
#include "box.h"

/* In one piece or, with providers that can, joined from several. */
OPAL_CRYPT_OFTEN
static inline int seal_with(const opal_crypt_box_t *box, opal_crypt_thread_t *thread, opal_aead_context_t *context,
                            const opal_aead_piece_t *plain, int count, void *cipher, uint8_t *tag)
{
    const uint64_t since = opal_crypt_timing ? opal_crypt_now() : 0;
    size_t bytes = plain[0].bytes;
    int rc;

    opal_crypt_nonce_log_add(box->id, box->nonce);
    if (1 == count) {
        rc = box->aead->seal(context, box->key, box->nonce, box->bound, box->bound_bytes, plain[0].base, bytes, cipher, tag);
    } else {
        for (int i = 1; i < count; ++i) {
            bytes += plain[i].bytes;
        }
        rc = box->aead->seal_joined(context, box->key, box->nonce, box->bound, box->bound_bytes, plain, count, cipher, tag);
    }
    if (0 != since) {
        opal_crypt_count_time(since);
    }
    if (OPAL_AEAD_OK != rc) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_crypt_count_sealed(thread, bytes);
    return OPAL_CRYPT_OK;
}

OPAL_CRYPT_OFTEN
static inline int open_with(const opal_crypt_box_t *box, opal_crypt_thread_t *thread, opal_aead_context_t *context,
                            const void *cipher, size_t bytes, const uint8_t *tag, void *plain)
{
    const uint64_t since = opal_crypt_timing ? opal_crypt_now() : 0;
    const int rc = box->aead->open(context, box->key, box->nonce, box->bound, box->bound_bytes, cipher, bytes, tag, plain);

    if (0 != since) {
        opal_crypt_count_time(since);
    }
    if (OPAL_AEAD_OK != rc) {
        memset(plain, 0, bytes);
        return OPAL_AEAD_REFUSED != rc ? OPAL_CRYPT_ERR_LIBRARY : box->trial ? OPAL_CRYPT_ERR_AUTH : opal_crypt_count_failed();
    }
    opal_crypt_count_opened(thread, bytes);
    return OPAL_CRYPT_OK;
}

OPAL_CRYPT_OFTEN
int opal_crypt_box_seal_joined(const opal_crypt_box_t *box, const opal_aead_piece_t *plain, int count, void *cipher,
                               uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    int rc = opal_crypt_thread_ready(box->aead, &thread, &context);

    return OPAL_CRYPT_OK == rc ? seal_with(box, thread, context, plain, count, cipher, tag) : rc;
}

OPAL_CRYPT_OFTEN
int opal_crypt_box_seal(const opal_crypt_box_t *box, const void *plain, size_t bytes, void *cipher,
                        uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    const opal_aead_piece_t piece = {plain, bytes};

    return opal_crypt_box_seal_joined(box, &piece, 1, cipher, tag);
}

OPAL_CRYPT_OFTEN
int opal_crypt_box_open(const opal_crypt_box_t *box, const void *cipher, size_t bytes,
                        const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain)
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    int rc = opal_crypt_thread_ready(box->aead, &thread, &context);

    if (OPAL_CRYPT_OK != rc) {
        memset(plain, 0, bytes);
        return rc;
    }
    return open_with(box, thread, context, cipher, bytes, tag, plain);
}

OPAL_CRYPT_OFTEN
int opal_crypt_box_seal_at(opal_crypt_box_t *box, opal_crypt_epochs_t *epochs, unsigned shift, uint64_t counter,
                           const void *plain, size_t bytes, void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES])
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    opal_crypt_hold_t hold;
    int rc;

    if (OPAL_CRYPT_OK != (rc = opal_crypt_thread_ready(box->aead, &thread, &context))
        || OPAL_CRYPT_OK != (rc = opal_crypt_epoch_hold(epochs, counter >> shift, &hold))) {
        return rc;
    }
    box->key = hold.epoch->key;
    box->id = hold.epoch->id;
    opal_crypt_nonce_epoch(hold.epoch->iv, counter, box->nonce);
    rc = seal_with(box, thread, context, &(opal_aead_piece_t) {plain, bytes}, 1, cipher, tag);
    opal_crypt_epoch_release(epochs, &hold, true);
    return rc;
}

OPAL_CRYPT_OFTEN
int opal_crypt_box_open_at(opal_crypt_box_t *box, opal_crypt_epochs_t *epochs, unsigned shift, uint64_t counter,
                           const void *cipher, size_t bytes, const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain)
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    opal_crypt_hold_t hold;
    int rc;

    if (OPAL_CRYPT_OK != (rc = opal_crypt_thread_ready(box->aead, &thread, &context))
        || OPAL_CRYPT_OK != (rc = opal_crypt_epoch_hold(epochs, counter >> shift, &hold))) {
        memset(plain, 0, bytes);
        return rc;
    }
    box->key = hold.epoch->key;
    box->id = hold.epoch->id;
    opal_crypt_nonce_epoch(hold.epoch->iv, counter, box->nonce);
    rc = open_with(box, thread, context, cipher, bytes, tag, plain);
    /* Only now is it certain that the peer uses this epoch. */
    opal_crypt_epoch_release(epochs, &hold, OPAL_CRYPT_OK == rc);
    return rc;
}

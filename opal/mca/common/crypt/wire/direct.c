/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages sealed in one piece, under the epoch's key.
 *
 *     | header 8 | ciphertext n | tag 16 |
 *     nonce = epoch IV XOR (0^6 || counter)
 *     AAD   = header || context id 16 || tag 4
 *
 * A final message (type 5) is the same with 8 bytes of plaintext: how many
 * counters its sender took.
 */
#include "session_object.h"
#include "opal/mca/common/crypt/base/nonce_log.h"

#include <string.h>

#define HEADER   OPAL_CRYPT_FRAME_HEADER
#define TAG      OPAL_CRYPT_FRAME_TAG
#define AAD      (HEADER + OPAL_CRYPT_ENVELOPE_BYTES)
#define FINAL    8

OPAL_CRYPT_OFTEN
static int seal(opal_crypt_session_t *session, opal_crypt_frame_type_t type,
                uint64_t counter, const opal_crypt_envelope_t *envelope,
                const void *plain, size_t plain_bytes, uint8_t *frame)
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    opal_crypt_hold_t hold;
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], aad[AAD];
    int rc;

    /* 1. may we, and with which key */
    if (OPAL_CRYPT_OK != (rc = opal_crypt_may_seal(session, counter))
        || OPAL_CRYPT_OK != (rc = opal_crypt_ready(session->aead, &thread, &context))
        || OPAL_CRYPT_OK != (rc = opal_crypt_epoch_hold(&session->out, counter >> session->shift,
                                                        &hold))) {
        return rc;
    }

    /* 2. header, nonce, additional data */
    opal_crypt_header_put(frame, type, counter);
    opal_crypt_nonce_epoch(hold.epoch->iv, counter, nonce);
    memcpy(aad, frame, HEADER);
    opal_crypt_envelope_put(aad + HEADER, envelope);

    /* 3. seal */
    opal_crypt_record_nonce(hold.epoch->id, nonce);
    rc = opal_crypt_timed_seal(session->aead->seal, context, hold.epoch->key, nonce, &(opal_aead_aad_t) {aad, sizeof(aad)}, 1,
                             plain, plain_bytes, frame + HEADER, frame + HEADER + plain_bytes);
    opal_crypt_epoch_release(&session->out, &hold, true);
    if (OPAL_AEAD_OK != rc) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_crypt_count_sealed(thread, plain_bytes);
    return OPAL_CRYPT_OK;
}

OPAL_CRYPT_OFTEN
static int open(opal_crypt_session_t *session, opal_crypt_frame_type_t type,
                const opal_crypt_envelope_t *envelope,
                const uint8_t *frame, size_t plain_bytes, void *plain, uint64_t *counter_out)
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;
    opal_crypt_hold_t hold;
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], aad[AAD];
    const uint64_t counter = opal_crypt_get48(frame + 2);
    int rc;

    /* 1. which key */
    if (OPAL_CRYPT_OK != (rc = opal_crypt_ready(session->aead, &thread, &context))
        || OPAL_CRYPT_OK != (rc = opal_crypt_epoch_hold(&session->in, counter >> session->shift,
                                                        &hold))) {
        memset(plain, 0, plain_bytes);
        return rc;
    }

    /* 2. nonce, additional data: the header in the only form that was let through */
    opal_crypt_nonce_epoch(hold.epoch->iv, counter, nonce);
    opal_crypt_header_put(aad, type, counter);
    opal_crypt_envelope_put(aad + HEADER, envelope);

    /* 3. open; only then is the epoch one that the peer really uses */
    rc = opal_crypt_timed_open(session->aead->open, context, hold.epoch->key, nonce, &(opal_aead_aad_t) {aad, sizeof(aad)}, 1,
                             frame + HEADER, plain_bytes, frame + HEADER + plain_bytes, plain);
    opal_crypt_epoch_release(&session->in, &hold, OPAL_AEAD_OK == rc);
    if (OPAL_AEAD_REFUSED == rc) {
        return opal_crypt_count_failed();
    }
    if (OPAL_AEAD_OK != rc) {
        memset(plain, 0, plain_bytes);
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_crypt_count_opened(thread, plain_bytes);
    *counter_out = counter;
    return OPAL_CRYPT_OK;
}

OPAL_CRYPT_OFTEN
int opal_crypt_direct_seal(opal_crypt_session_t *session, uint64_t counter,
                           const opal_crypt_envelope_t *envelope,
                           const void *plain, size_t plain_bytes, uint8_t *frame)
{
    if (plain_bytes > OPAL_CRYPT_DIRECT_MAX) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    return seal(session, OPAL_CRYPT_FRAME_DIRECT, counter, envelope, plain, plain_bytes, frame);
}

OPAL_CRYPT_OFTEN
int opal_crypt_direct_open(opal_crypt_session_t *session,
                           const opal_crypt_envelope_t *envelope,
                           const uint8_t *frame, size_t frame_bytes,
                           void *plain, size_t plain_room, uint64_t *counter)
{
    if (frame_bytes < OPAL_CRYPT_DIRECT_OVERHEAD) {
        return opal_crypt_count_failed();
    }
    const size_t plain_bytes = frame_bytes - OPAL_CRYPT_DIRECT_OVERHEAD;
    if (plain_bytes > plain_room || plain_bytes > OPAL_CRYPT_DIRECT_MAX
        || OPAL_CRYPT_FRAME_DIRECT != opal_crypt_frame_type(frame, frame_bytes)) {
        memset(plain, 0, plain_bytes < plain_room ? plain_bytes : plain_room);
        return opal_crypt_count_failed();
    }
    return open(session, OPAL_CRYPT_FRAME_DIRECT, envelope, frame, plain_bytes, plain, counter);
}

int opal_crypt_frame_refused(void)
{
    return opal_crypt_count_failed();
}

int opal_crypt_final_seal(opal_crypt_session_t *session, uint64_t counter,
                          const opal_crypt_envelope_t *envelope,
                          uint64_t sent, uint8_t frame[OPAL_CRYPT_FINAL_BYTES])
{
    uint8_t plain[FINAL];

    opal_crypt_put64(plain, sent);
    return seal(session, OPAL_CRYPT_FRAME_FINAL, counter, envelope, plain, sizeof(plain), frame);
}

int opal_crypt_final_open(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const uint8_t *frame, size_t frame_bytes,
                          uint64_t *sent, uint64_t *counter)
{
    uint8_t plain[FINAL];

    *sent = 0;
    if (OPAL_CRYPT_FINAL_BYTES != frame_bytes
        || OPAL_CRYPT_FRAME_FINAL != opal_crypt_frame_type(frame, frame_bytes)) {
        return opal_crypt_count_failed();
    }
    int rc = open(session, OPAL_CRYPT_FRAME_FINAL, envelope, frame, sizeof(plain), plain, counter);
    if (OPAL_CRYPT_OK == rc) {
        *sent = opal_crypt_get64(plain);
    }
    return rc;
}

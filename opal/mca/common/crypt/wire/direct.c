/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages sealed in one piece, under the epoch's key.
 *
 *     | header 8 | ciphertext n | tag 16 |
 *     nonce = epoch IV XOR (0^6 || counter)
 *     AAD   = header || context id 16 || generation 4 || tag 4
 *
 * A final message (type 5) is the same with 8 bytes of plaintext: the number of messages that its sender sent.
 */
#include "session_object.h"
#include "opal/mca/common/crypt/base/box.h"

#include <string.h>

#define HEADER   OPAL_CRYPT_FRAME_HEADER
#define TAG      OPAL_CRYPT_FRAME_TAG
#define AAD      (HEADER + OPAL_CRYPT_ENVELOPE_BYTES)
#define FINAL    8

static inline void direct_aad(uint8_t aad[AAD], opal_crypt_frame_type_t type, uint64_t counter,
                              const opal_crypt_envelope_t *envelope)
{
    opal_crypt_header_put(aad, type, counter);
    opal_crypt_envelope_put(aad + HEADER, envelope);
}

OPAL_CRYPT_OFTEN
static int seal_direct(opal_crypt_session_t *session, opal_crypt_frame_type_t type,
                       const opal_crypt_envelope_t *envelope, uint64_t counter,
                       const void *plain, size_t plain_bytes, uint8_t *frame)
{
    uint8_t aad[AAD];
    opal_crypt_box_t box = {.aead = session->aead, .bound = aad, .bound_bytes = AAD};
    int rc;

    direct_aad(aad, type, counter, envelope);
    memcpy(frame, aad, HEADER);
    rc = opal_crypt_box_seal_at(&box, &session->out, session->shift, counter, plain, plain_bytes,
                                frame + HEADER, frame + HEADER + plain_bytes);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_session_unsent(session);
    }
    return rc;
}

/* The header is bound in the only form that is accepted. */
OPAL_CRYPT_OFTEN
static int open_direct(opal_crypt_session_t *session, opal_crypt_frame_type_t type,
                       const opal_crypt_envelope_t *envelope,
                       const uint8_t *frame, size_t plain_bytes, void *plain, uint64_t *counter)
{
    uint8_t aad[AAD];
    opal_crypt_box_t box = {.aead = session->aead, .bound = aad, .bound_bytes = AAD};
    const uint64_t claimed = opal_crypt_get48(frame + 2);
    int rc;

    direct_aad(aad, type, claimed, envelope);
    rc = opal_crypt_box_open_at(&box, &session->in, session->shift, claimed, frame + HEADER, plain_bytes,
                                frame + HEADER + plain_bytes, plain);
    if (OPAL_CRYPT_OK == rc) {
        *counter = claimed;
    }
    return rc;
}

OPAL_CRYPT_OFTEN
int opal_crypt_direct_seal(opal_crypt_session_t *session,
                           const opal_crypt_envelope_t *envelope,
                           const void *plain, size_t plain_bytes, uint8_t *frame)
{
    uint64_t counter;
    int rc = plain_bytes > OPAL_CRYPT_DIRECT_MAX ? OPAL_CRYPT_ERR_CONFIG : opal_crypt_counter_take(session, &counter);

    return OPAL_CRYPT_OK != rc ? rc : seal_direct(session, OPAL_CRYPT_FRAME_DIRECT, envelope, counter, plain, plain_bytes,
                                                  frame);
}

OPAL_CRYPT_OFTEN
int opal_crypt_direct_open(opal_crypt_session_t *session,
                           const opal_crypt_envelope_t *envelope,
                           const uint8_t *frame, size_t frame_bytes,
                           void *plain, size_t plain_capacity, uint64_t *counter)
{
    if (frame_bytes < OPAL_CRYPT_DIRECT_OVERHEAD) {
        return opal_crypt_count_failed();
    }
    const size_t plain_bytes = frame_bytes - OPAL_CRYPT_DIRECT_OVERHEAD;
    if (plain_bytes > plain_capacity || plain_bytes > OPAL_CRYPT_DIRECT_MAX
        || OPAL_CRYPT_FRAME_DIRECT != opal_crypt_frame_type(frame, frame_bytes)) {
        memset(plain, 0, plain_bytes < plain_capacity ? plain_bytes : plain_capacity);
        return opal_crypt_count_failed();
    }
    return open_direct(session, OPAL_CRYPT_FRAME_DIRECT, envelope, frame, plain_bytes, plain, counter);
}

int opal_crypt_frame_refused(void)
{
    return opal_crypt_count_failed();
}

/* Counts what was sent up to its own counter, not what other threads send meanwhile. */
int opal_crypt_final_seal(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          uint8_t frame[OPAL_CRYPT_FINAL_BYTES])
{
    uint8_t plain[FINAL];
    uint64_t counter;
    int rc = opal_crypt_counter_take(session, &counter);

    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_put64(plain, opal_crypt_sent_of(session, counter + 1));
        rc = seal_direct(session, OPAL_CRYPT_FRAME_FINAL, envelope, counter, plain, sizeof(plain), frame);
    }
    return rc;
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
    int rc = open_direct(session, OPAL_CRYPT_FRAME_FINAL, envelope, frame, sizeof(plain), plain, counter);
    if (OPAL_CRYPT_OK == rc) {
        *sent = opal_crypt_get64(plain);
    }
    return rc;
}

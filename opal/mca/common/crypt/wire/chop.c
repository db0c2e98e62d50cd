/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Chopped messages: a first part, then segments, all under a subkey of their
 * own (crypt/wire/chop_key.c).
 *
 *     | header 8 | total 8 | chunk 4 | count 4 | ciphertext F | tag 16 |     first part, segment 0
 *     | ciphertext chunk | tag 16 |                                          segments 1 .. count
 *     nonce = prefix 7 || last 1 || segment 4
 *     AAD   = the 24 bytes before the ciphertext || context id 16 || generation 4 || tag 4
 *             for the first part, empty for the others
 *
 * `last` is set in the segment whose number is count, so that a message cannot be truncated.  Nothing in the header is
 * trusted before the first part has opened: it only selects the nonce to try.
 */
#include "chop.h"
#include "opal/mca/common/crypt/base/box.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

#define HEADER   OPAL_CRYPT_FIRST_HEADER
#define TAG      OPAL_CRYPT_FRAME_TAG
#define AAD      (HEADER + OPAL_CRYPT_ENVELOPE_BYTES)

/* ---- the shape ---- */

int opal_crypt_shape_make(uint64_t total_bytes, uint32_t first_bytes, uint32_t chunk_bytes,
                          opal_crypt_shape_t *shape)
{
    if (total_bytes > OPAL_CRYPT_TOTAL_MAX || first_bytes > total_bytes
        || first_bytes > OPAL_CRYPT_CHUNK_MAX
        || chunk_bytes < OPAL_CRYPT_CHUNK_MIN || chunk_bytes > OPAL_CRYPT_CHUNK_MAX) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    uint64_t count = (total_bytes - first_bytes + chunk_bytes - 1) / chunk_bytes;
    if (count > OPAL_CRYPT_COUNT_MAX) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    *shape = (opal_crypt_shape_t) {total_bytes, first_bytes, chunk_bytes, (uint32_t) count};
    return OPAL_CRYPT_OK;
}

int opal_crypt_shape_whole(uint64_t total_bytes, opal_crypt_shape_t *shape)
{
    int rc = total_bytes > OPAL_CRYPT_CHUNK_MAX ? OPAL_CRYPT_ERR_CONFIG
             : opal_crypt_shape_make(total_bytes, (uint32_t) total_bytes, OPAL_CRYPT_CHUNK_MIN, shape);

    if (OPAL_CRYPT_OK == rc) {
        shape->count = 1;
    }
    return rc;
}

/* The only shapes that are sent and accepted. */
static int shape_with(uint64_t total_bytes, uint32_t first_bytes, uint32_t chunk_bytes, uint32_t count,
                      opal_crypt_shape_t *shape)
{
    int rc = opal_crypt_shape_make(total_bytes, first_bytes, chunk_bytes, shape);

    if (OPAL_CRYPT_OK == rc && 0 == shape->count) {
        shape->count = 1 == count ? 1 : 0;
    }
    return OPAL_CRYPT_OK != rc ? rc : count == shape->count ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_CONFIG;
}

/* ---- the first part ---- */

/* For segment `segment`; `last`: none follows. */
static inline opal_crypt_box_t box_of(const opal_crypt_chop_t *chop, uint32_t segment, bool last, const void *bound,
                                      size_t bound_bytes)
{
    opal_crypt_box_t box = {.aead = chop->aead, .key = chop->key, .id = chop->id, .bound = bound,
                            .bound_bytes = bound_bytes};

    opal_crypt_nonce_segment(chop->prefix, last, segment, box.nonce);
    return box;
}

int opal_crypt_first_seal(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const opal_crypt_shape_t *shape,
                          const void *plain, uint8_t *frame,
                          uint64_t *counter_out, opal_crypt_chop_t **chop_out)
{
    opal_crypt_shape_t made;
    opal_crypt_hold_t hold;
    opal_crypt_chop_t *chop = NULL;
    uint8_t aad[AAD];
    uint64_t counter;
    int rc;

    *chop_out = NULL;
    if (OPAL_CRYPT_OK != shape_with(shape->total_bytes, shape->first_bytes, shape->chunk_bytes, shape->count, &made)) {
        return OPAL_CRYPT_ERR_CONFIG;
    }

    /* 1. the counter and the subkey */
    if (OPAL_CRYPT_OK != (rc = opal_crypt_counter_take(session, &counter))) {
        return rc;
    }
    if (OPAL_CRYPT_OK != (rc = opal_crypt_epoch_hold(&session->out, counter >> session->shift, &hold))) {
        goto unsent;
    }
    rc = opal_crypt_chop_make(session, hold.epoch, counter, &chop);
    opal_crypt_epoch_release(&session->out, &hold, true);
    if (OPAL_CRYPT_OK != rc) {
        goto unsent;
    }
    chop->sealing = true;
    chop->shape = made;

    /* 2. header and additional data; seal */
    opal_crypt_header_put(frame, OPAL_CRYPT_FRAME_FIRST, counter);
    opal_crypt_put64(frame + 8, made.total_bytes);
    opal_crypt_put32(frame + 16, made.chunk_bytes);
    opal_crypt_put32(frame + 20, made.count);
    memcpy(aad, frame, HEADER);
    opal_crypt_envelope_put(aad + HEADER, envelope);
    const opal_crypt_box_t box = box_of(chop, 0, 0 == made.count, aad, AAD);
    rc = opal_crypt_box_seal(&box, plain, made.first_bytes, frame + HEADER, frame + HEADER + made.first_bytes);
    if (OPAL_CRYPT_OK != rc) {
        goto end_chop;
    }
    opal_crypt_count_chopped(true);
    *counter_out = counter;
    *chop_out = chop;
    return OPAL_CRYPT_OK;

end_chop:
    opal_crypt_chop_end(chop);
unsent:
    opal_crypt_session_unsent(session);
    return rc;
}

/* Segment 0 has verified: the fields are the sender's, and must make sense. */
static int shape_read(const uint8_t *aad, uint32_t first_bytes, opal_crypt_shape_t *shape)
{
    int rc = shape_with(opal_crypt_get64(aad + 8), first_bytes, opal_crypt_get32(aad + 16),
                        opal_crypt_get32(aad + 20), shape);

    return OPAL_CRYPT_OK == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

int opal_crypt_first_open(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const uint8_t *frame, size_t frame_bytes,
                          void *plain, size_t plain_capacity, opal_crypt_shape_t *shape,
                          uint64_t *counter_out, opal_crypt_chop_t **chop_out)
{
    opal_crypt_hold_t hold;
    opal_crypt_chop_t *chop = NULL;
    uint8_t aad[AAD];
    int rc;

    *chop_out = NULL;
    if (frame_bytes < OPAL_CRYPT_FIRST_OVERHEAD) {
        return opal_crypt_count_failed();
    }
    const size_t first_bytes = frame_bytes - OPAL_CRYPT_FIRST_OVERHEAD;
    const uint64_t counter = opal_crypt_get48(frame + 2);
    if (first_bytes > plain_capacity || first_bytes > OPAL_CRYPT_CHUNK_MAX
        || OPAL_CRYPT_FRAME_FIRST != opal_crypt_frame_type(frame, frame_bytes)) {
        rc = opal_crypt_count_failed();
        goto zero;
    }

    /* 1. the subkey */
    rc = opal_crypt_forked() ? OPAL_CRYPT_ERR_FORKED
                             : opal_crypt_epoch_hold(&session->in, counter >> session->shift, &hold);
    if (OPAL_CRYPT_OK != rc) {
        goto zero;
    }
    rc = opal_crypt_chop_make(session, hold.epoch, counter, &chop);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_epoch_release(&session->in, &hold, false);
        goto zero;
    }

    /* 2. open; only then is it certain that the peer uses this epoch */
    memcpy(aad, frame, HEADER);
    opal_crypt_envelope_put(aad + HEADER, envelope);
    const opal_crypt_box_t box = box_of(chop, 0, 0 == opal_crypt_get32(aad + 20), aad, AAD);
    rc = opal_crypt_box_open(&box, frame + HEADER, first_bytes, frame + HEADER + first_bytes, plain);
    opal_crypt_epoch_release(&session->in, &hold, OPAL_CRYPT_OK == rc);
    if (OPAL_CRYPT_OK != rc) {
        goto end_chop;
    }

    /* 3. only now may its shape be read */
    if (OPAL_CRYPT_OK != shape_read(aad, (uint32_t) first_bytes, &chop->shape)) {
        rc = opal_crypt_count_failed();
        goto end_chop;
    }
    opal_crypt_count_chopped(false);
    *shape = chop->shape;
    *counter_out = counter;
    *chop_out = chop;
    return OPAL_CRYPT_OK;

end_chop:
    opal_crypt_chop_end(chop);
zero:
    memset(plain, 0, first_bytes < plain_capacity ? first_bytes : plain_capacity);
    return rc;
}

/* ---- segments 1 .. count ---- */

int opal_crypt_segment_seal(opal_crypt_chop_t *chop, uint32_t segment,
                            const void *plain, uint8_t *frame)
{
    if (opal_crypt_forked()) {                  /* `chop` is zeros as well */
        return OPAL_CRYPT_ERR_FORKED;
    }
    if (!chop->sealing || 0 == segment || segment > chop->shape.count) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    const size_t plain_bytes = opal_crypt_segment_bytes(&chop->shape, segment);
    const opal_crypt_box_t box = box_of(chop, segment, segment == chop->shape.count, NULL, 0);
    return opal_crypt_box_seal(&box, plain, plain_bytes, frame, frame + plain_bytes);
}

int opal_crypt_segment_open(opal_crypt_chop_t *chop, uint32_t segment,
                            const uint8_t *frame, size_t frame_bytes, void *plain)
{
    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    if (chop->sealing || 0 == segment || segment > chop->shape.count) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    const size_t plain_bytes = opal_crypt_segment_bytes(&chop->shape, segment);
    if (frame_bytes != plain_bytes + TAG) {
        const size_t got = frame_bytes > TAG ? frame_bytes - TAG : 0;
        memset(plain, 0, got < plain_bytes ? got : plain_bytes);
        return opal_crypt_count_failed();
    }
    const opal_crypt_box_t box = box_of(chop, segment, segment == chop->shape.count, NULL, 0);
    return opal_crypt_box_open(&box, frame, plain_bytes, frame + plain_bytes, plain);
}

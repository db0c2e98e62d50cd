/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Headers of frames.  An unpacked header is authentic, since it came in a record, but is checked all the same: a
 * faulty process must not take others down with it.
 */
#include "btl_crypt_frame.h"

#include <string.h>

#include "opal/mca/common/crypt/base/base.h"

size_t opal_btl_crypt_frame_pack(const opal_btl_crypt_frame_t *frame, uint8_t header[OPAL_BTL_CRYPT_HEADER_MAX])
{
    memset(header, 0, OPAL_BTL_CRYPT_HEADER_MAX);
    header[0] = (uint8_t) frame->type;
    switch (frame->type) {
    case OPAL_BTL_CRYPT_FRAGMENT:
        header[1] = frame->tag;
        opal_crypt_put32(header + 4, (uint32_t) frame->bytes);
        return OPAL_BTL_CRYPT_HEADER;
    case OPAL_BTL_CRYPT_PUT:
        opal_crypt_put64(header + 8, frame->address);
        opal_crypt_put64(header + 16, frame->bytes);
        return OPAL_BTL_CRYPT_HEADER_MAX;
    case OPAL_BTL_CRYPT_HELLO:
        header[1] = OPAL_BTL_CRYPT_VERSION;
        header[2] = 1;
        header[3] = frame->kernel;
        return OPAL_BTL_CRYPT_HEADER;
    case OPAL_BTL_CRYPT_JOIN:
        header[1] = frame->rail;
        opal_crypt_put64(header + 8, frame->session);
        opal_crypt_put64(header + 16, frame->count);
        return OPAL_BTL_CRYPT_HEADER_MAX;
    default:
        return OPAL_BTL_CRYPT_HEADER;
    }
}

static size_t unpack_put(const uint8_t *bytes, size_t count, opal_btl_crypt_frame_t *frame)
{
    if (count < OPAL_BTL_CRYPT_HEADER_MAX) {
        return 0;
    }
    frame->address = opal_crypt_get64(bytes + 8);
    frame->bytes = opal_crypt_get64(bytes + 16);
    return 0 != frame->address && frame->bytes > 0 && frame->bytes <= OPAL_BTL_CRYPT_PUT_MAX
                   && frame->address <= UINTPTR_MAX - frame->bytes ? OPAL_BTL_CRYPT_HEADER_MAX : 0;
}

static size_t unpack_join(const uint8_t *bytes, size_t count, opal_btl_crypt_frame_t *frame)
{
    if (OPAL_BTL_CRYPT_HEADER_MAX != count || !opal_crypt_all_zero(bytes + 2, 6)) {
        return 0;
    }
    frame->rail = bytes[1];
    frame->session = opal_crypt_get64(bytes + 8);
    frame->count = opal_crypt_get64(bytes + 16);
    return frame->rail > 0 && frame->rail < OPAL_BTL_CRYPT_RAILS && frame->count > 0 ? OPAL_BTL_CRYPT_HEADER_MAX : 0;
}

size_t opal_btl_crypt_frame_unpack(const uint8_t *bytes, size_t count, opal_btl_crypt_frame_t *frame)
{
    if (count < OPAL_BTL_CRYPT_HEADER) {
        return 0;
    }
    *frame = (opal_btl_crypt_frame_t) {.type = (opal_btl_crypt_type_t) bytes[0]};
    switch (bytes[0]) {
    case OPAL_BTL_CRYPT_FRAGMENT:
        frame->tag = bytes[1];
        frame->bytes = opal_crypt_get32(bytes + 4);
        return opal_crypt_all_zero(bytes + 2, 2) && frame->bytes <= OPAL_BTL_CRYPT_FRAGMENT_MAX ? OPAL_BTL_CRYPT_HEADER
                                                                                               : 0;
    case OPAL_BTL_CRYPT_PUT:
        return opal_crypt_all_zero(bytes + 1, 7) ? unpack_put(bytes, count, frame) : 0;
    case OPAL_BTL_CRYPT_HELLO:
        frame->kernel = 0 != bytes[3];
        return OPAL_BTL_CRYPT_HEADER == count && OPAL_BTL_CRYPT_VERSION == bytes[1] && 1 == bytes[2] && bytes[3] <= 1
                       && opal_crypt_all_zero(bytes + 4, 4) ? OPAL_BTL_CRYPT_HEADER : 0;
    case OPAL_BTL_CRYPT_LAST:
        return OPAL_BTL_CRYPT_HEADER == count && opal_crypt_all_zero(bytes + 1, 7) ? OPAL_BTL_CRYPT_HEADER : 0;
    case OPAL_BTL_CRYPT_JOIN:
        return unpack_join(bytes, count, frame);
    default:
        return 0;
    }
}

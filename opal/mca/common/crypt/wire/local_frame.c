/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The header of a plain message between two processes of one node.
 *
 *     | header 8, counter 0 | token 16 | payload n |
 *     | header 8, counter 0 | token 16 | total 8 | id 8 |      a large one follows by itself
 *
 * It hides nothing.  The token, which only the two processes know, distinguishes the message from a network frame that
 * claims to come from this node.
 */
#include "session_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <string.h>

void opal_crypt_local_header(const opal_crypt_token_t *token,
                             opal_crypt_frame_type_t type, uint8_t *frame)
{
    opal_crypt_header_put(frame, type, 0);
    memcpy(frame + OPAL_CRYPT_FRAME_HEADER, token->bytes, sizeof(token->bytes));
}

void opal_crypt_local_large(const opal_crypt_token_t *token, uint64_t total_bytes,
                            uint64_t id, uint8_t frame[OPAL_CRYPT_LOCAL_LARGE_BYTES])
{
    opal_crypt_local_header(token, OPAL_CRYPT_FRAME_LOCAL_LARGE, frame);
    opal_crypt_put64(frame + OPAL_CRYPT_LOCAL_HEADER, total_bytes);
    opal_crypt_put64(frame + OPAL_CRYPT_LOCAL_HEADER + 8, id);
}

int opal_crypt_local_check(const opal_crypt_token_t *token,
                           opal_crypt_frame_type_t type,
                           const uint8_t *frame, size_t frame_bytes)
{
    uint8_t expected[OPAL_CRYPT_LOCAL_HEADER];

    if ((OPAL_CRYPT_FRAME_LOCAL != type && OPAL_CRYPT_FRAME_LOCAL_LARGE != type)
        || frame_bytes < OPAL_CRYPT_LOCAL_HEADER
        || (OPAL_CRYPT_FRAME_LOCAL_LARGE == type && OPAL_CRYPT_LOCAL_LARGE_BYTES != frame_bytes)) {
        return opal_crypt_count_failed();
    }
    opal_crypt_local_header(token, type, expected);
    int differ = opal_crypt_differ(expected, frame, sizeof(expected));
    opal_crypt_wipe(expected, sizeof(expected));
    return 0 == differ ? OPAL_CRYPT_OK : opal_crypt_count_failed();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Common to all frames: the 8-byte header, and the check of a session's parameters.
 *
 *     | version 4 bits, type 4 bits | reserved 0 | counter 6 |
 */
#include "session_object.h"

#include <assert.h>

static_assert(OPAL_CRYPT_DIRECT_OVERHEAD == OPAL_CRYPT_FRAME_HEADER + OPAL_CRYPT_FRAME_TAG, "direct");
static_assert(OPAL_CRYPT_FIRST_OVERHEAD == OPAL_CRYPT_FIRST_HEADER + OPAL_CRYPT_FRAME_TAG, "first part");
static_assert(OPAL_CRYPT_FIRST_HEADER == OPAL_CRYPT_FRAME_HEADER + 8 + 4 + 4, "first part's header");
static_assert(OPAL_CRYPT_SEGMENT_OVERHEAD == OPAL_CRYPT_FRAME_TAG, "segment");
static_assert(OPAL_CRYPT_FRAME_TAG == OPAL_AEAD_TAG_BYTES, "tag");
static_assert(OPAL_CRYPT_LOCAL_HEADER == OPAL_CRYPT_FRAME_HEADER + 16, "local");
static_assert(OPAL_CRYPT_LOCAL_LARGE_BYTES == OPAL_CRYPT_LOCAL_HEADER + 16, "large local");

OPAL_CRYPT_OFTEN
int opal_crypt_frame_type(const uint8_t *frame, size_t frame_bytes)
{
    if (frame_bytes < OPAL_CRYPT_FRAME_HEADER || OPAL_CRYPT_FRAME_VERSION != frame[0] >> 4
        || 0 != frame[1]) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    int type = frame[0] & 0xf;
    return type >= OPAL_CRYPT_FRAME_DIRECT && type <= OPAL_CRYPT_FRAME_FINAL ? type : OPAL_CRYPT_ERR_AUTH;
}

bool opal_crypt_may_use(const opal_aead_module_t *aead, opal_aead_cipher_t cipher, unsigned shift)
{
#ifdef OPAL_CRYPT_TEST_RECORD
    const bool shift_good = shift <= OPAL_CRYPT_EPOCH_SHIFT;
#else
    const bool shift_good = OPAL_CRYPT_EPOCH_SHIFT == shift;
#endif
    return shift_good && NULL != aead && 0 != (aead->ciphers & OPAL_AEAD_BIT(cipher));
}

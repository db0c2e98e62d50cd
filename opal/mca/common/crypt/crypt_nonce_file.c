/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Nonces of file blocks: crypt_nonce_file.h says why none repeats.
 */
#include "crypt_nonce_file.h"
#include "crypt_file_le.h"

#include <assert.h>
#include <string.h>

static_assert(4 + 8 == OPAL_AEAD_NONCE_BYTES, "block nonce");

void opal_common_crypt_nonce_file(uint64_t counter, uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memset(nonce, 0, 4);
    opal_common_crypt_le_put64(nonce + 4, counter);
}

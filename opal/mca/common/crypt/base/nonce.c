/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Nonces: crypt/base/nonce.h has the drawings and the reason why none repeats.
 */
#include "nonce.h"
#include "le.h"

#include <assert.h>
#include <string.h>

static_assert(OPAL_CRYPT_PREFIX_BYTES + 1 + 4 == OPAL_AEAD_NONCE_BYTES, "segment nonce");
static_assert(6 + OPAL_CRYPT_COUNTER_BITS / 8 == OPAL_AEAD_NONCE_BYTES, "epoch nonce");
static_assert(4 + 8 == OPAL_AEAD_NONCE_BYTES, "block nonce");

OPAL_CRYPT_OFTEN
void opal_crypt_nonce_epoch(const uint8_t iv[OPAL_AEAD_NONCE_BYTES], uint64_t counter,
                            uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memcpy(nonce, iv, 4);
    opal_crypt_put64(nonce + 4, opal_crypt_get64(iv + 4) ^ counter);
}

void opal_crypt_nonce_segment(const uint8_t prefix[OPAL_CRYPT_PREFIX_BYTES],
                              bool last, uint32_t segment,
                              uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memcpy(nonce, prefix, OPAL_CRYPT_PREFIX_BYTES);
    nonce[7] = last ? 1 : 0;
    opal_crypt_put32(nonce + 8, segment);
}

void opal_crypt_nonce_block(uint64_t counter, uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memset(nonce, 0, 4);
    opal_crypt_le_put64(nonce + 4, counter);
}

/* RFC 8446, 5.3. */
OPAL_CRYPT_OFTEN
void opal_crypt_nonce_record(const uint8_t iv[OPAL_AEAD_NONCE_BYTES], uint64_t sequence,
                             uint8_t nonce[OPAL_AEAD_NONCE_BYTES])
{
    memcpy(nonce, iv, 4);
    opal_crypt_put64(nonce + 4, opal_crypt_get64(iv + 4) ^ sequence);
}

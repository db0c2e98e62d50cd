/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Nonces, the part for files: beside crypt_nonce.c the only place where any
 * nonce is made.
 *
 *   block    | 0 4 | counter 8, little-endian |
 *            The key belongs to one S, 16 random bytes that this process drew
 *            for one open and region; the counter is an atomic in the object
 *            that drew S (crypt_file_block.c), starts at 0, and is taken once.
 *            Nothing that was read from storage takes part in sealing.
 */
#ifndef OPAL_COMMON_CRYPT_NONCE_FILE_H
#define OPAL_COMMON_CRYPT_NONCE_FILE_H

#include "crypt_base.h"
#include "opal/mca/aead/aead_module.h"

void opal_common_crypt_nonce_file(uint64_t counter, uint8_t nonce[OPAL_AEAD_NONCE_BYTES]);

#endif

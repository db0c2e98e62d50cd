/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Nonces.  THE only place where any nonce of this project is made, for sealing and for opening.  To verify that none
 * repeats, read this page and follow the four counters.
 *
 *   epoch    | IV 6          | IV XOR counter 6       |   direct and final messages, pieces of collectives
 *            The counter is below 2^48 and taken once (crypt/wire/session.c,
 *            crypt/wire/group.c); key and IV belong to one direction, or to one
 *            sender of a group, and to one epoch.
 *
 *   segment  | prefix 7            | last 1 | segment 4 |   parts of a chopped message
 *            The subkey and the prefix belong to one message, whose counter
 *            was taken once; a segment number is sealed once a message.
 *
 *   block    | 0 4 | counter 8, little-endian |         blocks of files
 *            The key belongs to one S, 16 random bytes that this process drew
 *            for one open and region; the counter is an atomic beside S
 *            (cryptfile/file/block.c), starts at 0, and is taken once.  Nothing
 *            that was read from storage takes part in sealing.
 *
 *   record   | IV 4          | IV XOR sequence 8     |   records of TLS 1.3
 *            Key and IV belong to one direction of one connection, between two renewals
 *            (crypt/tls/keys.c); the sequence starts at 0, and is taken once by the
 *            only thread that seals there (crypt/tls/seal.c).
 */
#ifndef OPAL_CRYPT_BASE_NONCE_H
#define OPAL_CRYPT_BASE_NONCE_H

#include "base.h"
#include "opal/mca/aead/aead_module.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_COUNTER_BITS 48
#define OPAL_CRYPT_COUNTER_END  (UINT64_C(1) << OPAL_CRYPT_COUNTER_BITS)

#define OPAL_CRYPT_PREFIX_BYTES 7

void opal_crypt_nonce_epoch(const uint8_t iv[OPAL_AEAD_NONCE_BYTES], uint64_t counter,
                            uint8_t nonce[OPAL_AEAD_NONCE_BYTES]);

void opal_crypt_nonce_segment(const uint8_t prefix[OPAL_CRYPT_PREFIX_BYTES],
                              bool last, uint32_t segment,
                              uint8_t nonce[OPAL_AEAD_NONCE_BYTES]);

void opal_crypt_nonce_block(uint64_t counter, uint8_t nonce[OPAL_AEAD_NONCE_BYTES]);

void opal_crypt_nonce_record(const uint8_t iv[OPAL_AEAD_NONCE_BYTES], uint64_t sequence,
                             uint8_t nonce[OPAL_AEAD_NONCE_BYTES]);

#pragma GCC visibility pop

#endif

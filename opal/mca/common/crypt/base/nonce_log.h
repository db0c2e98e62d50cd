/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Test builds only (-DOPAL_CRYPT_TEST_RECORD): logs every (key, nonce) pair that has sealed anything in this process,
 * and aborts with a message if one seals a second time.  In all other builds these functions are empty.
 */
#ifndef OPAL_CRYPT_BASE_NONCE_LOG_H
#define OPAL_CRYPT_BASE_NONCE_LOG_H

#include "base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_RECORD_ID_BYTES 12

#ifdef OPAL_CRYPT_TEST_RECORD

/* Name a key, by the beginning of its hash. */
void opal_crypt_nonce_log_key(const uint8_t *raw, size_t bytes, uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES]);

/* Log this pair, just before sealing under it. */
void opal_crypt_nonce_log_add(const uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES], const uint8_t nonce[12]);

/* The number of logged pairs; and a reset for the next test. */
uint64_t opal_crypt_recorded(void);
void opal_crypt_record_forget(void);

#else

static inline void opal_crypt_nonce_log_key(const uint8_t *raw, size_t bytes, uint8_t *id)
{
    (void) raw;
    (void) bytes;
    (void) id;
}

static inline void opal_crypt_nonce_log_add(const uint8_t *id, const uint8_t *nonce)
{
    (void) id;
    (void) nonce;
}

#endif
#pragma GCC visibility pop

#endif

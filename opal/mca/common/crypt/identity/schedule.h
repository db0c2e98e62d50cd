/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What two processes share after their records were checked: the key schedule.
 *
 *     secret = X25519(ours, theirs), or x of ECDH over P-256
 *     PRK    = HKDF-Extract(salt = psk mix, or 32 zero bytes, secret)
 *     th     = SHA-256('ompi-crypt v1' || len || R_low || len || R_high)
 *     key    = Expand(PRK, label, pk_src || pk_dst || th)        crypt/base/kdf.h
 *
 * The schedule holds the PRK, in memory of crypt_secmem, and nothing that changes: counters, epochs and the replay set
 * belong to the session built on it.
 *
 * Threads: create and destroy by one thread, everything else by any.
 */
#ifndef OPAL_CRYPT_IDENTITY_SCHEDULE_H
#define OPAL_CRYPT_IDENTITY_SCHEDULE_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "local.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_schedule opal_crypt_schedule_t;

typedef enum {
    OPAL_CRYPT_OUT,     /* src is this process, dst the peer */
    OPAL_CRYPT_IN       /* src is the peer, dst this process */
} opal_crypt_direction_t;

/* Parse and authenticate the peer's record, agree on a secret.  ERR_PEER with `why` filled if the record is refused;
 * `expect` may be NULL. */
int opal_crypt_schedule_create(const opal_crypt_local_t *local,
                               const uint8_t *record, size_t bytes,
                               const opal_crypt_expect_t *expect,
                               opal_crypt_schedule_t **schedule,
                               opal_crypt_why_t *why);
void opal_crypt_schedule_destroy(opal_crypt_schedule_t *schedule);                  /* NULL allowed */

/* `bytes` (1 .. OPAL_CRYPT_KDF_MAX) of the key for one use in one direction.  `out` is secret: memory of
 * crypt_secmem.  The peer gets the same bytes with the other direction. */
int opal_crypt_schedule_expand(const opal_crypt_schedule_t *schedule,
                               opal_crypt_label_t label,
                               opal_crypt_direction_t direction,
                               void *out, size_t bytes);

/* The peer, now authenticated. */
const opal_crypt_peer_info_t *
opal_crypt_schedule_peer(const opal_crypt_schedule_t *schedule);

#pragma GCC visibility pop

#endif

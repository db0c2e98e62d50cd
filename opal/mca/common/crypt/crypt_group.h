/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Group keys: one fresh draw per communicator, known to all its members, under
 * which collectives seal once what many will open.  The key itself travels
 * sealed by pair sessions (coll/cryptag does that); this is the key schedule.
 *
 *     sender key, IV = Expand(group key, label || group id || pk_sender || epoch)
 *
 * Every member has a counter of its own, taken here and nowhere else, and
 * receivers open exactly the (sender, counter) they expect.
 */
#ifndef OPAL_COMMON_CRYPT_GROUP_H
#define OPAL_COMMON_CRYPT_GROUP_H

#include "crypt_base.h"
#include "crypt_local.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_GROUP_KEY_BYTES 32
#define OPAL_CRYPT_GROUP_ID_BYTES  16

typedef struct opal_common_crypt_group opal_common_crypt_group_t;

/* The drawer: 32 random key bytes and 16 random id bytes, to be handed on
 * sealed, in memory of crypt_secmem. */
typedef struct opal_common_crypt_group_secret {
    uint8_t key[OPAL_CRYPT_GROUP_KEY_BYTES];
    uint8_t id[OPAL_CRYPT_GROUP_ID_BYTES];
} opal_common_crypt_group_secret_t;

/* `members`: for each member the 32-byte hash of its public key (from its
 * record), in rank order; copied.  `self` is our rank in it. */
int opal_common_crypt_group_create(const opal_common_crypt_local_t *local,
                                   const opal_common_crypt_group_secret_t *secret,
                                   uint64_t context_high, uint64_t context_low,
                                   const uint8_t (*members)[32], uint32_t count, uint32_t self,
                                   opal_common_crypt_group_t **group);
void opal_common_crypt_group_destroy(opal_common_crypt_group_t *group);

/* Our next counter for this group. */
int opal_common_crypt_group_counter_take(opal_common_crypt_group_t *group, uint64_t *counter);

/* What a sealed piece of a collective is bound to; every field is AAD. */
typedef struct opal_common_crypt_piece {
    uint64_t sequence;          /* of the collective on this communicator */
    uint8_t operation;          /* allgather, bcast, alltoall ... */
    uint8_t algorithm;
    uint32_t origin;            /* rank that sealed it */
    uint32_t destination;       /* rank, or OPAL_CRYPT_TO_ALL */
    uint32_t index, count;      /* piece of how many */
    uint64_t plain_bytes;
} opal_common_crypt_piece_t;

#define OPAL_CRYPT_TO_ALL UINT32_MAX
#define OPAL_CRYPT_PIECE_OVERHEAD 24        /* | counter 8 | ciphertext | tag 16 | */

int opal_common_crypt_piece_seal(opal_common_crypt_group_t *group,
                                 const opal_common_crypt_piece_t *piece,
                                 const void *plain, uint8_t *sealed);

/* `sealed` holds plain_bytes + 24.  Counters of one origin must rise from call
 * to call, and one that was opened is refused in a later collective
 * (ERR_REPLAY); the piece must be exactly the one described. */
int opal_common_crypt_piece_open(opal_common_crypt_group_t *group,
                                 const opal_common_crypt_piece_t *piece,
                                 const uint8_t *sealed, void *plain);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Group keys: one fresh draw per communicator, known to all its members, under
 * which collectives seal once what many will open.  The key itself travels
 * sealed by pair sessions (common/cryptmpi does that); this is the key schedule.
 *
 *     sender key, IV = Expand(group key, label, group id || context id || hash of
 *                             pk_sender || epoch)
 *
 * What one member alone opens is never sealed under it, but under keys of the
 * session of the two: no third member can read it, or make another in its place.
 *
 *     pair key, IV   = Expand(parent of pieces, label, epoch)
 *
 *  a sealed piece of a collective
 *     | counter 8 | ciphertext n | tag 16 |
 *     nonce = epoch IV XOR (0^6 || counter)
 *     AAD   = counter 8 || group id 16 || sequence 8 || operation 1 || algorithm 1
 *             || origin 4 || destination 4 || index 4 || count 4 || n 8
 *             [ || context id 16, of a piece for one member ]
 *
 * A process has ONE counter for all pieces of all groups and sessions: a group that
 * was made twice by mistake, from the same secret, still repeats no nonce.
 *
 * Threads: create and destroy by one thread; seal and open by any.
 */
#ifndef OPAL_CRYPT_WIRE_GROUP_H
#define OPAL_CRYPT_WIRE_GROUP_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/identity/local.h"
#include "session.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_GROUP_KEY_BYTES 32
#define OPAL_CRYPT_GROUP_ID_BYTES  16

typedef struct opal_crypt_group opal_crypt_group_t;

/* The drawer: 32 random key bytes and 16 random id bytes, to be handed on
 * sealed, in memory of crypt_secmem. */
typedef struct opal_crypt_group_secret {
    uint8_t key[OPAL_CRYPT_GROUP_KEY_BYTES];
    uint8_t id[OPAL_CRYPT_GROUP_ID_BYTES];
} opal_crypt_group_secret_t;

/* `members`: for each member the 32-byte hash of its public key (from its
 * record), in rank order; copied.  `self` is our rank in it.  The secret stays
 * the caller's, who wipes it.  ERR_CONFIG when `self` is not us, ERR_PEER when
 * another member has our public key. */
int opal_crypt_group_create(const opal_crypt_local_t *local,
                            const opal_crypt_group_secret_t *secret,
                            uint64_t context_high, uint64_t context_low,
                            const uint8_t (*members)[32], uint32_t count, uint32_t self,
                            opal_crypt_group_t **group);
void opal_crypt_group_destroy(opal_crypt_group_t *group);

/* What a sealed piece of a collective is bound to; every field is AAD. */
typedef struct opal_crypt_piece {
    uint64_t sequence;          /* of the collective on this communicator */
    uint8_t operation;          /* allgather, bcast, alltoall ... */
    uint8_t algorithm;
    uint32_t origin;            /* rank that sealed it */
    uint32_t destination;       /* rank, or OPAL_CRYPT_TO_ALL */
    uint32_t index, count;      /* which piece, and of how many the item is made */
    uint64_t plain_bytes;       /* <= PIECE_MAX */
} opal_crypt_piece_t;

#define OPAL_CRYPT_TO_ALL UINT32_MAX
#define OPAL_CRYPT_PIECE_OVERHEAD 24        /* | counter 8 | ciphertext | tag 16 | */
#define OPAL_CRYPT_PIECE_MAX (UINT64_C(1) << 35)

/* A piece for all, which every member can read.  Writes plain_bytes + 24.
 * `plain` may be sealed + 8.  Only we seal as ourselves: ERR_CONFIG unless
 * piece->origin is our rank and the destination all; ERR_FORKED in a child,
 * ERR_EXHAUSTED when the counter has come to its end. */
int opal_crypt_piece_seal(opal_crypt_group_t *group,
                          const opal_crypt_piece_t *piece,
                          const void *plain, uint8_t *sealed);

/* `sealed` holds plain_bytes + 24; `plain` may be sealed + 8, and is zero after
 * any error but ERR_CONFIG.  The piece must be exactly the one described (ERR_AUTH).  Collectives
 * are opened in the order of their sequence, and the counters of one origin
 * rise from one to the next: what belongs to an earlier collective, or was
 * sealed before a piece that an earlier one brought, is ERR_REPLAY. */
int opal_crypt_piece_open(opal_crypt_group_t *group,
                          const opal_crypt_piece_t *piece,
                          const uint8_t *sealed, void *plain);

/* The same for a piece that one other member opens, which no third one can read or
 * make.  `session` is the one with piece->destination, or with piece->origin, and we
 * are the other of the two: else ERR_CONFIG. */
int opal_crypt_piece_seal_to(opal_crypt_group_t *group, opal_crypt_session_t *session,
                             const opal_crypt_piece_t *piece, const void *plain, uint8_t *sealed);
int opal_crypt_piece_open_from(opal_crypt_group_t *group, opal_crypt_session_t *session,
                               const opal_crypt_piece_t *piece, const uint8_t *sealed, void *plain);

#pragma GCC visibility pop

#endif

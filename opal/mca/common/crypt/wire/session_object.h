/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The internals of a session, for the files of the core and its unit tests.
 */
#ifndef OPAL_CRYPT_WIRE_SESSION_OBJECT_H
#define OPAL_CRYPT_WIRE_SESSION_OBJECT_H

#include "opal/mca/common/crypt/base/epoch.h"
#include "frame.h"
#include "group.h"
#include "opal/mca/common/crypt/base/nonce.h"
#include "order.h"
#include "session.h"
#include "opal/mca/common/crypt/base/thread.h"

/* The parent secrets of everything that one direction seals. */
typedef struct opal_crypt_parents {
    uint8_t direct[OPAL_CRYPT_SECRET_BYTES];    /* epoch keys and IVs */
    uint8_t chop[OPAL_CRYPT_SECRET_BYTES];      /* chopping keys */
    uint8_t piece[OPAL_CRYPT_SECRET_BYTES];     /* keys and IVs of pieces of collectives */
} opal_crypt_parents_t;

/* All of a session's secrets; in crypt_secmem. */
typedef struct opal_crypt_secrets {
    opal_crypt_parents_t out, in;
    opal_crypt_token_t token_out, token_in;
    uint8_t expanded[20];                       /* token 16 || base 4, until they are in place */
} opal_crypt_secrets_t;

struct opal_crypt_session {
    const opal_aead_module_t *aead;
    opal_aead_cipher_t cipher;
    unsigned shift;                             /* epoch = counter >> shift */

    uint64_t next;                              /* our next counter, atomic */
    uint64_t unsent;                            /* of the counters taken: those whose messages were not sent, atomic */
    opal_crypt_epochs_t out, in;
    opal_crypt_epochs_t pieces_out, pieces_in;          /* crypt/wire/group.c */
    opal_crypt_secrets_t *secrets;

    pthread_mutex_t arrivals;                   /* protects the next two */
    opal_crypt_replay_t replay;
    opal_crypt_order_t order;

    opal_crypt_session_peer_t peer;
};

/* A session from its secrets, which it takes over (and frees on failure): the last step of session_create, and the
 * first of tests. */
int opal_crypt_session_from_secrets(opal_crypt_secrets_t *secrets,
                                    const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                                    unsigned shift, opal_crypt_session_t **session);

/* ---- groups (crypt/wire/group.c) ---- */

/* The last step of group_create, and the first of tests. */
int opal_crypt_group_from_secret(const opal_crypt_group_secret_t *secret,
                                 const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                                 unsigned shift, uint64_t context_high, uint64_t context_low,
                                 const uint8_t (*members)[32], uint32_t count, uint32_t self,
                                 opal_crypt_group_t **group);

/* The next counter of this process for pieces of groups, atomic.  Only
 * crypt/wire/group.c and tests write it. */
extern uint64_t opal_crypt_group_next;

/* ---- frames (crypt/wire/frame.c) ---- */

#define OPAL_CRYPT_ENVELOPE_BYTES 24            /* context id 16 || generation 4 || tag 4 */

/* In one store: | version 4 bits, type 4 bits | reserved 0 | counter 6 | */
static inline void opal_crypt_header_put(uint8_t *frame, opal_crypt_frame_type_t type, uint64_t counter)
{
    opal_crypt_put64(frame, (uint64_t) (OPAL_CRYPT_FRAME_VERSION << 4 | type) << 56 | counter);
}

static inline void opal_crypt_envelope_put(uint8_t *out, const opal_crypt_envelope_t *envelope)
{
    opal_crypt_put64(out, envelope->context_high);
    opal_crypt_put64(out + 8, envelope->context_low);
    opal_crypt_put32(out + 16, envelope->generation);
    opal_crypt_put32(out + 20, (uint32_t) envelope->tag);
}

/* Does this provider support the cipher, and is the shift that of this build (20; a test build accepts lower ones)? */
bool opal_crypt_may_use(const opal_aead_module_t *aead, opal_aead_cipher_t cipher, unsigned shift);

/* Take the next counter of our direction.  Only the functions that seal, and tests, take one, and each seals once.
 * ERR_EXHAUSTED at 2^48, ERR_FORKED in a child. */
int opal_crypt_counter_take(opal_crypt_session_t *session, uint64_t *counter);

/* Of `taken` counters, how many belong to messages that were sent. */
uint64_t opal_crypt_sent_of(const opal_crypt_session_t *session, uint64_t taken);

#endif

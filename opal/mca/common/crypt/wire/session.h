/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A session: what two processes share after one key agreement.  There is ONE per pair of public keys, it holds the
 * only counter of each direction, and it lives until the local key pair is destroyed (a reconnect would otherwise
 * derive the same keys and restart the counter).
 *
 *     schedule --HKDF--> direction secrets
 *     direction secret --epoch = counter >> shift--> key, IV     (crypt/wire/session.c)
 *
 * Threads: every function may be called by any thread, unless stated otherwise.
 */
#ifndef OPAL_CRYPT_WIRE_SESSION_H
#define OPAL_CRYPT_WIRE_SESSION_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/identity/local.h"
#include "opal/mca/common/crypt/identity/schedule.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_session opal_crypt_session_t;

/* From a schedule (crypt/identity/schedule.h), which stays the caller's; `local` is the one that the schedule was made
 * with.  `why` is filled on failure.  The caller publishes the result by compare-and-swap and destroys the loser. */
int opal_crypt_session_create(const opal_crypt_local_t *local, const opal_crypt_schedule_t *schedule,
                              opal_crypt_session_t **session, opal_crypt_why_t *why);
/* A session of a process with itself: with random keys that never leave it. */
int opal_crypt_session_alone(const opal_crypt_local_t *local, opal_crypt_session_t **session);
void opal_crypt_session_destroy(opal_crypt_session_t *session);

/* Gives back the keys that can be derived again, most of a session's memory.  Counters, and what was accepted, stay: the
 * two may meet again. */
void opal_crypt_session_rest(opal_crypt_session_t *session);

/* The part of opal_crypt_peer_info that is kept as long as a session lives: there may be very many. */
typedef struct opal_crypt_session_peer {
    uint8_t key_hash[32];
    uint32_t rank, instance;
    bool same_node, report;
} opal_crypt_session_peer_t;

const opal_crypt_session_peer_t *opal_crypt_session_peer(const opal_crypt_session_t *session);

/* ---- the envelope to which a frame is bound, besides its own header ---- */
typedef struct opal_crypt_envelope {
    uint64_t context_high, context_low;     /* the communicator's global id */
    uint32_t generation;                    /* ids recur: how many communicators with this id the two have shared */
    int32_t tag;
} opal_crypt_envelope_t;

/* ---- sending ---- */

/* A sealed message was not sent: the host refused it.  (The session knows of those that could not be sealed.) */
void opal_crypt_session_unsent(opal_crypt_session_t *session);

/* How many messages were sent: counters taken, less those of messages that were not sent. */
uint64_t opal_crypt_session_sent(const opal_crypt_session_t *session);

/* ---- receiving ---- */

/* Accept an authentic message for delivery.  Refused if its counter was seen before (ERR_REPLAY), or if, within (this
 * session, envelope), counters do not increase with the serials of the receives that they matched, or if it was sent
 * before one that an earlier receive for any tag got (ERR_ORDER).
 * Check and insert are one atomic step.  Call it only after the tag has verified.
 *
 * Serials: the caller takes one per posted receive or mprobe, by
 * opal_crypt_serial_take, under the lock that also covers the host
 * call, and gives it back exactly once: by accept, or by
 * opal_crypt_serial_drop (cancelled, failed, plain).  One for any tag is
 * taken by opal_crypt_serial_take_any, and accepted with ANY_TAG. */
typedef struct opal_crypt_serials opal_crypt_serials_t;

int opal_crypt_serials_create(opal_crypt_serials_t **serials);
void opal_crypt_serials_destroy(opal_crypt_serials_t *serials);
uint64_t opal_crypt_serial_take(opal_crypt_serials_t *serials);
uint64_t opal_crypt_serial_take_any(opal_crypt_serials_t *serials);
void opal_crypt_serial_drop(opal_crypt_serials_t *serials, uint64_t serial);

#define OPAL_CRYPT_ALLOW_OVERTAKING 0x1     /* nothing to check in its order (group keys) */
#define OPAL_CRYPT_ANY_TAG          0x2     /* the receive was for MPI_ANY_TAG */

int opal_crypt_accept(opal_crypt_session_t *session,
                      opal_crypt_serials_t *serials, uint64_t serial,
                      const opal_crypt_envelope_t *envelope,
                      uint64_t counter, int flags);

/* How many counters the peer is known to have used (highest accepted + 1) and how many of them were accepted: the gap
 * is reported at finalize. */
void opal_crypt_session_gap(opal_crypt_session_t *session,
                            uint64_t *highest, uint64_t *accepted);

/* The state of both directions, for display. */
typedef struct opal_crypt_session_state {
    uint64_t sent;                      /* as of session_sent */
    uint64_t highest, accepted;         /* as of session_gap */
    uint64_t missing;                   /* the peer's lowest counter that was not accepted */
    uint64_t window_bytes;              /* memory for those above it */
    uint64_t epoch_out, epoch_in;       /* of the last message */
} opal_crypt_session_state_t;
void opal_crypt_session_snapshot(opal_crypt_session_t *session, opal_crypt_session_state_t *state);

/* ---- local peers ---- */

/* 16 bytes at the start of every plain message between processes of one node, so that a network frame cannot pass for
 * a local one; `base` is a secret offset for the tags on which the rest of a large local message travels. */
typedef struct opal_crypt_token {
    uint8_t bytes[16];
    uint32_t base;
} opal_crypt_token_t;

const opal_crypt_token_t *opal_crypt_token_out(const opal_crypt_session_t *session);
const opal_crypt_token_t *opal_crypt_token_in(const opal_crypt_session_t *session);

/* ---- the end ---- */

/* Wipe what this part still holds.  opal_crypt_finalize: if the core has no other user (common/cryptproc counts them),
 * wipe everything, as the last call. */
void opal_crypt_wire_finalize(void);
void opal_crypt_finalize(void);

#pragma GCC visibility pop

#endif

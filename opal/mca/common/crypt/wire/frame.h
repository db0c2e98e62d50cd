/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * THE WIRE FORMAT, version 1.  docs/wire-format.rst is the specification; this header is the same in C.  All integers
 * are big-endian.
 *
 *  frame header, 8 bytes
 *     | version 4 bits, type 4 bits | reserved, 0 | counter 6 |
 *
 *  direct message (24 bytes more than its plaintext)
 *     | header 8 | ciphertext n | tag 16 |
 *     nonce = epoch IV XOR (0^6 || counter)
 *     AAD   = header || context id 16 || generation 4 || tag 4
 *
 *  chopped message: a first part,
 *     | header 8 | total 8 | chunk 4 | count 4 | ciphertext F | tag 16 |
 *  then `count` segments on reserved tags
 *     | ciphertext chunk | tag 16 |          (the last one may be shorter)
 *     subkey || prefix 7 = AES_K(j || 0^9 || counter 6), j = 0, 1 ...
 *     nonce = prefix 7 || last 1 || segment 4      (the first part is segment 0)
 *     AAD   = whole header (24 bytes) || context id || generation || tag for the first part,
 *             empty for the others
 *
 *  plain message to a process of the same node
 *     | header 8 | token 16 | payload n |
 *  and for a large one only
 *     | header 8 | token 16 | total 8 | id 8 |    the message follows as it is, on the
 *                                               tag that the token's base and id give
 *
 * Seal and open mirror each other, function by function.  Threads: any, on
 * disjoint buffers; a chop may be used by many threads at once.
 */
#ifndef OPAL_CRYPT_WIRE_FRAME_H
#define OPAL_CRYPT_WIRE_FRAME_H

#include "opal/mca/common/crypt/base/base.h"
#include "session.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_FRAME_VERSION       1

#define OPAL_CRYPT_FRAME_HEADER        8
#define OPAL_CRYPT_FRAME_TAG           16
#define OPAL_CRYPT_DIRECT_OVERHEAD     24
#define OPAL_CRYPT_DIRECT_MAX          (4u << 20)      /* plaintext bytes of a direct message */
#define OPAL_CRYPT_FIRST_HEADER        24
#define OPAL_CRYPT_FIRST_OVERHEAD      40
#define OPAL_CRYPT_SEGMENT_OVERHEAD    16
#define OPAL_CRYPT_LOCAL_HEADER        24
#define OPAL_CRYPT_LOCAL_LARGE_BYTES   40
#define OPAL_CRYPT_FINAL_BYTES         32

#define OPAL_CRYPT_CHUNK_MIN           1
#define OPAL_CRYPT_CHUNK_MAX           (64u << 20)
#define OPAL_CRYPT_COUNT_MAX           (1u << 30)      /* a request counts them, and a few more, in 31 bits */
#define OPAL_CRYPT_TOTAL_MAX           (UINT64_C(1) << 42)     /* what one subkey seals: as much as
                                                                * an epoch's key, and so within
                                                                * the limits of the ciphers */

typedef enum {
    OPAL_CRYPT_FRAME_DIRECT = 1,
    OPAL_CRYPT_FRAME_FIRST = 2,
    OPAL_CRYPT_FRAME_LOCAL = 3,
    OPAL_CRYPT_FRAME_LOCAL_LARGE = 4,
    OPAL_CRYPT_FRAME_FINAL = 5          /* the number of messages sent, in MPI_Finalize */
} opal_crypt_frame_type_t;

/* The type that a frame claims, or ERR_AUTH if it is too short or its version or reserved bits are wrong.  The claim
 * only selects the function below that may open it. */
int opal_crypt_frame_type(const uint8_t *frame, size_t frame_bytes);

/* ---- direct ---- */

/* Writes plain_bytes + 24 to `frame`.  `plain` may be frame + 8.  Like first_seal, this takes the next counter of our
 * direction: call it in the order in which messages are handed to the host PML, under the caller's per-peer lock.
 * ERR_EXHAUSTED at 2^48, ERR_FORKED in a child. */
int opal_crypt_direct_seal(opal_crypt_session_t *session,
                           const opal_crypt_envelope_t *envelope,
                           const void *plain, size_t plain_bytes, uint8_t *frame);

/* Verifies and writes frame_bytes - 24, at most `plain_capacity`, to `plain` (may be frame + 8); on any error those bytes,
 * as far as there is room, are zeroed.  The caller then asks for acceptance. */
int opal_crypt_direct_open(opal_crypt_session_t *session,
                           const opal_crypt_envelope_t *envelope,
                           const uint8_t *frame, size_t frame_bytes,
                           void *plain, size_t plain_capacity, uint64_t *counter);

/* For what no function here can open (not a frame, longer than its buffer, not of the announced length): counts it
 * like one that does not verify; ERR_AUTH. */
int opal_crypt_frame_refused(void);

/* The last message to a peer, at disconnect and finalize: the number of messages sent to it (see session_sent),
 * including this one. */
int opal_crypt_final_seal(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          uint8_t frame[OPAL_CRYPT_FINAL_BYTES]);
int opal_crypt_final_open(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const uint8_t *frame, size_t frame_bytes,
                          uint64_t *sent, uint64_t *counter);

/* ---- chopped ---- */

typedef struct opal_crypt_shape {
    uint64_t total_bytes;       /* plaintext of the whole message */
    uint32_t first_bytes;       /* F: plaintext in the first part, <= total */
    uint32_t chunk_bytes;       /* plaintext of every segment but the last */
    uint32_t count;             /* segments after the first part; 1 without payload if that has all */
} opal_crypt_shape_t;

/* Computes count from the other three: ceil((total - first) / chunk).  ERR_CONFIG if it does not fit 31 bits or a
 * field is out of bounds: total <= TOTAL_MAX, first <= total and CHUNK_MAX, CHUNK_MIN <= chunk <= CHUNK_MAX. */
int opal_crypt_shape_make(uint64_t total_bytes, uint32_t first_bytes, uint32_t chunk_bytes,
                          opal_crypt_shape_t *shape);

/* All of it in the first part, and one segment without payload, which tells the sender of a synchronous message that
 * it was received. */
int opal_crypt_shape_whole(uint64_t total_bytes, opal_crypt_shape_t *shape);

/* Plaintext bytes and offset of segment 1..count. */
static inline uint64_t opal_crypt_segment_offset(const opal_crypt_shape_t *shape, uint32_t segment)
{
    return shape->first_bytes + (uint64_t) (segment - 1) * shape->chunk_bytes;
}

static inline uint32_t opal_crypt_segment_bytes(const opal_crypt_shape_t *shape, uint32_t segment)
{
    return segment < shape->count ? shape->chunk_bytes
         : (uint32_t) (shape->total_bytes - opal_crypt_segment_offset(shape, segment));
}

/* The subkey of one chopped message.  Made by _first_seal or _first_open, and ended by _chop_end (which wipes) once no
 * thread uses it. */
typedef struct opal_crypt_chop opal_crypt_chop_t;

/* Writes first_bytes + 40 to `frame`; `plain` may be frame + 24.  *counter is the counter taken for it. */
int opal_crypt_first_seal(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const opal_crypt_shape_t *shape,
                          const void *plain, uint8_t *frame,
                          uint64_t *counter, opal_crypt_chop_t **chop);

/* Verifies segment 0, THEN checks and returns the shape (first_bytes is
 * frame_bytes - 40, at most `plain_capacity`).  On any error plain is zeroed and *chop NULL. */
int opal_crypt_first_open(opal_crypt_session_t *session,
                          const opal_crypt_envelope_t *envelope,
                          const uint8_t *frame, size_t frame_bytes,
                          void *plain, size_t plain_capacity, opal_crypt_shape_t *shape,
                          uint64_t *counter, opal_crypt_chop_t **chop);

/* Segment 1..count: writes its bytes + 16 to `frame` / its bytes to `plain`.
 * In place allowed: plain == frame. */
int opal_crypt_segment_seal(opal_crypt_chop_t *chop, uint32_t segment,
                            const void *plain, uint8_t *frame);
int opal_crypt_segment_open(opal_crypt_chop_t *chop, uint32_t segment,
                            const uint8_t *frame, size_t frame_bytes, void *plain);

void opal_crypt_chop_end(opal_crypt_chop_t *chop);

/* ---- plain, within a node ---- */

/* Writes the 24 bytes before the payload.  The header's counter is 0. */
void opal_crypt_local_header(const opal_crypt_token_t *token,
                             opal_crypt_frame_type_t type, uint8_t *frame);

/* The whole frame of a large message: its length, and the number that determines the tag on which it follows. */
void opal_crypt_local_large(const opal_crypt_token_t *token, uint64_t total_bytes,
                            uint64_t id, uint8_t frame[OPAL_CRYPT_LOCAL_LARGE_BYTES]);

/* ERR_AUTH unless type and token match; constant time in the token. */
int opal_crypt_local_check(const opal_crypt_token_t *token,
                           opal_crypt_frame_type_t type,
                           const uint8_t *frame, size_t frame_bytes);

#pragma GCC visibility pop

#endif

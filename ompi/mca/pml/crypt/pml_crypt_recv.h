/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Receiving: what arrived, whether it was seen before, and what a probe holds for later.
 */
#ifndef MCA_PML_CRYPT_RECV_H
#define MCA_PML_CRYPT_RECV_H

#include "pml_crypt.h"

/* ---- receiving ---- */

typedef struct ompi_pml_crypt_held ompi_pml_crypt_held_t;

/* What arrived, decided once: the peer table says which kinds are allowed, the header which of these it is. */
typedef enum {
    OMPI_PML_CRYPT_IS_DIRECT,
    OMPI_PML_CRYPT_IS_FIRST,
    OMPI_PML_CRYPT_IS_LOCAL,            /* within this node, not checked yet */
    OMPI_PML_CRYPT_IS_LOCAL_LARGE,      /* and its body follows */
    OMPI_PML_CRYPT_IS_UNRESOLVED,        /* from a peer that is not resolved yet */
    OMPI_PML_CRYPT_IS_FORGED,
    OMPI_PML_CRYPT_IS_NOTHING           /* cancelled, or lost by the host */
} ompi_pml_crypt_what_t;

/* For a message that arrived WHOLE: m->in and m->peer are set. */
static inline ompi_pml_crypt_what_t ompi_pml_crypt_what(const ompi_pml_crypt_message_t *m, const uint8_t *frame)
{
    const size_t wire_bytes = m->in.wire_bytes;
    const int type = opal_crypt_frame_type(frame, wire_bytes);

    switch (ompi_common_cryptmpi_kind(m->peer)) {
    case OMPI_COMMON_CRYPTMPI_SEALED:
        return OPAL_CRYPT_FRAME_DIRECT == type && wire_bytes >= OPAL_CRYPT_DIRECT_OVERHEAD ? OMPI_PML_CRYPT_IS_DIRECT
               : OPAL_CRYPT_FRAME_FIRST == type && wire_bytes >= OPAL_CRYPT_FIRST_OVERHEAD ? OMPI_PML_CRYPT_IS_FIRST
                                                                                           : OMPI_PML_CRYPT_IS_FORGED;
    case OMPI_COMMON_CRYPTMPI_LOCAL:
        return OPAL_CRYPT_FRAME_LOCAL_LARGE == type ? OMPI_PML_CRYPT_IS_LOCAL_LARGE : OMPI_PML_CRYPT_IS_LOCAL;
    default:
        return OMPI_PML_CRYPT_IS_UNRESOLVED;
    }
}

int ompi_pml_crypt_start_recv(ompi_pml_crypt_request_t *r);
void ompi_pml_crypt_first_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status);
void ompi_pml_crypt_open_first_part(ompi_pml_crypt_request_t *r, ompi_pml_crypt_what_t what);

/* Open and accept a DIRECT, or a FIRST, frame; OPAL_CRYPT_OK, or why it is refused, and then all of it is
 * wiped.  *packed: the plaintext, if it has yet to be unpacked into the buffer; else NULL. */
int ompi_pml_crypt_open_direct(ompi_pml_crypt_message_t *m, uint8_t *frame, uint8_t **packed);
int ompi_pml_crypt_open_first(ompi_pml_crypt_message_t *m, uint8_t *frame, uint8_t **packed,
                              opal_crypt_shape_t *shape, uint64_t *counter, opal_crypt_chop_t **chop);
/* Deliver a message of total_bytes: set its length, or that the buffer is too short; unpack its first bytes, if
 * they are still `packed`, which is wiped unless the buffer is flat. */
void ompi_pml_crypt_deliver(ompi_pml_crypt_message_t *m, uint64_t total_bytes, uint8_t *packed, size_t packed_bytes);
void ompi_pml_crypt_fail(ompi_pml_crypt_message_t *m, int rc) OPAL_CRYPT_RARE;      /* report, set the status */
void ompi_pml_crypt_wipe_buffer(const ompi_pml_crypt_message_t *m, size_t plain_bytes) OPAL_CRYPT_RARE;

/* Where a message may be opened in place: the buffer, if it is contiguous, in memory of the host, and must not be read
 * before completion; else NULL. */
static inline char *ompi_pml_crypt_own_memory(const ompi_pml_crypt_message_t *m)
{
    return m->c->is_window ? NULL : m->flat;
}

/* Where plaintext of this length goes: into the buffer, if it can be opened in place and fits; else over
 * the ciphertext, behind the header. */
static inline uint8_t *ompi_pml_crypt_place(const ompi_pml_crypt_message_t *m, size_t plain_bytes, uint8_t *frame,
                                            size_t header, size_t *capacity, uint8_t **packed)
{
    uint8_t *place = plain_bytes > 0 && plain_bytes <= m->plain_bytes
                         ? (uint8_t *) ompi_pml_crypt_own_memory(m) : NULL;

    *packed = NULL != place ? NULL : frame + header;
    *capacity = NULL != place ? m->plain_bytes : ompi_pml_crypt.stage_bytes - header;
    return NULL != place ? place : frame + header;
}

/* ---- seen before?  in MPI's order? ---- */

/* A receive, or a probe that takes a message, holds a serial from here until it is given back. */
void ompi_pml_crypt_serial_take(ompi_pml_crypt_message_t *m, bool any_tag);
void ompi_pml_crypt_serial_drop(ompi_pml_crypt_message_t *m);
/* Accept a message that opened with `rc`; OPAL_CRYPT_OK, or why it is refused.  Gives the serial back. */
int ompi_pml_crypt_accept(ompi_pml_crypt_message_t *m, const opal_crypt_envelope_t *envelope, int rc, uint64_t counter);

/* ---- chopped ---- */

void ompi_pml_crypt_chop_recv(ompi_pml_crypt_request_t *r);         /* opens the first part */
/* The first part was opened; `packed`: its plaintext, unless that is in the buffer already. */
void ompi_pml_crypt_chop_go_on(ompi_pml_crypt_request_t *r, uint8_t *packed, uint64_t counter);
void ompi_pml_crypt_arriving_start(void);
void ompi_pml_crypt_arriving_stalled(void); /* from the progress function */
int ompi_pml_crypt_opened(void);            /* from the progress function: what workers have opened */

/* ---- held messages ---- */

/* A held message for this receive, or NULL; under the communicator's lock. */
ompi_pml_crypt_held_t *ompi_pml_crypt_held_take(ompi_common_cryptmpi_comm_t *c, int source, int tag);
int ompi_pml_crypt_held_recv(ompi_pml_crypt_request_t *r, ompi_pml_crypt_held_t *held);
void ompi_pml_crypt_held_drop_all(ompi_common_cryptmpi_comm_t *c);

#endif

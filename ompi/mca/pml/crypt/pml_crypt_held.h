/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A message that a probe took from the host ahead of its receive.
 */
#ifndef MCA_PML_CRYPT_HELD_H
#define MCA_PML_CRYPT_HELD_H

#include "pml_crypt_recv.h"

struct ompi_pml_crypt_held {
    opal_list_item_t super;         /* in the communicator's list, or with an ompi_message_t */
    ompi_message_t *host_message;   /* matched at the host, first part not fetched */
    ompi_pml_crypt_stage_t *stage;  /* first part fetched, or being fetched */
    ompi_pml_crypt_request_t *volatile taker;   /* NULL, the receive that gets it, HELD_ARRIVED or _DROPPED */
    ompi_pml_crypt_message_t m;     /* rank and tag, from the host; no buffer */
    size_t claimed_bytes;           /* length of the frame, from the host's probe */
    bool known;                     /* plain_bytes is valid */
    size_t plain_bytes;             /* of the whole message */
    ompi_status_public_t status;    /* the host's, of the first part */
    /* a sealed message whose first part a probe has opened and accepted */
    bool opened;
    uint8_t *packed;                /* its plaintext, in the stage */
    uint64_t counter;
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop;        /* NULL: the frame is the whole message */
};
OBJ_CLASS_DECLARATION(ompi_pml_crypt_held_t);

/* In `taker`: the first part has arrived in the stage, and no receive waits for it. */
#define OMPI_PML_CRYPT_HELD_ARRIVED ((ompi_pml_crypt_request_t *) 1)
/* It has yet to arrive, and will be dropped then. */
#define OMPI_PML_CRYPT_HELD_DROPPED ((ompi_pml_crypt_request_t *) 2)

/* All but _recv and _drop_all: under the communicator's lock. */
ompi_pml_crypt_held_t *ompi_pml_crypt_held_find(ompi_common_cryptmpi_comm_t *c, int source, int tag);
ompi_pml_crypt_held_t *ompi_pml_crypt_held_new(ompi_common_cryptmpi_comm_t *c, ompi_message_t *host_message,
                                               int source, int tag, size_t claimed_bytes, bool any_tag);
int ompi_pml_crypt_held_fetch(ompi_pml_crypt_held_t *held);
/* Has the first part arrived? */
bool ompi_pml_crypt_held_is_in(const ompi_pml_crypt_held_t *held);
/* Open a first part that arrived WHOLE, once; OPAL_CRYPT_OK, or why it is refused. */
int ompi_pml_crypt_held_open(ompi_pml_crypt_held_t *held);
/* Drop a message that is in no list any more. */
void ompi_pml_crypt_held_drop(ompi_pml_crypt_held_t *held);

#endif

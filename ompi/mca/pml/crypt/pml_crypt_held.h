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
    ompi_pml_crypt_stage_t *stage;  /* first part fetched, or under way */
    ompi_pml_crypt_request_t *volatile taker;   /* who gets it: NULL, a receive, or HELD_ARRIVED */
    ompi_pml_crypt_message_t m;     /* of rank and tag, as the host says; without a buffer */
    size_t claimed_bytes;           /* of the frame, as the host's probe said */
    bool known;                     /* plain_bytes is */
    size_t plain_bytes;             /* of the whole message */
    ompi_status_public_t status;    /* the host's, of the first part */
    /* of a sealed one whose first part a probe has opened, and accepted */
    bool opened;
    const uint8_t *packed;          /* its text, in the staging */
    uint64_t counter;
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop;        /* NULL: that is all */
};
OBJ_CLASS_DECLARATION(ompi_pml_crypt_held_t);

/* In `taker`: the first part is in the staging, and nobody waits for it. */
#define OMPI_PML_CRYPT_HELD_ARRIVED ((ompi_pml_crypt_request_t *) 1)
/* It is still to come, and nobody will look at it. */
#define OMPI_PML_CRYPT_HELD_DROPPED ((ompi_pml_crypt_request_t *) 2)

/* All but _recv and _drop_all: under the communicator's lock. */
ompi_pml_crypt_held_t *ompi_pml_crypt_held_find(ompi_common_cryptmpi_comm_t *c, int source, int tag);
ompi_pml_crypt_held_t *ompi_pml_crypt_held_new(ompi_common_cryptmpi_comm_t *c, ompi_message_t *host_message,
                                               int source, int tag, size_t claimed_bytes, bool any_tag);
int ompi_pml_crypt_held_fetch(ompi_pml_crypt_held_t *held);
/* Is the first part in? */
bool ompi_pml_crypt_held_is_in(const ompi_pml_crypt_held_t *held);
/* Open what is in, and WHOLE; OPAL_CRYPT_OK, or why it is refused.  Once. */
int ompi_pml_crypt_held_open(ompi_pml_crypt_held_t *held);
/* Nobody gets it; it is in no list any more. */
void ompi_pml_crypt_held_drop(ompi_pml_crypt_held_t *held);

#endif

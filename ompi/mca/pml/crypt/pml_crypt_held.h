/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A message that a probe took from the host ahead of its receive.
 */
#ifndef MCA_PML_CRYPT_HELD_H
#define MCA_PML_CRYPT_HELD_H

#include "pml_crypt.h"

struct ompi_pml_crypt_held {
    opal_list_item_t super;         /* in the communicator's list, or with an ompi_message_t */
    ompi_message_t *host_message;   /* matched at the host, first part not fetched */
    ompi_pml_crypt_stage_t *stage;  /* first part fetched, or under way */
    ompi_pml_crypt_request_t *volatile taker;   /* who gets it: NULL, a receive, or HELD_ARRIVED */
    int source, tag;
    uint64_t serial;
    bool any_tag;                   /* it was matched at the host whatever its tag */
    size_t wire_bytes, plain_bytes;
    bool known;                     /* plain_bytes is */
    ompi_status_public_t status;    /* the host's, of the first part */
};
OBJ_CLASS_DECLARATION(ompi_pml_crypt_held_t);

/* In `taker`: the first part is in the staging, and nobody waits for it. */
#define OMPI_PML_CRYPT_HELD_ARRIVED ((ompi_pml_crypt_request_t *) 1)

/* All but _recv and _drop_all: under the communicator's lock. */
ompi_pml_crypt_held_t *ompi_pml_crypt_held_find(ompi_common_cryptmpi_comm_t *c, int source, int tag);
ompi_pml_crypt_held_t *ompi_pml_crypt_held_new(ompi_common_cryptmpi_comm_t *c, ompi_message_t *host_message,
                                               const ompi_status_public_t *status, bool any_tag);
int ompi_pml_crypt_held_fetch(ompi_pml_crypt_held_t *held);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages that a probe took from the host ahead of their receives.
 *
 * A probe must report the plaintext length.  Of most messages the host's
 * length less the overhead is the answer, and they stay where they are.  The
 * total of a chopped message stands in its first part, which therefore has to
 * be fetched, and with it leaves the host's queue every message of that source
 * that arrived before it: else a later receive would find them out of order.
 *
 * A probe for any tag says which message is the first of its source, but the
 * receive after it names that message's tag and would not show it.  So a sealed
 * message that such a probe found is taken, too.
 *
 * All of them lie in the communicator's list, in order of arrival, until a
 * receive or a probe asks: both look here first.  A serial is taken for each
 * as it leaves the host's queue, because that is when it matched.
 */
#include "pml_crypt_held.h"

#include <stddef.h>

OBJ_CLASS_INSTANCE(ompi_pml_crypt_held_t, opal_list_item_t, NULL, NULL);

static bool matches(const ompi_pml_crypt_held_t *held, int source, int tag)
{
    return (MPI_ANY_SOURCE == source || held->source == source)
           && (held->tag == tag || (MPI_ANY_TAG == tag && held->tag >= 0));
}

ompi_pml_crypt_held_t *ompi_pml_crypt_held_find(ompi_common_cryptmpi_comm_t *c, int source, int tag)
{
    ompi_pml_crypt_held_t *held;

    OPAL_LIST_FOREACH(held, &c->held, ompi_pml_crypt_held_t) {
        if (matches(held, source, tag)) {
            return held;
        }
    }
    return NULL;
}

ompi_pml_crypt_held_t *ompi_pml_crypt_held_take(ompi_common_cryptmpi_comm_t *c, int source, int tag)
{
    ompi_pml_crypt_held_t *held = ompi_pml_crypt_held_find(c, source, tag);

    if (NULL != held) {
        opal_list_remove_item(&c->held, &held->super);
    }
    return held;
}

ompi_pml_crypt_held_t *ompi_pml_crypt_held_new(ompi_common_cryptmpi_comm_t *c, ompi_message_t *host_message,
                                               const ompi_status_public_t *status, bool any_tag)
{
    ompi_pml_crypt_held_t *held = OBJ_NEW(ompi_pml_crypt_held_t);

    held->host_message = host_message;
    held->stage = NULL;
    held->taker = NULL;
    held->known = false;
    held->source = status->MPI_SOURCE;
    held->tag = status->MPI_TAG;
    held->wire_bytes = status->_ucount;
    held->any_tag = any_tag;
    held->serial = any_tag ? opal_common_crypt_serial_take_any(c->serials)
                           : opal_common_crypt_serial_take(c->serials);
    return held;
}

/* A receive may have taken the message while its first part was on the way. */
static void arrived(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));
    ompi_pml_crypt_held_t *held = (ompi_pml_crypt_held_t *) stage->owner;
    ompi_pml_crypt_request_t *nobody = NULL;

    held->status = *status;
    if (!__atomic_compare_exchange_n(&held->taker, &nobody, OMPI_PML_CRYPT_HELD_ARRIVED, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        op->request = held->taker;
        OBJ_RELEASE(held);
        ompi_pml_crypt_first_in(op, status);
    }
}

/* Bring the first part into staging; it may take the host a while. */
int ompi_pml_crypt_held_fetch(ompi_pml_crypt_held_t *held)
{
    ompi_pml_crypt_stage_t *stage;
    int rc;

    if (NULL != held->stage) {
        return OMPI_SUCCESS;
    }
    stage = held->stage = ompi_pml_crypt_stage_get();
    stage->owner = held;
    stage->op.done = arrived;
    stage->op.request = NULL;
    rc = ompi_pml_crypt_op_imrecv(&stage->op, stage->bytes, ompi_pml_crypt.stage_bytes, &held->host_message);
    if (OMPI_SUCCESS != rc) {
        held->stage = NULL;
        ompi_pml_crypt_stage_return(stage);
    }
    return rc;
}

static void held_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));
    ompi_pml_crypt_held_t *held = (ompi_pml_crypt_held_t *) stage->owner;

    OBJ_RELEASE(held);
    ompi_pml_crypt_first_in(op, status);
}

/* The receive gets this message; `held` is gone afterwards. */
int ompi_pml_crypt_held_recv(ompi_pml_crypt_request_t *r, ompi_pml_crypt_held_t *held)
{
    ompi_pml_crypt_stage_t *stage;
    int rc;

    r->serial = held->serial;
    r->any_tag = held->any_tag;
    if (NULL != held->stage) {
        ompi_pml_crypt_request_t *nobody = NULL;
        r->first = stage = held->stage;
        stage->op.request = r;
        if (!__atomic_compare_exchange_n(&held->taker, &nobody, r, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
            ompi_status_public_t status = held->status;
            OBJ_RELEASE(held);
            ompi_pml_crypt_first_in(&stage->op, &status);
        }
        return OMPI_SUCCESS;
    }
    r->first = stage = ompi_pml_crypt_stage_get();
    stage->owner = held;
    stage->op.done = held_in;
    stage->op.request = r;
    rc = ompi_pml_crypt_op_imrecv(&stage->op, stage->bytes, ompi_pml_crypt.stage_bytes, &held->host_message);
    if (OMPI_SUCCESS != rc) {
        OBJ_RELEASE(held);
    }
    return rc;
}

void ompi_pml_crypt_held_drop_all(ompi_common_cryptmpi_comm_t *c)
{
    ompi_pml_crypt_held_t *held;

    while (NULL != (held = (ompi_pml_crypt_held_t *) opal_list_remove_first(&c->held))) {
        opal_common_crypt_serial_drop(c->serials, held->serial);
        if (NULL != held->stage && OMPI_PML_CRYPT_HELD_ARRIVED == held->taker) {
            ompi_pml_crypt_stage_return(held->stage);
        }
        OBJ_RELEASE(held);
    }
}

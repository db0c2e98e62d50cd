/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages that a probe took from the host ahead of their receives.
 *
 * A probe must not report what has not been authenticated.  So a sealed message is
 * fetched and its first part opened: then its length is known, and its source and
 * tag are authentic.  Every earlier message from that source must be dequeued along
 * with it: else a later receive would find them out of order.  It is accepted at
 * once, with the serial that it took when it left the queue, and the receive gets
 * what was opened.
 *
 * For a message within this node the host's length less the overhead is the answer,
 * and the message stays in the host's queue, unless it announces a large body: then
 * its frame has to be read.
 *
 * All of them are in the communicator's list, in order of arrival, until a
 * receive or a probe asks: both look here first.  A serial is taken for each
 * as it leaves the host's queue, because that is when it matched.
 *
 * Over cm (mtl.c) a message is dequeued at once, by a receive that names its source and tag,
 * under the communicator's lock, under which all receives are posted.
 */
#include "pml_crypt_held.h"

#include <stddef.h>

OBJ_CLASS_INSTANCE(ompi_pml_crypt_held_t, opal_list_item_t, NULL, NULL);

static bool matches(const ompi_pml_crypt_held_t *held, int source, int tag)
{
    return (MPI_ANY_SOURCE == source || held->m.rank == source)
           && (held->m.tag == tag || (MPI_ANY_TAG == tag && held->m.tag >= 0));
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

int ompi_pml_crypt_held_count(ompi_common_cryptmpi_comm_t *c, int source, int *tag, size_t *bytes)
{
    ompi_pml_crypt_held_t *held;
    int count = 0;

    if (opal_cryptproc_threaded() && 0 != pthread_mutex_trylock(&c->lock)) {
        return -1;
    }
    OPAL_LIST_FOREACH(held, &c->held, ompi_pml_crypt_held_t) {
        if ((MPI_ANY_SOURCE == source || held->m.rank == source) && 0 == count++) {
            *tag = held->m.tag;
            *bytes = held->known ? held->plain_bytes : held->claimed_bytes;
        }
    }
    ompi_common_cryptmpi_lock_release(&c->lock);
    return count;
}

ompi_pml_crypt_held_t *ompi_pml_crypt_held_new(ompi_common_cryptmpi_comm_t *c, ompi_message_t *host_message,
                                               int source, int tag, size_t claimed_bytes, bool any_tag)
{
    ompi_pml_crypt_held_t *held = OBJ_NEW(ompi_pml_crypt_held_t);

    held->host_message = host_message;
    held->stage = NULL;
    held->taker = NULL;
    held->known = held->opened = false;
    held->chop = NULL;
    held->m = (ompi_pml_crypt_message_t){.c = c, .peer = ompi_common_cryptmpi_comm_peer(c, source), .rank = source,
                                         .tag = tag};
    held->claimed_bytes = claimed_bytes;
    ompi_pml_crypt_serial_take(&held->m, any_tag);
    return held;
}

/* A receive may have taken the message while its first part was on the way. */
static void fetched(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));
    ompi_pml_crypt_held_t *held = (ompi_pml_crypt_held_t *) stage->owner;
    ompi_pml_crypt_request_t *taker = NULL;     /* nobody */

    held->status = *status;
    if (__atomic_compare_exchange_n(&held->taker, &taker, OMPI_PML_CRYPT_HELD_ARRIVED, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE)) {
        return;
    }
    OBJ_RELEASE(held);
    if (OMPI_PML_CRYPT_HELD_DROPPED == taker) {
        ompi_pml_crypt_stage_return(stage);
        return;
    }
    op->request = taker;
    ompi_pml_crypt_first_in(op, status);
}

/* Staging for the host's message, large enough that the host never truncates (recv.c).  A message
 * longer than any first part is invalid, and refused; it is still received, so that the host and its
 * sender can finish with it.  An MTL may truncate: it respects the buffer's size. */
static ompi_pml_crypt_stage_t *stage_for(const ompi_pml_crypt_held_t *held, size_t *bytes)
{
    const bool fits = ompi_pml_crypt.mtl || held->claimed_bytes <= ompi_pml_crypt.stage_bytes;

    *bytes = fits ? ompi_pml_crypt_capacity_of(ompi_pml_crypt.stage_bytes) : held->claimed_bytes;
    return fits ? ompi_pml_crypt_stage_get()
           : *bytes <= (size_t) OPAL_CRYPT_CHUNK_MAX ? ompi_pml_crypt_stage_of(*bytes) : NULL;
}

/* Bring the first part into staging; it may take the host a while. */
int ompi_pml_crypt_held_fetch(ompi_pml_crypt_held_t *held)
{
    ompi_pml_crypt_stage_t *stage;
    size_t bytes;
    int rc;

    if (NULL != held->stage) {
        return OMPI_SUCCESS;
    }
    stage = stage_for(held, &bytes);
    if (NULL == stage) {
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    held->stage = stage;
    stage->owner = held;
    stage->op.done = fetched;
    stage->op.request = NULL;
    rc = ompi_pml_crypt.mtl ? ompi_pml_crypt_op_recv(&stage->op, stage->bytes, bytes, &ompi_mpi_byte.dt, held->m.rank,
                                                     ompi_pml_crypt_host_tag(held->m.tag), held->m.c->comm)
                            : ompi_pml_crypt_op_imrecv(&stage->op, stage->bytes, bytes, &held->host_message);
    if (OMPI_SUCCESS != rc) {
        held->stage = NULL;
        ompi_pml_crypt_stage_return(stage);
    }
    return rc;
}

bool ompi_pml_crypt_held_is_in(const ompi_pml_crypt_held_t *held)
{
    return OMPI_PML_CRYPT_HELD_ARRIVED == __atomic_load_n(&held->taker, __ATOMIC_ACQUIRE);
}

/* ---- opening ahead of the receive ---- */

int ompi_pml_crypt_held_open(ompi_pml_crypt_held_t *held)
{
    uint8_t *frame = held->stage->bytes;
    int rc;

    switch (ompi_pml_crypt_what(&held->m, frame)) {
    case OMPI_PML_CRYPT_IS_DIRECT:
        held->shape.total_bytes = held->m.in.wire_bytes - OPAL_CRYPT_DIRECT_OVERHEAD;
        rc = ompi_pml_crypt_open_direct(&held->m, frame, &held->packed);
        break;
    case OMPI_PML_CRYPT_IS_FIRST:
        rc = ompi_pml_crypt_open_first(&held->m, frame, &held->packed, &held->shape, &held->counter, &held->chop);
        break;
    default:
        rc = opal_crypt_frame_refused();
        break;
    }
    held->opened = held->known = OPAL_CRYPT_OK == rc;
    held->plain_bytes = held->known ? held->shape.total_bytes : 0;
    return rc;
}

/* ---- receiving ---- */

static void held_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));
    ompi_pml_crypt_held_t *held = (ompi_pml_crypt_held_t *) stage->owner;

    OBJ_RELEASE(held);
    ompi_pml_crypt_first_in(op, status);
}

/* Give the receive what a probe has opened and accepted. */
static void deliver_opened(ompi_pml_crypt_request_t *r, const ompi_pml_crypt_held_t *held)
{
    r->m.peer = held->m.peer;
    r->m.in = held->m.in;
    r->m.status.MPI_SOURCE = held->m.rank;
    r->m.status.MPI_TAG = held->m.tag;
    if (NULL != held->chop) {
        r->shape = held->shape;
        r->chop = held->chop;
        ompi_pml_crypt_chop_go_on(r, held->packed, held->counter);
    } else {
        ompi_pml_crypt_deliver(&r->m, held->plain_bytes, held->packed, held->plain_bytes);
    }
    ompi_pml_crypt_request_put(r);
}

/* The receive gets this message; `held` is gone afterwards. */
int ompi_pml_crypt_held_recv(ompi_pml_crypt_request_t *r, ompi_pml_crypt_held_t *held)
{
    ompi_pml_crypt_stage_t *stage;
    size_t bytes;
    int rc;

    r->m.serial = held->m.serial;
    r->m.any_tag = held->m.any_tag;
    held->m.serial = 0;
    if (held->opened) {
        r->first = held->stage;
        r->first->op.request = r;
        deliver_opened(r, held);
        OBJ_RELEASE(held);
        return OMPI_SUCCESS;
    }
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
    r->first = stage = stage_for(held, &bytes);
    if (NULL == stage) {
        OBJ_RELEASE(held);
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    stage->owner = held;
    stage->op.done = held_in;
    stage->op.request = r;
    rc = ompi_pml_crypt_op_imrecv(&stage->op, stage->bytes, bytes, &held->host_message);
    if (OMPI_SUCCESS != rc) {
        OBJ_RELEASE(held);
    }
    return rc;
}

void ompi_pml_crypt_held_drop(ompi_pml_crypt_held_t *held)
{
    ompi_pml_crypt_request_t *nobody = NULL;

    ompi_pml_crypt_serial_drop(&held->m);
    if (NULL != held->chop) {
        opal_crypt_chop_end(held->chop);
    }
    if (held->opened) {
        opal_crypt_wipe(held->stage->bytes, held->m.in.wire_bytes);
    }
    if (NULL != held->stage
        && __atomic_compare_exchange_n(&held->taker, &nobody, OMPI_PML_CRYPT_HELD_DROPPED, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE)) {
        return;                 /* fetched() gives both back */
    }
    if (NULL != held->stage) {
        ompi_pml_crypt_stage_return(held->stage);
    }
    OBJ_RELEASE(held);
}

void ompi_pml_crypt_held_drop_all(ompi_common_cryptmpi_comm_t *c)
{
    ompi_pml_crypt_held_t *held;

    do {                                                /* the status page may scan the list */
        ompi_common_cryptmpi_lock_acquire(&c->lock);
        held = (ompi_pml_crypt_held_t *) opal_list_remove_first(&c->held);
        ompi_common_cryptmpi_lock_release(&c->lock);
        if (NULL != held) {
            ompi_pml_crypt_held_drop(held);
        }
    } while (NULL != held);
}

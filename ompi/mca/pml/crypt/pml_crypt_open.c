/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A first part is in: verify, accept, unpack, and complete or go on.
 *
 * Nothing is done because a header says so: the peer table says whether this
 * source is LOCAL or SEALED, and a frame of the other kind is a forgery.  A
 * source that was never spoken to (it matched MPI_ANY_SOURCE) cannot be
 * resolved in a callback; such requests wait in a list for the progress
 * function.
 */
#include "pml_crypt_held.h"

#include <stddef.h>
#include <stdlib.h>

#include "ompi/runtime/mpiruntime.h"

static opal_list_t deferred;
static pthread_mutex_t deferred_lock = PTHREAD_MUTEX_INITIALIZER;
static bool deferred_made = false;

/* ---- failure ---- */

void ompi_pml_crypt_wipe_buffer(ompi_pml_crypt_request_t *r, size_t plain_bytes)
{
    static const char zeros[4096];
    size_t bytes = plain_bytes < r->plain_bytes ? plain_bytes : r->plain_bytes;
    char *flat = ompi_common_cryptmpi_contiguous(r->base.req_addr, r->base.req_datatype, r->base.req_count);

    if (NULL != flat && bytes > 0) {
        opal_crypt_wipe(flat, bytes);
        return;
    }
    for (size_t offset = 0; offset < bytes; offset += sizeof(zeros)) {
        size_t piece = bytes - offset < sizeof(zeros) ? bytes - offset : sizeof(zeros);
        (void) ompi_common_cryptmpi_unpack(r->base.req_addr, r->base.req_count, r->base.req_datatype, offset,
                                           piece, zeros);
    }
}

void ompi_pml_crypt_fail(ompi_pml_crypt_request_t *r, int rc)
{
    r->status.MPI_ERROR = ompi_common_cryptmpi_auth_failure(r->c->comm, r->status.MPI_SOURCE, r->status.MPI_TAG, rc);
    r->status._ucount = 0;
}

/* ---- delivery ----
 *
 * What opens a message of one piece also works for a `known` of recv.c: it may look at no
 * more of the request than pml_crypt.h lists at ompi_pml_crypt_open_whole, and may not keep it. */

/* The message has total bytes: set the count, and the error if it is longer
 * than the buffer. */
static void set_count(ompi_pml_crypt_request_t *r, uint64_t total_bytes)
{
    r->status._ucount = total_bytes;
    if (total_bytes > r->plain_bytes) {
        r->status.MPI_ERROR = MPI_ERR_TRUNCATE;
    }
}

void ompi_pml_crypt_deliver_first(ompi_pml_crypt_request_t *r, const uint8_t *plain, size_t plain_bytes)
{
    size_t bytes = plain_bytes < r->plain_bytes ? plain_bytes : r->plain_bytes;

    if (OMPI_SUCCESS != ompi_common_cryptmpi_unpack(r->base.req_addr, r->base.req_count, r->base.req_datatype, 0,
                                                    bytes, plain)) {
        r->status.MPI_ERROR = MPI_ERR_INTERN;
    }
}

static int accept_message(ompi_pml_crypt_request_t *r, const opal_crypt_envelope_t *envelope, uint64_t counter)
{
    int flags = (OMPI_COMM_CHECK_ASSERT_ALLOW_OVERTAKE(r->base.req_comm) ? OPAL_CRYPT_ALLOW_OVERTAKING : 0)
                | (r->any_tag ? OPAL_CRYPT_ANY_TAG : 0);

    return opal_crypt_accept(r->peer->session, r->c->serials, r->serial, envelope, counter, flags);
}

static void drop_serial(ompi_pml_crypt_request_t *r)
{
    opal_crypt_serial_drop(r->c->serials, r->serial);
}

/* The user's buffer, where these bytes fit into it as they are; else they are opened in the frame. */
static inline uint8_t *place_of(const ompi_pml_crypt_request_t *r, size_t plain_bytes)
{
    return plain_bytes > 0 && plain_bytes <= r->plain_bytes
           ? ompi_common_cryptmpi_contiguous(r->base.req_addr, r->base.req_datatype, r->base.req_count) : NULL;
}

/* How much of staging lies behind a header. */
static inline size_t room_behind(size_t header)
{
    return ompi_pml_crypt.stage_bytes - header;
}

OPAL_CRYPT_OFTEN
static void open_direct(ompi_pml_crypt_request_t *r, uint8_t *frame, size_t wire_bytes)
{
    size_t plain_bytes = wire_bytes - OPAL_CRYPT_DIRECT_OVERHEAD;
    opal_crypt_envelope_t envelope;
    uint8_t *plain = place_of(r, plain_bytes);
    const bool in_place = NULL == plain;
    uint64_t counter;
    int rc;

    plain = in_place ? frame + OPAL_CRYPT_FRAME_HEADER : plain;
    envelope = ompi_common_cryptmpi_envelope(r->c, r->status.MPI_SOURCE, r->status.MPI_TAG);
    rc = opal_crypt_direct_open(r->peer->session, &envelope, frame, wire_bytes, plain,
                                in_place ? room_behind(OPAL_CRYPT_FRAME_HEADER) : r->plain_bytes, &counter);
    if (OPAL_CRYPT_OK != rc) {
        drop_serial(r);
    } else {
        rc = accept_message(r, &envelope, counter);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(plain, plain_bytes);
        ompi_pml_crypt_fail(r, rc);
        return;
    }
    set_count(r, plain_bytes);
    if (in_place) {
        ompi_pml_crypt_deliver_first(r, plain, plain_bytes);
    }
}

/* What comes behind the first part may be long in coming: its staging is not kept for that. */
static void first_done(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_return(ompi_pml_crypt_op_leave(&r->first));
}

/* Not inlined, as open_local: in open_frame it would lie between what every message runs. */
static __opal_attribute_noinline__ void open_first(ompi_pml_crypt_request_t *r, uint8_t *frame, size_t wire_bytes)
{
    const size_t first_bytes = wire_bytes - OPAL_CRYPT_FIRST_OVERHEAD;
    opal_crypt_envelope_t envelope;
    uint8_t *plain = place_of(r, first_bytes);
    const bool in_place = NULL == plain;
    uint64_t counter;
    int rc;

    plain = in_place ? frame + OPAL_CRYPT_FIRST_HEADER : plain;
    envelope = ompi_common_cryptmpi_envelope(r->c, r->status.MPI_SOURCE, r->status.MPI_TAG);
    rc = opal_crypt_first_open(r->peer->session, &envelope, frame, wire_bytes, plain,
                               in_place ? room_behind(OPAL_CRYPT_FIRST_HEADER) : r->plain_bytes, &r->shape,
                               &counter, &r->chop);
    if (OPAL_CRYPT_OK != rc) {
        drop_serial(r);
    } else {
        rc = accept_message(r, &envelope, counter);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(plain, first_bytes);
        ompi_pml_crypt_fail(r, rc);
        return;
    }
    set_count(r, r->shape.total_bytes);
    if (in_place) {
        ompi_pml_crypt_deliver_first(r, plain, first_bytes);
    }
    r->chop_tag = opal_crypt_tags_segments(&ompi_pml_crypt.tags, counter);
    first_done(r);
    ompi_pml_crypt_chop_recv(r);
}

/* ---- this node ---- */

static void body_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (MPI_SUCCESS != status->MPI_ERROR && MPI_ERR_TRUNCATE != status->MPI_ERROR) {
        r->host_error = status->MPI_ERROR;
    } else if (MPI_SUCCESS != status->MPI_ERROR || status->_ucount != r->shape.total_bytes) {
        r->failure = opal_crypt_frame_refused();
    } else if (NULL != r->body) {
        ompi_pml_crypt_deliver_first(r, r->body, r->shape.total_bytes);
    }
    free(r->body);
    r->body = NULL;
    ompi_pml_crypt_request_put(r);
}

/* Never for a `known`: the host gets a pointer into the request. */
static void open_local_large(ompi_pml_crypt_request_t *r, const uint8_t *frame)
{
    uint64_t total_bytes = opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER);
    uint64_t id = opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER + 8);
    int tag = opal_crypt_tags_body(&ompi_pml_crypt.tags, r->peer->token_in->base + id);
    void *buffer = r->base.req_addr;
    size_t count = r->base.req_count;
    ompi_datatype_t *type = r->base.req_datatype;
    int rc;

    set_count(r, total_bytes);
    r->shape.total_bytes = total_bytes;
    if (total_bytes > r->plain_bytes) {     /* the host must not be the one to cut it */
        buffer = r->body = malloc(total_bytes);
        count = total_bytes;
        type = &ompi_mpi_byte.dt;
        if (NULL == r->body) {
            r->status.MPI_ERROR = MPI_ERR_NO_MEM;
            return;
        }
    }
    r->rest.done = body_in;
    r->rest.request = r;
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_recv(&r->rest, buffer, count, type, r->status.MPI_SOURCE, tag, r->base.req_comm);
    if (OMPI_SUCCESS != rc) {
        r->host_error = ompi_errcode_get_mpi_code(rc);
        free(r->body);
        r->body = NULL;
        ompi_common_cryptmpi_add(&r->pending, -1);
    }
}

static __opal_attribute_noinline__ void open_local(ompi_pml_crypt_request_t *r, const uint8_t *frame, size_t wire_bytes)
{
    int type = opal_crypt_frame_type(frame, wire_bytes);

    drop_serial(r);
    if (OPAL_CRYPT_OK != opal_crypt_local_check(r->peer->token_in, type, frame, wire_bytes)) {
        ompi_pml_crypt_fail(r, OPAL_CRYPT_ERR_AUTH);
    } else if (OPAL_CRYPT_FRAME_LOCAL == type) {
        set_count(r, wire_bytes - OPAL_CRYPT_LOCAL_HEADER);
        ompi_pml_crypt_deliver_first(r, frame + OPAL_CRYPT_LOCAL_HEADER, wire_bytes - OPAL_CRYPT_LOCAL_HEADER);
    } else {                            /* of the one length that such a frame has */
        open_local_large(r, frame);
    }
}

/* ---- any first part ---- */

OPAL_CRYPT_OFTEN
bool ompi_pml_crypt_open_whole(ompi_pml_crypt_request_t *known, uint8_t *frame,
                               const ompi_status_public_t *brought)
{
    const ompi_pml_crypt_arrival_t arrival = ompi_pml_crypt_arrival(known->c, known->base.req_tag, brought,
                                                                    ompi_pml_crypt.stage_bytes);
    const size_t wire_bytes = arrival.wire_bytes;
    int type;

    if (OPAL_UNLIKELY(OMPI_PML_CRYPT_WHOLE != arrival.state)) {
        return false;
    }
    known->peer = ompi_common_cryptmpi_comm_peer(known->c, arrival.source);
    known->status = *brought;
    known->status.MPI_TAG = arrival.tag;
    known->status._ucount = 0;
    type = opal_crypt_frame_type(frame, wire_bytes);
    if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(known->peer) && OPAL_CRYPT_FRAME_DIRECT == type
        && wire_bytes >= OPAL_CRYPT_DIRECT_OVERHEAD) {
        open_direct(known, frame, wire_bytes);
        return true;
    }
    if (OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(known->peer) && OPAL_CRYPT_FRAME_LOCAL == type) {
        open_local(known, frame, wire_bytes);
        return true;
    }
    return false;
}

OPAL_CRYPT_OFTEN
static void open_frame(ompi_pml_crypt_request_t *r)
{
    uint8_t *frame = r->first->bytes;
    const size_t wire_bytes = r->wire_bytes;
    int type = opal_crypt_frame_type(frame, wire_bytes);

    if (OMPI_COMMON_CRYPTMPI_LOCAL == ompi_common_cryptmpi_kind(r->peer)) {
        open_local(r, frame, wire_bytes);
    } else if (OPAL_CRYPT_FRAME_DIRECT == type && wire_bytes >= OPAL_CRYPT_DIRECT_OVERHEAD) {
        open_direct(r, frame, wire_bytes);
    } else if (OPAL_CRYPT_FRAME_FIRST == type && wire_bytes >= OPAL_CRYPT_FIRST_OVERHEAD) {
        open_first(r, frame, wire_bytes);
    } else {
        drop_serial(r);
        ompi_pml_crypt_fail(r, opal_crypt_frame_refused());
    }
    ompi_pml_crypt_request_put(r);
}

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_first_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    const ompi_pml_crypt_arrival_t arrival = ompi_pml_crypt_arrival(r->c, r->base.req_tag, status,
                                                                    ompi_pml_crypt.stage_bytes);

    r->status = *status;
    r->status.MPI_TAG = arrival.tag;
    r->status._ucount = 0;
    r->wire_bytes = arrival.wire_bytes;
    if (OMPI_PML_CRYPT_WHOLE != arrival.state) {
        drop_serial(r);
        if (OMPI_PML_CRYPT_FORGED == arrival.state) {
            ompi_pml_crypt_fail(r, opal_crypt_frame_refused());
        }
        ompi_pml_crypt_request_put(r);
        return;
    }
    r->peer = ompi_common_cryptmpi_comm_peer(r->c, arrival.source);
    if (OMPI_COMMON_CRYPTMPI_UNKNOWN == ompi_common_cryptmpi_kind(r->peer)) {
        ompi_pml_crypt_defer(r);
        return;
    }
    open_frame(r);
}

void ompi_pml_crypt_deliver_opened(ompi_pml_crypt_request_t *r, ompi_pml_crypt_held_t *held)
{
    r->peer = ompi_common_cryptmpi_comm_peer(r->c, held->source);
    r->status.MPI_SOURCE = held->source;
    r->status.MPI_TAG = held->tag;
    set_count(r, held->plain_bytes);
    ompi_pml_crypt_deliver_first(r, held->plain, held->first_bytes);
    if (NULL != held->chop) {
        r->shape = held->shape;
        r->chop = held->chop;
        r->chop_tag = opal_crypt_tags_segments(&ompi_pml_crypt.tags, held->counter);
        first_done(r);
        ompi_pml_crypt_chop_recv(r);
    }
    ompi_pml_crypt_request_put(r);
}

/* ---- sources never spoken to ---- */

void ompi_pml_crypt_defer(ompi_pml_crypt_request_t *r)
{
    pthread_mutex_lock(&deferred_lock);
    if (!deferred_made) {
        OBJ_CONSTRUCT(&deferred, opal_list_t);
        deferred_made = true;
    }
    opal_list_append(&deferred, &r->queued);
    ompi_pml_crypt.waiting.deferred++;
    pthread_mutex_unlock(&deferred_lock);
}

/* Open MPI calls this eight times for every look at its sockets. */
static inline bool nothing_waits(void)
{
    return 0 == (ompi_pml_crypt.waiting.polled | ompi_pml_crypt.waiting.deferred | ompi_pml_crypt.waiting.queued
                 | ompi_pml_crypt.waiting.arriving | ompi_pml_crypt.sealing.count | ompi_pml_crypt.opening.count)
           && !ompi_pml_crypt_ending();
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_progress(void)
{
    int events;

    ompi_pml_crypt_status_tick();
    if (OPAL_LIKELY(nothing_waits())) {
        return 0;
    }
    events = ompi_pml_crypt_op_poll() + ompi_pml_crypt_opened();
    ompi_pml_crypt_pump_stalled();
    ompi_pml_crypt_arriving_stalled();
    if (ompi_pml_crypt_ending()) {
        ompi_pml_crypt_final_send();
    }
    while (OPAL_UNLIKELY(ompi_pml_crypt.waiting.deferred > 0)) {
        ompi_pml_crypt_request_t *r = NULL;
        opal_list_item_t *item;

        pthread_mutex_lock(&deferred_lock);
        item = opal_list_remove_first(&deferred);
        if (NULL != item) {
            ompi_pml_crypt.waiting.deferred--;
            r = (ompi_pml_crypt_request_t *) ((char *) item - offsetof(ompi_pml_crypt_request_t, queued));
        }
        pthread_mutex_unlock(&deferred_lock);
        if (NULL == r) {
            break;
        }
        if (OMPI_SUCCESS != ompi_common_cryptmpi_resolve(ompi_comm_peer_lookup(r->base.req_comm, r->status.MPI_SOURCE),
                                                         r->peer)) {
            ompi_mpi_abort(r->base.req_comm, 1);    /* the reason was shown */
        }
        open_frame(r);
        events++;
    }
    return events;
}

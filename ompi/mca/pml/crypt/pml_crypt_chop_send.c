/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sending a large message: a first part, then sealed segments on a reserved
 * tag, a few at a time.
 *
 * One queue holds the requests of the process that have segments left, and at
 * most in_flight segments are with the host together: more would only fill
 * staging that has gone cold.  A sender does not run ahead of its receiver by
 * more than run_ahead segments: the first part of a longer message is sent
 * synchronously, and opens the gate when it has matched.
 *
 * With t > 1 a segment is sealed by a worker (team.c).  It counts as one of
 * those in flight from then on, and goes to the host in its turn.
 *
 * A message must not wait for another one, whose receive may depend on it: when
 * the segments that fly have not moved for a while, counted in calls of the
 * progress function, every request that has none of its own may send one.
 *
 * pump() is entered from everywhere, callbacks included, but only one caller
 * works at a time: the others leave a note (`notes`) and go.  So the queue's
 * front is never worked on twice, no lock is held while the host is called,
 * and a host that completes at once makes a loop, not a recursion.
 */
#include "pml_crypt.h"

#include <stddef.h>

static opal_list_t queue;               /* of requests, by their member `queued` */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static ompi_common_cryptmpi_atomic32_t notes = 0, flying = 0;

enum { STALLED = 256 };                 /* calls of the progress function without a segment that moved */
static ompi_common_cryptmpi_atomic32_t idle = 0;
static volatile bool moved = false;     /* for the progress function: something may be sent now */

void ompi_pml_crypt_queue_start(void)
{
    OBJ_CONSTRUCT(&queue, opal_list_t);
    notes = flying = idle = ompi_pml_crypt.waiting.queued = 0;
    moved = false;
}

void ompi_pml_crypt_queue_stop(void)
{
    OBJ_DESTRUCT(&queue);
}

static inline ompi_pml_crypt_request_t *request_of(opal_list_item_t *item)
{
    return (ompi_pml_crypt_request_t *) ((char *) item - offsetof(ompi_pml_crypt_request_t, queued));
}

static inline uint32_t run_ahead(const ompi_pml_crypt_request_t *r)
{
    return (uint32_t) ompi_pml_crypt_room(ompi_pml_crypt.params.run_ahead, r->threads);
}

static inline bool gated(const ompi_pml_crypt_request_t *r)
{
    return r->next_segment > run_ahead(r) && !r->gate_open;
}

static inline bool may_send(const ompi_pml_crypt_request_t *r)
{
    return !gated(r) && (flying < ompi_pml_crypt_room(ompi_pml_crypt.params.in_flight, r->threads)
                         || (idle > STALLED && 0 == r->window));
}

/* The first request that may send a segment now; it stays in the queue until
 * its last one is taken. */
static ompi_pml_crypt_request_t *next_ready(uint32_t *segment)
{
    ompi_pml_crypt_request_t *found = NULL;
    opal_list_item_t *item;

    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    for (item = opal_list_get_first(&queue); item != opal_list_get_end(&queue); item = opal_list_get_next(item)) {
        if (may_send(request_of(item))) {
            found = request_of(item);
            *segment = found->next_segment++;
            if (found->next_segment > found->shape.count) {
                opal_list_remove_item(&queue, item);
                ompi_pml_crypt.waiting.queued--;
            }
            break;
        }
    }
    ompi_common_cryptmpi_lock_release(&queue_lock);
    return found;
}

/* Something has left: send on.  ucx calls back from the middle of its own work,
 * while sends that it could not start yet wait to be tried again; what is sent
 * from there overtakes them.  So the progress function has to do it. */
static void go_on(void)
{
    if (ompi_pml_crypt.sends_later) {
        moved = true;
    } else {
        ompi_pml_crypt_pump();
    }
}

static void segment_out(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));

    if (OMPI_SUCCESS != status->MPI_ERROR) {
        r->status.MPI_ERROR = status->MPI_ERROR;
    }
    ompi_pml_crypt_stage_return(stage);
    ompi_common_cryptmpi_add(&flying, -1);
    ompi_common_cryptmpi_add(&r->window, -1);
    idle = 0;
    go_on();
    ompi_pml_crypt_request_put(r);
}

/* A sealed segment, or why there is none, goes to the host. */
static void hand_over(ompi_pml_crypt_stage_t *stage)
{
    ompi_pml_crypt_request_t *r = stage->op.request;
    bool last = stage->op.segment == r->shape.count;
    int rc = OMPI_SUCCESS == stage->rc ? OMPI_SUCCESS : MPI_ERR_INTERN;

    if (OMPI_SUCCESS == rc) {
        /* Who sends synchronously learns from the last segment that a receive
         * matched, because a probe alone takes no more than the first part. */
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, stage->wire_bytes, &ompi_mpi_byte.dt, r->base.req_peer,
                                    r->chop_tag,
                                    last && MCA_PML_BASE_SEND_SYNCHRONOUS == r->mode
                                        ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD,
                                    r->base.req_comm);
    }
    if (OMPI_SUCCESS != rc) {
        ompi_status_public_t failed = {.MPI_ERROR = ompi_errcode_get_mpi_code(rc)};
        segment_out(&stage->op, &failed);
    }
}

/* Seal one segment and hand it over, or give it to a worker.  The request has
 * a pending for it. */
static void send_segment(ompi_pml_crypt_request_t *r, uint32_t segment)
{
    uint32_t plain_bytes = opal_common_crypt_segment_bytes(&r->shape, segment);
    uint64_t offset = opal_common_crypt_segment_offset(&r->shape, segment);
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_chunk_get(r, plain_bytes + OPAL_CRYPT_SEGMENT_OVERHEAD);
    char *flat = ompi_common_cryptmpi_contiguous(r->base.req_addr, r->base.req_datatype, r->base.req_count);

    stage->op.done = segment_out;
    stage->op.request = r;
    stage->op.segment = segment;
    stage->wire_bytes = plain_bytes + OPAL_CRYPT_SEGMENT_OVERHEAD;
    stage->rc = OMPI_SUCCESS;
    stage->plain = NULL == flat ? (char *) stage->bytes : flat + offset;
    if (NULL == flat) {
        stage->rc = NULL != r->stream
                        ? ompi_common_cryptmpi_stream_pack(r->stream, offset, plain_bytes, stage->bytes)
                        : ompi_common_cryptmpi_pack(r->base.req_addr, r->base.req_count, r->base.req_datatype, offset,
                                                    plain_bytes, stage->bytes);
    }
    if (OMPI_SUCCESS == stage->rc && r->threads > 1) {
        ompi_pml_crypt_team_seal(&ompi_pml_crypt.sealing, stage);
        return;
    }
    if (OMPI_SUCCESS == stage->rc) {
        stage->rc = opal_common_crypt_segment_seal(r->chop, segment, stage->plain, stage->bytes);
    }
    hand_over(stage);
}

void ompi_pml_crypt_pump(void)
{
    int32_t seen;

    if (1 != ompi_common_cryptmpi_add(&notes, 1)) {
        return;
    }
    do {
        ompi_pml_crypt_stage_t *stage;
        ompi_pml_crypt_request_t *r;
        uint32_t segment;

        seen = notes;
        do {
            while (NULL != (stage = ompi_pml_crypt_team_take(&ompi_pml_crypt.sealing))) {
                hand_over(stage);
            }
            if (NULL != (r = next_ready(&segment))) {
                ompi_common_cryptmpi_add(&flying, 1);
                ompi_common_cryptmpi_add(&r->window, 1);
                send_segment(r, segment);
            }
        } while (NULL != r);
    } while (0 != ompi_common_cryptmpi_add(&notes, -seen));
}

void ompi_pml_crypt_pump_stalled(void)
{
    if (OPAL_UNLIKELY(ompi_pml_crypt.sealing.count > 0 || moved)) {
        moved = false;
        ompi_pml_crypt_pump();
    }
    if (OPAL_UNLIKELY(ompi_pml_crypt.waiting.queued > 0) && ompi_common_cryptmpi_add(&idle, 1) > STALLED) {
        ompi_pml_crypt_pump();
        idle = 0;
    }
}

static void first_out(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (OMPI_SUCCESS != status->MPI_ERROR) {
        r->status.MPI_ERROR = status->MPI_ERROR;
    }
    r->gate_open = 1;
    go_on();
    ompi_pml_crypt_request_put(r);
}

/* Seal the first part; under the peer's send lock. */
static int make_first(ompi_pml_crypt_request_t *r, uint8_t *frame)
{
    opal_common_crypt_envelope_t envelope;
    const void *plain = ompi_common_cryptmpi_contiguous(r->base.req_addr, r->base.req_datatype, r->base.req_count);
    uint64_t counter;
    int rc;

    if (NULL == plain) {
        plain = frame + OPAL_CRYPT_FIRST_HEADER;
        rc = ompi_common_cryptmpi_pack(r->base.req_addr, r->base.req_count, r->base.req_datatype, 0,
                                       r->shape.first_bytes, frame + OPAL_CRYPT_FIRST_HEADER);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    envelope = ompi_common_cryptmpi_envelope(r->c, r->base.req_peer, r->base.req_tag);
    rc = opal_common_crypt_counter_take(r->peer->session, &counter);
    if (OPAL_CRYPT_OK == rc) {
        r->chop_tag = opal_common_crypt_tags_segments(&ompi_pml_crypt.tags, counter);
        rc = opal_common_crypt_first_seal(r->peer->session, counter, &envelope, &r->shape, plain, frame, &r->chop);
        r->peer->unsent += OPAL_CRYPT_OK != rc;
    }
    if (OPAL_CRYPT_OK == rc) {
        ompi_common_cryptmpi_add(&ompi_pml_crypt.outstanding, 1);
        r->stream = ompi_common_cryptmpi_stream_open(r->base.req_addr, r->base.req_count, r->base.req_datatype, true, 0);
    }
    return OPAL_CRYPT_OK == rc ? OMPI_SUCCESS
                               : ompi_common_cryptmpi_auth_failure(r->c->comm, ompi_comm_rank(r->c->comm),
                                                                   r->base.req_tag, rc);
}

/* A short message is here because it is synchronous: its last segment is empty. */
static int cut(ompi_pml_crypt_request_t *r)
{
    uint32_t segment_bytes;
    int rc;

    if (r->plain_bytes <= ompi_pml_crypt.params.chop_min) {
        r->threads = 1;
        return opal_common_crypt_shape_whole(r->plain_bytes, &r->shape);
    }
    segment_bytes = ompi_pml_crypt_cut(r->plain_bytes, (unsigned) ompi_pml_crypt.outstanding, &r->threads);
    rc = opal_common_crypt_shape_make(r->plain_bytes, ompi_pml_crypt.params.chop_min, segment_bytes, &r->shape);
    if (OPAL_CRYPT_OK == rc) {
        ompi_common_cryptmpi_report_cut(r->threads, r->shape.count);
    }
    return rc;
}

int ompi_pml_crypt_chop_send(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage;
    mca_pml_base_send_mode_t mode = r->mode;
    int rc = cut(r);

    if (OPAL_CRYPT_OK != rc) {
        return OMPI_ERR_BAD_PARAM;
    }
    if (MCA_PML_BASE_SEND_READY != mode) {
        mode = r->shape.count > run_ahead(r) ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD;
    }
    stage = r->first = ompi_pml_crypt_stage_get();
    stage->op.done = first_out;
    stage->op.request = r;
    ompi_common_cryptmpi_lock_acquire(&r->peer->send_lock);
    rc = make_first(r, stage->bytes);
    if (OMPI_SUCCESS == rc) {
        ompi_common_cryptmpi_add(&r->pending, 1 + (int32_t) r->shape.count);
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, r->shape.first_bytes + OPAL_CRYPT_FIRST_OVERHEAD,
                                    &ompi_mpi_byte.dt, r->base.req_peer, ompi_pml_crypt_host_tag(r->base.req_tag), mode,
                                    r->base.req_comm);
        if (OMPI_SUCCESS != rc) {
            r->peer->unsent++;
            ompi_common_cryptmpi_add(&r->pending, -1 - (int32_t) r->shape.count);
        }
    }
    ompi_common_cryptmpi_lock_release(&r->peer->send_lock);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    opal_list_append(&queue, &r->queued);
    ompi_pml_crypt.waiting.queued++;
    ompi_common_cryptmpi_lock_release(&queue_lock);
    ompi_pml_crypt_pump();
    return OMPI_SUCCESS;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sending a large message: a first part, then sealed segments on a reserved
 * tag, a few at a time.
 *
 * One queue holds the requests of the process that have segments left; together
 * they have at most IN_FLIGHT segments at the host: more would only fill staging
 * that has gone cold.  A sender does not run ahead of its receiver by more than
 * RUN_AHEAD segments, nor by more bytes, over all messages, than ahead.c allows:
 * the first part of a longer message, or of one beyond that limit, is sent
 * synchronously, and gives credit when it has matched.  Until then the request
 * waits for credit, out of the queue.
 *
 * With t > 1 a segment is sealed by a worker (team.c).  It counts as one of
 * those in flight from then on, and goes to the host in order.
 *
 * A message must not wait for another one whose receive may depend on it.  When no
 * segment in flight has moved for a number of calls of the progress function, their
 * messages are stalled: they send nothing until one of their segments moves, and others
 * get the same window again.  Each time without a move in between, that number doubles.
 *
 * pump() is entered from everywhere, callbacks included, but only one caller
 * works at a time: the others leave a note (`notes`) and return.  So the queue's
 * front is never worked on twice, no lock is held while the host is called,
 * and a host that completes at once makes a loop, not a recursion.
 */
#include "pml_crypt_recv.h"

#include <stddef.h>

static opal_list_t queue;               /* requests, by their member `queued` */
static pthread_mutex_t queue_lock = PTHREAD_MUTEX_INITIALIZER;
static ompi_common_cryptmpi_atomic32_t notes = 0;

/* Under the lock: segments at the host or at a worker, and how many of them were stalled
 * when that was last counted in `stalls`. */
static int32_t in_flight = 0, stalled = 0;
static uint32_t stalls = 0;

enum {
    IN_FLIGHT = 4,
    RUN_AHEAD = 4                       /* segments sent before the first part is known to be matched */
};

/* Calls of the progress function without a segment that moved. */
enum { STALLED = 256, STALLED_MOST = 1 << 18 };
static ompi_common_cryptmpi_atomic32_t idle = 0;
static volatile int32_t patience = STALLED;
static volatile bool moved = false;     /* for the progress function: something may be sent now */

void ompi_pml_crypt_queue_start(void)
{
    OBJ_CONSTRUCT(&queue, opal_list_t);
    notes = idle = in_flight = stalled = ompi_pml_crypt.waiting.queued = ompi_pml_crypt.outstanding = 0;
    patience = STALLED;
    ompi_pml_crypt_arriving_start();
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

static inline bool needs_credit(const ompi_pml_crypt_request_t *r)
{
    return r->next_segment > r->run_ahead && !r->has_credit;
}

static inline bool window_open(unsigned threads)
{
    return in_flight - stalled < ompi_pml_crypt_window(IN_FLIGHT, threads);
}

static inline bool may_send(const ompi_pml_crypt_request_t *r)
{
    return !r->stalled && window_open(r->threads);
}

/* Under the lock, like all access to the queue. */
static void enqueue(ompi_pml_crypt_request_t *r)
{
    opal_list_append(&queue, &r->queued);
    ompi_pml_crypt.waiting.queued++;
}

static void dequeue(ompi_pml_crypt_request_t *r)
{
    opal_list_remove_item(&queue, &r->queued);
    ompi_pml_crypt.waiting.queued--;
}

/* The first request that may send a segment now; it stays in the queue until
 * its last one is taken, or it has to wait for its receiver. */
static ompi_pml_crypt_request_t *next_ready(uint32_t *segment, uint32_t *at_stalls)
{
    ompi_pml_crypt_request_t *found = NULL;
    opal_list_item_t *item;

    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    if (!window_open(NULL == ompi_pml_crypt.team ? 1 : ompi_pml_crypt_cut_threads())) {
        ompi_common_cryptmpi_lock_release(&queue_lock);
        return NULL;            /* no room for any: do not search, there may be thousands */
    }
    for (item = opal_list_get_first(&queue); item != opal_list_get_end(&queue); item = opal_list_get_next(item)) {
        if (may_send(request_of(item))) {
            found = request_of(item);
            *segment = found->next_segment++;
            found->window++;
            in_flight++;
            if (found->next_segment > found->shape.count) {
                dequeue(found);
            } else if (needs_credit(found)) {
                found->waits_for_credit = true;
                dequeue(found);
            }
            break;
        }
    }
    *at_stalls = stalls;
    ompi_common_cryptmpi_lock_release(&queue_lock);
    return found;
}

static void begin_queued(ompi_pml_crypt_request_t *r)
{
    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    if (needs_credit(r)) {
        r->waits_for_credit = true;
    } else {
        enqueue(r);
    }
    ompi_common_cryptmpi_lock_release(&queue_lock);
}

static void give_credit(ompi_pml_crypt_request_t *r)
{
    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    r->has_credit = 1;
    if (r->waits_for_credit) {
        r->waits_for_credit = false;
        enqueue(r);
    }
    ompi_common_cryptmpi_lock_release(&queue_lock);
}

/* A send has completed: go on.  ucx calls back in the middle of its own work, while
 * sends that it could not start yet wait for a retry; a send from the callback would
 * overtake them.  So the progress function has to do it. */
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
        r->m.status.MPI_ERROR = status->MPI_ERROR;
    }
    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    in_flight--;
    stalled -= stage->stalls != stalls;
    r->window--;
    r->stalled = false;
    ompi_common_cryptmpi_lock_release(&queue_lock);
    ompi_pml_crypt_stage_return(stage);
    idle = 0;
    patience = STALLED;
    go_on();
    ompi_pml_crypt_request_put(r);
}

/* Hand a sealed segment to the host; if it could not be sealed, end the job. */
static void hand_over(ompi_pml_crypt_stage_t *stage)
{
    ompi_pml_crypt_request_t *r = stage->op.request;
    bool last = stage->op.segment == r->shape.count;
    int rc = MPI_ERR_INTERN;

    if (OPAL_CRYPT_OK != stage->rc) {       /* the receiver has the first part, and waits for this one */
        ompi_common_cryptmpi_end_job(r->base.req_comm, ompi_comm_rank(r->base.req_comm), r->m.tag, stage->rc);
    } else {
        /* The last segment tells the sender of a synchronous message that a receive
         * matched, because a probe alone takes no more than the first part. */
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, stage->wire_bytes, &ompi_mpi_byte.dt, r->m.rank,
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

/* Seal a segment and hand it over, or give it to a worker. */
static void seal_segment(ompi_pml_crypt_stage_t *stage)
{
    ompi_pml_crypt_request_t *r = stage->op.request;

    if (OPAL_CRYPT_OK == stage->rc && r->threads > 1) {
        ompi_pml_crypt_team_seal(&ompi_pml_crypt.sealing, stage);
        return;
    }
    if (OPAL_CRYPT_OK == stage->rc) {
        stage->rc = opal_crypt_segment_seal(r->chop, stage->op.segment, stage->plain, stage->bytes);
    }
    hand_over(stage);
}

/* Begin with one segment.  The request's `pending` counts it already. */
static void send_segment(ompi_pml_crypt_request_t *r, uint32_t segment, uint32_t at_stalls)
{
    uint32_t plain_bytes = opal_crypt_segment_bytes(&r->shape, segment);
    uint64_t offset = opal_crypt_segment_offset(&r->shape, segment);
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_chunk_get(r, plain_bytes + OPAL_CRYPT_SEGMENT_OVERHEAD);
    char *flat = r->m.flat;

    stage->op.done = segment_out;
    stage->op.request = r;
    stage->op.segment = segment;
    stage->wire_bytes = plain_bytes + OPAL_CRYPT_SEGMENT_OVERHEAD;
    stage->rc = OPAL_CRYPT_OK;
    stage->stalls = at_stalls;
    stage->plain = NULL == flat ? (char *) stage->bytes : flat + offset;
    if (NULL != r->device) {            /* it is copied while earlier ones are sealed */
        ompi_pml_crypt_stage_copy(stage, r->device + offset, plain_bytes, false);
        ompi_pml_crypt_team_copy(&ompi_pml_crypt.fetching, stage);
        return;
    }
    if (NULL == flat && OMPI_SUCCESS != (NULL != r->stream
                            ? ompi_common_cryptmpi_stream_pack(r->stream, offset, plain_bytes, stage->bytes)
                            : ompi_common_cryptmpi_pack(r->m.buffer, r->m.count, r->m.type, offset,
                                                        plain_bytes, stage->bytes))) {
        stage->rc = OPAL_CRYPT_ERR_LIBRARY;
    }
    seal_segment(stage);
}

void ompi_pml_crypt_pump(void)
{
    int32_t seen;

    if (1 != ompi_common_cryptmpi_add(&notes, 1)) {
        return;
    }
    do {
        ompi_pml_crypt_stage_t *stage, *fetched;
        ompi_pml_crypt_request_t *r;
        uint32_t segment, at_stalls;

        seen = __atomic_load_n((const volatile int32_t *) &notes, __ATOMIC_ACQUIRE);
        do {
            fetched = OPAL_UNLIKELY(ompi_pml_crypt.waiting.copying > 0) ? ompi_pml_crypt_team_take(&ompi_pml_crypt.fetching) : NULL;
            if (NULL != fetched) {
                seal_segment(fetched);
            }
            while (NULL != (stage = ompi_pml_crypt_team_take(&ompi_pml_crypt.sealing))) {
                hand_over(stage);
            }
            if (NULL != (r = next_ready(&segment, &at_stalls))) {
                send_segment(r, segment, at_stalls);
            }
        } while (NULL != r || NULL != fetched);
    } while (0 != ompi_common_cryptmpi_add(&notes, -seen));
}

/* Segments in flight do not move: count a stall. */
static void count_stall(void)
{
    opal_list_item_t *item;

    ompi_common_cryptmpi_lock_acquire(&queue_lock);
    stalls++;
    stalled = in_flight;
    for (item = opal_list_get_first(&queue); item != opal_list_get_end(&queue); item = opal_list_get_next(item)) {
        request_of(item)->stalled = request_of(item)->window > 0;
    }
    ompi_common_cryptmpi_lock_release(&queue_lock);
}

void ompi_pml_crypt_pump_stalled(void)
{
    if (OPAL_UNLIKELY(ompi_pml_crypt.sealing.count > 0 || ompi_pml_crypt.waiting.copying > 0 || moved)) {
        moved = false;
        ompi_pml_crypt_pump();
    }
    if (OPAL_UNLIKELY(ompi_pml_crypt.waiting.queued > 0) && ompi_common_cryptmpi_add(&idle, 1) > patience) {
        count_stall();
        ompi_pml_crypt_pump();
        patience = patience < STALLED_MOST ? 2 * patience : STALLED_MOST;
        idle = 0;
    }
}

static void first_out(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (OMPI_SUCCESS != status->MPI_ERROR) {
        r->m.status.MPI_ERROR = status->MPI_ERROR;
    }
    ompi_pml_crypt_stage_return(ompi_pml_crypt_op_leave(&r->first));
    ompi_pml_crypt_ahead_told(r);
    give_credit(r);
    go_on();
    ompi_pml_crypt_request_put(r);
}

/* Seal the first part; under the peer's send lock. */
static int make_first(ompi_pml_crypt_request_t *r, uint8_t *frame)
{
    opal_crypt_envelope_t envelope;
    const void *plain = r->m.flat;
    uint64_t counter;
    int rc;

    if (NULL == plain) {
        plain = frame + OPAL_CRYPT_FIRST_HEADER;
        rc = ompi_common_cryptmpi_pack(r->m.buffer, r->m.count, r->m.type, 0,
                                       r->shape.first_bytes, frame + OPAL_CRYPT_FIRST_HEADER);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    envelope = ompi_common_cryptmpi_envelope(r->m.c, r->m.rank, r->m.tag);
    rc = opal_crypt_first_seal(r->m.peer->session, &envelope, &r->shape, plain, frame, &counter, &r->chop);
    if (OPAL_CRYPT_OK == rc) {
        r->chop_tag = opal_crypt_tags_segments(&ompi_pml_crypt.tags, counter);
        ompi_common_cryptmpi_add(&ompi_pml_crypt.outstanding, 1);
        r->device = NULL != r->m.flat ? NULL : ompi_common_cryptmpi_device_contiguous(r->m.buffer, r->m.type, r->m.count);
        r->stream = NULL != r->m.flat || NULL != r->device ? NULL
                    : ompi_common_cryptmpi_stream_open(r->m.buffer, r->m.count, r->m.type, true, 0);
    }
    return OPAL_CRYPT_OK == rc ? OMPI_SUCCESS : ompi_pml_crypt_error(&r->m, ompi_comm_rank(r->m.c->comm), r->m.tag, rc);
}

/* A short message is here because it is synchronous, and then its last segment is empty,
 * or because it is late. */
static int cut(ompi_pml_crypt_request_t *r, bool late)
{
    const uint32_t first_bytes = late ? 0 : ompi_pml_crypt.params.chop_min;
    uint32_t segment_bytes;

    r->threads = 1;
    if (r->m.plain_bytes <= first_bytes || 0 == r->m.plain_bytes) {
        return opal_crypt_shape_whole(r->m.plain_bytes, &r->shape);
    }
    segment_bytes = ompi_pml_crypt_cut(r->m.plain_bytes, r->m.plain_bytes - first_bytes,
                                       (unsigned) ompi_pml_crypt.outstanding, &r->threads);
    return opal_crypt_shape_make(r->m.plain_bytes, first_bytes, segment_bytes, &r->shape);
}

static uint32_t bytes_ahead(const ompi_pml_crypt_request_t *r)
{
    const uint64_t most = UINT64_C(1) << 30, segments = (uint64_t) r->run_ahead * r->shape.chunk_bytes,
                   rest = r->shape.total_bytes - r->shape.first_bytes,
                   bytes = r->shape.first_bytes + OPAL_CRYPT_FIRST_OVERHEAD + (segments < rest ? segments : rest);

    return (uint32_t) (bytes < most ? bytes : most);
}

/* Decide what may leave before a receive has matched, and cut the message accordingly.  A short
 * message is here because the limit of sealed frames is reached; if the host sends its segment
 * eagerly, as it would have sent the message, it does not wait for a match.  Under the send
 * lock; NULL: it cannot be cut. */
static ompi_pml_crypt_stage_t *plan(ompi_pml_crypt_request_t *r)
{
    const size_t chop_min = ompi_pml_crypt.params.chop_min;
    const bool is_short = r->m.plain_bytes <= chop_min && MCA_PML_BASE_SEND_SYNCHRONOUS != r->mode;
    ompi_pml_crypt_ahead_t ahead = OMPI_PML_CRYPT_LATE;
    ompi_pml_crypt_stage_t *stage = NULL;

    if (!is_short) {
        stage = ompi_pml_crypt_frame_get((r->m.plain_bytes < chop_min ? r->m.plain_bytes : chop_min)
                                         + OPAL_CRYPT_FIRST_OVERHEAD);
        if (OPAL_CRYPT_OK != cut(r, false)) {
            goto no_cut;
        }
        r->run_ahead = (uint32_t) ompi_pml_crypt_window(RUN_AHEAD, r->threads);
        ahead = ompi_pml_crypt_ahead_take(r, NULL == stage ? OMPI_PML_CRYPT_NOTHING_AHEAD : bytes_ahead(r),
                                          MCA_PML_BASE_SEND_READY == r->mode || r->shape.count > r->run_ahead);
    }
    r->acks_match = OMPI_PML_CRYPT_AHEAD != ahead;
    if (OMPI_PML_CRYPT_LATE == ahead) {
        if (NULL != stage) {
            ompi_pml_crypt_stage_return(stage);
        }
        stage = ompi_pml_crypt_frame_get(OPAL_CRYPT_FIRST_OVERHEAD);
        if (OPAL_CRYPT_OK != cut(r, true)) {
            goto no_cut;
        }
        r->run_ahead = 0;
        if (is_short && ompi_pml_crypt.eager) {
            r->acks_match = false;
            r->has_credit = 1;
        }
    }
    return stage;

no_cut:
    if (NULL != stage) {
        ompi_pml_crypt_stage_return(stage);
    }
    return NULL;
}

int ompi_pml_crypt_chop_send(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage;
    int rc = OMPI_ERR_BAD_PARAM;

    ompi_pml_crypt_host_lock(&r->m.peer->send_lock, r->m.tag);
    stage = r->first = plan(r);
    if (NULL != stage) {
        stage->op.done = first_out;
        stage->op.request = r;
        rc = make_first(r, stage->bytes);
    }
    if (OMPI_SUCCESS == rc) {
        ompi_common_cryptmpi_report_cut(r->threads, r->shape.count);
        ompi_common_cryptmpi_add(&r->pending, 1 + (int32_t) r->shape.count);
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, r->shape.first_bytes + OPAL_CRYPT_FIRST_OVERHEAD,
                                    &ompi_mpi_byte.dt, r->m.rank, ompi_pml_crypt_host_tag(r->m.tag),
                                    MCA_PML_BASE_SEND_READY == r->mode ? r->mode
                                    : r->acks_match ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD,
                                    r->base.req_comm);
        if (OMPI_SUCCESS != rc) {
            opal_crypt_session_unsent(r->m.peer->session);
            ompi_common_cryptmpi_add(&r->pending, -1 - (int32_t) r->shape.count);
        }
    }
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_ahead_told(r);
    }
    ompi_pml_crypt_host_unlock(&r->m.peer->send_lock, r->m.tag);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    begin_queued(r);
    if (ompi_pml_crypt_called_back()) {         /* started from a completion callback, as Open MPI's windows do */
        go_on();
    } else {
        ompi_pml_crypt_pump();
    }
    return OMPI_SUCCESS;
}

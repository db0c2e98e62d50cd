/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Receiving a large message: the first part is opened, then a window of staging buffers is
 * posted on the message's reserved tag, each segment is opened into its place
 * (with t > 1 by a worker, team.c), and its slot of the window is posted again.
 *
 * At most MANY messages of a peer are received at a time, in the order in which they
 * matched, which is also the order in which they are sent: staging is reused while it is
 * warm, and the host has few receives to search.  Should they arrive in another order,
 * so that nothing moves for a while, more are admitted.
 *
 * A message that fails is still received to its end, so that its sender is not
 * left waiting, and is wiped as a whole when it completes.
 *
 * As in pump(), one caller at a time works on a request; the others, which
 * include callbacks of the operations that it posts, leave a note.
 */
#include "pml_crypt_recv.h"

#include <stddef.h>

enum {
    WINDOW = 4,
    MANY = 16,                          /* messages of a peer */
    STALLED = 256, STALLED_MOST = 1 << 18   /* calls of the progress function without a segment */
};
static ompi_common_cryptmpi_atomic32_t idle = 0;
static volatile int32_t patience = STALLED;
static ompi_common_cryptmpi_peer_t *crowded = NULL;     /* peers that have, or had, more than MANY */
static pthread_mutex_t arriving_lock = PTHREAD_MUTEX_INITIALIZER;

static void post_more(ompi_pml_crypt_request_t *r);

/* Where the segment's plaintext goes: its place in the user's buffer, or, if it
 * cannot be opened there, over the ciphertext. */
static void *place_of_segment(const ompi_pml_crypt_request_t *r, uint32_t segment, uint8_t *frame)
{
    uint64_t offset = opal_crypt_segment_offset(&r->shape, segment);
    char *flat = ompi_pml_crypt_own_memory(&r->m);

    return NULL != flat && offset + opal_crypt_segment_bytes(&r->shape, segment) <= r->m.plain_bytes
               ? (void *) (flat + offset) : frame;
}

static size_t wire_bytes_of(const ompi_pml_crypt_request_t *r, uint32_t segment)
{
    return opal_crypt_segment_bytes(&r->shape, segment) + OPAL_CRYPT_SEGMENT_OVERHEAD;
}

static bool unpack(ompi_pml_crypt_request_t *r, size_t offset, size_t bytes, const void *packed)
{
    return OMPI_SUCCESS
           == (NULL != r->stream && bytes > 0
                   ? ompi_common_cryptmpi_stream_unpack(r->stream, offset, bytes, packed)
                   : ompi_common_cryptmpi_unpack(r->m.buffer, r->m.count, r->m.type, offset, bytes,
                                                 packed));
}

/* ---- which messages are received now ---- */

void ompi_pml_crypt_arriving_start(void)
{
    idle = 0;
    patience = STALLED;
    crowded = NULL;
    ompi_pml_crypt.waiting.arriving = 0;
}

/* May it be received now?  Else it is queued. */
static bool admit(ompi_pml_crypt_request_t *r)
{
    ompi_common_cryptmpi_peer_t *peer = r->m.peer;
    bool now;

    ompi_common_cryptmpi_lock_acquire(&arriving_lock);
    now = peer->receiving < MANY;
    if (now) {
        peer->receiving++;
    } else {
        opal_list_append(&peer->arriving, &r->queued);
        ompi_pml_crypt.waiting.arriving++;
        if (!peer->is_crowded) {
            peer->is_crowded = true;
            peer->crowded = crowded;
            crowded = peer;
        }
    }
    ompi_common_cryptmpi_lock_release(&arriving_lock);
    return now;
}

/* Under the lock.  `pending` counts the caller, too, until it has posted receives: all of the
 * segments may have arrived already. */
static ompi_pml_crypt_request_t *next_of(ompi_common_cryptmpi_peer_t *peer)
{
    opal_list_item_t *item = opal_list_remove_first(&peer->arriving);
    ompi_pml_crypt_request_t *r;

    if (NULL == item) {
        return NULL;
    }
    peer->receiving++;
    ompi_pml_crypt.waiting.arriving--;
    r = (ompi_pml_crypt_request_t *) ((char *) item - offsetof(ompi_pml_crypt_request_t, queued));
    ompi_common_cryptmpi_add(&r->pending, 1);
    return r;
}

/* All of a message's segments have arrived.  The next message may finish at once, too: the
 * caller that is in here already goes on with it, a loop instead of a recursion. */
static void admit_next(ompi_common_cryptmpi_peer_t *peer)
{
    ompi_pml_crypt_request_t *r;

    ompi_common_cryptmpi_lock_acquire(&arriving_lock);
    peer->receiving--;
    if (!peer->admitting) {
        peer->admitting = true;
        while (peer->receiving < MANY && NULL != (r = next_of(peer))) {
            ompi_common_cryptmpi_lock_release(&arriving_lock);
            post_more(r);
            ompi_pml_crypt_request_put(r);
            ompi_common_cryptmpi_lock_acquire(&arriving_lock);
        }
        peer->admitting = false;
    }
    ompi_common_cryptmpi_lock_release(&arriving_lock);
}

void ompi_pml_crypt_arriving_stalled(void)
{
    ompi_common_cryptmpi_peer_t *peer;

    if (OPAL_LIKELY(0 == ompi_pml_crypt.waiting.arriving) || ompi_common_cryptmpi_add(&idle, 1) <= patience) {
        return;
    }
    idle = 0;
    patience = patience < STALLED_MOST ? 2 * patience : STALLED_MOST;
    ompi_common_cryptmpi_lock_acquire(&arriving_lock);
    peer = crowded;
    ompi_common_cryptmpi_lock_release(&arriving_lock);
    for (; NULL != peer; peer = peer->crowded) {
        ompi_pml_crypt_request_t *r;

        ompi_common_cryptmpi_lock_acquire(&arriving_lock);
        r = next_of(peer);
        ompi_common_cryptmpi_lock_release(&arriving_lock);
        if (NULL != r) {
            post_more(r);
            ompi_pml_crypt_request_put(r);
        }
    }
}

/* ---- segments ---- */

/* The segment is in the buffer, or could not be opened. */
static void segment_done(ompi_pml_crypt_stage_t *stage)
{
    ompi_pml_crypt_request_t *r = stage->op.request;

    if (stage->plain == stage->bytes) {
        opal_crypt_wipe(stage->bytes, opal_crypt_segment_bytes(&r->shape, stage->op.segment));
    }
    ompi_pml_crypt_stage_return(stage);
    ompi_common_cryptmpi_add(&r->window, -1);
    idle = 0;
    patience = STALLED;
    if (0 == ompi_common_cryptmpi_add(&r->left, -1)) {
        admit_next(r->m.peer);
    } else {
        post_more(r);
    }
    ompi_pml_crypt_request_put(r);
}

/* The segment was opened, or could not be. */
static void segment_opened(ompi_pml_crypt_stage_t *stage)
{
    ompi_pml_crypt_request_t *r = stage->op.request;

    if (MPI_SUCCESS != r->host_error) {
        ;       /* segments may be misordered after a host error: do not report an attack */
    } else if (OPAL_CRYPT_OK != stage->rc) {
        r->failure = stage->rc;
    } else if (stage->plain == stage->bytes) {
        const uint64_t offset = opal_crypt_segment_offset(&r->shape, stage->op.segment);
        const uint32_t plain_bytes = opal_crypt_segment_bytes(&r->shape, stage->op.segment);
        const size_t capacity = offset >= r->m.plain_bytes ? 0 : r->m.plain_bytes - offset;
        const size_t bytes = plain_bytes < capacity ? plain_bytes : capacity;

        if (NULL != r->device) {
            ompi_pml_crypt_stage_copy(stage, r->device + offset, bytes, true);
            ompi_pml_crypt_team_copy(&ompi_pml_crypt.landing, stage);
            return;
        }
        if (!unpack(r, offset, bytes, stage->bytes)) {
            r->host_error = MPI_ERR_INTERN;
        }
    }
    segment_done(stage);
}

static void segment_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));

    const ompi_pml_crypt_arrival_t arrival = ompi_pml_crypt_arrival(r->m.c, r->m.in.source, r->chop_tag, status,
                                                                    wire_bytes_of(r, op->segment));

    stage->wire_bytes = arrival.wire_bytes;
    stage->plain = place_of_segment(r, op->segment, stage->bytes);
    if (OMPI_PML_CRYPT_FORGED == arrival.state) {   /* longer than its sender makes it */
        stage->rc = opal_crypt_frame_refused();
    } else if (OMPI_PML_CRYPT_WHOLE != arrival.state) {
        stage->rc = OPAL_CRYPT_OK;
        r->host_error = MPI_SUCCESS == arrival.error ? MPI_ERR_INTERN : arrival.error;
    } else if (r->threads > 1) {
        ompi_pml_crypt_team_open(&ompi_pml_crypt.opening, stage);
        return;
    } else {
        stage->rc = opal_crypt_segment_open(r->chop, op->segment, stage->bytes, stage->wire_bytes,
                                            stage->plain);
    }
    segment_opened(stage);
}

int ompi_pml_crypt_opened(void)
{
    ompi_pml_crypt_stage_t *stage;
    int events = 0;

    while (NULL != (stage = ompi_pml_crypt_team_take(&ompi_pml_crypt.opening))) {
        segment_opened(stage);
        events++;
    }
    while (OPAL_UNLIKELY(ompi_pml_crypt.waiting.copying > 0)
           && NULL != (stage = ompi_pml_crypt_team_take(&ompi_pml_crypt.landing))) {
        segment_done(stage);
        events++;
    }
    return events;
}

static void post_segment(ompi_pml_crypt_request_t *r, uint32_t segment)
{
    const size_t capacity = ompi_pml_crypt_capacity_of(wire_bytes_of(r, segment));
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_chunk_get(r, capacity);
    int rc;

    stage->op.done = segment_in;
    stage->op.request = r;
    stage->op.segment = segment;
    rc = ompi_pml_crypt_op_recv(&stage->op, stage->bytes, capacity, &ompi_mpi_byte.dt, r->m.in.source,
                                r->chop_tag, r->m.c->comm);
    if (OMPI_SUCCESS != rc) {
        ompi_status_public_t failed = {.MPI_SOURCE = r->m.in.source, .MPI_ERROR = ompi_errcode_get_mpi_code(rc)};
        segment_in(&stage->op, &failed);
    }
}

static void post_more(ompi_pml_crypt_request_t *r)
{
    int32_t seen;

    if (1 != ompi_common_cryptmpi_add(&r->work, 1)) {
        return;
    }
    do {
        seen = __atomic_load_n((const volatile int32_t *) &r->work, __ATOMIC_ACQUIRE);         /* before the window */
        while (r->window < ompi_pml_crypt_window(WINDOW, r->threads) && r->next_segment <= r->shape.count) {
            ompi_common_cryptmpi_add(&r->window, 1);
            post_segment(r, r->next_segment++);
        }
    } while (0 != ompi_common_cryptmpi_add(&r->work, -seen));
}

/* ---- the first part ---- */

int ompi_pml_crypt_open_first(ompi_pml_crypt_message_t *m, uint8_t *frame, uint8_t **packed,
                              opal_crypt_shape_t *shape, uint64_t *counter, opal_crypt_chop_t **chop)
{
    const size_t wire_bytes = m->in.wire_bytes, first_bytes = wire_bytes - OPAL_CRYPT_FIRST_OVERHEAD;
    const opal_crypt_envelope_t envelope = ompi_common_cryptmpi_envelope(m->c, m->in.source, m->in.tag);
    size_t capacity;
    uint8_t *plain = ompi_pml_crypt_place(m, first_bytes, frame, OPAL_CRYPT_FIRST_HEADER, &capacity, packed);
    int rc;

    *counter = 0;
    rc = opal_crypt_first_open(m->peer->session, &envelope, frame, wire_bytes, plain, capacity, shape, counter, chop);
    rc = ompi_pml_crypt_accept(m, &envelope, rc, *counter);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(plain, first_bytes);
    }
    return rc;
}

/* The caller's own count in `pending` keeps the request alive while this runs.  Segments may take
 * long to arrive: the first part's staging is returned before. */
void ompi_pml_crypt_chop_go_on(ompi_pml_crypt_request_t *r, uint8_t *packed, uint64_t counter)
{
    const uint64_t wanted = r->shape.total_bytes < r->m.plain_bytes ? r->shape.total_bytes : r->m.plain_bytes;

    ompi_pml_crypt_deliver(&r->m, r->shape.total_bytes, packed, r->shape.first_bytes);
    ompi_pml_crypt_stage_return(ompi_pml_crypt_op_leave(&r->first));
    r->chop_tag = opal_crypt_tags_segments(&ompi_pml_crypt.tags, counter);
    r->threads = NULL == ompi_pml_crypt.team || r->shape.count < 2 ? 1
                                                                   : ompi_pml_crypt_cut_open(r->shape.total_bytes);
    r->device = NULL != r->m.flat ? NULL : ompi_common_cryptmpi_device_contiguous(r->m.buffer, r->m.type, r->m.count);
    r->stream = NULL != r->m.flat || NULL != r->device ? NULL
                : ompi_common_cryptmpi_stream_open(r->m.buffer, r->m.count, r->m.type, false,
                                                   wanted > r->shape.first_bytes ? wanted - r->shape.first_bytes : 0);
    ompi_common_cryptmpi_add(&r->pending, (int32_t) r->shape.count);
    r->left = (int32_t) r->shape.count;
    if (r->shape.count > 0 && admit(r)) {
        post_more(r);
    }
}

void ompi_pml_crypt_chop_recv(ompi_pml_crypt_request_t *r)
{
    uint8_t *packed;
    uint64_t counter;
    const int rc = ompi_pml_crypt_open_first(&r->m, r->first->bytes, &packed, &r->shape, &counter, &r->chop);

    if (OPAL_CRYPT_OK == rc) {
        ompi_pml_crypt_chop_go_on(r, packed, counter);
    } else {
        ompi_pml_crypt_fail(&r->m, rc);
    }
}

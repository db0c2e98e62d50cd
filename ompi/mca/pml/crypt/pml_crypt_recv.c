/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Receiving: from the host, open, accept, unpack.  The mirror of send.c.
 *
 *     | header | ciphertext | tag |     opened here
 *     a first part, then segments       chop_recv.c
 *     a frame of this node              node.c
 *
 * Staging is posted at the host, with room for the largest first part whatever the size of
 * the application's buffer, because the host must never truncate (ob1's rendezvous paths
 * write past a short buffer, and a truncated frame cannot be verified).
 *
 * A receive first checks the messages that a probe has taken.  Checking, taking a serial and
 * posting are one step under the communicator's lock.
 *
 * A header alone decides nothing: the peer table says whether this source is LOCAL or SEALED,
 * and a frame of the other kind is a forgery.
 */
#include "pml_crypt_recv.h"

/* ---- what is it? ---- */

/* The host has received a frame into staging. */
static inline __opal_attribute_always_inline__ ompi_pml_crypt_what_t
arrived(ompi_pml_crypt_message_t *m, const uint8_t *frame, const ompi_status_public_t *brought)
{
    m->in = ompi_pml_crypt_arrival(m->c, m->rank, m->tag, brought, ompi_pml_crypt.stage_bytes);
    m->status = *brought;
    m->status.MPI_TAG = m->in.tag;
    m->status._ucount = 0;
    if (OPAL_UNLIKELY(OMPI_PML_CRYPT_WHOLE != m->in.state)) {
        return OMPI_PML_CRYPT_FORGED == m->in.state ? OMPI_PML_CRYPT_IS_FORGED : OMPI_PML_CRYPT_IS_NOTHING;
    }
    m->peer = ompi_common_cryptmpi_comm_peer(m->c, m->in.source);
    return ompi_pml_crypt_what(m, frame);
}

/* ---- to the application ---- */

void ompi_pml_crypt_deliver(ompi_pml_crypt_message_t *m, uint64_t total_bytes, uint8_t *packed, size_t packed_bytes)
{
    const size_t bytes = packed_bytes < m->plain_bytes ? packed_bytes : m->plain_bytes;

    m->status._ucount = total_bytes;
    if (total_bytes > m->plain_bytes) {
        m->status.MPI_ERROR = MPI_ERR_TRUNCATE;
    }
    if (NULL != packed
        && OMPI_SUCCESS != ompi_common_cryptmpi_unpack(m->buffer, m->count, m->type, 0, bytes, packed)) {
        m->status.MPI_ERROR = MPI_ERR_INTERN;
    }
    if (NULL != packed && NULL == m->flat) {
        opal_crypt_wipe(packed, packed_bytes);
    }
}

void ompi_pml_crypt_fail(ompi_pml_crypt_message_t *m, int rc)
{
    m->status.MPI_ERROR = ompi_pml_crypt_error(m, m->status.MPI_SOURCE, m->status.MPI_TAG, rc);
    m->status._ucount = 0;
}

void ompi_pml_crypt_wipe_buffer(const ompi_pml_crypt_message_t *m, size_t plain_bytes)
{
    static const char zeros[4096];
    const size_t bytes = plain_bytes < m->plain_bytes ? plain_bytes : m->plain_bytes;

    if (m->c->is_window) {
        return;                         /* everything there has been verified */
    }
    if (NULL != m->flat && bytes > 0) {
        opal_crypt_wipe(m->flat, bytes);
        return;
    }
    for (size_t offset = 0; offset < bytes; offset += sizeof(zeros)) {
        const size_t piece = bytes - offset < sizeof(zeros) ? bytes - offset : sizeof(zeros);
        (void) ompi_common_cryptmpi_unpack(m->buffer, m->count, m->type, offset, piece, zeros);
    }
}

/* ---- one frame ---- */

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_open_direct(ompi_pml_crypt_message_t *m, uint8_t *frame, uint8_t **packed)
{
    const size_t wire_bytes = m->in.wire_bytes, plain_bytes = wire_bytes - OPAL_CRYPT_DIRECT_OVERHEAD;
    const opal_crypt_envelope_t envelope = ompi_common_cryptmpi_envelope(m->c, m->in.source, m->in.tag);
    uint64_t counter = 0;
    size_t capacity;
    uint8_t *plain = ompi_pml_crypt_place(m, plain_bytes, frame, OPAL_CRYPT_FRAME_HEADER, &capacity, packed);
    int rc = opal_crypt_direct_open(m->peer->session, &envelope, frame, wire_bytes, plain, capacity, &counter);

    rc = ompi_pml_crypt_accept(m, &envelope, rc, counter);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_wipe(plain, plain_bytes);
    }
    return rc;
}

/* Receive a message of one frame, DIRECT or LOCAL. */
static inline __opal_attribute_always_inline__ void
receive_frame(ompi_pml_crypt_message_t *m, uint8_t *frame, ompi_pml_crypt_what_t what)
{
    const bool direct = OMPI_PML_CRYPT_IS_DIRECT == what;
    const size_t plain_bytes = m->in.wire_bytes - (direct ? OPAL_CRYPT_DIRECT_OVERHEAD : OPAL_CRYPT_LOCAL_HEADER);
    uint8_t *packed = frame + OPAL_CRYPT_LOCAL_HEADER;
    const int rc = direct ? ompi_pml_crypt_open_direct(m, frame, &packed) : ompi_pml_crypt_local_open(m, frame);

    if (OPAL_CRYPT_OK == rc) {
        ompi_pml_crypt_deliver(m, plain_bytes, packed, plain_bytes);
    } else {
        ompi_pml_crypt_fail(m, rc);
    }
}

/* ---- any first part ---- */

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_open_first_part(ompi_pml_crypt_request_t *r, ompi_pml_crypt_what_t what)
{
    switch (what) {
    case OMPI_PML_CRYPT_IS_DIRECT:
    case OMPI_PML_CRYPT_IS_LOCAL:
        receive_frame(&r->m, r->first->bytes, what);
        break;
    case OMPI_PML_CRYPT_IS_FIRST:
        ompi_pml_crypt_chop_recv(r);
        break;
    case OMPI_PML_CRYPT_IS_LOCAL_LARGE:
        ompi_pml_crypt_local_recv(r);
        break;
    case OMPI_PML_CRYPT_IS_UNRESOLVED:
        ompi_pml_crypt_defer(r);
        return;
    case OMPI_PML_CRYPT_IS_FORGED:
        ompi_pml_crypt_serial_drop(&r->m);
        ompi_pml_crypt_fail(&r->m, opal_crypt_frame_refused());
        break;
    case OMPI_PML_CRYPT_IS_NOTHING:
        ompi_pml_crypt_serial_drop(&r->m);
        break;
    }
    ompi_pml_crypt_request_put(r);
}

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_first_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    ompi_pml_crypt_open_first_part(r, arrived(&r->m, r->first->bytes, status));
}

static int post(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_stage_get();

    r->first = stage;
    stage->op.done = ompi_pml_crypt_first_in;
    stage->op.request = r;
    ompi_pml_crypt_serial_take(&r->m, MPI_ANY_TAG == r->m.tag);
    return ompi_pml_crypt_op_recv(&stage->op, stage->bytes, ompi_pml_crypt_capacity_of(ompi_pml_crypt.stage_bytes),
                                  &ompi_mpi_byte.dt, r->m.rank, ompi_pml_crypt_host_tag(r->m.tag), r->m.c->comm);
}

int ompi_pml_crypt_start_recv(ompi_pml_crypt_request_t *r)
{
    ompi_common_cryptmpi_comm_t *c = r->m.c;    /* the request may be complete, and given back, once it is posted */
    ompi_pml_crypt_held_t *held = NULL;
    int rc = OMPI_SUCCESS;

    ompi_pml_crypt_request_begin(r);
    rc = ompi_common_cryptmpi_device_check(r->m.buffer, r->m.type);
    if (OMPI_SUCCESS == rc && MPI_ANY_SOURCE != r->m.rank) {
        /* Here we may wait for the runtime; in a callback we could not. */
        rc = ompi_pml_crypt_peer(c, r->m.rank, &r->m.peer);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    ompi_pml_crypt_host_lock(&c->lock, r->m.tag);
    if (r->m.tag >= MPI_ANY_TAG && OPAL_UNLIKELY(!opal_list_is_empty(&c->held))) {
        held = ompi_pml_crypt_held_take(c, r->m.rank, r->m.tag);
    }
    if (NULL == held) {
        rc = post(r);
    }
    ompi_pml_crypt_host_unlock(&c->lock, r->m.tag);
    if (NULL != held) {
        rc = ompi_pml_crypt_held_recv(r, held);
    }
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_serial_drop(&r->m);
    }
    return rc;
}

/* ---- the module's functions ---- */

int ompi_pml_crypt_irecv_init(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                              ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, buffer, count, type, src, tag,
                                                             comm, true);
    *request = &r->base.req_ompi;
    return OMPI_SUCCESS;
}

int ompi_pml_crypt_irecv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                         ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, buffer, count, type, src, tag,
                                                             comm, false);
    int rc = ompi_pml_crypt_start_recv(r);

    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_request_drop(r);
        return rc;
    }
    *request = &r->base.req_ompi;
    return OMPI_SUCCESS;
}

/* The message has more than one frame, cannot be opened yet, or did not arrive: a request
 * takes over. */
static int with_request(const ompi_pml_crypt_message_t *m, ompi_pml_crypt_what_t what, ompi_pml_crypt_stage_t *stage,
                        ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, m->buffer, m->count, m->type, m->rank,
                                                             m->tag, m->c->comm, false);

    ompi_pml_crypt_request_begin(r);
    r->m = *m;
    r->first = stage;
    stage->op.request = r;
    ompi_pml_crypt_open_first_part(r, what);
    return ompi_pml_crypt_request_wait(r, status);
}

/* With one thread and nothing held, the host's blocking receive is cheapest: it makes no
 * request, and most messages do not need one of ours either. */
OPAL_CRYPT_OFTEN
int ompi_pml_crypt_recv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_RECEIVE, .peer = src, .tag = tag, .comm = comm};
    ompi_status_public_t brought = {.MPI_ERROR = MPI_SUCCESS};
    ompi_pml_crypt_message_t m;
    ompi_pml_crypt_stage_t *stage;
    ompi_pml_crypt_what_t what;
    int rc;

    ompi_pml_crypt_message_init(&m, comm, buffer, count, type, src, tag);
    if (opal_cryptproc_threaded() || !opal_list_is_empty(&m.c->held)) {
        ompi_request_t *request;
        rc = ompi_pml_crypt_irecv(buffer, count, type, src, tag, comm, &request);
        return OMPI_SUCCESS != rc ? rc
                                  : ompi_pml_crypt_request_wait((ompi_pml_crypt_request_t *) request, status);
    }
    rc = ompi_common_cryptmpi_device_check(buffer, type);
    if (OMPI_SUCCESS == rc && MPI_ANY_SOURCE != src) {
        rc = ompi_pml_crypt_peer(m.c, src, &m.peer);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    stage = ompi_pml_crypt_stage_get();
    ompi_pml_crypt_serial_take(&m, MPI_ANY_TAG == tag);
    inside.bytes = m.plain_bytes;
    ompi_common_cryptmpi_enter(&inside);
    brought.MPI_ERROR = ompi_pml_crypt.host.pml_recv(stage->bytes, ompi_pml_crypt_capacity_of(ompi_pml_crypt.stage_bytes),
                                                     &ompi_mpi_byte.dt, src, ompi_pml_crypt_host_tag(tag), comm, &brought);
    ompi_common_cryptmpi_leave(&inside);
    ompi_pml_crypt_act();
    what = arrived(&m, stage->bytes, &brought);
    if (OMPI_PML_CRYPT_IS_DIRECT != what && OMPI_PML_CRYPT_IS_LOCAL != what) {
        return with_request(&m, what, stage, status);
    }
    receive_frame(&m, stage->bytes, what);
    ompi_pml_crypt_stage_return(stage);
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, m.status, false);
    }
    return m.status.MPI_ERROR;
}

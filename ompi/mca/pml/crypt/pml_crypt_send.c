/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sending: pack, seal, hand to the host.  The mirror of recv.c.
 *
 *     | header | ciphertext | tag |     up to chop_min; sealed here
 *     a first part, then segments       longer, synchronous; chop_send.c
 *     a frame of this node              node.c
 *
 * When the host has as many frames as it may (stage.c), a short message is sent
 * as a longer one would be.
 *
 * The frame is sealed, which takes its counter, and handed to the host under the peer's send lock: counters
 * rise in the order in which messages can match.  (Open MPI's own messages: ompi_pml_crypt_host_lock.)
 */
#include "pml_crypt.h"

#include <assert.h>

#include "ompi/mca/pml/base/pml_base_bsend.h"

static_assert(OPAL_CRYPT_DIRECT_OVERHEAD == OPAL_CRYPT_LOCAL_HEADER, "frames of both kinds need the same room");

/* Is this message sent as one frame alone? */
static inline bool one_frame(const ompi_common_cryptmpi_peer_t *peer, size_t plain_bytes,
                             mca_pml_base_send_mode_t mode)
{
    if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer)) {
        /* To open a frame, a probe has to take it from the host: that must not tell the
         * sender of a synchronous message that it was received. */
        return plain_bytes <= ompi_pml_crypt.params.chop_min && MCA_PML_BASE_SEND_SYNCHRONOUS != mode;
    }
    /* A synchronous local message must not have the size of a frame that
     * announces a body: a probe has to fetch such a frame, which would tell
     * its sender too early that it matched. */
    return plain_bytes <= ompi_pml_crypt.local_inline
           && !(MCA_PML_BASE_SEND_SYNCHRONOUS == mode
                && OPAL_CRYPT_LOCAL_LARGE_BYTES == OPAL_CRYPT_LOCAL_HEADER + plain_bytes);
}

/* Seal a message into one frame, or put it behind a local header; *wire_bytes is 0 unless
 * that succeeds.  Under the send lock. */
OPAL_CRYPT_OFTEN
static int make_frame(const ompi_pml_crypt_message_t *m, uint8_t *frame, size_t *wire_bytes)
{
    const void *plain;
    opal_crypt_envelope_t envelope;
    int rc;

    *wire_bytes = 0;
    if (OMPI_COMMON_CRYPTMPI_SEALED != ompi_common_cryptmpi_kind(m->peer)) {
        return ompi_pml_crypt_local_frame(m, frame, wire_bytes);
    }
    plain = m->flat;
    if (NULL == plain || 0 == m->plain_bytes) {
        plain = frame + OPAL_CRYPT_FRAME_HEADER;
        rc = ompi_common_cryptmpi_pack(m->buffer, m->count, m->type, 0, m->plain_bytes, frame + OPAL_CRYPT_FRAME_HEADER);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    envelope = ompi_common_cryptmpi_envelope(m->c, m->rank, m->tag);
    rc = opal_crypt_direct_seal(m->peer->session, &envelope, plain, m->plain_bytes, frame);
    if (OPAL_CRYPT_OK != rc) {
        return ompi_pml_crypt_error(m, ompi_comm_rank(m->c->comm), m->tag, rc);
    }
    *wire_bytes = OPAL_CRYPT_DIRECT_OVERHEAD + m->plain_bytes;
    return OMPI_SUCCESS;
}

/* The host refused it.  Plain messages within the node are not counted. */
static void never_left(const ompi_pml_crypt_message_t *m)
{
    if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(m->peer)) {
        opal_crypt_session_unsent(m->peer->session);
    }
}

/* ---- one frame ---- */

void ompi_pml_crypt_sent(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (OMPI_SUCCESS != status->MPI_ERROR) {
        r->m.status.MPI_ERROR = status->MPI_ERROR;
    }
    ompi_pml_crypt_request_put(r);
}

static int send_frame(ompi_pml_crypt_request_t *r, ompi_pml_crypt_stage_t *stage)
{
    ompi_common_cryptmpi_peer_t *peer = r->m.peer;
    size_t wire_bytes;
    int rc;

    r->first = stage;
    stage->op.done = ompi_pml_crypt_sent;
    stage->op.request = r;
    ompi_pml_crypt_host_lock(&peer->send_lock, r->m.tag);
    rc = make_frame(&r->m, stage->bytes, &wire_bytes);
    if (OMPI_SUCCESS == rc) {
        ompi_common_cryptmpi_add(&r->pending, 1);
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, wire_bytes, &ompi_mpi_byte.dt, r->m.rank,
                                    ompi_pml_crypt_host_tag(r->m.tag), r->mode, r->m.c->comm);
        if (OMPI_SUCCESS != rc) {
            never_left(&r->m);
            ompi_common_cryptmpi_add(&r->pending, -1);
        }
    }
    ompi_pml_crypt_host_unlock(&peer->send_lock, r->m.tag);
    return rc;
}

/* ---- any message ---- */

static const char *way_of(const ompi_pml_crypt_request_t *r)
{
    const bool sealed = OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(r->m.peer);

    return one_frame(r->m.peer, r->m.plain_bytes, r->mode) ? sealed ? "sealed, one frame" : "plain within the node, one frame"
           : sealed ? "sealed, in segments" : "plain within the node, after its frame";
}

OPAL_CRYPT_RARE
static void say_way(const ompi_pml_crypt_request_t *r)
{
    opal_output_verbose(OPAL_CRYPTPROC_SAY_MESSAGES, opal_cryptproc_stream,
                        "pml:crypt: to rank %d of %s, tag %d: %zu bytes, %s", r->m.rank, r->base.req_comm->c_name,
                        r->m.tag, r->m.plain_bytes, way_of(r));
}

/* A buffered send of more than one frame: the user's attached buffer takes the
 * packed message, a hidden request sends it from there. */
static int send_buffered(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_request_t *hidden;
    void *copy = ompi_common_cryptmpi_bsend_alloc(r->base.req_comm, r->m.plain_bytes);
    int rc;

    if (NULL == copy) {
        return OMPI_ERR_BUFFER;
    }
    rc = ompi_common_cryptmpi_pack(r->m.buffer, r->m.count, r->m.type, 0, r->m.plain_bytes,
                                   copy);
    if (OMPI_SUCCESS != rc) {
        ompi_common_cryptmpi_bsend_free(r->base.req_comm, copy);
        return rc;
    }
    hidden = ompi_pml_crypt_request_new(MCA_PML_REQUEST_SEND, copy, r->m.plain_bytes, &ompi_mpi_byte.dt,
                                        r->m.rank, r->m.tag, r->base.req_comm, false);
    hidden->bsend = copy;
    ompi_pml_crypt_request_hide(hidden);
    rc = ompi_pml_crypt_start_send(hidden);
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_request_drop(hidden);
    }
    return rc;      /* the user's buffer is no longer needed */
}

int ompi_pml_crypt_start_send(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage;
    int rc;

    ompi_pml_crypt_request_begin(r);
    /* As ob1 does: osc/pt2pt tells its targets apart by the tag of a finished send. */
    r->m.status.MPI_SOURCE = ompi_comm_rank(r->base.req_comm);
    r->m.status.MPI_TAG = r->m.tag;
    r->m.status._ucount = r->m.plain_bytes;
    rc = ompi_common_cryptmpi_device_check(r->m.buffer, r->m.type);
    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt_peer(r->m.c, r->m.rank, &r->m.peer) : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (ompi_pml_crypt_says_messages()) {
        say_way(r);
    }
    if (one_frame(r->m.peer, r->m.plain_bytes, r->mode)
        && NULL != (stage = ompi_pml_crypt_frame_get(r->m.plain_bytes + OPAL_CRYPT_DIRECT_OVERHEAD))) {
        rc = send_frame(r, stage);
    } else if (MCA_PML_BASE_SEND_BUFFERED == r->mode) {
        rc = send_buffered(r);
    } else if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(r->m.peer)) {
        rc = ompi_pml_crypt_chop_send(r);
    } else {
        rc = ompi_pml_crypt_local_send(r);
    }
    if (OMPI_SUCCESS == rc) {
        ompi_pml_crypt_request_put(r);
    }
    return rc;
}

/* ---- the module's functions ---- */

int ompi_pml_crypt_isend_init(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                              mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_SEND, buffer, count, type, dst, tag,
                                                             comm, true);
    r->mode = mode;
    *request = &r->base.req_ompi;
    return OMPI_SUCCESS;
}

int ompi_pml_crypt_isend(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                         mca_pml_base_send_mode_t mode, ompi_communicator_t *comm, ompi_request_t **request)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_SEND, buffer, count, type, dst, tag,
                                                             comm, false);
    int rc;

    r->mode = mode;
    rc = ompi_pml_crypt_start_send(r);
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_request_drop(r);
        return rc;
    }
    *request = &r->base.req_ompi;
    return OMPI_SUCCESS;
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_send(const void *buffer, size_t count, ompi_datatype_t *type, int dst, int tag,
                        mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    ompi_pml_crypt_message_t m;
    ompi_pml_crypt_stage_t *stage;
    size_t wire_bytes;
    int rc = ompi_common_cryptmpi_device_check(buffer, type);

    ompi_pml_crypt_message_init(&m, comm, buffer, count, type, dst, tag);
    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt_peer(m.c, dst, &m.peer) : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (opal_cryptproc_threaded() || !one_frame(m.peer, m.plain_bytes, mode) || ompi_pml_crypt_says_messages()
        || NULL == (stage = ompi_pml_crypt_frame_get(m.plain_bytes + OPAL_CRYPT_DIRECT_OVERHEAD))) {
        ompi_request_t *request;
        rc = ompi_pml_crypt_isend(buffer, count, type, dst, tag, mode, comm, &request);
        return OMPI_SUCCESS != rc ? rc
                                  : ompi_pml_crypt_request_wait((ompi_pml_crypt_request_t *) request, MPI_STATUS_IGNORE);
    }
    rc = make_frame(&m, stage->bytes, &wire_bytes);
    if (OMPI_SUCCESS == rc) {
        ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_SEND, .peer = dst, .tag = tag, .comm = comm,
                                                .bytes = m.plain_bytes};

        ompi_pml_crypt_act();
        ompi_common_cryptmpi_enter(&inside);
        rc = ompi_pml_crypt.host.pml_send(stage->bytes, wire_bytes, &ompi_mpi_byte.dt, dst,
                                          ompi_pml_crypt_host_tag(tag), mode, comm);
        ompi_common_cryptmpi_leave(&inside);
        if (OMPI_SUCCESS != rc) {
            never_left(&m);
        }
    }
    ompi_pml_crypt_stage_return(stage);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sending: pack, seal, hand to the host.
 *
 *     sealed, up to chop_min        | header | ciphertext | tag |
 *     sealed, longer, synchronous   a first part, then segments (chop_send.c)
 *     this node, up to local_inline | header | token | payload |
 *     this node, longer             | header | token | total | id |, then the user's
 *                                   buffer as it is, on a tag only the pair can know
 *
 * When as many frames as may be lie with the host (stage.c), a short message is
 * sent as a longer one would be.
 *
 * The counter is taken, and the frame handed to the host, under the peer's
 * send lock: counters rise in the order in which messages can match.
 */
#include "pml_crypt.h"

#include "ompi/mca/pml/base/pml_base_bsend.h"

/* Is this message one frame, and not the start of more? */
static inline bool one_frame(const ompi_common_cryptmpi_peer_t *peer, size_t plain_bytes,
                             mca_pml_base_send_mode_t mode)
{
    if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer)) {
        /* A probe opens the frame, for which it has to take it from the host: that must
         * not tell the sender of a synchronous message that it was received. */
        return plain_bytes <= ompi_pml_crypt.params.chop_min && MCA_PML_BASE_SEND_SYNCHRONOUS != mode;
    }
    /* A synchronous local message must not have the size of a frame that
     * announces a body: a probe has to look into that one, which would tell
     * its sender too early that it matched. */
    return plain_bytes <= ompi_pml_crypt.params.local_inline
           && !(MCA_PML_BASE_SEND_SYNCHRONOUS == mode
                && OPAL_CRYPT_LOCAL_LARGE_BYTES == OPAL_CRYPT_LOCAL_HEADER + plain_bytes);
}

/* Fill a frame; returns its length, 0 on failure.  Under the send lock. */
OPAL_CRYPT_OFTEN
static size_t make_frame(ompi_common_cryptmpi_comm_t *c, int dst, const void *buffer, size_t count,
                         ompi_datatype_t *type, size_t plain_bytes, int tag, uint8_t *frame, int *rc)
{
    ompi_common_cryptmpi_peer_t *peer = c->members[dst].peer;
    opal_crypt_envelope_t envelope;
    const void *plain;

    if (OMPI_COMMON_CRYPTMPI_SEALED != ompi_common_cryptmpi_kind(peer)) {
        opal_crypt_local_header(peer->token_out, OPAL_CRYPT_FRAME_LOCAL, frame);
        *rc = ompi_common_cryptmpi_pack(buffer, count, type, 0, plain_bytes, frame + OPAL_CRYPT_LOCAL_HEADER);
        return OMPI_SUCCESS == *rc ? OPAL_CRYPT_LOCAL_HEADER + plain_bytes : 0;
    }
    plain = ompi_common_cryptmpi_contiguous(buffer, type, count);
    if (NULL == plain || 0 == plain_bytes) {
        plain = frame + OPAL_CRYPT_FRAME_HEADER;
        *rc = ompi_common_cryptmpi_pack(buffer, count, type, 0, plain_bytes, frame + OPAL_CRYPT_FRAME_HEADER);
        if (OMPI_SUCCESS != *rc) {
            return 0;
        }
    }
    envelope = ompi_common_cryptmpi_envelope(c, dst, tag);
    *rc = opal_crypt_direct_seal(peer->session, &envelope, plain, plain_bytes, frame);
    if (OPAL_CRYPT_OK != *rc) {
        *rc = ompi_common_cryptmpi_auth_failure(c->comm, ompi_comm_rank(c->comm), tag, *rc);
        return 0;
    }
    return OPAL_CRYPT_DIRECT_OVERHEAD + plain_bytes;
}

/* The host refused it.  Plain messages within the node are not counted. */
static void never_left(const ompi_common_cryptmpi_peer_t *peer)
{
    if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(peer)) {
        opal_crypt_session_unsent(peer->session);
    }
}

/* ---- one frame ---- */

static void frame_out(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (OMPI_SUCCESS != status->MPI_ERROR) {
        r->status.MPI_ERROR = status->MPI_ERROR;
    }
    ompi_pml_crypt_request_put(r);
}

static int send_frame(ompi_pml_crypt_request_t *r, ompi_pml_crypt_stage_t *stage)
{
    size_t wire_bytes;
    int rc;

    r->first = stage;
    stage->op.done = frame_out;
    stage->op.request = r;
    ompi_common_cryptmpi_lock_acquire(&r->peer->send_lock);
    wire_bytes = make_frame(r->c, r->base.req_peer, r->base.req_addr, r->base.req_count, r->base.req_datatype,
                            r->plain_bytes, r->base.req_tag, stage->bytes, &rc);
    if (wire_bytes > 0) {
        ompi_common_cryptmpi_add(&r->pending, 1);
        rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, wire_bytes, &ompi_mpi_byte.dt, r->base.req_peer,
                                    ompi_pml_crypt_host_tag(r->base.req_tag), r->mode, r->base.req_comm);
        if (OMPI_SUCCESS != rc) {
            never_left(r->peer);
            ompi_common_cryptmpi_add(&r->pending, -1);
        }
    }
    ompi_common_cryptmpi_lock_release(&r->peer->send_lock);
    return rc;
}

/* ---- a large message to this node ---- */

static int send_local_large(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_frame_get(OPAL_CRYPT_LOCAL_LARGE_BYTES);
    bool synchronous = MCA_PML_BASE_SEND_SYNCHRONOUS == r->mode;
    uint64_t id;
    int rc;

    r->first = stage;
    stage->op.done = r->rest.done = frame_out;
    stage->op.request = r->rest.request = r;
    ompi_common_cryptmpi_lock_acquire(&r->peer->send_lock);
    id = r->peer->local_id++;
    opal_crypt_local_large(r->peer->token_out, r->plain_bytes, id, stage->bytes);
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, OPAL_CRYPT_LOCAL_LARGE_BYTES, &ompi_mpi_byte.dt,
                                r->base.req_peer, ompi_pml_crypt_host_tag(r->base.req_tag),
                                synchronous ? MCA_PML_BASE_SEND_STANDARD : r->mode, r->base.req_comm);
    ompi_common_cryptmpi_lock_release(&r->peer->send_lock);
    if (OMPI_SUCCESS != rc) {
        ompi_common_cryptmpi_add(&r->pending, -1);
        return rc;
    }
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_send(&r->rest, r->base.req_addr, r->base.req_count, r->base.req_datatype,
                                r->base.req_peer,
                                opal_crypt_tags_body(&ompi_pml_crypt.tags, r->peer->token_out->base + id),
                                synchronous ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD,
                                r->base.req_comm);
    if (OMPI_SUCCESS != rc) {       /* too late to take the frame back */
        r->status.MPI_ERROR = ompi_errcode_get_mpi_code(rc);
        ompi_common_cryptmpi_add(&r->pending, -1);
    }
    return OMPI_SUCCESS;
}

/* ---- any message ---- */

static const char *way_of(const ompi_pml_crypt_request_t *r)
{
    const bool sealed = OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(r->peer);

    return one_frame(r->peer, r->plain_bytes, r->mode) ? sealed ? "sealed, one frame" : "plain within the node, one frame"
           : sealed ? "sealed, in segments" : "plain within the node, after its frame";
}

OPAL_CRYPT_RARE
static void say_way(const ompi_pml_crypt_request_t *r)
{
    opal_output_verbose(OPAL_CRYPTPROC_SAY_MESSAGES, opal_cryptproc_stream,
                        "pml:crypt: to rank %d of %s, tag %d: %zu bytes, %s", r->base.req_peer, r->base.req_comm->c_name,
                        r->base.req_tag, r->plain_bytes, way_of(r));
}

/* A buffered send of more than one frame: the user's attached buffer takes the
 * packed message, a hidden request sends it from there. */
static int send_buffered(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_request_t *hidden;
    void *copy = mca_pml_base_bsend_request_alloc_buf(r->plain_bytes);
    int rc;

    if (NULL == copy) {
        return OMPI_ERR_BUFFER;
    }
    rc = ompi_common_cryptmpi_pack(r->base.req_addr, r->base.req_count, r->base.req_datatype, 0, r->plain_bytes,
                                   copy);
    if (OMPI_SUCCESS != rc) {
        mca_pml_base_bsend_request_free(copy);
        return rc;
    }
    hidden = ompi_pml_crypt_request_new(MCA_PML_REQUEST_SEND, copy, r->plain_bytes, &ompi_mpi_byte.dt,
                                        r->base.req_peer, r->base.req_tag, r->base.req_comm, false);
    hidden->bsend = copy;
    ompi_pml_crypt_request_hide(hidden);
    rc = ompi_pml_crypt_start_send(hidden);
    if (OMPI_SUCCESS != rc) {
        ompi_pml_crypt_request_drop(hidden);
    }
    return rc;      /* nothing of the user's is needed any more */
}

/* A frame is not much longer than what it holds. */
static inline ompi_pml_crypt_stage_t *frame_for(size_t plain_bytes)
{
    return ompi_pml_crypt_frame_get(plain_bytes + OPAL_CRYPT_DIRECT_OVERHEAD);
}

int ompi_pml_crypt_start_send(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage;
    int rc;

    ompi_pml_crypt_request_begin(r);
    /* As ob1 does: osc/pt2pt tells its targets apart by the tag of a finished send. */
    r->status.MPI_SOURCE = ompi_comm_rank(r->base.req_comm);
    r->status.MPI_TAG = r->base.req_tag;
    r->status._ucount = r->plain_bytes;
    rc = ompi_common_cryptmpi_device_check(r->base.req_addr);
    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt_peer(r->c, r->base.req_peer, &r->peer) : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (ompi_pml_crypt_says_messages()) {
        say_way(r);
    }
    if (one_frame(r->peer, r->plain_bytes, r->mode) && NULL != (stage = frame_for(r->plain_bytes))) {
        rc = send_frame(r, stage);
    } else if (MCA_PML_BASE_SEND_BUFFERED == r->mode) {
        rc = send_buffered(r);
    } else if (OMPI_COMMON_CRYPTMPI_SEALED == ompi_common_cryptmpi_kind(r->peer)) {
        rc = ompi_pml_crypt_chop_send(r);
    } else {
        rc = send_local_large(r);
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
    ompi_common_cryptmpi_comm_t *c = ompi_common_cryptmpi_comm(comm);
    size_t plain_bytes = ompi_common_cryptmpi_bytes(type, count), wire_bytes;
    ompi_common_cryptmpi_peer_t *peer;
    ompi_pml_crypt_stage_t *stage;
    int rc = ompi_common_cryptmpi_device_check(buffer);

    rc = OMPI_SUCCESS == rc ? ompi_pml_crypt_peer(c, dst, &peer) : rc;
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (opal_cryptproc_threaded() || !one_frame(peer, plain_bytes, mode) || ompi_pml_crypt_says_messages()
        || NULL == (stage = frame_for(plain_bytes))) {
        ompi_request_t *request;
        rc = ompi_pml_crypt_isend(buffer, count, type, dst, tag, mode, comm, &request);
        return OMPI_SUCCESS != rc ? rc
                                  : ompi_pml_crypt_request_wait((ompi_pml_crypt_request_t *) request, MPI_STATUS_IGNORE);
    }
    wire_bytes = make_frame(c, dst, buffer, count, type, plain_bytes, tag, stage->bytes, &rc);
    if (wire_bytes > 0) {
        ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_SEND, .peer = dst, .tag = tag, .comm = comm,
                                                .bytes = plain_bytes};

        ompi_pml_crypt_act();
        ompi_common_cryptmpi_enter(&inside);
        rc = ompi_pml_crypt.host.pml_send(stage->bytes, wire_bytes, &ompi_mpi_byte.dt, dst,
                                          ompi_pml_crypt_host_tag(tag), mode, comm);
        ompi_common_cryptmpi_leave(&inside);
        if (OMPI_SUCCESS != rc) {
            never_left(peer);
        }
    }
    ompi_pml_crypt_stage_return(stage);
    return rc;
}

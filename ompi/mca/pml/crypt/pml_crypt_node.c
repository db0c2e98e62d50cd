/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages within this node, both ways.  They are plain; the token, which only the two
 * processes know, tells them from a frame of the network.
 *
 *     up to LOCAL_INLINE   | header | token | payload |
 *     longer               | header | token | total | id |, then the user's buffer as it
 *                          is, on a tag that only the pair can know
 */
#include "pml_crypt_recv.h"

#include <stdlib.h>

/* ---- one frame ---- */

int ompi_pml_crypt_local_frame(const ompi_pml_crypt_message_t *m, uint8_t *frame, size_t *wire_bytes)
{
    int rc;

    opal_crypt_local_header(m->peer->token_out, OPAL_CRYPT_FRAME_LOCAL, frame);
    rc = ompi_common_cryptmpi_pack(m->buffer, m->count, m->type, 0, m->plain_bytes, frame + OPAL_CRYPT_LOCAL_HEADER);
    *wire_bytes = OMPI_SUCCESS == rc ? OPAL_CRYPT_LOCAL_HEADER + m->plain_bytes : 0;
    return rc;
}

static int check(const ompi_pml_crypt_message_t *m, const uint8_t *frame)
{
    return opal_crypt_local_check(m->peer->token_in, opal_crypt_frame_type(frame, m->in.wire_bytes), frame,
                                  m->in.wire_bytes);
}

int ompi_pml_crypt_local_open(ompi_pml_crypt_message_t *m, const uint8_t *frame)
{
    ompi_pml_crypt_serial_drop(m);
    return check(m, frame);
}

/* ---- a frame, and the body ---- */

int ompi_pml_crypt_local_send(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage;
    const bool synchronous = MCA_PML_BASE_SEND_SYNCHRONOUS == r->mode;
    ompi_common_cryptmpi_peer_t *peer = r->m.peer;
    uint64_t id;
    int rc;

    if (ompi_common_cryptmpi_device_hidden(r->m.buffer, r->m.type)) {
        return ompi_common_cryptmpi_device_refuse(r->m.buffer);
    }
    r->first = stage = ompi_pml_crypt_frame_get(OPAL_CRYPT_LOCAL_LARGE_BYTES);
    stage->op.done = r->rest.done = ompi_pml_crypt_sent;
    stage->op.request = r->rest.request = r;
    ompi_pml_crypt_host_lock(&peer->send_lock, r->m.tag);
    id = __atomic_fetch_add(&peer->local_id, 1, __ATOMIC_RELAXED);
    opal_crypt_local_large(peer->token_out, r->m.plain_bytes, id, stage->bytes);
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_send(&stage->op, stage->bytes, OPAL_CRYPT_LOCAL_LARGE_BYTES, &ompi_mpi_byte.dt,
                                r->m.rank, ompi_pml_crypt_host_tag(r->m.tag),
                                synchronous ? MCA_PML_BASE_SEND_STANDARD : r->mode, r->m.c->comm);
    ompi_pml_crypt_host_unlock(&peer->send_lock, r->m.tag);
    if (OMPI_SUCCESS != rc) {
        ompi_common_cryptmpi_add(&r->pending, -1);
        return rc;
    }
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_send(&r->rest, r->m.buffer, r->m.count, r->m.type, r->m.rank,
                                opal_crypt_tags_body(&ompi_pml_crypt.tags, peer->token_out->base + id),
                                synchronous ? MCA_PML_BASE_SEND_SYNCHRONOUS : MCA_PML_BASE_SEND_STANDARD,
                                r->m.c->comm);
    if (OMPI_SUCCESS != rc) {       /* too late to take the frame back */
        r->m.status.MPI_ERROR = ompi_errcode_get_mpi_code(rc);
        ompi_common_cryptmpi_add(&r->pending, -1);
    }
    return OMPI_SUCCESS;
}

static void body_in(ompi_pml_crypt_op_t *op, const ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = op->request;

    if (MPI_SUCCESS == status->MPI_ERROR && status->_ucount == r->shape.total_bytes) {
        ompi_pml_crypt_deliver(&r->m, r->shape.total_bytes, r->body, r->shape.total_bytes);
    } else {
        if (MPI_SUCCESS != status->MPI_ERROR && MPI_ERR_TRUNCATE != status->MPI_ERROR) {
            r->host_error = status->MPI_ERROR;
        } else {
            r->failure = opal_crypt_frame_refused();
        }
        if (NULL != r->body) {
            opal_crypt_wipe(r->body, r->shape.total_bytes);
        }
    }
    free(r->body);
    r->body = NULL;
    ompi_pml_crypt_request_put(r);
}

/* The frame has arrived.  The host gets a pointer into the request. */
static void receive_body(ompi_pml_crypt_request_t *r, const uint8_t *frame)
{
    const uint64_t total_bytes = opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER);
    const uint64_t id = opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER + 8);
    const int tag = opal_crypt_tags_body(&ompi_pml_crypt.tags, r->m.peer->token_in->base + id);
    /* The host must never truncate it.  And ob1 (of 5.0.7) itself writes into an accelerator's memory what comes from that of
     * the host. */
    const bool fits = total_bytes <= r->m.plain_bytes
                      && (ompi_pml_crypt.sends_later
                              ? !ompi_common_cryptmpi_device_hidden(r->m.buffer, r->m.type)
                              : !ompi_common_cryptmpi_on_device((char *) r->m.buffer + r->m.type->super.true_lb));
    int rc;

    ompi_pml_crypt_deliver(&r->m, total_bytes, NULL, 0);
    r->shape.total_bytes = total_bytes;
    r->body = fits ? NULL : malloc(total_bytes);
    if (!fits && NULL == r->body) {                         /* its sender waits for a receive */
        ompi_pml_crypt_no_memory(r, "no-memory-body", total_bytes);
    }
    r->rest.done = body_in;
    r->rest.request = r;
    ompi_common_cryptmpi_add(&r->pending, 1);
    rc = ompi_pml_crypt_op_recv(&r->rest, fits ? r->m.buffer : r->body, fits ? r->m.count : total_bytes,
                                fits ? r->m.type : &ompi_mpi_byte.dt, r->m.in.source, tag, r->m.c->comm);
    if (OMPI_SUCCESS != rc) {
        r->host_error = ompi_errcode_get_mpi_code(rc);
        free(r->body);
        r->body = NULL;
        ompi_common_cryptmpi_add(&r->pending, -1);
    }
}

void ompi_pml_crypt_local_recv(ompi_pml_crypt_request_t *r)
{
    const int rc = ompi_pml_crypt_local_open(&r->m, r->first->bytes);

    if (OPAL_CRYPT_OK == rc) {
        receive_body(r, r->first->bytes);
    } else {
        ompi_pml_crypt_fail(&r->m, rc);
    }
}

/* ---- a probe ---- */

int ompi_pml_crypt_local_probe(const ompi_pml_crypt_message_t *m, const uint8_t *frame, size_t *plain_bytes)
{
    const int rc = check(m, frame);

    if (OPAL_CRYPT_OK == rc) {
        *plain_bytes = OPAL_CRYPT_FRAME_LOCAL_LARGE == opal_crypt_frame_type(frame, m->in.wire_bytes)
                           ? opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER)
                           : m->in.wire_bytes - OPAL_CRYPT_LOCAL_HEADER;
    }
    return rc;
}

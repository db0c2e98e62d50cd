/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Receiving: staging is posted at the host, with room for the largest first
 * part whatever the application's buffer holds, because the host must never
 * truncate (ob1's rendezvous paths write past a short buffer, and a cut frame
 * cannot be verified).
 *
 * A receive looks at the messages that a probe has taken first.  Looking,
 * taking a serial and posting are one step under the communicator's lock.
 */
#include "pml_crypt.h"

#include <string.h>

static void take_serial(ompi_pml_crypt_request_t *r)
{
    r->any_tag = MPI_ANY_TAG == r->base.req_tag;
    r->serial = r->any_tag ? opal_crypt_serial_take_any(r->c->serials)
                           : opal_crypt_serial_take(r->c->serials);
}

static int post(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_stage_get();

    r->first = stage;
    stage->op.done = ompi_pml_crypt_first_in;
    stage->op.request = r;
    take_serial(r);
    return ompi_pml_crypt_op_recv(&stage->op, stage->bytes, ompi_pml_crypt.stage_bytes, &ompi_mpi_byte.dt,
                                  r->base.req_peer, ompi_pml_crypt_host_tag(r->base.req_tag), r->base.req_comm);
}

int ompi_pml_crypt_start_recv(ompi_pml_crypt_request_t *r)
{
    ompi_common_cryptmpi_comm_t *c = r->c;  /* the request may be over, and given back, once it is posted */
    ompi_pml_crypt_held_t *held = NULL;
    int rc = OMPI_SUCCESS;

    ompi_pml_crypt_request_begin(r);
    rc = ompi_common_cryptmpi_device_check(r->base.req_addr);
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (MPI_ANY_SOURCE != r->base.req_peer) {
        /* Here we may wait for the runtime; in a callback we could not. */
        rc = ompi_pml_crypt_peer(r->c, r->base.req_peer, &r->peer);
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
    }
    ompi_common_cryptmpi_lock_acquire(&c->lock);
    if (OPAL_UNLIKELY(!opal_list_is_empty(&c->held))) {
        held = ompi_pml_crypt_held_take(c, r->base.req_peer, r->base.req_tag);
    }
    if (NULL == held) {
        rc = post(r);
    }
    ompi_common_cryptmpi_lock_release(&c->lock);
    if (NULL != held) {
        rc = ompi_pml_crypt_held_recv(r, held);
    }
    if (OMPI_SUCCESS != rc) {
        opal_crypt_serial_drop(c->serials, r->serial);
    }
    return rc;
}

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

/* It was no message of one piece, or one that cannot be opened yet, or none: a request
 * takes over. */
static int with_request(const ompi_pml_crypt_request_t *known, ompi_pml_crypt_stage_t *stage, int src, int tag,
                        const ompi_status_public_t *brought, ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t *r = ompi_pml_crypt_request_new(MCA_PML_REQUEST_RECV, known->base.req_addr,
                                                             known->base.req_count, known->base.req_datatype, src,
                                                             tag, known->base.req_comm, false);

    ompi_pml_crypt_request_begin(r);
    r->first = stage;
    stage->op.request = r;
    r->serial = known->serial;
    r->any_tag = known->any_tag;
    ompi_pml_crypt_first_in(&stage->op, brought);
    return ompi_pml_crypt_request_wait(r, status);
}

/* With one thread and nothing held, the host's blocking receive is cheapest:
 * it makes no request, we look at what it brought right here, and most messages
 * need no request of ours either.  `known` is what opening them looks at. */
OPAL_CRYPT_OFTEN
static int recv_directly(ompi_pml_crypt_request_t *known, int src, int tag,
                         ompi_status_public_t *status)
{
    ompi_pml_crypt_stage_t *stage = ompi_pml_crypt_stage_get();
    ompi_status_public_t brought = {.MPI_ERROR = MPI_SUCCESS};
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_RECEIVE, .peer = src, .tag = tag,
                                            .comm = known->base.req_comm, .bytes = known->plain_bytes};

    take_serial(known);
    ompi_common_cryptmpi_enter(&inside);
    brought.MPI_ERROR = ompi_pml_crypt.host.pml_recv(stage->bytes, ompi_pml_crypt.stage_bytes, &ompi_mpi_byte.dt,
                                                     src, ompi_pml_crypt_host_tag(tag), known->base.req_comm,
                                                     &brought);
    ompi_common_cryptmpi_leave(&inside);
    ompi_pml_crypt_act();
    if (!ompi_pml_crypt_open_whole(known, stage->bytes, &brought)) {
        return with_request(known, stage, src, tag, &brought, status);
    }
    ompi_pml_crypt_stage_return(stage);
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, known->status, false);
    }
    return known->status.MPI_ERROR;
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_recv(void *buffer, size_t count, ompi_datatype_t *type, int src, int tag,
                        ompi_communicator_t *comm, ompi_status_public_t *status)
{
    ompi_pml_crypt_request_t known;
    ompi_request_t *request;
    int rc;

#if OPAL_ENABLE_DEBUG || defined(__SANITIZE_ADDRESS__)
    memset(&known, 0xa5, sizeof(known));
#endif
    known.c = ompi_common_cryptmpi_comm(comm);
    if (opal_cryptproc_threaded() || !opal_list_is_empty(&known.c->held)) {
        rc = ompi_pml_crypt_irecv(buffer, count, type, src, tag, comm, &request);
        return OMPI_SUCCESS != rc ? rc
                                  : ompi_pml_crypt_request_wait((ompi_pml_crypt_request_t *) request, status);
    }
    rc = ompi_common_cryptmpi_device_check(buffer);
    if (OMPI_SUCCESS == rc && MPI_ANY_SOURCE != src) {
        rc = ompi_pml_crypt_peer(known.c, src, &known.peer);
    }
    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    known.base.req_comm = comm;
    known.base.req_addr = buffer;
    known.base.req_count = count;
    known.base.req_datatype = type;
    known.base.req_tag = tag;
    known.plain_bytes = ompi_common_cryptmpi_bytes(type, count);
    return recv_directly(&known, src, tag, status);
}

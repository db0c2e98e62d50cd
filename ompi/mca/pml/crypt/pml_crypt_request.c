/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Requests: what the application holds, around the operations at the host that
 * it takes.
 *
 * `pending` counts those operations, plus one for the caller that starts it; at 0
 * the request completes.  `state` decides which of completion and MPI_Request_free
 * gives it back: they may come in either order, from two threads.  A persistent one may be
 * started again before the completion of its last use has returned: so completions are counted.
 */
#include "pml_crypt_recv.h"

#include "ompi/errhandler/errhandler.h"
#include "ompi/mca/pml/base/pml_base_bsend.h"

enum { DONE = 1, FREED = 2, COMPLETING = 4 };     /* COMPLETING: a count */

static int request_free(ompi_request_t **request);
static int request_cancel(ompi_request_t *request, int flag);

static void request_construct(ompi_pml_crypt_request_t *r)
{
    r->base.req_ompi.req_type = OMPI_REQUEST_PML;
    r->base.req_ompi.req_free = request_free;
    r->base.req_ompi.req_cancel = request_cancel;
    r->base.req_ompi.req_start = ompi_pml_crypt_start;
    OBJ_CONSTRUCT(&r->queued, opal_list_item_t);
    r->state = DONE | FREED;
    r->m.peer = NULL;                   /* the status page may read it before its first use is set up */
    r->made = __atomic_load_n(&ompi_pml_crypt.made, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&ompi_pml_crypt.made, &r->made, r, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
    }
}

static void request_destruct(ompi_pml_crypt_request_t *r)
{
    OBJ_DESTRUCT(&r->queued);
}

OBJ_CLASS_INSTANCE(ompi_pml_crypt_request_t, mca_pml_base_request_t, request_construct, request_destruct);

OPAL_CRYPT_OFTEN
ompi_pml_crypt_request_t *ompi_pml_crypt_request_new(mca_pml_base_request_type_t type, const void *buffer,
                                                     size_t count, ompi_datatype_t *datatype, int peer, int tag,
                                                     ompi_communicator_t *comm, bool persistent)
{
    ompi_pml_crypt_request_t *r = (ompi_pml_crypt_request_t *) opal_free_list_wait(&ompi_pml_crypt.requests);
    mca_pml_base_request_t *base = &r->base;

    OMPI_REQUEST_INIT(&base->req_ompi, persistent);
    OBJ_RETAIN(comm);
    OMPI_DATATYPE_RETAIN(datatype);
    base->req_ompi.req_mpi_object.comm = comm;
    base->req_type = type;
    base->req_comm = comm;
    base->req_datatype = datatype;
    base->req_addr = (void *) buffer;
    base->req_count = count;
    base->req_peer = peer;
    base->req_tag = tag;
    base->req_proc = NULL;
    base->req_pml_complete = persistent;
    base->req_free_called = false;
    ompi_pml_crypt_message_init(&r->m, comm, buffer, count, datatype, peer, tag);
    r->first = NULL;
    r->body = r->bsend = NULL;
    r->rest.inner = NULL;
    r->chop = NULL;
    r->stream = NULL;
    r->device = NULL;
    r->confirms = NULL;
    r->hidden = false;
    r->mode = MCA_PML_BASE_SEND_STANDARD;
    __atomic_store_n((volatile int32_t *) &r->state, persistent ? DONE : 0, __ATOMIC_RELEASE);
    return r;
}

bool ompi_pml_crypt_request_pending(const ompi_pml_crypt_request_t *r)
{
    return 0 == (DONE & __atomic_load_n((const volatile int32_t *) &r->state, __ATOMIC_ACQUIRE));
}

void ompi_pml_crypt_request_begin(ompi_pml_crypt_request_t *r)
{
    ompi_request_t *request = &r->base.req_ompi;

    __atomic_store_n(&r->pending_since, 0, __ATOMIC_RELAXED);
    ompi_pml_crypt_act();
    r->m.peer = NULL;
    r->m.status = (ompi_status_public_t){.MPI_SOURCE = OMPI_ANY_SOURCE, .MPI_TAG = OMPI_ANY_TAG};
    request->req_status = r->m.status;
    request->req_complete = REQUEST_PENDING;
    request->req_state = OMPI_REQUEST_ACTIVE;
    r->base.req_pml_complete = false;
    r->failure = OPAL_CRYPT_OK;
    r->host_error = MPI_SUCCESS;
    r->next_segment = 1;
    r->work = r->window = r->has_credit = 0;
    r->waits_for_credit = r->stalled = false;
    r->ahead = 0;
    if (request->req_persistent) {
        (void) __atomic_fetch_and((volatile int32_t *) &r->state, ~DONE, __ATOMIC_ACQ_REL);
    }
    r->pending = 1;
}

OPAL_CRYPT_OFTEN
static void return_parts(ompi_pml_crypt_request_t *r)
{
    OMPI_REQUEST_FINI(&r->base.req_ompi);
    OBJ_RELEASE(r->base.req_comm);
    OMPI_DATATYPE_RELEASE(r->m.type);
    opal_free_list_return(&ompi_pml_crypt.requests, (opal_free_list_item_t *) r);
}

/* Release everything that it has for one message. */
OPAL_CRYPT_OFTEN
static void leave(ompi_pml_crypt_request_t *r)
{
    if (NULL != r->first) {
        ompi_pml_crypt_stage_return(ompi_pml_crypt_op_leave(&r->first));
    }
    if (NULL != r->chop) {
        if (MCA_PML_REQUEST_SEND == r->base.req_type) {
            ompi_common_cryptmpi_add(&ompi_pml_crypt.outstanding, -1);
        }
        opal_crypt_chop_end(r->chop);
        r->chop = NULL;
        ompi_common_cryptmpi_stream_close(r->stream);
        r->stream = NULL;
    }
    if (NULL != r->bsend) {
        ompi_common_cryptmpi_bsend_free(r->base.req_comm, r->bsend);
        r->bsend = NULL;
    }
}

void ompi_pml_crypt_request_drop(ompi_pml_crypt_request_t *r)
{
    leave(r);
    if (!r->base.req_ompi.req_persistent) {
        r->state = DONE | FREED;
        return_parts(r);
        return;
    }
    r->base.req_pml_complete = true;
    r->base.req_ompi.req_complete = REQUEST_COMPLETED;
    r->base.req_ompi.req_state = OMPI_REQUEST_INACTIVE;
    (void) ompi_common_cryptmpi_set_bits(&r->state, DONE);
}

void ompi_pml_crypt_request_hide(ompi_pml_crypt_request_t *r)
{
    r->hidden = true;
    r->state = FREED;
}

/* A part of a receive behind the first one failed. */
static __opal_attribute_noinline__ void spoil(ompi_pml_crypt_request_t *r)
{
    ompi_pml_crypt_wipe_buffer(&r->m, r->shape.total_bytes);
    if (OPAL_CRYPT_OK != r->failure) {
        ompi_pml_crypt_fail(&r->m, r->failure);
    } else {
        r->m.status.MPI_ERROR = r->host_error;
        r->m.status._ucount = 0;
    }
}

OPAL_CRYPT_OFTEN
static void complete(ompi_pml_crypt_request_t *r)
{
    bool again = r->base.req_ompi.req_persistent;
    int32_t state;

    if (MCA_PML_REQUEST_RECV == r->base.req_type
        && OPAL_UNLIKELY(OPAL_CRYPT_OK != r->failure || MPI_SUCCESS != r->host_error)) {
        spoil(r);
    }
    leave(r);
    ompi_pml_crypt_act();
    r->base.req_pml_complete = true;
    r->base.req_ompi.req_status = r->m.status;
    /* Once it is complete, another thread may free it, and reuse it for its next
     * message: so DONE is set after that.  A persistent one may be started again
     * as soon as it is complete: so DONE is set before. */
    if (again) {
        (void) ompi_common_cryptmpi_add(&r->state, COMPLETING + DONE);
    }
    if (!r->hidden) {
        /* A waiting thread must see status and message first.  Open MPI's own exchange is only an acquire. */
        __atomic_thread_fence(__ATOMIC_RELEASE);
        ompi_request_complete(&r->base.req_ompi, true);
    }
    state = again ? ompi_common_cryptmpi_add(&r->state, -COMPLETING)
                  : DONE | ompi_common_cryptmpi_set_bits(&r->state, DONE);
    if ((DONE | FREED) == state) {
        return_parts(r);
    }
}

OPAL_CRYPT_OFTEN
void ompi_pml_crypt_request_put(ompi_pml_crypt_request_t *r)
{
    if (0 == ompi_common_cryptmpi_add(&r->pending, -1)) {
        complete(r);
    }
}

OPAL_CRYPT_OFTEN
static int request_free(ompi_request_t **request)
{
    ompi_pml_crypt_request_t *r = (ompi_pml_crypt_request_t *) *request;

    r->base.req_free_called = true;
    if (DONE == ompi_common_cryptmpi_set_bits(&r->state, FREED)) {
        return_parts(r);
    }
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

/* As with ob1, a send cannot be cancelled; a receive can until it matched. */
static int request_cancel(ompi_request_t *request, int flag)
{
    ompi_pml_crypt_request_t *r = (ompi_pml_crypt_request_t *) request;

    return MCA_PML_REQUEST_RECV == r->base.req_type ? ompi_pml_crypt_op_cancel(&r->first, flag) : OMPI_SUCCESS;
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_request_wait(ompi_pml_crypt_request_t *r, ompi_status_public_t *status)
{
    ompi_request_t *request = &r->base.req_ompi;
    int rc;

    ompi_request_wait_completion(request);
    rc = request->req_status.MPI_ERROR;
    if (MPI_STATUS_IGNORE != status) {
        OMPI_COPY_STATUS(status, request->req_status, false);
    }
    ompi_request_free(&request);
    return rc;
}

int ompi_pml_crypt_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        ompi_pml_crypt_request_t *r = (ompi_pml_crypt_request_t *) requests[i];
        int rc;

        if (NULL == requests[i] || OMPI_REQUEST_PML != requests[i]->req_type) {
            continue;
        }
        rc = MCA_PML_REQUEST_SEND == r->base.req_type ? ompi_pml_crypt_start_send(r) : ompi_pml_crypt_start_recv(r);
        if (OMPI_SUCCESS != rc) {
            ompi_pml_crypt_request_drop(r);
            /* MPI_Startall, and MPI_Start of 4.1, pass the code on and call no handler. */
            return OMPI_ERRHANDLER_INVOKE(r->base.req_comm, rc, "MPI_Start");
        }
    }
    return OMPI_SUCCESS;
}

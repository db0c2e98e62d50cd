/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One operation at the host PML.
 *
 * Two ways lead into the host.  With one thread, isend/irecv are cheapest (the
 * host may send inline and make no request at all), and a callback set on
 * their request cannot come too late.  Under MPI_THREAD_MULTIPLE it could, so
 * there the request is made first, given its callback, and then started.
 */
#include "pml_crypt.h"

#include <stddef.h>

static int inner_complete(ompi_request_t *inner)
{
    ompi_pml_crypt_op_t *op = inner->req_complete_cb_data;
    ompi_status_public_t status = inner->req_status;

    op->inner = NULL;
    ompi_request_free(&inner);
    op->done(op, &status);
    return 1;
}

/* One thread: the host has started it already. */
static void watch(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    if (REQUEST_COMPLETE(inner)) {
        ompi_status_public_t status = inner->req_status;
        ompi_request_free(&inner);
        op->done(op, &status);
        return;
    }
    op->inner = inner;
    inner->req_complete_cb_data = op;
    inner->req_complete_cb = inner_complete;
}

static int begin(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    ompi_request_t *started = inner;
    int rc;

    op->inner = inner;
    inner->req_complete_cb_data = op;
    inner->req_complete_cb = inner_complete;
    rc = ompi_pml_crypt.host.pml_start(1, &started);
    if (OMPI_SUCCESS != rc) {
        op->inner = NULL;
        inner->req_complete_cb = NULL;
        ompi_request_free(&inner);
    }
    return rc;
}

int ompi_pml_crypt_op_send(ompi_pml_crypt_op_t *op, const void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, mca_pml_base_send_mode_t mode, ompi_communicator_t *comm)
{
    ompi_request_t *inner = NULL;
    int rc;

    if (!ompi_common_cryptmpi_threads) {
        rc = ompi_pml_crypt.host.pml_isend(buffer, count, type, peer, tag, mode, comm, &inner);
        if (OMPI_SUCCESS == rc) {
            watch(op, inner);
        }
        return rc;
    }
    rc = ompi_pml_crypt.host.pml_isend_init(buffer, count, type, peer, tag, mode, comm, &inner);
    return OMPI_SUCCESS == rc ? begin(op, inner) : rc;
}

int ompi_pml_crypt_op_recv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, ompi_communicator_t *comm)
{
    ompi_request_t *inner = NULL;
    int rc;

    if (!ompi_common_cryptmpi_threads) {
        rc = ompi_pml_crypt.host.pml_irecv(buffer, count, type, peer, tag, comm, &inner);
        if (OMPI_SUCCESS == rc) {
            watch(op, inner);
        }
        return rc;
    }
    rc = ompi_pml_crypt.host.pml_irecv_init(buffer, count, type, peer, tag, comm, &inner);
    return OMPI_SUCCESS == rc ? begin(op, inner) : rc;
}

/* ---- matched receives: no way to set a callback before they start ---- */

static opal_list_t polled;              /* stages */
static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER;
static bool polled_made = false;

static void poll_later(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) ((char *) op - offsetof(ompi_pml_crypt_stage_t, op));

    op->inner = inner;
    pthread_mutex_lock(&polled_lock);
    if (!polled_made) {
        OBJ_CONSTRUCT(&polled, opal_list_t);
        polled_made = true;
    }
    opal_list_append(&polled, (opal_list_item_t *) &stage->super);
    ompi_pml_crypt.waiting.polled++;
    pthread_mutex_unlock(&polled_lock);
}

int ompi_pml_crypt_op_imrecv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_message_t **message)
{
    ompi_request_t *inner = NULL;
    int rc = ompi_pml_crypt.host.pml_imrecv(buffer, count, &ompi_mpi_byte.dt, message, &inner);

    if (OMPI_SUCCESS != rc) {
        return rc;
    }
    if (ompi_common_cryptmpi_threads && !REQUEST_COMPLETE(inner)) {
        poll_later(op, inner);
    } else {
        watch(op, inner);
    }
    return OMPI_SUCCESS;
}

/* The first operation of the list that has ended, taken out of it. */
static ompi_pml_crypt_op_t *poll_one(void)
{
    ompi_pml_crypt_op_t *ended = NULL;
    opal_list_item_t *item;

    pthread_mutex_lock(&polled_lock);
    for (item = opal_list_get_first(&polled); item != opal_list_get_end(&polled); item = opal_list_get_next(item)) {
        ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) item;
        if (REQUEST_COMPLETE(stage->op.inner)) {
            ended = &stage->op;
            opal_list_remove_item(&polled, item);
            ompi_pml_crypt.waiting.polled--;
            break;
        }
    }
    pthread_mutex_unlock(&polled_lock);
    return ended;
}

int ompi_pml_crypt_op_poll(void)
{
    ompi_pml_crypt_op_t *op;
    int events = 0;

    while (OPAL_UNLIKELY(ompi_pml_crypt.waiting.polled > 0) && NULL != (op = poll_one())) {
        ompi_request_t *inner = op->inner;
        ompi_status_public_t status = inner->req_status;
        op->inner = NULL;
        ompi_request_free(&inner);
        op->done(op, &status);
        events++;
    }
    return events;
}

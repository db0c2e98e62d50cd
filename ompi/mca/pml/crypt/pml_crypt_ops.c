/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One operation at the host PML, and the staging it works on.
 *
 * Two ways lead into the host.  With one thread, isend/irecv are cheapest (the
 * host may send inline and make no request at all), and a callback set on
 * their request cannot come too late.  Under MPI_THREAD_MULTIPLE it could, so
 * there the request is made first, given its callback, and then started.
 */
#include "pml_crypt.h"

#include <stdlib.h>

static void stage_construct(ompi_pml_crypt_stage_t *stage)
{
    stage->op.inner = NULL;
    stage->op.request = NULL;
    stage->op.segment = 0;
    stage->home = NULL;
    stage->bytes = NULL;
}

OBJ_CLASS_INSTANCE(ompi_pml_crypt_stage_t, opal_free_list_item_t, stage_construct, NULL);

static ompi_pml_crypt_stage_t *get_from(opal_free_list_t *list)
{
    ompi_pml_crypt_stage_t *stage = (ompi_pml_crypt_stage_t *) opal_free_list_wait(list);

    stage->home = list;
    stage->bytes = (uint8_t *) stage->super.ptr + 56;    /* 56 + 8 = a cache line */
    return stage;
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_stage_get(void)
{
    return get_from(&ompi_pml_crypt.stages);
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_chunk_get(size_t bytes)
{
    ompi_pml_crypt_stage_t *stage;

    if (bytes <= ompi_pml_crypt.params.chunk_size + OPAL_CRYPT_SEGMENT_OVERHEAD) {
        return get_from(&ompi_pml_crypt.chunks);
    }
    stage = OBJ_NEW(ompi_pml_crypt_stage_t);     /* a peer with larger chunks than ours */
    stage->bytes = malloc(bytes);
    if (NULL == stage->bytes) {
        OBJ_RELEASE(stage);
    }
    return stage;
}

void ompi_pml_crypt_stage_return(ompi_pml_crypt_stage_t *stage)
{
    if (NULL == stage->home) {
        free(stage->bytes);
        OBJ_RELEASE(stage);
        return;
    }
    opal_free_list_return(stage->home, &stage->super);
}

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
    op->inner = inner;
    inner->req_complete_cb_data = op;
    inner->req_complete_cb = inner_complete;
    return ompi_pml_crypt.host.pml_start(1, &inner);
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

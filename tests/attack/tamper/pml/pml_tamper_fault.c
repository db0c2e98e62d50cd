/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A host with faults: calls that it refuses, and requests that end with an error.
 */
#include "pml_tamper.h"

typedef struct broken {
    ompi_request_t super;
    bool refused;                       /* when it is started */
} broken_t;
static OBJ_CLASS_INSTANCE(broken_t, ompi_request_t, NULL, NULL);

static int broken_free(ompi_request_t **request)
{
    OMPI_REQUEST_FINI(*request);
    OBJ_RELEASE(*request);
    *request = MPI_REQUEST_NULL;
    return OMPI_SUCCESS;
}

static void end(ompi_request_t *request)
{
    request->req_state = OMPI_REQUEST_ACTIVE;
    request->req_status = (ompi_status_public_t){.MPI_ERROR = MPI_ERR_NO_SPACE};
}

int ompi_pml_tamper_fault(const ompi_pml_tamper_frame_t *frame, bool persistent, ompi_request_t **request)
{
    broken_t *made;

    if (!frame->refused && !frame->failed) {
        *request = &ompi_request_empty;
        return OMPI_SUCCESS;
    }
    if (frame->refused && !persistent) {
        return OMPI_ERR_BUFFER;
    }
    made = OBJ_NEW(broken_t);
    OMPI_REQUEST_INIT(&made->super, persistent);
    made->super.req_type = OMPI_REQUEST_PML;
    made->super.req_free = broken_free;
    made->super.req_mpi_object.comm = frame->comm;
    made->refused = frame->refused;
    if (!persistent) {
        end(&made->super);
        made->super.req_complete = REQUEST_COMPLETED;
    }
    *request = &made->super;
    return OMPI_SUCCESS;
}

int ompi_pml_tamper_start(size_t count, ompi_request_t **requests)
{
    for (size_t i = 0; i < count; i++) {
        int rc = OMPI_SUCCESS;
        if (broken_free != requests[i]->req_free) {
            rc = ompi_pml_tamper_ob1.pml_start(1, &requests[i]);
        } else if (((broken_t *) requests[i])->refused) {
            rc = OMPI_ERR_BUFFER;
        } else {
            requests[i]->req_complete = REQUEST_PENDING;
            end(requests[i]);
            (void) ompi_request_complete(requests[i], true);
        }
        if (OMPI_SUCCESS != rc) {
            return rc;
        }
        ompi_pml_tamper_after();        /* only now the frame has been sent */
    }
    return OMPI_SUCCESS;
}

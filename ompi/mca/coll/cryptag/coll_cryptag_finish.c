/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Failures, and the end of a call.
 *
 * By default a failure ends the job where it is found.  With
 * crypt_on_auth_failure=error, a call is followed by a small exchange that tells
 * every rank whether any of them failed; if so, all of them wipe what was received
 * and return the error.  If ranks expect different lengths, which is an error in the
 * program, only those that noticed it return that.
 */
#include "coll_cryptag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#define PATIENCE_SECONDS 10

void ompi_coll_cryptag_mistaken(ompi_coll_cryptag_call_t *call)
{
    if (OMPI_SUCCESS == call->failure) {
        call->failure = MPI_ERR_TRUNCATE;
    }
}

void ompi_coll_cryptag_note(ompi_coll_cryptag_call_t *call, int rc)
{
    call->failed = call->failed || OMPI_SUCCESS != rc;
    if (OMPI_SUCCESS == call->failure) {
        call->failure = rc;
    }
}

void ompi_coll_cryptag_fail(ompi_coll_cryptag_call_t *call, int crypt_rc, int peer)
{
    ompi_coll_cryptag_note(call, ompi_common_cryptmpi_auth_failure(call->comm, peer, call->tag, crypt_rc));
}

enum { GOOD, MISTAKEN, FAILED };

int ompi_coll_cryptag_finish(ompi_coll_cryptag_call_t *call)
{
    if (OPAL_CRYPTPROC_ERROR == opal_cryptproc_params.on_failure) {
        const int here = OMPI_SUCCESS == call->failure ? GOOD : call->failed ? FAILED : MISTAKEN;

        if (FAILED == ompi_coll_cryptag_agree(call, here, FAILED)) {
            ompi_coll_cryptag_note(call, ompi_common_cryptmpi_error());
            call->wipe(call);
        }
    }
    ompi_coll_cryptag_scratch_reset(&call->module->scratch);
    return call->failure;
}

/* Ranks without a message (NULL) wait, or they would end the job before others print theirs. */
void ompi_coll_cryptag_end_job(ompi_communicator_t *comm, const char *topic, ...)
{
    va_list list;

    for (int i = 0; NULL == topic && i < PATIENCE_SECONDS * 100; i++) {
        opal_progress();
        usleep(10000);
    }
    if (NULL != topic) {
        va_start(list, topic);
        opal_cryptproc_vshow_here("help-mpi-coll-cryptag.txt", topic, list);
        va_end(list);
    }
    ompi_mpi_abort(comm, 1);
    opal_cryptproc_exit_soon();
}

void ompi_coll_cryptag_no_memory(ompi_communicator_t *comm, size_t bytes)
{
    ompi_coll_cryptag_end_job(comm, "no-memory", bytes, ompi_comm_rank(comm), comm->c_name);
}

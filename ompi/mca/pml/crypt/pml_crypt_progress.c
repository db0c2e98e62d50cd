/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What waits for the progress function: operations that are polled, segments at workers, queues
 * that do not move, the final frames, and first parts from peers that are not resolved yet.
 * Such a part matched MPI_ANY_SOURCE, and its sender cannot be resolved in a callback, since
 * the runtime may have to be asked.
 */
#include "pml_crypt_recv.h"

#include <stddef.h>

static opal_list_t deferred;
static pthread_mutex_t deferred_lock = PTHREAD_MUTEX_INITIALIZER;
static bool deferred_made = false;

/* Forget what is left over from an earlier MPI session that was finalized first. */
void ompi_pml_crypt_deferred_start(void)
{
    deferred_made = false;
    ompi_pml_crypt.waiting.deferred = 0;
}

void ompi_pml_crypt_defer(ompi_pml_crypt_request_t *r)
{
    pthread_mutex_lock(&deferred_lock);
    if (!deferred_made) {
        OBJ_CONSTRUCT(&deferred, opal_list_t);
        deferred_made = true;
    }
    opal_list_append(&deferred, &r->queued);
    ompi_pml_crypt.waiting.deferred++;
    pthread_mutex_unlock(&deferred_lock);
}

static ompi_pml_crypt_request_t *next_deferred(void)
{
    opal_list_item_t *item;

    pthread_mutex_lock(&deferred_lock);
    item = ompi_pml_crypt.waiting.deferred > 0 ? opal_list_remove_first(&deferred) : NULL;
    ompi_pml_crypt.waiting.deferred -= NULL != item;
    pthread_mutex_unlock(&deferred_lock);
    return NULL == item ? NULL
                        : (ompi_pml_crypt_request_t *) ((char *) item - offsetof(ompi_pml_crypt_request_t, queued));
}

static int open_deferred(void)
{
    ompi_pml_crypt_request_t *r;
    int events = 0;

    while (OPAL_UNLIKELY(ompi_pml_crypt.waiting.deferred > 0) && NULL != (r = next_deferred())) {
        if (OMPI_SUCCESS != ompi_common_cryptmpi_resolve(ompi_comm_peer_lookup(r->m.c->comm, r->m.in.source), r->m.peer)) {
            ompi_mpi_abort(r->m.c->comm, 1);    /* the reason was shown */
            continue;                           /* another thread is already ending the job: leave it unopened */
        }
        ompi_pml_crypt_open_first_part(r, ompi_pml_crypt_what(&r->m, r->first->bytes));
        events++;
    }
    return events;
}

/* Open MPI calls this eight times for every look at its sockets. */
static inline bool nothing_waits(void)
{
    return 0 == (ompi_pml_crypt.waiting.polled | ompi_pml_crypt.waiting.deferred | ompi_pml_crypt.waiting.queued
                 | ompi_pml_crypt.waiting.arriving | ompi_pml_crypt.sealing.count | ompi_pml_crypt.opening.count
                 | ompi_pml_crypt.waiting.copying)
           && !ompi_pml_crypt_ending();
}

OPAL_CRYPT_OFTEN
int ompi_pml_crypt_progress(void)
{
    int events;

    ompi_pml_crypt_status_tick();
    if (OPAL_LIKELY(nothing_waits()) || ompi_pml_crypt.over) {
        return 0;
    }
    events = ompi_pml_crypt_op_poll() + ompi_pml_crypt_opened();
    ompi_pml_crypt_pump_stalled();
    ompi_pml_crypt_arriving_stalled();
    if (ompi_pml_crypt_ending()) {
        ompi_pml_crypt_final_send();
    }
    return events + open_deferred();
}

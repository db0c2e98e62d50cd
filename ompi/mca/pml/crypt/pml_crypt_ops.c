/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One operation at the host PML.
 *
 * There are three ways to start one.  With one thread, isend/irecv are cheapest (the
 * host may send inline and make no request at all), and a callback set on
 * their request cannot come too late.  Under MPI_THREAD_MULTIPLE it could, so
 * there the request is made first, given its callback, and then started; or,
 * where that is impossible (matched receives, and ucx, which may lose the
 * completion of a request that it is just starting), it is polled.
 * With cm (mtl.c), operations that have ended are polled for, threads or not.
 */
#include "pml_crypt.h"

#include <pthread.h>

enum { DEEPEST = 8 };                   /* nested calls of op_poll */

/* ---- cancelling ---- */

/* For an operation and the pointer to its stage; recursive, as a cancel may complete it. */
static pthread_mutex_t locks[32] = {[0 ... 31] = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
static ompi_common_cryptmpi_atomic32_t cancelling;      /* calls of cm, which make progress (op_poll) */

static ompi_common_cryptmpi_lock_t *lock_of(const ompi_pml_crypt_op_t *op)
{
    return &locks[((uintptr_t) op >> 7) % 32];
}

int ompi_pml_crypt_op_cancel(ompi_pml_crypt_stage_t *const *place, int flag)
{
    ompi_pml_crypt_stage_t *stage = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    ompi_request_t *inner;
    int rc = OMPI_SUCCESS;

    if (NULL == stage) {
        return OMPI_SUCCESS;
    }
    ompi_common_cryptmpi_lock_acquire(lock_of(&stage->op));
    inner = stage == *place ? stage->op.inner : NULL;
    if (NULL != inner && NULL != inner->req_cancel && !REQUEST_COMPLETE(inner)) {
        ompi_common_cryptmpi_add(&cancelling, 1);
        rc = inner->req_cancel(inner, flag);
        ompi_common_cryptmpi_add(&cancelling, -1);
    }
    ompi_common_cryptmpi_lock_release(lock_of(&stage->op));
    return rc;
}

ompi_pml_crypt_stage_t *ompi_pml_crypt_op_leave(ompi_pml_crypt_stage_t **place)
{
    ompi_pml_crypt_stage_t *stage = *place;

    ompi_common_cryptmpi_lock_acquire(lock_of(&stage->op));
    __atomic_store_n(place, NULL, __ATOMIC_RELAXED);
    ompi_common_cryptmpi_lock_release(lock_of(&stage->op));
    return stage;
}

/* ---- what has ended ---- */

/* Another thread may have completed it: read its status and its buffer only after this. */
static inline bool inner_is_complete(const ompi_request_t *inner)
{
    const bool is = REQUEST_COMPLETE(inner);

    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return is;
}

static void ended(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    ompi_status_public_t status = inner->req_status;

    ompi_common_cryptmpi_lock_acquire(lock_of(op));
    op->inner = NULL;
    ompi_request_free(&inner);
    ompi_common_cryptmpi_lock_release(lock_of(op));
    op->done(op, &status);
}

/* In the order in which they began, or (cm) ended: a replay has to come after its message, to be the one refused.
 * So there is one line for all that have ended, also for progress that is made within a callback. */
typedef struct {
    ompi_pml_crypt_op_t *first, **last;
} polled_t;
static polled_t polled = {NULL, &polled.first}, complete = {NULL, &complete.first};
static pthread_mutex_t polled_lock = PTHREAD_MUTEX_INITIALIZER;

static void append(polled_t *line, ompi_pml_crypt_op_t *op)
{
    op->behind = NULL;
    *line->last = op;
    line->last = &op->behind;
}

static void poll_later(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    op->inner = inner;
    pthread_mutex_lock(&polled_lock);
    append(&polled, op);
    ompi_pml_crypt.waiting.polled++;
    pthread_mutex_unlock(&polled_lock);
}

static __thread int called_back;

bool ompi_pml_crypt_called_back(void)
{
    return called_back > 0;
}

/* Returns 0 where Open MPI is to mark the request as complete. */
static int inner_complete(ompi_request_t *inner)
{
    if (ompi_pml_crypt.over) {
        return 0;
    }
    if (ompi_pml_crypt.mtl) {
        poll_later(inner->req_complete_cb_data, inner);
        return 0;
    }
    called_back++;
    ended(inner->req_complete_cb_data, inner);
    called_back--;
    return 1;
}

void ompi_pml_crypt_ops_start(void)
{
    polled = (polled_t) {NULL, &polled.first};
    complete = (polled_t) {NULL, &complete.first};
    ompi_pml_crypt.waiting.polled = 0;
}

/* In one pass, as thousands may be pending. */
static void find_complete(void)
{
    ompi_pml_crypt_op_t **place = &polled.first, *op;

    pthread_mutex_lock(&polled_lock);
    while (NULL != (op = *place)) {
        if (inner_is_complete(op->inner)) {
            *place = op->behind;
            append(&complete, op);
        } else {
            place = &op->behind;
        }
    }
    polled.last = place;
    pthread_mutex_unlock(&polled_lock);
}

static ompi_pml_crypt_op_t *take_complete(void)
{
    ompi_pml_crypt_op_t *op;

    pthread_mutex_lock(&polled_lock);
    op = complete.first;
    if (NULL != op) {
        complete.first = op->behind;
        complete.last = NULL == complete.first ? &complete.first : complete.last;
        ompi_pml_crypt.waiting.polled--;
    }
    pthread_mutex_unlock(&polled_lock);
    return op;
}

/* A call of cm that makes progress comes here again.  The depth is bounded, as each operation that has ended may make
 * the next such call.  And not from a cancel: the request that it is about to cancel could be freed, and reused. */
int ompi_pml_crypt_op_poll(void)
{
    static __thread int depth;
    ompi_pml_crypt_op_t *op;
    int events = 0;

    if (OPAL_LIKELY(0 == ompi_pml_crypt.waiting.polled) || DEEPEST == depth || (ompi_pml_crypt.mtl && cancelling > 0)) {
        return 0;
    }
    depth++;
    find_complete();
    while (NULL != (op = take_complete())) {
        ended(op, op->inner);
        events++;
    }
    depth--;
    return events;
}

/* The host has started it already. */
static void watch(ompi_pml_crypt_op_t *op, ompi_request_t *inner)
{
    if (inner_is_complete(inner)) {
        ended(op, inner);
    } else if (opal_cryptproc_threaded()) {
        poll_later(op, inner);
    } else {
        op->inner = inner;
        inner->req_complete_cb_data = op;
        inner->req_complete_cb = inner_complete;
    }
}

/* ---- what begins ---- */

static bool begins_later(void)
{
    return OPAL_UNLIKELY(opal_cryptproc_threaded()) && !ompi_pml_crypt.sends_later;      /* ob1 */
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

    if (begins_later()) {
        rc = ompi_pml_crypt.host.pml_isend_init(buffer, count, type, peer, tag, mode, comm, &inner);
        return OMPI_SUCCESS == rc ? begin(op, inner) : rc;
    }
    rc = ompi_pml_crypt.host.pml_isend(buffer, count, type, peer, tag, mode, comm, &inner);
    if (OMPI_SUCCESS == rc) {
        watch(op, inner);
    }
    return rc;
}

int ompi_pml_crypt_op_recv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_datatype_t *type,
                           int peer, int tag, ompi_communicator_t *comm)
{
    ompi_request_t *inner = NULL;
    int rc;

    if (begins_later()) {
        rc = ompi_pml_crypt.host.pml_irecv_init(buffer, count, type, peer, tag, comm, &inner);
        return OMPI_SUCCESS == rc ? begin(op, inner) : rc;
    }
    rc = ompi_pml_crypt.host.pml_irecv(buffer, count, type, peer, tag, comm, &inner);
    if (OMPI_SUCCESS == rc) {
        watch(op, inner);
    }
    return rc;
}

/* There is no way to make a matched receive and start it later. */
int ompi_pml_crypt_op_imrecv(ompi_pml_crypt_op_t *op, void *buffer, size_t count, ompi_message_t **message)
{
    ompi_request_t *inner = NULL;
    int rc = ompi_pml_crypt.host.pml_imrecv(buffer, count, &ompi_mpi_byte.dt, message, &inner);

    if (OMPI_SUCCESS == rc) {
        watch(op, inner);
    }
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Non-blocking transfers: one thread of this process works on them in order.
 * It calls no function of Open MPI; the progress function finds finished jobs and
 * completes their requests.
 *
 * OMPIO also posts requests within blocking calls, and waits for them itself, but does
 * not handle errors: a failed request stays on its list, where it makes MPI_File_sync
 * fail, the buffers of the next one are freed while it is in use, and OMPIO leaves a
 * collective call while others wait.  So these requests never fail: their transfer is
 * done at once, and an error is noted for the function that the application called.
 *
 * A request that Open MPI 6.0 splits into pieces is one request for the application: it carries the first error,
 * and the file.  OMPIO cannot stop in between, so a piece never fails either.
 */
#include "fbtl_crypt.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef struct job {
    struct job *next;
    ompi_request_free_fn_t free;        /* OMPIO's */
    ompi_common_cryptmpio_file_t *state;
    bool writing, done;                 /* done: atomic; set when all else is valid */
    mca_common_ompio_io_array_t *entries;
    int count;
    ssize_t bytes;
    opal_cryptfile_outcome_t outcome;
} job_t;

/* A request that is split into pieces. */
typedef struct whole {
    ompi_request_free_fn_t free;        /* OMPIO's */
    bool blocking;                      /* begun within a blocking call */
    int pieces;                         /* not yet freed by OMPIO */
    size_t bytes;
} whole_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, finished = PTHREAD_COND_INITIALIZER;
static job_t *first, **last = &first;
static bool running, ending;
static pthread_t worker;

static void *work_on(void *arg)
{
    (void) arg;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (NULL == first && !ending) {
            pthread_cond_wait(&work, &lock);
        }
        if (NULL == first) {
            break;
        }
        job_t *job = first;
        first = job->next;
        last = NULL == first ? &first : last;
        pthread_mutex_unlock(&lock);
        job->bytes = ompi_fbtl_crypt_transfer(job->state, job->writing, job->entries, job->count, &job->outcome);
        __atomic_store_n(&job->done, true, __ATOMIC_RELEASE);       /* the job may be freed after this */
        pthread_mutex_lock(&lock);
        pthread_cond_broadcast(&finished);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* The thread blocks all signals: they are for the application's threads. */
static bool start(void)
{
    sigset_t all, old;

    if (!running) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        running = 0 == pthread_create(&worker, NULL, work_on, NULL);
        pthread_sigmask(SIG_SETMASK, &old, NULL);
    }
    return running;
}

void ompi_fbtl_crypt_async_stop(void)
{
    pthread_mutex_lock(&lock);
    bool was = running;
    ending = true;
    pthread_cond_signal(&work);
    pthread_mutex_unlock(&lock);
    if (was) {
        pthread_join(worker, NULL);
    }
    running = ending = false;
}

static bool is_done(const job_t *job)
{
    return __atomic_load_n(&job->done, __ATOMIC_ACQUIRE);
}

/* Wraps OMPIO's function, which begins by freeing buffers.  An application may free an
 * active request: its transfer is completed all the same. */
static int wait_and_free(ompi_request_t **request)
{
    const job_t *job = ((mca_ompio_request_t *) *request)->req_data;

    if (!is_done(job)) {
        pthread_mutex_lock(&lock);
        while (!is_done(job)) {
            pthread_cond_wait(&finished, &lock);
        }
        pthread_mutex_unlock(&lock);
    }
    if (!REQUEST_COMPLETE(*request)) {  /* else progress has reported it */
        (void) ompi_common_cryptmpio_report(job->state, job->writing, &job->outcome);
    }
    return job->free(request);
}

/* The request is on OMPIO's list already: another thread's progress calls the function as soon as it is set. */
static void publish(mca_ompio_request_t *of, bool (*progress)(mca_ompio_request_t *))
{
    __atomic_store_n(&of->req_progress_fn, progress, __ATOMIC_RELEASE);
}

static void *data_of(const mca_ompio_request_t *of)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);    /* after OMPIO has read the function pointer */
    return of->req_data;
}

/* The file whose error handler is called. */
static ompi_file_t *handle_of(const ompio_file_t *fh)
{
    ompi_file_t *handle = ompi_common_cryptmpio_handle(fh);

    return NULL == handle ? MPI_FILE_NULL : handle;
}

/* The same for a request in pieces, of which OMPIO has yet to start the rest. */
static int finish_and_free(ompi_request_t **request)
{
    const whole_t *whole = ((mca_ompio_request_t *) *request)->req_data;

    while (!REQUEST_COMPLETE(*request)) {
        opal_progress();
    }
    return whole->free(request);        /* and *whole: OMPIO frees req_data, if set */
}

/* OMPIO counts a piece and then, if it gets a lock, takes over its data and begins the next.  By itself, it would
 * consider the request done when it has counted the last piece; and its sum is uninitialized (6.0.0~rc2). */
static bool whole_is_done(mca_ompio_request_t *of)
{
    const whole_t *whole = data_of(of);
    ompi_status_public_t *status = &of->req_ompi.req_status;

    if (NULL == whole || !ompi_common_cryptmpi_io_has_all(of) || whole->pieces > 0) {
        return false;
    }
    status->_ucount = MPI_SUCCESS == status->MPI_ERROR ? whole->bytes : 0;
    return true;
}

/* The state shared by all pieces of a request, made with the first; NULL: out of memory. */
static whole_t *whole_of(mca_ompio_request_t *of, ompi_file_t *handle)
{
    whole_t *whole = of->req_data;

    if (NULL == whole && NULL != (whole = calloc(1, sizeof(*whole)))) {
        whole->free = of->req_ompi.req_free;
        whole->blocking = ompi_common_cryptmpio_noting();
        of->req_data = whole;
        of->req_ompi.req_free = finish_and_free;
        of->req_ompi.req_mpi_object.file = handle;
        publish(of, whole_is_done);
    }
    return whole;
}

/* Make the job of a request; the request is complete as soon as the job is done. */
static job_t *make_job(ompio_file_t *fh, ompi_request_t *request, bool writing)
{
    mca_ompio_request_t *of = (mca_ompio_request_t *) request;
    job_t *job = calloc(1, sizeof(*job));

    if (NULL != job) {
        job->state = ompi_fbtl_crypt_module_of(fh)->fs->state;
        job->writing = writing;
        job->free = of->req_ompi.req_free;
        of->req_data = job;
        of->req_free_fn = ompi_fbtl_crypt_request_free;
        of->req_ompi.req_free = wait_and_free;
        of->req_ompi.req_mpi_object.file = handle_of(fh);
        publish(of, ompi_fbtl_crypt_progress);
    }
    return job;
}

static void do_now(ompio_file_t *fh, job_t *job)
{
    job->bytes = ompi_fbtl_crypt_transfer(job->state, job->writing, fh->f_io_array, fh->f_num_of_io_entries, &job->outcome);
}

/* From here on, another thread may see the job as done, and report its outcome. */
static void set_done(job_t *job)
{
    __atomic_store_n(&job->done, true, __ATOMIC_RELEASE);
}

/* OMPIO may reuse its list of entries when this returns.  Without a thread, or memory for
 * the copy, the transfer is done now; also for an internal file of OMPIO, for which
 * nothing tells whether the call is blocking. */
static void hand_over(ompio_file_t *fh, job_t *job)
{
    size_t bytes = (size_t) fh->f_num_of_io_entries * sizeof(*job->entries);
    bool own = NULL == ompi_common_cryptmpio_handle(fh), started = false;

    job->count = fh->f_num_of_io_entries;
    job->entries = own ? NULL : malloc(bytes);
    if (NULL != job->entries) {
        memcpy(job->entries, fh->f_io_array, bytes);
        pthread_mutex_lock(&lock);
        started = start();
        if (started) {
            *last = job;
            last = &job->next;
            pthread_cond_signal(&work);
        }
        pthread_mutex_unlock(&lock);
    }
    if (!started) {
        do_now(fh, job);
        set_done(job);
    }
}

/* Does the request belong to a blocking call of this thread?  (A piece may be started by progress within an
 * unrelated blocking call.) */
static bool is_blocking(const whole_t *whole)
{
    return ompi_common_cryptmpio_noting() && (NULL == whole || whole->blocking);
}

static ssize_t start_request(ompio_file_t *fh, ompi_request_t *request, bool writing)
{
    mca_ompio_request_t *of = (mca_ompio_request_t *) request, *parent = ompi_common_cryptmpi_io_whole(of);
    whole_t *whole = NULL;
    const mca_fbtl_base_module_t *under = ompi_fbtl_crypt_module_of(fh)->under;
    const ompi_common_cryptmpio_file_t *state = ompi_fbtl_crypt_module_of(fh)->fs->state;
    bool encrypted = state->encrypted, refused = ompi_common_cryptmpio_refuses(state, writing), nothing = !writing && state->bare;
    mca_fbtl_base_module_ipreadv_fn_t by_itself = writing ? under->fbtl_ipwritev : under->fbtl_ipreadv;

    if (!encrypted && !refused && !nothing && NULL != by_itself) {
        return by_itself(fh, request);
    }
    if (NULL != parent) {
        ompi_common_cryptmpi_io_piece_of(of, fh);
        whole = whole_of(parent, handle_of(fh));
    }
    job_t *job = NULL != parent && NULL == whole ? NULL : make_job(fh, request, writing);
    if (NULL == job) {                  /* OMPIO ignores the return value */
        of->req_ompi.req_status.MPI_ERROR = MPI_ERR_NO_MEM;
        if (NULL != parent) {
            parent->req_ompi.req_status.MPI_ERROR = MPI_ERR_NO_MEM;
            ompi_request_complete(&parent->req_ompi, true);
        } else if (OMPI_COMMON_CRYPTMPI_IO_FORGETS_ERRORS) {
            ompi_request_complete(&of->req_ompi, true);
        }
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    if (NULL != whole) {
        whole->pieces++;
    }
    if (encrypted && !is_blocking(whole)) {
        hand_over(fh, job);
        return OMPI_SUCCESS;
    }
    if (encrypted) {
        do_now(fh, job);
    } else if (refused) {
        job->outcome = (opal_cryptfile_outcome_t){.rc = OPAL_CRYPT_ERR_ACCESS, .region = UINT32_MAX};
    } else if (nothing) {
        ompi_fbtl_crypt_nothing(fh);
    } else {                            /* the component below has no requests */
        job->bytes = writing ? under->fbtl_pwritev(fh) : under->fbtl_preadv(fh);
        if (job->bytes < 0) {           /* an error, without a defined errno */
            job->outcome = (opal_cryptfile_outcome_t){.rc = OPAL_CRYPT_ERR_STORAGE, .region = UINT32_MAX, .error = EIO};
        }
    }
    if (is_blocking(whole)) {
        ompi_fbtl_crypt_note(job->state, writing, &job->outcome);
        job->outcome = (opal_cryptfile_outcome_t){.rc = OPAL_CRYPT_OK};
    }
    set_done(job);
    return OMPI_SUCCESS;
}

ssize_t ompi_fbtl_crypt_ipreadv(ompio_file_t *fh, ompi_request_t *request)
{
    return start_request(fh, request, false);
}

ssize_t ompi_fbtl_crypt_ipwritev(ompio_file_t *fh, ompi_request_t *request)
{
    return start_request(fh, request, true);
}

bool ompi_fbtl_crypt_progress(mca_ompio_request_t *request)
{
    job_t *job = data_of(request);

    if (NULL == job || !is_done(job) || ompi_common_cryptmpi_io_counted(request)) {
        return false;
    }
    int error = ompi_common_cryptmpio_report(job->state, job->writing, &job->outcome);
    mca_ompio_request_t *parent = ompi_common_cryptmpi_io_whole(request);

    if (NULL != parent) {
        ompi_status_public_t *status = &parent->req_ompi.req_status;
        status->MPI_ERROR = MPI_SUCCESS == status->MPI_ERROR ? error : status->MPI_ERROR;
        ((whole_t *) parent->req_data)->bytes += MPI_SUCCESS == error ? (size_t) job->bytes : 0;
        error = MPI_SUCCESS;
    }
    request->req_ompi.req_status.MPI_ERROR = error;
    request->req_ompi.req_status._ucount = MPI_SUCCESS == error ? (size_t) job->bytes : 0;
    return true;
}

void ompi_fbtl_crypt_request_free(mca_ompio_request_t *request)
{
    job_t *job = request->req_data;
    mca_ompio_request_t *parent = ompi_common_cryptmpi_io_whole(request);

    if (NULL != job) {
        if (NULL != parent) {
            ((whole_t *) parent->req_data)->pieces--;
        }
        free(job->entries);
        free(job);
        request->req_data = NULL;
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process waits for.
 *
 *     calls that block     a list on the stacks of the waiting threads, for the status page
 *     a first contact      cryptproc's (cryptproc_wait.c), on that list
 *     a spawn, a connect   Open MPI's own; 4.1 makes these blocking calls through a table,
 *                          in which ours wrap them, with a thread that watches
 *
 * With one thread, entering and leaving are stores (cryptmpi.h); with several they are done
 * here, under a lock, in any order.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <signal.h>

#include "ompi/runtime/mpiruntime.h"

/* ---- calls that block ---- */

ompi_common_cryptmpi_inside_t *ompi_common_cryptmpi_innermost;
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

void ompi_common_cryptmpi_inside_threaded(ompi_common_cryptmpi_inside_t *inside, bool enter)
{
    ompi_common_cryptmpi_inside_t **place = &ompi_common_cryptmpi_innermost;

    pthread_mutex_lock(&list_lock);
    if (enter) {
        inside->outer = *place;
        *place = inside;
    } else {
        while (NULL != *place && inside != *place) {
            place = &(*place)->outer;
        }
        if (NULL != *place) {
            *place = inside->outer;
        }
    }
    pthread_mutex_unlock(&list_lock);
}

void ompi_common_cryptmpi_insides_visit(void (*visit)(ompi_common_cryptmpi_inside_t *inside, void *context), void *context)
{
    pthread_mutex_lock(&list_lock);
    for (ompi_common_cryptmpi_inside_t *i = ompi_common_cryptmpi_innermost; NULL != i; i = i->outer) {
        visit(i, context);
    }
    pthread_mutex_unlock(&list_lock);
}

/* ---- a first contact ---- */

static void show_wait(const opal_process_name_t *peer, const char *awaited, void (*in)(void *), void *argument)
{
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_CONTACT, .text = awaited,
                                            .peer = peer->jobid == OPAL_PROC_MY_NAME.jobid ? (int) peer->vpid
                                                                                           : OPAL_CRYPT_STATUS_FOREIGN};

    ompi_common_cryptmpi_enter(&inside);
    in(argument);
    ompi_common_cryptmpi_leave(&inside);
}

static void end_job(void)
{
    ompi_mpi_abort(NULL, 1);
}

/* ---- a spawn, a connect ---- */

#if OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE

typedef struct {
    opal_cryptproc_wait_t wait;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, watched;
    pthread_t thread;
} watch_t;

static opal_pmix_base_module_spawn_fn_t spawn;
static opal_pmix_base_module_connect_fn_t connect_jobs;

static void *watch_thread(void *argument)
{
    watch_t *watch = argument;

    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        if (!opal_cryptproc_wait_second(&watch->ended, &watch->lock) && !watch->done) {
            pthread_mutex_unlock(&watch->lock);
            opal_cryptproc_wait_tick(&watch->wait);
            pthread_mutex_lock(&watch->lock);
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* The thread blocks all signals: they are for the application's threads. */
static void watch_begin(watch_t *watch)
{
    sigset_t all, before;

    pthread_mutex_init(&watch->lock, NULL);
    opal_cryptproc_wait_condition(&watch->ended);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->watched = 0 == pthread_create(&watch->thread, NULL, watch_thread, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void watch_end(watch_t *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->done = true;
    pthread_cond_signal(&watch->ended);
    pthread_mutex_unlock(&watch->lock);
    if (watch->watched) {
        pthread_join(watch->thread, NULL);
    }
    pthread_cond_destroy(&watch->ended);
    pthread_mutex_destroy(&watch->lock);
}

static int watched_spawn(opal_list_t *job_info, opal_list_t *apps, opal_jobid_t *jobid)
{
    watch_t watch = {.wait = {.doing = "MPI_Comm_spawn", .awaited = "that the launcher has started the new job",
                              .peer = {.jobid = OPAL_JOBID_INVALID}}};
    int rc;

    watch_begin(&watch);
    rc = spawn(job_info, apps, jobid);
    watch_end(&watch);
    return rc;
}

static int watched_connect(opal_list_t *processes)
{
    watch_t watch = {.wait = {.doing = "MPI_Comm_spawn, connect or accept",
                              .awaited = "that the launcher has connected the jobs, which all of their processes ask for",
                              .peer = {.jobid = OPAL_JOBID_INVALID}}};
    opal_namelist_t *one;
    int rc;

    OPAL_LIST_FOREACH(one, processes, opal_namelist_t) {
        if (one->name.jobid != OPAL_PROC_MY_NAME.jobid) {
            watch.wait.peer = one->name;
        }
    }
    watch_begin(&watch);
    rc = connect_jobs(processes);
    watch_end(&watch);
    return rc;
}

static void table_begin(void)
{
    if (NULL != opal_pmix.spawn && NULL != opal_pmix.connect) {
        spawn = opal_pmix.spawn;
        connect_jobs = opal_pmix.connect;
        opal_pmix.spawn = watched_spawn;
        opal_pmix.connect = watched_connect;
    }
}

static void table_end(void)
{
    if (watched_spawn == opal_pmix.spawn) {
        opal_pmix.spawn = spawn;
        opal_pmix.connect = connect_jobs;
    }
}

#else

static void table_begin(void)
{
}

static void table_end(void)
{
}

#endif

/* ---- requests of the host ---- */

int ompi_common_cryptmpi_request_end(ompi_request_t **request, ompi_status_public_t *status)
{
    int rc = ompi_request_wait(request, status);

    if (OMPI_SUCCESS != rc && MPI_REQUEST_NULL != *request) {
        (void) ompi_request_free(request);
    }
    return rc;
}

/* ---- start and stop ---- */

void ompi_common_cryptmpi_waits_show(bool on)
{
    opal_cryptproc_show_wait = on ? show_wait : NULL;
}

void ompi_common_cryptmpi_waits_start(void)
{
    ompi_common_cryptmpi_waits_show(true);
    opal_cryptproc_end_job = end_job;
    table_begin();
}

void ompi_common_cryptmpi_waits_stop(void)
{
    table_end();
    ompi_common_cryptmpi_waits_show(false);
    opal_cryptproc_end_job = NULL;
}

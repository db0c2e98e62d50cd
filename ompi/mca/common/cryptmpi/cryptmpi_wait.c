/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Waiting for the runtime: never in silence, and with an end if one is wanted.
 *
 *     a first contact      asks without blocking, and looks once a second
 *     a spawn, a connect   Open MPI's own; 4.1 makes the calls that block through a table,
 *                          where ours stand before them, with a thread that looks on
 *
 * Seconds are counted one at a time, by those who wake: a process that was stopped,
 * or whose machine slept, has waited for one second in that time.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"


#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "ompi/runtime/mpiruntime.h"

enum { WARN_SECONDS = 120, EXIT_SECONDS = 10 };

typedef struct {
    const char *doing, *awaited;
    opal_process_name_t peer;
    unsigned seconds;
} wait_t;

static void say(const wait_t *w, const char *topic)
{
    char ours[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES], its[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES], peer[400], detail[1200];

    ompi_common_cryptmpi_job_name(&OPAL_PROC_MY_NAME, ours);
    if (OPAL_JOBID_INVALID == w->peer.jobid) {
        snprintf(peer, sizeof(peer), "a job that is not there yet");
    } else {
        ompi_common_cryptmpi_job_name(&w->peer, its);
        snprintf(peer, sizeof(peer), "%s rank %lu, of %s", its, (unsigned long) w->peer.vpid,
                 w->peer.jobid == OPAL_PROC_MY_NAME.jobid ? "this job" : "another job");
    }
    snprintf(detail, sizeof(detail), "  this process: %s rank %lu, on %s, in %s\n  the peer:     %s\n  awaited:      %s",
             ours, (unsigned long) OPAL_PROC_MY_NAME.vpid, opal_process_info.nodename, w->doing, peer, w->awaited);
    ompi_common_cryptmpi_show_here("help-ompi-common-cryptmpi.txt", topic, w->seconds, detail);
}

static void *exit_soon(void *nothing)
{
    const struct timespec while_it_lasts = {.tv_sec = EXIT_SECONDS};

    (void) nanosleep(&while_it_lasts, NULL);
    _exit(1);
    return nothing;
}

/* A runtime that does not answer may not hear this either. */
static void end_job(void)
{
    pthread_t thread;

    (void) pthread_create(&thread, NULL, exit_soon, NULL);
    ompi_mpi_abort(NULL, 1);
}

/* Another second has passed. */
static void tick(wait_t *w)
{
    const unsigned limit = ompi_common_cryptmpi_params.connect_timeout;

    w->seconds++;
    if (limit > 0 && w->seconds == limit) {
        say(w, "connect-timeout");
        end_job();
    } else if (WARN_SECONDS == w->seconds) {
        say(w, "still-waiting");
    }
}

/* False: a second has passed. */
static bool wait_a_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    struct timespec end;

    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec++;
    return ETIMEDOUT != pthread_cond_timedwait(condition, lock, &end);
}

/* ---- a first contact ---- */

uint8_t *ompi_common_cryptmpi_get(const opal_process_name_t *name, const char *key, ompi_common_cryptmpi_how_t how, const char *awaited,
                                  size_t *bytes, bool *nobody)
{
    wait_t w = {.doing = "the first contact with the peer", .awaited = awaited, .peer = *name};
    ompi_common_cryptmpi_question_t question = {.lock = PTHREAD_MUTEX_INITIALIZER, .answered = PTHREAD_COND_INITIALIZER};
    ompi_common_cryptmpi_inside_t inside = {.kind = OPAL_CRYPT_STATUS_CONTACT, .text = awaited,
                                            .peer = name->jobid == OPAL_PROC_MY_NAME.jobid ? (int) name->vpid
                                                                                           : OPAL_CRYPT_STATUS_FOREIGN};

    ompi_common_cryptmpi_enter(&inside);
    ompi_common_cryptmpi_ask(&question, name, key, how);
    pthread_mutex_lock(&question.lock);
    while (!question.done) {
        if (!wait_a_second(&question.answered, &question.lock)) {
            pthread_mutex_unlock(&question.lock);
            tick(&w);
            if (NULL != ompi_common_cryptmpi_still_here) {
                ompi_common_cryptmpi_still_here();
            }
            pthread_mutex_lock(&question.lock);
        }
    }
    pthread_mutex_unlock(&question.lock);
    pthread_mutex_destroy(&question.lock);
    pthread_cond_destroy(&question.answered);
    ompi_common_cryptmpi_leave(&inside);
    *bytes = question.bytes;
    if (NULL != nobody) {
        *nobody = question.nobody;
    }
    return question.found;
}

/* ---- a spawn, a connect ---- */

#if OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE

typedef struct {
    wait_t wait;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, watched;
    pthread_t thread;
} watch_t;

static opal_pmix_base_module_spawn_fn_t spawn;
static opal_pmix_base_module_connect_fn_t connect_jobs;

static void *look_on(void *argument)
{
    watch_t *watch = argument;

    pthread_mutex_lock(&watch->lock);
    while (!watch->done) {
        if (!wait_a_second(&watch->ended, &watch->lock) && !watch->done) {
            pthread_mutex_unlock(&watch->lock);
            tick(&watch->wait);
            pthread_mutex_lock(&watch->lock);
        }
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

/* Signals are the application's threads' to take. */
static void watch_begin(watch_t *watch)
{
    sigset_t all, before;

    pthread_mutex_init(&watch->lock, NULL);
    pthread_cond_init(&watch->ended, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watch->watched = 0 == pthread_create(&watch->thread, NULL, look_on, watch);
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

void ompi_common_cryptmpi_waits_start(void)
{
    if (NULL != opal_pmix.spawn && NULL != opal_pmix.connect) {
        spawn = opal_pmix.spawn;
        connect_jobs = opal_pmix.connect;
        opal_pmix.spawn = watched_spawn;
        opal_pmix.connect = watched_connect;
    }
}

void ompi_common_cryptmpi_waits_stop(void)
{
    if (watched_spawn == opal_pmix.spawn) {
        opal_pmix.spawn = spawn;
        opal_pmix.connect = connect_jobs;
    }
}

#else

void ompi_common_cryptmpi_waits_start(void)
{
}

void ompi_common_cryptmpi_waits_stop(void)
{
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Waiting for the runtime: never silently, and with a limit if one is set.  A query is sent without blocking, and
 * checked once a second.
 *
 * Seconds are counted one at a time, by the threads that wake up: a process that was stopped, or whose machine slept,
 * has waited for one second in that time.
 */
#include "cryptproc_internal.h"

#include <errno.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { WARN_SECONDS = 120, EXIT_SECONDS = 10 };

void (*opal_cryptproc_end_job)(void);
bool (*opal_cryptproc_has_failed)(opal_proc_t *proc);
void (*opal_cryptproc_show_wait)(const opal_process_name_t *, const char *, void (*)(void *), void *);
void (*opal_cryptproc_still_here)(void);

static void say(const opal_cryptproc_wait_t *w, const char *topic)
{
    char ours[OPAL_CRYPTPROC_NSPACE_BYTES], its[OPAL_CRYPTPROC_NSPACE_BYTES], peer[400], detail[1200];

    opal_cryptproc_job_name(&OPAL_PROC_MY_NAME, ours);
    if (OPAL_JOBID_INVALID == w->peer.jobid) {
        snprintf(peer, sizeof(peer), "a job that is not there yet");
    } else {
        opal_cryptproc_job_name(&w->peer, its);
        snprintf(peer, sizeof(peer), "%s rank %lu, of %s", its, (unsigned long) w->peer.vpid,
                 w->peer.jobid == OPAL_PROC_MY_NAME.jobid ? "this job" : "another job");
    }
    snprintf(detail, sizeof(detail), "  this process: %s rank %lu, on %s, in %s\n  the peer:     %s\n  awaited:      %s",
             ours, (unsigned long) OPAL_PROC_MY_NAME.vpid, opal_process_info.nodename, w->doing, peer, w->awaited);
    opal_cryptproc_show_here("help-opal-common-cryptproc.txt", topic, w->seconds, detail);
}

void opal_cryptproc_exit_soon(void)
{
    struct timespec left = {.tv_sec = EXIT_SECONDS};

    while (0 != nanosleep(&left, &left)) {
    }
    _exit(1);
}

void opal_cryptproc_end(void)
{
    if (NULL != opal_cryptproc_end_job) {
        opal_cryptproc_end_job();
        opal_cryptproc_exit_soon();
    }
    opal_cryptproc_runtime_abort();
    _exit(1);
}

static void *exit_soon(void *nothing)
{
    opal_cryptproc_exit_soon();
    return nothing;
}

/* A runtime that does not answer may ignore this, too. */
static void end_job(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);                           /* leave signals to the application's threads */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    (void) pthread_create(&thread, NULL, exit_soon, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (NULL != opal_cryptproc_end_job) {
        opal_cryptproc_end_job();
    } else {
        opal_cryptproc_runtime_abort();
    }
}

void opal_cryptproc_wait_tick(opal_cryptproc_wait_t *w)
{
    const unsigned limit = opal_cryptproc_params.connect_timeout;

    w->seconds++;
    if (limit > 0 && w->seconds == limit) {
        say(w, "connect-timeout");
        end_job();
    } else if (WARN_SECONDS == w->seconds) {
        say(w, "still-waiting");
    }
}

void opal_cryptproc_wait_condition(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

bool opal_cryptproc_wait_second(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec++;
    return ETIMEDOUT != pthread_cond_timedwait(condition, lock, &end);
}

/* ---- queries ---- */

typedef struct {
    opal_cryptproc_wait_t wait;
    opal_cryptproc_question_t *question;
} waiting_t;

static void wait_for_answer(void *argument)
{
    waiting_t *w = argument;
    opal_cryptproc_question_t *question = w->question;

    pthread_mutex_lock(&question->lock);
    while (!question->done) {
        if (!opal_cryptproc_wait_second(&question->answered, &question->lock)) {
            pthread_mutex_unlock(&question->lock);
            opal_cryptproc_wait_tick(&w->wait);
            if (NULL != opal_cryptproc_still_here) {
                opal_cryptproc_still_here();
            }
            pthread_mutex_lock(&question->lock);
        }
    }
    pthread_mutex_unlock(&question->lock);
}

void opal_cryptproc_await(opal_cryptproc_question_t *question, const opal_process_name_t *name, const char *awaited)
{
    waiting_t w = {.wait = {.doing = "the first contact with the peer", .awaited = awaited, .peer = *name},
                   .question = question};

    if (NULL != opal_cryptproc_show_wait) {
        opal_cryptproc_show_wait(name, awaited, wait_for_answer, &w);
    } else {
        wait_for_answer(&w);
    }
}

opal_cryptproc_question_t *opal_cryptproc_question_make(char *key)
{
    opal_cryptproc_question_t *question = NULL == key ? NULL : calloc(1, sizeof(*question));

    if (NULL == question) {
        free(key);
    } else {
        question->key = key;
        pthread_mutex_init(&question->lock, NULL);
        opal_cryptproc_wait_condition(&question->answered);
    }
    return question;
}

void opal_cryptproc_question_forget(opal_cryptproc_question_t *question)
{
    bool done;

    if (NULL == question) {
        return;
    }
    pthread_mutex_lock(&question->lock);
    done = question->done;
    question->forgotten = true;
    pthread_mutex_unlock(&question->lock);
    if (done) {
        opal_cryptproc_question_free(question);
    }
}

uint8_t *opal_cryptproc_get(const opal_process_name_t *name, const char *key, opal_cryptproc_how_t how,
                            const char *awaited, size_t *bytes, bool *nobody)
{
    opal_cryptproc_question_t *question = opal_cryptproc_question_make(strdup(key));
    uint8_t *found = NULL;

    *bytes = 0;
    if (NULL != nobody) {
        *nobody = false;
    }
    if (NULL != question) {
        opal_cryptproc_ask(question, name, how);
        opal_cryptproc_await(question, name, awaited);
        found = question->found;
        question->found = NULL;
        *bytes = question->bytes;
        if (NULL != nobody) {
            *nobody = question->nobody;
        }
    }
    opal_cryptproc_question_forget(question);
    return found;
}

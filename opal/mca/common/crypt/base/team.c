/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The worker team (crypt/base/team.h).
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE             /* CPU_COUNT, pthread_setname_np */
#endif
#include "team.h"
#include "team_openmp.h"
#include "secmem.h"
#include "thread.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>

typedef opal_crypt_team_t team_t;
typedef opal_crypt_job_t job_t;

struct opal_crypt_team {
    pthread_mutex_t lock;           /* for all fields below */
    pthread_cond_t work;            /* there is a job, or it is time to end */
    job_t *first, **last;
    unsigned waiting;               /* jobs in the queue */
    unsigned sleeping;              /* threads that wait for `work`, including those just signalled */
    unsigned started, limit;
    unsigned joinable;              /* of `thread`: all that were started, or OpenMP's master */
    bool openmp, ending;
    pthread_t thread[];
};

/* ---- a worker ---- */

static job_t *take_job(team_t *team)
{
    job_t *job;

    pthread_mutex_lock(&team->lock);
    while (NULL == team->first && !team->ending) {
        team->sleeping++;
        pthread_cond_wait(&team->work, &team->lock);
        team->sleeping--;
    }
    job = team->first;
    if (NULL != job) {
        team->first = job->next;
        team->waiting--;
        if (NULL == team->first) {
            team->last = &team->first;
        }
    }
    pthread_mutex_unlock(&team->lock);
    return job;
}

static void work_on(void *argument)
{
    team_t *team = argument;
    job_t *job;

    pthread_setname_np(pthread_self(), "crypt");
    while (NULL != (job = take_job(team))) {
        job->work(job);
        __atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
    }
    /* OpenMP's threads live on for a while after the region, and nobody joins them. */
    opal_crypt_thread_end();
}

static void *worker(void *team)
{
    work_on(team);
    return NULL;
}

static void *openmp_master(void *team)
{
    opal_crypt_openmp_run(work_on, team, ((team_t *) team)->limit);
    return NULL;
}

/* With the lock held: start one more thread, or all of OpenMP's.  They handle no signals. */
static void start_one(team_t *team)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (0 == pthread_create(&team->thread[team->joinable], NULL, team->openmp ? openmp_master : worker, team)) {
        team->started = team->openmp ? team->limit : team->started + 1;
        team->joinable++;
    } else {
        team->limit = team->started;        /* do not retry with every job */
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- for the owner ---- */

int opal_crypt_team_create(unsigned threads, bool openmp, team_t **made)
{
    team_t *team;

    if (0 == threads || threads > OPAL_CRYPT_TEAM_MAX || (openmp && !opal_crypt_openmp_there())) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    team = calloc(1, sizeof(*team) + threads * sizeof(team->thread[0]));
    if (NULL == team) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    pthread_mutex_init(&team->lock, NULL);
    pthread_cond_init(&team->work, NULL);
    team->last = &team->first;
    team->limit = threads;
    team->openmp = openmp;
    *made = team;
    return OPAL_CRYPT_OK;
}

void opal_crypt_team_destroy(team_t *team)
{
    if (NULL == team || opal_crypt_forked()) {
        return;
    }
    pthread_mutex_lock(&team->lock);
    team->ending = true;
    pthread_cond_broadcast(&team->work);
    pthread_mutex_unlock(&team->lock);
    for (unsigned i = 0; i < team->joinable; ++i) {
        pthread_join(team->thread[i], NULL);
    }
    pthread_cond_destroy(&team->work);
    pthread_mutex_destroy(&team->lock);
    free(team);
}

void opal_crypt_team_submit(team_t *team, job_t *job)
{
    bool taken = false;

    job->next = NULL;
    __atomic_store_n(&job->done, 0, __ATOMIC_RELAXED);
    if (!opal_crypt_forked()) {
        pthread_mutex_lock(&team->lock);
        if (team->sleeping <= team->waiting && team->started < team->limit) {
            start_one(team);
        }
        if (team->started > 0) {
            *team->last = job;
            team->last = &job->next;
            team->waiting++;
            taken = true;
            pthread_cond_signal(&team->work);
        }
        pthread_mutex_unlock(&team->lock);
    }
    if (!taken) {
        job->work(job);
        __atomic_store_n(&job->done, 1, __ATOMIC_RELEASE);
    }
}

unsigned opal_crypt_team_started(team_t *team)
{
    pthread_mutex_lock(&team->lock);
    unsigned started = team->started;
    pthread_mutex_unlock(&team->lock);
    return started;
}

/* ---- how many ---- */

unsigned opal_crypt_team_processors(void)
{
    /* A fixed set holds 1,024; the kernel refuses one that is too small. */
    for (size_t capacity = 1024; capacity <= 1u << 20; capacity *= 4) {
        cpu_set_t *set = CPU_ALLOC(capacity);
        size_t bytes = CPU_ALLOC_SIZE(capacity);
        int count = NULL != set && 0 == sched_getaffinity(0, bytes, set) ? CPU_COUNT_S(bytes, set) : 0;

        CPU_FREE(set);
        if (count > 0) {
            return (unsigned) count;
        }
    }
    return 1;
}

unsigned opal_crypt_team_share(unsigned mine, unsigned all, unsigned ranks)
{
    uint64_t together;                      /* ranks on my processors */

    if (0 == mine || mine > all) {
        mine = mine > all && all > 0 ? all : 1;
    }
    together = ((uint64_t) ranks * mine + all - 1) / (all > 0 ? all : 1);
    return together < 2 ? mine : mine >= together ? (unsigned) (mine / together) : 1;
}

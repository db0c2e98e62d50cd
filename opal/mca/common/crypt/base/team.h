/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The worker team: threads that seal and open segments, in place of the thread that communicates.
 *
 *     submit(job) --> queue --> a worker: job->work(job) --> job_done(job) is true
 *
 * One queue, in order; a worker takes the oldest job.  There are no callbacks: the owner of a job checks whether it is
 * done, from where it makes progress.  So a worker never enters MPI, and `work` must not either.
 *
 * Threads are started when the first jobs arrive, and sleep when there are none: an idle team takes no time from
 * neighboring ranks.  They handle no signals.
 *
 * Threads: any may submit and check.  create and destroy are for the owner, which has no job outstanding when it calls
 * destroy.
 */
#ifndef OPAL_CRYPT_BASE_TEAM_H
#define OPAL_CRYPT_BASE_TEAM_H

#include "base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_TEAM_MAX 256             /* threads */

typedef struct opal_crypt_team opal_crypt_team_t;

/* Embedded in a work item; the submitter's until submitted, then the team's until done. */
typedef struct opal_crypt_job {
    void (*work)(struct opal_crypt_job *job);
    struct opal_crypt_job *next;
    int done;                               /* atomic: opal_crypt_job_done */
} opal_crypt_job_t;

/* Up to `threads` (1 .. TEAM_MAX) threads; none is started yet.  They are either ours, started one by one as work
 * arrives, or those of an OpenMP library, all started with the first job.  ERR_CONFIG (also if there is no such
 * library), ERR_MEMORY. */
int opal_crypt_team_create(unsigned threads, bool openmp, opal_crypt_team_t **team);

/* Ends and joins the threads.  Does nothing in a forked child, which has none of them.  NULL is allowed. */
void opal_crypt_team_destroy(opal_crypt_team_t *team);

/* If no thread can be started, and in a forked child, the caller does the work before this returns. */
void opal_crypt_team_submit(opal_crypt_team_t *team, opal_crypt_job_t *job);

/* How many threads have been started so far. */
unsigned opal_crypt_team_started(opal_crypt_team_t *team);

/* Once true, all that the work wrote is visible to the caller. */
static inline bool opal_crypt_job_done(const opal_crypt_job_t *job)
{
    return __atomic_load_n(&job->done, __ATOMIC_ACQUIRE);
}

/* How many hardware threads this process may run on (its binding, a container's cpuset); at least 1. */
unsigned opal_crypt_team_processors(void);

/* Its share of them beside the other `ranks` - 1 processes of the node, if all are spread evenly over the node's `all`
 * hardware threads. */
unsigned opal_crypt_team_share(unsigned mine, unsigned all, unsigned ranks);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening by the worker team: a stage goes into a line, and to a
 * worker; the progress function takes it out at the front when it is done.
 *
 *     send    next segment --> line, worker seals --> host        (in order)
 *     receive host --> line, worker opens --> unpack, count
 *
 * Copies from and to the memory of accelerators wait in such lines, too, without a worker: those to it in any order.
 *
 * A worker sees the stage's bytes, the user's buffer and the subkey.  It calls
 * neither MPI nor the host: what follows is done by the thread that makes
 * progress.  Non-contiguous data is packed before, and unpacked after.
 */
#include "pml_crypt.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>


static inline ompi_pml_crypt_stage_t *stage_of(opal_crypt_job_t *job)
{
    return (ompi_pml_crypt_stage_t *) ((char *) job - offsetof(ompi_pml_crypt_stage_t, job));
}

static void seal(opal_crypt_job_t *job)
{
    ompi_pml_crypt_stage_t *stage = stage_of(job);

    stage->rc = opal_crypt_segment_seal(stage->op.request->chop, stage->op.segment, stage->plain,
                                        stage->bytes);
}

static void open_one(opal_crypt_job_t *job)
{
    ompi_pml_crypt_stage_t *stage = stage_of(job);

    stage->rc = opal_crypt_segment_open(stage->op.request->chop, stage->op.segment, stage->bytes,
                                        stage->wire_bytes, stage->plain);
}

static void submit(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage)
{
    stage->behind = NULL;
    ompi_common_cryptmpi_lock_acquire(&line->lock);
    if (NULL == line->first) {
        line->first = stage;
    } else {
        line->last->behind = stage;
    }
    line->last = stage;
    line->count++;
    if (NULL == stage->job.work) {
        ompi_common_cryptmpi_add(&ompi_pml_crypt.waiting.copying, 1);
    } else {
        opal_crypt_team_submit(ompi_pml_crypt.team, &stage->job);
    }
    ompi_common_cryptmpi_lock_release(&line->lock);
}

void ompi_pml_crypt_team_seal(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage)
{
    stage->job.work = seal;
    submit(line, stage);
}

void ompi_pml_crypt_team_open(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage)
{
    stage->job.work = open_one;
    submit(line, stage);
}

void ompi_pml_crypt_team_copy(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage)
{
    stage->job.work = NULL;
    submit(line, stage);
}

static inline bool finished_in_line(ompi_pml_crypt_stage_t *stage)
{
    return NULL == stage->job.work ? ompi_pml_crypt_stage_copied(stage) : opal_crypt_job_done(&stage->job);
}

/* The lock is held. */
static void take_out(ompi_pml_crypt_line_t *line, ompi_pml_crypt_stage_t *stage, ompi_pml_crypt_stage_t *before)
{
    *(NULL == before ? &line->first : &before->behind) = stage->behind;
    if (line->last == stage) {
        line->last = before;
    }
    line->count--;
    if (NULL == stage->job.work) {
        ompi_common_cryptmpi_add(&ompi_pml_crypt.waiting.copying, -1);
    }
}

/* `landing` needs no order, and a device that is busy must not hold up others.  Where several segments of a message follow
 * each other there, only the first is queried. */
ompi_pml_crypt_stage_t *ompi_pml_crypt_team_take(ompi_pml_crypt_line_t *line)
{
    ompi_pml_crypt_stage_t *stage, *before = NULL;

    if (OPAL_LIKELY(0 == line->count)) {
        return NULL;
    }
    ompi_common_cryptmpi_lock_acquire(&line->lock);
    stage = line->first;
    while (NULL != stage && ((NULL != before && before->op.request == stage->op.request) || !finished_in_line(stage))) {
        before = stage;
        stage = line == &ompi_pml_crypt.landing ? stage->behind : NULL;
    }
    if (NULL != stage) {
        take_out(line, stage, before);
    }
    ompi_common_cryptmpi_lock_release(&line->lock);
    return stage;
}

/* Forget stages that an earlier session of this process did not wait for. */
static void start_line(ompi_pml_crypt_line_t *line)
{
    line->first = line->last = NULL;
    line->count = 0;
}

/* Copies in flight, of requests that the program freed: a device still reads or writes the staging. */
static void drain_copies(ompi_pml_crypt_line_t *line)
{
    ompi_pml_crypt_stage_t *stage;

    while (NULL != (stage = line->first)) {
        while (!ompi_pml_crypt_stage_copied(stage)) {
            sched_yield();
        }
        take_out(line, stage, NULL);
        opal_crypt_wipe(stage->bytes, opal_crypt_segment_bytes(&stage->op.request->shape, stage->op.segment));
        ompi_pml_crypt_stage_return(stage);
    }
}

int ompi_pml_crypt_team_start(void)
{
    unsigned threads = ompi_pml_crypt_cut_threads();
    const char *team = NULL == ompi_pml_crypt.params.team ? "pool" : ompi_pml_crypt.params.team;
    bool openmp = 0 == strcmp(team, "openmp");

    ompi_pml_crypt.team = NULL;
    start_line(&ompi_pml_crypt.sealing);
    start_line(&ompi_pml_crypt.opening);
    start_line(&ompi_pml_crypt.fetching);
    start_line(&ompi_pml_crypt.landing);
    ompi_pml_crypt.waiting.copying = 0;
    if (!openmp && 0 != strcmp(team, "pool")) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "bad-cut", "pml_crypt_team", "it is pool or openmp");
        return OMPI_ERR_BAD_PARAM;
    }
    if (threads > 1 && OPAL_CRYPT_OK != opal_crypt_team_create(threads, openmp, &ompi_pml_crypt.team)) {
        OPAL_CRYPTPROC_SHOW("help-mpi-pml-crypt.txt", "bad-cut", "pml_crypt_team",
                       openmp ? "there is no OpenMP library (libgomp.so.1) on this node" : "out of memory");
        return OMPI_ERR_OUT_OF_RESOURCE;
    }
    return OMPI_SUCCESS;
}

void ompi_pml_crypt_team_stop(void)
{
    opal_crypt_team_destroy(ompi_pml_crypt.team);
    ompi_pml_crypt.team = NULL;
    drain_copies(&ompi_pml_crypt.fetching);
    drain_copies(&ompi_pml_crypt.landing);
}

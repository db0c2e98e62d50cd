/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt ps --slurm: the nodes of a Slurm job, as squeue lists them.  They are read like those of
 * --host, with a step of the job for each.
 */
#include <stdlib.h>
#include <string.h>

#include "mpicrypt_launch.h"
#include "ps.h"

/* 4711, or 4711_3 of an array. */
static bool is_id(const char *id)
{
    const size_t number = strspn(id, "0123456789");
    const char *rest = id + number;

    return number > 0 && ('\0' == *rest || ('_' == *rest && strspn(rest + 1, "0123456789") > 0
                                            && '\0' == rest[1 + strspn(rest + 1, "0123456789")]));
}

/* "NUMBER:NODES": a job, or one of an array.  A pending one has no nodes. */
static int read_job(char *line, const char *job, mpicrypt_ps_list_t *list, int *jobs)
{
    const char *id = strsep(&line, ":");
    mpicrypt_names_t hosts;
    char why[300];
    int rc;

    if (NULL == line || !is_id(id)) {
        return mpicrypt_error(MPICRYPT_FAILED, "what squeue writes is not understood: '%s'", mpicrypt_ps_text(id));
    }
    if ('\0' == *line) {
        return MPICRYPT_OK;
    }
    if (0 != mpicrypt_hosts_parse(line, &hosts, why, sizeof(why))) {
        return mpicrypt_error(MPICRYPT_FAILED, "the nodes of Slurm job %s: %s", id, mpicrypt_ps_text(why));
    }
    ++*jobs;
    rc = mpicrypt_ps_hosts(&hosts, &(mpicrypt_ps_way_t){.slurm = id}, job, list);
    mpicrypt_names_free(&hosts);
    return rc;
}

int mpicrypt_ps_slurm(const char *id, const char *job, mpicrypt_ps_list_t *list)
{
    mpicrypt_words_t words = {NULL, 0}, settings = {NULL, 0};
    mpicrypt_launch_t squeue;
    int rc, jobs = 0;

    if (!is_id(id)) {
        return mpicrypt_error(MPICRYPT_USAGE, "'%s' is not the number of a Slurm job", mpicrypt_ps_text(id));
    }
    mpicrypt_words_split(&words, "squeue --noheader");
    mpicrypt_words_add(&words, "--format=%%A:%%N");
    mpicrypt_words_add(&words, "--jobs=%s", id);
    rc = mpicrypt_launch(&words, &settings, &squeue);
    mpicrypt_words_free(&words);
    if (MPICRYPT_OK != rc) {
        return rc;
    }
    if (0 != squeue.code) {
        squeue.err[strcspn(squeue.err, "\n")] = '\0';
        rc = mpicrypt_error(MPICRYPT_MISSING, "Slurm job %s: %s", id, 127 == squeue.code ? "squeue is not installed here"
                                                                                         : mpicrypt_ps_text(squeue.err));
    }
    for (char *rest = squeue.out, *line; MPICRYPT_OK == rc && NULL != (line = strsep(&rest, "\n"));) {
        rc = '\0' == *line ? rc : read_job(line, job, list, &jobs);
    }
    if (MPICRYPT_OK == rc && 0 == jobs) {
        rc = mpicrypt_error(MPICRYPT_MISSING, "Slurm job %s is not running", id);
    }
    mpicrypt_launch_free(&squeue);
    return rc;
}

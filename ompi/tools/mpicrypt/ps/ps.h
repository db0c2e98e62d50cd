/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the files of `mpicrypt ps` share.  A status page is the word of whoever owns its file, and
 * ps may be run by root: everything was checked by common/crypt (crypt/base/status.h) before it is
 * here, and texts go through mpicrypt_ps_text.
 */
#ifndef MPICRYPT_PS_PS_H
#define MPICRYPT_PS_PS_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "opal/mca/common/crypt/base/status.h"

typedef struct mpicrypt_ps_list {
    opal_crypt_status_seen_t *seen;
    int count, room;
    int refused;                /* pages that were, with a message */
    int unreached;              /* nodes that could not be looked at, with a message */
} mpicrypt_ps_list_t;

/* The pages of this node, and of stale ones their removal.  `job`: of jobs whose name has
 * this in it; NULL: of all. */
int mpicrypt_ps_node(const char *job, mpicrypt_ps_list_t *list);

/* Those of other nodes, by `mpicrypt ps --pages` there: how it is started. */
typedef struct mpicrypt_ps_way {
    const char *rsh;            /* a program as ssh is */
    const char *slurm;          /* the number of a job; NULL: by rsh */
} mpicrypt_ps_way_t;
int mpicrypt_ps_hosts(const mpicrypt_names_t *hosts, const mpicrypt_ps_way_t *way, const char *job, mpicrypt_ps_list_t *list);
int mpicrypt_ps_slurm(const char *id, const char *job, mpicrypt_ps_list_t *list);
void mpicrypt_ps_pages(const mpicrypt_ps_list_t *list);     /* what they read */

bool mpicrypt_ps_add(mpicrypt_ps_list_t *list, const opal_crypt_status_seen_t *seen);

/* Prints what looks wrong with a job of `ranks` processes, a line each, if it has lasted for `after` seconds: how many.  What of the job
 * was not seen, a line each; *known: in spite of that, somebody is seen to go on, or something is wrong. */
int mpicrypt_ps_judge(const opal_crypt_status_seen_t *seen, int count, uint32_t ranks, double after, FILE *out, FILE *not_seen,
                      bool *known);

void mpicrypt_ps_show(const opal_crypt_status_seen_t *seen, FILE *out);
void mpicrypt_ps_json(const opal_crypt_status_seen_t *seen, FILE *out);

/* ---- words of one process ---- */

/* A text of a page as it may be printed; good for the next few calls. */
const char *mpicrypt_ps_text(const char *text);
double mpicrypt_ps_age(const opal_crypt_status_seen_t *seen, int64_t since);           /* seconds, not below 0 */
/* "in a receive from rank 0, tag 6" */
void mpicrypt_ps_say_wait(const opal_crypt_status_wait_t *w, FILE *out);
bool mpicrypt_ps_stopped(const opal_crypt_status_seen_t *seen);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the files of `mpicrypt ps` share.  The owner of a status page may write anything there, and
 * root may run ps: so common/crypt (crypt/base/status.h) has checked everything before it gets here,
 * and texts go through mpicrypt_ps_text.
 */
#ifndef MPICRYPT_PS_PS_H
#define MPICRYPT_PS_PS_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "opal/mca/common/crypt/base/status.h"

typedef struct mpicrypt_ps_list {
    opal_crypt_status_process_t *processes;
    int count, capacity;
    int refused;                /* pages refused, with a message */
    int unreached;              /* nodes that could not be read, with a message */
} mpicrypt_ps_list_t;

/* Read the pages of this node, and remove stale ones.  `job`: only of jobs whose name contains
 * this; NULL: of all. */
int mpicrypt_ps_node(const char *job, mpicrypt_ps_list_t *list);

/* Those of other nodes, by `mpicrypt ps --pages` there: how it is started. */
typedef struct mpicrypt_ps_way {
    const char *rsh;            /* a program like ssh */
    const char *slurm;          /* the number of a job; NULL: by rsh */
} mpicrypt_ps_way_t;
int mpicrypt_ps_hosts(const mpicrypt_names_t *hosts, const mpicrypt_ps_way_t *way, const char *job, mpicrypt_ps_list_t *list);
int mpicrypt_ps_slurm(const char *id, const char *job, mpicrypt_ps_list_t *list);
void mpicrypt_ps_pages(const mpicrypt_ps_list_t *list);     /* the lines that these two read */

void mpicrypt_ps_add(mpicrypt_ps_list_t *list, const opal_crypt_status_process_t *process);

/* Prints what looks wrong with a job of `ranks` processes, if it has lasted for `after` seconds, a line for each;
 * returns how many.  Prints what could not be seen to `not_seen`; *known: in spite of that, a process makes
 * progress, or something is wrong. */
int mpicrypt_ps_judge(const opal_crypt_status_process_t *processes, int count, uint32_t ranks, double after, FILE *out,
                      FILE *not_seen, bool *known);

void mpicrypt_ps_show(const opal_crypt_status_process_t *s, FILE *out);
void mpicrypt_ps_json(const opal_crypt_status_process_t *s, FILE *out);

/* ---- texts about one process ---- */

/* A page's text, safe to print; valid for the next few calls. */
const char *mpicrypt_ps_text(const char *text);
double mpicrypt_ps_age(const opal_crypt_status_process_t *process, int64_t since);   /* seconds, not below 0 */
/* "in a receive from rank 0, tag 6" */
void mpicrypt_ps_say_wait(const opal_crypt_status_wait_t *w, FILE *out);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The half of `mpicrypt doctor` that runs on the nodes.  Verb `check` looks at
 * one node, without MPI, since MPI may be what is broken; verb `meet` is an MPI
 * job, plain, in which the nodes authenticate each other, and verb `path` (rank/path.h)
 * another one.  A report:
 *
 *     @mpicrypt report HOST
 *     @mpicrypt finding HOST\tSTATE\tCHECK\tREMEDY\tDETAIL    ...
 *     @mpicrypt end HOST FINDINGS
 *
 * STATE is ok, note, warn or fail.  REMEDY is a sentence, "help-FILE.txt:TOPIC",
 * whose text contains the DETAIL, or empty.  A line's end within a field is
 * written as \036.
 */
#ifndef MPICRYPT_DOCTOR_CHECK_H
#define MPICRYPT_DOCTOR_CHECK_H

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

/* A report is one write that a pipe takes atomically: launchers mix the output
 * of nodes, but not within that.  What does not fit goes into another report. */
#define MPICRYPT_REPORT_BYTES 3900
#define MPICRYPT_REPORTS_MAX 8

typedef struct mpicrypt_report {
    char text[MPICRYPT_REPORTS_MAX * MPICRYPT_REPORT_BYTES];
    size_t start, used;             /* of the last report; of all */
    int findings;                   /* of the last one; those that did not fit are counted, too */
    char host[64];
} mpicrypt_report_t;

typedef enum { MPICRYPT_FOUND_OK, MPICRYPT_FOUND_NOTE, MPICRYPT_FOUND_WARN, MPICRYPT_FOUND_FAIL } mpicrypt_found_t;

#define MPICRYPT_CORE_HELP "help-opal-common-crypt.txt"

void mpicrypt_report_begin(mpicrypt_report_t *report);
void mpicrypt_report_add(mpicrypt_report_t *report, mpicrypt_found_t state, const char *check, const char *remedy,
                         const char *format, ...) __attribute__((format(printf, 5, 6)));
void mpicrypt_report_why(mpicrypt_report_t *report, mpicrypt_found_t state, const char *check, const char *help_file,
                         const char *topic, const char *detail);
void mpicrypt_report_end(mpicrypt_report_t *report);

/* Open MPI's utility layer, and the parameters as a job on this node would have them. */
int mpicrypt_check_open(void);
void mpicrypt_check_close(void);

/* ---- the checks, one function for each file ---- */

void mpicrypt_check_installation(mpicrypt_report_t *report);    /* doctor/check_installed.c */
void mpicrypt_check_names(mpicrypt_report_t *report);           /* doctor/check_names.c */
void mpicrypt_check_ways_around(mpicrypt_report_t *report);     /* doctor/check_around.c */
void mpicrypt_check_keystore(mpicrypt_report_t *report);        /* doctor/check_keystore.c */
void mpicrypt_check_system(mpicrypt_report_t *report);          /* doctor/check_system.c */
void mpicrypt_check_directory(mpicrypt_report_t *report, const char *path);

/* doctor/check_keys.c: cipher and provider, then keys and certificates.
 * The local object that a job would have, or NULL after findings. */
opal_crypt_local_t *mpicrypt_check_keys(mpicrypt_report_t *report, uint32_t rank);

/* The name under which doctors make their records. */
#define MPICRYPT_CHECK_NAMESPACE "mpicrypt-doctor"

/* Verbs: an exit code. */
int mpicrypt_mpi_check_verb(const mpicrypt_names_t *directories);
int mpicrypt_mpi_meet_verb(void);                               /* rank/meet.c */

/* All ranks call it, and rank 0 writes all reports, so that they are not mixed: rank/meet.c */
void mpicrypt_mpi_print_reports(const mpicrypt_report_t *mine);

#endif

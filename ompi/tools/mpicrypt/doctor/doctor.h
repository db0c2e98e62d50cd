/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt doctor`: findings of all nodes, and how they are
 * shown.  The form in which nodes report them is in doctor/check.h.
 */
#ifndef MPICRYPT_DOCTOR_DOCTOR_H
#define MPICRYPT_DOCTOR_DOCTOR_H

#include "ompi/tools/mpicrypt/mpicrypt.h"

/* The same report from several nodes is one finding. */
typedef struct mpicrypt_finding {
    char *state, *check, *remedy, *detail;
    mpicrypt_names_t nodes;
} mpicrypt_finding_t;

typedef struct mpicrypt_findings {
    mpicrypt_finding_t *value;
    int count;
    mpicrypt_names_t nodes;         /* that reported */
} mpicrypt_findings_t;

/* Strings are copied.  Out of memory ends the program. */
void mpicrypt_findings_node(mpicrypt_findings_t *findings, const char *node);
void mpicrypt_findings_add(mpicrypt_findings_t *findings, const char *node, const char *state, const char *check,
                           const char *remedy, const char *detail);
void mpicrypt_findings_free(mpicrypt_findings_t *findings);

int mpicrypt_findings_count(const mpicrypt_findings_t *findings, const char *state);

/* Forbid jobs, in this file of parameters, to write encrypted files in this directory from several nodes.  MPICRYPT_FAILED after a
 * message.  doctor/forbid.c */
int mpicrypt_forbid(const char *name, const char *directory);

void mpicrypt_findings_print(const mpicrypt_findings_t *findings, bool all);
void mpicrypt_findings_json(const mpicrypt_findings_t *findings);

#endif

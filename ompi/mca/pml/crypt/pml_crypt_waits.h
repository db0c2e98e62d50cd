/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process waits for, as the status page tells it: calls that block, and the oldest requests, whoever made them,
 * pml/crypt or ob1.  Each is named (communicator, rank, collective), and of a receive the host is asked what has
 * arrived instead.
 *
 * Other threads go on meanwhile.  Of a request only numbers are taken, and its communicator is
 * followed only while none can go.  A number may have changed since: it is checked before it
 * is used for more than to be shown.
 */
#ifndef MCA_PML_CRYPT_WAITS_H
#define MCA_PML_CRYPT_WAITS_H

#include "pml_crypt.h"

enum { OMPI_PML_CRYPT_OLDEST = 4 };     /* receives, sends, and calls that block, that are named */

typedef struct ompi_pml_crypt_named {
    opal_crypt_status_wait_t wait;
    const void *at;                     /* of a request: its communicator, or our entry of it; may be gone */
    ompi_common_cryptmpi_comm_t *c;     /* what follows is there while no communicator can go */
    const ompi_communicator_t *comm;
    ompi_communicator_t *retained;      /* that of a call that blocks, which another thread may leave */
} ompi_pml_crypt_named_t;

typedef struct ompi_pml_crypt_waits {
    opal_crypt_status_moment_t *moment;
    int64_t now;
    ompi_pml_crypt_named_t receives[OMPI_PML_CRYPT_OLDEST], sends[OMPI_PML_CRYPT_OLDEST], inside[OMPI_PML_CRYPT_OLDEST];
    unsigned receive_count, send_count, inside_count;
    int meeting;                        /* the process of a first contact, or ANY */
    /* Messages that a probe has taken from the host; NULL: there are none, as the host is ob1 itself. */
    void (*held)(struct ompi_pml_crypt_waits *waits, ompi_pml_crypt_named_t *named);
} ompi_pml_crypt_waits_t;

void ompi_pml_crypt_waits_begin(ompi_pml_crypt_waits_t *waits, opal_crypt_status_moment_t *moment, int64_t now);
/* Where a request is named that has been pending since then; NULL: others are older. */
ompi_pml_crypt_named_t *ompi_pml_crypt_waits_place(ompi_pml_crypt_waits_t *waits, bool sends, int64_t since);
/* Into the moment: the calls that block, then the requests. */
void ompi_pml_crypt_waits_tell_inside(ompi_pml_crypt_waits_t *waits);
void ompi_pml_crypt_waits_tell_requests(ompi_pml_crypt_waits_t *waits);

/* ---- pml_crypt_look_ob1.c ---- */

/* Its lists of requests are there. */
void ompi_pml_crypt_look_ob1_start(void);
/* False: not now, somebody makes more of them.  `moved` changes with each that begins or ends. */
bool ompi_pml_crypt_look_ob1(ompi_pml_crypt_waits_t *waits, uint64_t *moved);

#endif

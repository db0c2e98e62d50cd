/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What this process waits for, for the status page: calls that block, and the oldest requests of pml/crypt or ob1.
 * Each is named (communicator, rank, collective), and for a receive the host is asked what has arrived instead.
 *
 * Other threads go on meanwhile.  Only numbers are copied from a request, and its communicator is
 * dereferenced only while none can be freed.  A number may have changed since: it is checked
 * before it is used for anything but display.
 */
#ifndef MCA_PML_CRYPT_WAITS_H
#define MCA_PML_CRYPT_WAITS_H

#include "pml_crypt.h"

enum { OMPI_PML_CRYPT_OLDEST = 4 };     /* named receives, named sends, and named calls that block */

typedef struct ompi_pml_crypt_named {
    opal_crypt_status_wait_t wait;
    const void *at;                     /* a request's communicator, or our entry for it; may have been freed */
    ompi_common_cryptmpi_comm_t *c;     /* this and comm: valid while no communicator can be freed */
    const ompi_communicator_t *comm;
    ompi_communicator_t *retained;      /* that of a blocking call, which another thread may leave */
} ompi_pml_crypt_named_t;

typedef struct ompi_pml_crypt_waits {
    opal_crypt_status_snapshot_t *snapshot;
    int64_t now;
    ompi_pml_crypt_named_t receives[OMPI_PML_CRYPT_OLDEST], sends[OMPI_PML_CRYPT_OLDEST], inside[OMPI_PML_CRYPT_OLDEST];
    unsigned receive_count, send_count, inside_count;
    int meeting;                        /* the process of a first contact, or ANY */
    /* Adds messages that a probe has taken from the host; NULL where the PML is ob1 itself, and takes none. */
    void (*held)(struct ompi_pml_crypt_waits *waits, ompi_pml_crypt_named_t *named);
} ompi_pml_crypt_waits_t;

void ompi_pml_crypt_waits_begin(ompi_pml_crypt_waits_t *waits, opal_crypt_status_snapshot_t *snapshot, int64_t now);
/* The slot for naming a request that has been pending since then; NULL: others are older. */
ompi_pml_crypt_named_t *ompi_pml_crypt_waits_place(ompi_pml_crypt_waits_t *waits, bool sends, int64_t since);
/* Into the snapshot: the calls that block, then the requests. */
void ompi_pml_crypt_waits_add_inside(ompi_pml_crypt_waits_t *waits);
void ompi_pml_crypt_waits_add_requests(ompi_pml_crypt_waits_t *waits);

/* ---- pml_crypt_snapshot_ob1.c ---- */

/* Call it when ob1's lists of requests exist. */
void ompi_pml_crypt_snapshot_ob1_start(void);
/* False: busy, another thread is making requests.  `moved` changes with each that begins or ends. */
bool ompi_pml_crypt_snapshot_ob1(ompi_pml_crypt_waits_t *waits, uint64_t *moved);

#endif

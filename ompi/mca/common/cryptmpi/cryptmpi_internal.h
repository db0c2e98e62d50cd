/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Shared by the files of common/cryptmpi only.
 */
#ifndef OMPI_COMMON_CRYPTMPI_INTERNAL_H
#define OMPI_COMMON_CRYPTMPI_INTERNAL_H

#include "cryptmpi.h"

void ompi_common_cryptmpi_peers_start(void);
void ompi_common_cryptmpi_peers_stop(void);

/* Reused context ids (cryptmpi_generation.c): count a new communicator, once; and the number of
 * communicators with its id that we have shared with a member of its remote group. */
int ompi_common_cryptmpi_generation_count(const ompi_common_cryptmpi_comm_t *c);
uint32_t ompi_common_cryptmpi_generation(const ompi_common_cryptmpi_comm_t *c, opal_process_name_t name);
void ompi_common_cryptmpi_generations_stop(void);

/* From start to stop, watch what Open MPI itself waits for, and show what cryptproc waits for. */
void ompi_common_cryptmpi_waits_start(void);
void ompi_common_cryptmpi_waits_stop(void);

/* A peer cannot be authenticated, for the reason in that help topic: end the job or,
 * under crypt_on_auth_failure=error, return an error of our own class. */
int ompi_common_cryptmpi_peer_refused(const char *file, const char *topic, const char *detail) OPAL_CRYPT_RARE;

/* Initialize the lock of a communicator, or of a peer for sending.  They are held across calls of the host, which may
 * make progress (a probe, mtl/ofi of 5.0 in a send) and so take the lock again (ompi_pml_crypt_host_lock). */
void ompi_common_cryptmpi_lock_make(ompi_common_cryptmpi_lock_t *lock);

#endif

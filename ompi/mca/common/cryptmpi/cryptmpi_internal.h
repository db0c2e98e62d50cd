/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between the files of common/cryptmpi only.
 */
#ifndef OMPI_COMMON_CRYPTMPI_INTERNAL_H
#define OMPI_COMMON_CRYPTMPI_INTERNAL_H

#include "cryptmpi.h"

void ompi_common_cryptmpi_peers_start(void);
void ompi_common_cryptmpi_peers_stop(void);

/* Context ids that come back (cryptmpi_generation.c): a new communicator, once; and how
 * many with its id we have been in together with a member of its remote group. */
int ompi_common_cryptmpi_generation_count(const ompi_common_cryptmpi_comm_t *c);
uint32_t ompi_common_cryptmpi_generation(const ompi_common_cryptmpi_comm_t *c, opal_process_name_t name);
void ompi_common_cryptmpi_generations_stop(void);

/* Watch over what Open MPI waits for by itself, and show what cryptproc waits for, from start
 * to stop. */
void ompi_common_cryptmpi_waits_start(void);
void ompi_common_cryptmpi_waits_stop(void);

/* A peer that cannot be authenticated, for the reason of that entry: the end of the job,
 * or, under crypt_on_auth_failure=error, an error of our own class. */
int ompi_common_cryptmpi_peer_refused(const char *file, const char *topic, const char *detail) OPAL_CRYPT_RARE;

/* Of a communicator, or of a peer that is sent to, which are held across calls of the host: these may make progress
 * (a probe, mtl/ofi of 5.0 in a send), and that may come back to it (ompi_pml_crypt_host_lock). */
void ompi_common_cryptmpi_lock_make(ompi_common_cryptmpi_lock_t *lock);

#endif

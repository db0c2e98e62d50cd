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
void ompi_common_cryptmpi_comms_stop(void);

/* Context ids that come back (cryptmpi_generation.c): a new communicator, once; and how
 * many with its id we have been in together with a member of its remote group. */
int ompi_common_cryptmpi_generation_count(const ompi_common_cryptmpi_comm_t *c);
uint32_t ompi_common_cryptmpi_generation(const ompi_common_cryptmpi_comm_t *c, opal_process_name_t name);
void ompi_common_cryptmpi_generations_stop(void);

/* Our key pair and record; NULL before start and after stop. */
opal_crypt_local_t *ompi_common_cryptmpi_local(void);

/* The provider of encryption (cryptmpi_provider.c): chosen in start, or when the
 * first session or group key is made, which calls needed.  Says itself what went
 * wrong, once; nothing can be sealed then. */
int ompi_common_cryptmpi_provider_start(void);
int ompi_common_cryptmpi_provider_needed(void);
void ompi_common_cryptmpi_provider_stop(void);

/* Fetch the record of `proc`, which came to be needed at `met` (0: when we
 * started), check that it speaks for this process, agree on keys.  Shows what
 * it refuses, and ends the job unless errors were asked for. */
int ompi_common_cryptmpi_modex_session(ompi_proc_t *proc, int64_t met, opal_crypt_session_t **session);

/* What `name` has published under `key`, or NULL; the caller's to free.  Says so when it waits for
 * long (cryptmpi_wait.c).  `how`: see compat.  *nobody, which may be NULL: it is known that `name`
 * has published nothing; otherwise NULL may mean that no answer came. */
uint8_t *ompi_common_cryptmpi_get(const opal_process_name_t *name, const char *key, ompi_common_cryptmpi_how_t how, const char *awaited,
                                  size_t *bytes, bool *nobody);

/* Watch over what Open MPI waits for by itself, from start to stop. */
void ompi_common_cryptmpi_waits_start(void);
void ompi_common_cryptmpi_waits_stop(void);

/* How a job is named to its user: by PMIx, or by Open MPI's number. */
void ompi_common_cryptmpi_job_name(const opal_process_name_t *name, char text[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES]);

/* Have our record vouched for again, if that is needed `now`, and publish it. */
int ompi_common_cryptmpi_modex_renew(int64_t now);

/* A peer that cannot be authenticated, for the reason of that entry: the end of the job,
 * or, under crypt_on_auth_failure=error, our error class. */
int ompi_common_cryptmpi_peer_refused(const char *file, const char *topic, const char *detail) OPAL_CRYPT_RARE;

/* Was crypt_report set?  After report_start. */
bool ompi_common_cryptmpi_report_wanted(void);

/* MPI_T variables, category crypt (cryptmpi_metrics.c). */
int ompi_common_cryptmpi_metrics_register(void);

#endif

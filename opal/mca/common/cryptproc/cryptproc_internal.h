/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between the files of common/cryptproc only.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H
#define OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H

#include "cryptproc.h"

/* The provider of a build that encrypts NOTHING (cryptproc_plaintext.c); NULL in all others. */
const opal_aead_module_t *opal_cryptproc_plaintext(void);

/* The modex keys of a process: for the number of its MPI session, for a session's record, for its renewals. */
void opal_cryptproc_key_of_instance(mca_base_component_t *key);
void opal_cryptproc_key_of_record(uint32_t instance, mca_base_component_t *key);
void opal_cryptproc_key_of_renewal(uint32_t instance, uint32_t number, mca_base_component_t *key);

/* A query: make, ask, forget, which accepts NULL and unanswered queries.  It owns the key, which is on the heap. */
opal_cryptproc_question_t *opal_cryptproc_question_make(char *key);
void opal_cryptproc_question_forget(opal_cryptproc_question_t *question);
/* Wait for the answer, and report a long wait. */
void opal_cryptproc_await(opal_cryptproc_question_t *question, const opal_process_name_t *name, const char *awaited);

int opal_cryptproc_provider_start(void);
void opal_cryptproc_provider_stop(void);

int opal_cryptproc_events_register(void);

#endif

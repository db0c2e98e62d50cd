/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between the files of common/cryptproc only.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H
#define OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H

#include "cryptproc.h"

/* The provider of a build that encrypts NOTHING (cryptproc_plaintext.c); NULL in every other. */
const opal_aead_module_t *opal_cryptproc_plaintext(void);

/* Under which keys a process publishes: the number of its life of MPI, the record of a life, its renewals. */
void opal_cryptproc_key_of_life(mca_base_component_t *key);
void opal_cryptproc_key_of_record(uint32_t of_life, mca_base_component_t *key);
void opal_cryptproc_key_of_renewal(uint32_t of_life, uint32_t number, mca_base_component_t *key);

/* A question: make, ask, forget, which allows NULL, and a question whose answer has not come.  The key, on the heap, is its own. */
opal_cryptproc_question_t *opal_cryptproc_question_make(char *key);
void opal_cryptproc_question_forget(opal_cryptproc_question_t *question);
/* Wait for the answer, and say so if that is long. */
void opal_cryptproc_await(opal_cryptproc_question_t *question, const opal_process_name_t *name, const char *awaited);

int opal_cryptproc_provider_start(void);
void opal_cryptproc_provider_stop(void);

int opal_cryptproc_events_register(void);

#endif

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

int opal_cryptproc_provider_start(void);
void opal_cryptproc_provider_stop(void);

int opal_cryptproc_events_register(void);

#endif

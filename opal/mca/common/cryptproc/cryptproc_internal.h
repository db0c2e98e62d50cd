/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between the files of common/cryptproc only.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H
#define OPAL_MCA_COMMON_CRYPTPROC_INTERNAL_H

#include "cryptproc.h"

int opal_cryptproc_provider_start(void);
void opal_cryptproc_provider_stop(void);

#endif

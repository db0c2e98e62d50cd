/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider `sodium`: libsodium, which has AES-GCM for 256-bit keys only,
 * and only on CPUs with AES instructions.
 */
#ifndef OPAL_AEAD_SODIUM_H
#define OPAL_AEAD_SODIUM_H

#include "opal/mca/aead/aead_module.h"

extern opal_aead_module_t opal_aead_sodium_module;

int opal_aead_sodium_init(void);
void opal_aead_sodium_fini(void);       /* all contexts must be freed */
int opal_aead_sodium_priority(opal_aead_cipher_t cipher);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider `cryptopp`: Crypto++.
 *
 *     aead_cryptopp_cipher.cc    seal and open with Crypto++'s objects
 *     aead_cryptopp_module.c     keys, and the objects that a context keeps
 *     aead_cryptopp_component.c  what Open MPI's loader sees
 */
#ifndef OPAL_AEAD_CRYPTOPP_H
#define OPAL_AEAD_CRYPTOPP_H

#include "opal/mca/aead/aead_module.h"

extern opal_aead_module_t opal_aead_cryptopp_module;

int opal_aead_cryptopp_init(void);
void opal_aead_cryptopp_fini(void);     /* all contexts must be freed */
int opal_aead_cryptopp_priority(opal_aead_cipher_t cipher);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider that stands on OpenSSL's libcrypto.
 */
#ifndef OPAL_AEAD_OPENSSL_H
#define OPAL_AEAD_OPENSSL_H

#include "opal/mca/aead/aead_module.h"

extern const opal_aead_module_t opal_aead_openssl_module;

#endif

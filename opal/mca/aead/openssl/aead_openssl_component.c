/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the component loader looks up in mca_aead_openssl.so.
 */
#include "opal/mca/aead/base/aead_base_component.h"
#include "opal/mca/aead/openssl/aead_openssl.h"

OPAL_AEAD_COMPONENT(openssl, .is_fips = opal_aead_openssl_is_fips);

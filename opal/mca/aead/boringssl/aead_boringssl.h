/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider `boringssl`: BoringSSL's EVP_AEAD.
 *
 *     aead_boringssl_library.c    the library, apart from any OpenSSL
 *     aead_boringssl_module.c     seal and open
 *     aead_boringssl_component.c  what Open MPI's loader sees
 */
#ifndef OPAL_AEAD_BORINGSSL_H
#define OPAL_AEAD_BORINGSSL_H

#include "opal/mca/aead/aead_module.h"

extern opal_aead_module_t opal_aead_boringssl_module;

/* OPAL_AEAD_ERROR if the library is absent, and in programs with a sanitizer, whose run time does not allow it to be
 * loaded in isolation. */
int opal_aead_boringssl_init(void);
void opal_aead_boringssl_fini(void);    /* all contexts must be freed */
int opal_aead_boringssl_priority(opal_aead_cipher_t cipher);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The provider `ipsecmb`: Intel's Multi-Buffer Crypto for IPsec library, with its direct calls (no job queue).
 */
#ifndef OPAL_AEAD_IPSECMB_H
#define OPAL_AEAD_IPSECMB_H

#include "opal/mca/aead/aead_module.h"

extern opal_aead_module_t opal_aead_ipsecmb_module;

int opal_aead_ipsecmb_init(void);
void opal_aead_ipsecmb_fini(void);      /* all contexts must be freed */
int opal_aead_ipsecmb_priority(opal_aead_cipher_t cipher);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The aead framework: one component for each provider of authenticated encryption.
 * Each is a DSO of its own, so that a site can install only the libraries it trusts, and the symbols of two libraries
 * never clash.
 */
#ifndef OPAL_AEAD_H
#define OPAL_AEAD_H

#include "opal_config.h"
#include "opal/mca/mca.h"
#include "opal/mca/base/base.h"
#include "opal/mca/aead/aead_module.h"

#define OPAL_AEAD_BASE_VERSION_1_0_0 OPAL_MCA_BASE_VERSION_2_1_0("aead", 1, 0, 0)

/* What the loader looks up in mca_aead_NAME.so: mca_aead_NAME_component. */
typedef struct opal_aead_component {
    mca_base_component_t base_version;
    mca_base_component_data_t base_data;

    /* The Open MPI series this component was built for; base/ refuses others. */
    int built_major, built_minor;

    /* Rank of this provider for a cipher on this CPU, from CPUID and the library's version, never by timing: --mca
     * aead auto tries higher ones first; < 0: not usable here.  Asked only for ciphers of the module. */
    int (*priority)(opal_aead_cipher_t cipher);

    /* Set if the library runs a FIPS 140 validated module (crypt_fips=1). */
    int (*is_fips)(void);

    const opal_aead_module_t *module;
} opal_aead_component_t;

#endif

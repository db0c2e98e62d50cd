/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the component loader looks up in mca_aead_openssl.so.
 */
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/runtime/opal.h"

#include "opal/mca/aead/base/base.h"
#include "opal/mca/aead/openssl/aead_openssl.h"

OPAL_DECLSPEC extern opal_aead_component_t mca_aead_openssl_component;

/* Returning anything but OPAL_SUCCESS drops the component. */
static int openssl_register(void)
{
    return OPAL_AEAD_SERIES_OK("aead/openssl") ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;
}

/* A library that cannot be used leaves a module without ciphers, so that
 * selection can say so. */
static int openssl_open(void)
{
    (void) opal_aead_openssl_init();
    return OPAL_SUCCESS;
}

static int openssl_close(void)
{
    opal_aead_openssl_fini();
    return OPAL_SUCCESS;
}

opal_aead_component_t mca_aead_openssl_component = {
    .base_version = {
        OPAL_AEAD_BASE_VERSION_1_0_0,
        .mca_component_name = "openssl",
        MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
        .mca_register_component_params = openssl_register,
        .mca_open_component = openssl_open,
        .mca_close_component = openssl_close,
    },
    .base_data = { MCA_BASE_METADATA_PARAM_NONE },
    .built_major = OPAL_MAJOR_VERSION,
    .built_minor = OPAL_MINOR_VERSION,
    .priority = opal_aead_openssl_priority,
    .is_fips = opal_aead_openssl_is_fips,
    .module = &opal_aead_openssl_module,
};

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the component loader looks up in mca_aead_NAME.so: the same for every provider.
 */
#ifndef OPAL_AEAD_BASE_COMPONENT_H
#define OPAL_AEAD_BASE_COMPONENT_H

#include "opal_config.h"

#include "opal/constants.h"
#include "opal/runtime/opal.h"

#include "opal/mca/aead/base/base.h"

/* Defines the component from opal_aead_NAME_module and opal_aead_NAME_init, _fini and _priority; further members follow
 * the name.  A library that cannot be used leaves a module without ciphers, so that selection can say so.  Where register
 * returns anything but OPAL_SUCCESS, the component is dropped. */
#define OPAL_AEAD_COMPONENT(NAME, ...)                                                          \
    OPAL_AEAD_PROVIDER(NAME);                                                                   \
                                                                                                \
    static int NAME##_register(void)                                                            \
    {                                                                                           \
        return OPAL_AEAD_SERIES_OK("aead/" #NAME) ? OPAL_SUCCESS : OPAL_ERR_NOT_SUPPORTED;      \
    }                                                                                           \
                                                                                                \
    static int NAME##_open(void)                                                                \
    {                                                                                           \
        (void) opal_aead_##NAME##_init();                                                       \
        return OPAL_SUCCESS;                                                                    \
    }                                                                                           \
                                                                                                \
    static int NAME##_close(void)                                                               \
    {                                                                                           \
        opal_aead_##NAME##_fini();                                                              \
        return OPAL_SUCCESS;                                                                    \
    }                                                                                           \
                                                                                                \
    OPAL_DECLSPEC extern opal_aead_component_t mca_aead_##NAME##_component;                     \
    opal_aead_component_t mca_aead_##NAME##_component = {                                       \
        .base_version = {                                                                       \
            OPAL_AEAD_BASE_VERSION_1_0_0,                                                       \
            .mca_component_name = #NAME,                                                        \
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),                                          \
            .mca_register_component_params = NAME##_register,                                   \
            .mca_open_component = NAME##_open,                                                  \
            .mca_close_component = NAME##_close,                                                \
        },                                                                                      \
        .base_data = { MCA_BASE_METADATA_PARAM_NONE },                                          \
        .built_major = OPAL_MAJOR_VERSION,                                                      \
        .built_minor = OPAL_MINOR_VERSION,                                                      \
        .priority = opal_aead_##NAME##_priority,                                                \
        .module = &opal_aead_##NAME##_module,                                                   \
        __VA_ARGS__                                                                             \
    }

#endif

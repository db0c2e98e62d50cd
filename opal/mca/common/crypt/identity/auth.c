/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The table of authentication methods, and the order in which auto tries them.
 */
#include "auth.h"
#include "opal/mca/common/crypt/base/secret_file.h"

/* In the order of auto.  `none` is used only on request. */
static const opal_crypt_auth_method_t *const methods[] = {
    &opal_crypt_auth_x509,
    &opal_crypt_auth_psk,
    &opal_crypt_auth_munge,
    &opal_crypt_auth_none,
};

#define METHODS (sizeof(methods) / sizeof(methods[0]))

int opal_crypt_auth_select(const opal_crypt_options_t *options,
                           const opal_crypt_auth_method_t **method,
                           opal_crypt_why_t *why)
{
    for (size_t i = 0; i < METHODS; ++i) {
        bool fits = OPAL_CRYPT_AUTH_AUTO == options->auth ? methods[i]->configured(options)
                                                          : options->auth == methods[i]->auth;

        if (fits) {
            *method = methods[i];
            return OPAL_CRYPT_OK;
        }
    }
    char path[4096] = "(the home directory is not known: set HOME, or crypt_psk_file)";

    if (NULL == options->psk_file) {
        (void) opal_crypt_home_path("psk", path, sizeof(path), NULL);
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "no-method", "%.700s",
                             NULL != options->psk_file ? options->psk_file : path);
}

const char *opal_crypt_auth_name(opal_crypt_auth_t auth)
{
    if (OPAL_CRYPT_AUTH_AUTO == auth) {
        return "auto";
    }
    for (size_t i = 0; i < METHODS; ++i) {
        if (methods[i]->auth == auth) {
            return methods[i]->name;
        }
    }
    return "unknown";
}

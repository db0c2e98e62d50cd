/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parameters of jobs from the environment.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/mpicrypt_file/settings.h"

static const char *setting_of(const char *given, const char *variable)
{
    const char *value = getenv(variable);

    return NULL != given ? given : NULL == value || '\0' == *value ? NULL : value;
}

/* True by Open MPI's rules. */
static bool setting_is_on(const char *value)
{
    return NULL != value && (0 != atoi(value) || 0 == strcasecmp(value, "true") || 0 == strcasecmp(value, "t")
                             || 0 == strcasecmp(value, "enabled") || 0 == strcasecmp(value, "yes"));
}

mpicrypt_settings_t mpicrypt_settings(const mpicrypt_settings_t *given)
{
    return (mpicrypt_settings_t){
        .backend = setting_of(given->backend, "OMPI_MCA_crypt_keystore"),
        .directory = setting_of(given->directory, "OMPI_MCA_crypt_keystore_dir"),
        .group = setting_of(given->group, "OMPI_MCA_crypt_keystore_group"),
        .log_file = setting_of(given->log_file, "OMPI_MCA_crypt_keystore_log"),
        .machine_key_file = setting_of(given->machine_key_file, "OMPI_MCA_crypt_keystore_machine_key"),
        .pkcs11_module = setting_of(given->pkcs11_module, "OMPI_MCA_crypt_pkcs11_module"),
        .pkcs11_token = setting_of(given->pkcs11_token, "OMPI_MCA_crypt_pkcs11_token"),
        .pkcs11_pin_file = setting_of(given->pkcs11_pin_file, "OMPI_MCA_crypt_pkcs11_pin_file"),
        .netfs = given->netfs || setting_is_on(getenv("OMPI_MCA_crypt_secret_on_netfs")),
        .fips = given->fips || setting_is_on(getenv("OMPI_MCA_crypt_fips")),
    };
}

bool mpicrypt_settings_keystore(const mpicrypt_settings_t *settings, opal_cryptfile_keystore_options_t *options)
{
    static const char *const backends[] = {"file", "pkcs11", "vault"};      /* as the enumeration has them, from 1 */
    unsigned backend = 0;

    while (backend < 3 && 0 != strcmp(NULL == settings->backend ? "file" : settings->backend, backends[backend])) {
        ++backend;
    }

    *options = (opal_cryptfile_keystore_options_t){
        .backend = (opal_cryptfile_keystore_backend_t) (backend + 1),
        .directory = settings->directory,
        .group = settings->group,
        .log_file = settings->log_file,
        .machine_key_file = settings->machine_key_file,
        .secret_on_netfs = settings->netfs,
        .pkcs11_module = settings->pkcs11_module,
        .pkcs11_token = settings->pkcs11_token,
        .pkcs11_pin_file = settings->pkcs11_pin_file,
    };
    return backend < 3;
}

unsigned mpicrypt_settings_lock_timeout(void)
{
    const char *value = setting_of(NULL, "OMPI_MCA_fs_crypt_lock_timeout");
    const unsigned long long asked = NULL == value ? 0 : strtoull(value, NULL, 0), seconds = 0 == asked ? 10 : asked;

    return seconds < UINT32_MAX / 1000 ? (unsigned) seconds : UINT32_MAX / 1000;
}

bool mpicrypt_settings_complain(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                                char *sentence, size_t bytes)
{
    if (OPAL_CRYPT_PARAMETER_UNKNOWN == kind) {
        snprintf(sentence, bytes, "OMPI_MCA_%s is set, and there is no such parameter%s%s%s", name,
                 NULL == nearest ? "" : "; did you mean ", NULL == nearest ? "" : nearest, NULL == nearest ? "" : "?");
    } else if (OPAL_CRYPT_PARAMETER_UNREADABLE == kind) {
        snprintf(sentence, bytes, "OMPI_MCA_%s=%s cannot be read%s%s", name, value, NULL == nearest ? "" : "; it is one of: ",
                 NULL == nearest ? "" : nearest);
    } else {
        return false;
    }
    return true;
}

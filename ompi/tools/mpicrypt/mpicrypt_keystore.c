/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Opening the keystore that the options name.
 */
#include "mpicrypt_keystore.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "opal/mca/common/crypt/crypt_secret_file.h"

int mpicrypt_refused(const char *what, int rc, const opal_common_crypt_why_t *why)
{
    return mpicrypt_error(MPICRYPT_FAILED, "%s: %s%s%s", what, NULL == why->topic ? opal_common_crypt_strerror(rc) : why->topic,
                          NULL == why->topic ? "" : ": ", NULL == why->topic ? "" : why->detail);
}

int mpicrypt_keystore_open(const mpicrypt_keystore_t *options, opal_common_crypt_keystore_t **keystore)
{
    opal_common_crypt_keystore_options_t of = {
        .backend = OPAL_CRYPT_KEYSTORE_FILE,
        .directory = options->directory,
        .log_file = options->log_file,
        .machine_key_file = options->machine_key_file,
        .secret_on_netfs = options->netfs,
        .pkcs11_module = options->pkcs11_module,
        .pkcs11_token = options->pkcs11_token,
        .pkcs11_pin_file = options->pkcs11_pin_file,
    };
    opal_common_crypt_why_t why = {.topic = NULL};

    if (0 == strcmp(options->backend, "pkcs11")) {
        of.backend = OPAL_CRYPT_KEYSTORE_PKCS11;
    } else if (0 != strcmp(options->backend, "file")) {
        return mpicrypt_error(MPICRYPT_USAGE, "--keystore is file or pkcs11, not '%s'", options->backend);
    }
    int rc = opal_common_crypt_keystore_open(&of, keystore, &why);
    return OPAL_CRYPT_OK == rc ? MPICRYPT_OK : mpicrypt_refused("the keystore cannot be used", rc, &why);
}

int mpicrypt_keystore_directory(const mpicrypt_keystore_t *options)
{
    char path[4096];
    opal_common_crypt_why_t why = {.topic = NULL};

    if (NULL != options->directory) {
        snprintf(path, sizeof(path), "%s", options->directory);
    } else {
        int rc = opal_common_crypt_home_path("keys", path, sizeof(path), &why);
        char *slash = OPAL_CRYPT_OK == rc ? strrchr(path, '/') : NULL;
        if (NULL == slash) {
            return mpicrypt_refused("the keystore's directory", rc, &why);
        }
        *slash = '\0';
        (void) mkdir(path, 0700);
        *slash = '/';
    }
    return 0 == mkdir(path, 0700) || EEXIST == errno ? MPICRYPT_OK
                                                     : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", path, strerror(errno));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The parameters of jobs as far as programs without Open MPI read them: from the environment only.
 */
#ifndef MPICRYPT_FILE_SETTINGS_H
#define MPICRYPT_FILE_SETTINGS_H

#include <stdbool.h>

#include "opal/mca/common/crypt/base/parameter.h"
#include "opal/mca/common/cryptfile/keystore/keystore.h"

/* Strings are the environment's or the caller's. */
typedef struct mpicrypt_settings {
    const char *backend, *directory, *group, *log_file, *machine_key_file, *pkcs11_module, *pkcs11_token, *pkcs11_pin_file;
    bool netfs, fips;
} mpicrypt_settings_t;

/* What is given, and the environment's for the rest.  An empty parameter counts as not set, as for jobs. */
mpicrypt_settings_t mpicrypt_settings(const mpicrypt_settings_t *given);

/* False: the backend is not a word that is known. */
bool mpicrypt_settings_keystore(const mpicrypt_settings_t *settings, opal_cryptfile_keystore_options_t *options);

/* How many seconds a reader waits for a lock: fs_crypt_lock_timeout, or 10 without it. */
unsigned mpicrypt_settings_lock_timeout(void);

/* A sentence about a parameter that opal_crypt_parameter_environment found; false: it is right. */
bool mpicrypt_settings_complain(const char *name, const char *value, opal_crypt_parameter_t kind, const char *nearest,
                                char *sentence, size_t bytes);

#endif

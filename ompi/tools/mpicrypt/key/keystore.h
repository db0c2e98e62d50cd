/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which keystore the verbs key and file mean: the options that both have, and the
 * environment's settings for jobs (OMPI_MCA_crypt_keystore_dir and so on) where an
 * option is not given.
 */
#ifndef MPICRYPT_KEY_KEYSTORE_H
#define MPICRYPT_KEY_KEYSTORE_H

#include "lib/mpicrypt_file/settings.h"
#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "opal/mca/common/cryptfile/keystore/keystore.h"

typedef mpicrypt_settings_t mpicrypt_keystore_t;

#define MPICRYPT_KEYSTORE_OPTIONS(k) \
    {"keystore", MPICRYPT_TEXT, "KIND", NULL, &(k).backend, \
     "The kind of keystore: file (the default), pkcs11 or vault (a key server). The default of this option and of those below is what the "\
     "environment sets for jobs; here OMPI_MCA_crypt_keystore."}, \
    {"keystore-dir", MPICRYPT_TEXT, "DIR", NULL, &(k).directory, \
     "The directory of the keystore. Default: OMPI_MCA_crypt_keystore_dir, else ~/.ompi-crypt/keys."}, \
    {"keystore-group", MPICRYPT_TEXT, "GROUP", NULL, &(k).group, \
     "[OWNER:]GROUP whose members share the keystore (crypt_keystore_group); new makes its directory so."}, \
    {"keystore-log", MPICRYPT_TEXT, "FILE", NULL, &(k).log_file, "The log of every use and every refusal. Default: DIR/log."}, \
    {"machine-key", MPICRYPT_TEXT, "FILE", NULL, &(k).machine_key_file, \
     "The file, on local storage, with the key (64 hexadecimal digits) that wraps the keys of a keystore on shared storage."}, \
    {"pkcs11-module", MPICRYPT_TEXT, "FILE", NULL, &(k).pkcs11_module, "The PKCS#11 library."}, \
    {"pkcs11-token", MPICRYPT_TEXT, "NAME", NULL, &(k).pkcs11_token, "The label of the token."}, \
    {"pkcs11-pin-file", MPICRYPT_TEXT, "FILE", NULL, &(k).pkcs11_pin_file, "The file with the PIN, mode 0600."}, \
    {"allow-netfs", MPICRYPT_FLAG, NULL, NULL, &(k).netfs, "Accept secret files on network file systems. Anyone who can read that traffic has the keys."}, \
    {"fips", MPICRYPT_FLAG, NULL, NULL, &(k).fips, "Use only OpenSSL's FIPS 140 provider (crypt_fips)."}

/* MPICRYPT_OK, or a message and another code.  Call it before all others that need an algorithm:
 * under crypt_fips it decides where those come from. */
int mpicrypt_keystore_open(const mpicrypt_keystore_t *options, opal_cryptfile_keystore_t **keystore);

/* The same without a keystore: settings are checked, and crypt_fips takes effect. */
int mpicrypt_keystore_begin(const mpicrypt_keystore_t *options);

/* Is it a token or a key server, which is opened once for all threads? */
bool mpicrypt_keystore_shared(const mpicrypt_keystore_t *options);

/* Was crypt_fips asked for, by the options or the environment? */
bool mpicrypt_keystore_fips(const mpicrypt_keystore_t *options);

/* Make its directory, mode 0700 or, for a group, 0750, if it is missing. */
int mpicrypt_keystore_directory(const mpicrypt_keystore_t *options);

/* Is it a directory that does not exist yet? */
bool mpicrypt_keystore_missing(const mpicrypt_keystore_t *options);

/* Warn on standard error if what was made there does not survive a reboot. */
void mpicrypt_keystore_warn(const mpicrypt_keystore_t *options);

/* One sentence for a refusal; returns MPICRYPT_FAILED. */
int mpicrypt_refused(const char *what, int rc, const opal_crypt_why_t *why);

#endif

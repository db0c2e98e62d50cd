/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parameters of encrypted files and of the keystore.  They name labels, files
 * and limits; none of them ever holds a secret.
 */
#include "cryptmpio.h"

#include <assert.h>

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_enum.h"
#include "opal/mca/base/mca_base_var_group.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

int ompi_common_cryptmpio_stream = -1;
ompi_common_cryptmpio_params_t ompi_common_cryptmpio_params = {
    .key_label = "",
    .algorithm = "aes-128-gcm",
    .block_size = 65536,
    .keystore = OPAL_CRYPTFILE_KEYSTORE_FILE,
    .nfs = OMPI_CRYPTMPIO_NFS_ALLOW,
};

static const mca_base_var_enum_value_t keystore_values[] = {
    {OPAL_CRYPTFILE_KEYSTORE_FILE, "file"}, {OPAL_CRYPTFILE_KEYSTORE_PKCS11, "pkcs11"}, {0, NULL}};
static const mca_base_var_enum_value_t nfs_values[] = {
    {OMPI_CRYPTMPIO_NFS_REFUSE, "refuse"}, {OMPI_CRYPTMPIO_NFS_ALLOW, "allow"}, {0, NULL}};

/* Variables of the group that is common/cryptmpi's. */
enum { KEYSTORE_VARIABLES = 7 };
static int keystore_variables[KEYSTORE_VARIABLES];
static int keystore_variable_count;

/* `index`: what registering returned.  A variable that is registered again
 * keeps its index. */
static int keep(int index)
{
    if (index < 0) {
        return index;
    }
    for (int i = 0; i < keystore_variable_count; ++i) {
        if (index == keystore_variables[i]) {
            return OMPI_SUCCESS;
        }
    }
    assert(keystore_variable_count < KEYSTORE_VARIABLES);
    keystore_variables[keystore_variable_count++] = index;
    return OMPI_SUCCESS;
}

static int add_text(const char *name, const char *help, mca_base_var_info_lvl_t level, char **storage)
{
    return keep(mca_base_var_register("ompi", "crypt", NULL, name, help, MCA_BASE_VAR_TYPE_STRING, NULL, 0,
                                      MCA_BASE_VAR_FLAG_DWG, level, MCA_BASE_VAR_SCOPE_READONLY, storage));
}

static int add_keystore(ompi_common_cryptmpio_params_t *p)
{
    mca_base_var_enum_t *choices = NULL;
    int rc = mca_base_var_enum_create("crypt_keystore", keystore_values, &choices);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = keep(mca_base_var_register("ompi", "crypt", NULL, "keystore",
                                    "Where the keys of files are: file (one file a label, made by mpicrypt key new) or "
                                    "pkcs11 (a token that never gives them away)", MCA_BASE_VAR_TYPE_INT, choices, 0,
                                    MCA_BASE_VAR_FLAG_DWG, OPAL_INFO_LVL_4, MCA_BASE_VAR_SCOPE_READONLY, &p->keystore));
    OBJ_RELEASE(choices);
    rc = rc ? rc : add_text("keystore_dir", "Directory of the keystore. Default: ~/.ompi-crypt/keys",
                                OPAL_INFO_LVL_4, &p->keystore_dir);
    rc = rc ? rc : add_text("keystore_log", "File to which every use of a key is written. Default: log in the "
                            "keystore's directory", OPAL_INFO_LVL_5, &p->keystore_log);
    rc = rc ? rc : add_text("keystore_machine_key", "File on local storage with the key (64 hexadecimal digits) that "
                            "wraps keys which are kept on shared storage", OPAL_INFO_LVL_5, &p->machine_key);
    rc = rc ? rc : add_text("pkcs11_module", "Path of the PKCS#11 library", OPAL_INFO_LVL_5, &p->pkcs11_module);
    rc = rc ? rc : add_text("pkcs11_token", "Label of the PKCS#11 token", OPAL_INFO_LVL_5, &p->pkcs11_token);
    return rc ? rc : add_text("pkcs11_pin_file", "File with the PIN of the token (mode 0600)", OPAL_INFO_LVL_5,
                              &p->pkcs11_pin_file);
}

static int add(const mca_base_component_t *component, const char *name, const char *help, mca_base_var_type_t type,
               mca_base_var_info_lvl_t level, void *storage)
{
    int rc = mca_base_component_var_register(component, name, help, type, NULL, 0, 0, level,
                                             MCA_BASE_VAR_SCOPE_READONLY, storage);
    return rc < 0 ? rc : OMPI_SUCCESS;
}

static int add_nfs(const mca_base_component_t *component, ompi_common_cryptmpio_params_t *p)
{
    mca_base_var_enum_t *choices = NULL;
    int rc = mca_base_var_enum_create("fs_crypt_nfs", nfs_values, &choices);

    if (OPAL_SUCCESS != rc) {
        return rc;
    }
    rc = mca_base_component_var_register(component, "nfs", "Whether processes of several nodes may write an "
                                                           "encrypted file on NFS: refuse or allow (default: "
                                                           "allow)", MCA_BASE_VAR_TYPE_INT, choices, 0, 0,
                                         OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, &p->nfs);
    OBJ_RELEASE(choices);
    return rc < 0 ? rc : OMPI_SUCCESS;
}

int ompi_common_cryptmpio_params_register(const mca_base_component_t *fs_component)
{
    ompi_common_cryptmpio_params_t *p = &ompi_common_cryptmpio_params;
    int rc = opal_cryptproc_params_register();

    rc = rc ? rc : add_keystore(p);
    rc = rc ? rc : add(fs_component, "key_label", OMPI_COMMON_CRYPTMPIO_KEY_LABEL_HELP, MCA_BASE_VAR_TYPE_STRING,
                       OPAL_INFO_LVL_1, &p->key_label);
    rc = rc ? rc : add(fs_component, "algorithm", "Algorithm of new regions: aes-128-gcm, aes-192-gcm, aes-256-gcm, "
                       "chacha20-poly1305 (default: aes-128-gcm)", MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_2,
                       &p->algorithm);
    rc = rc ? rc : add(fs_component, "block_size", "Block size of new regions, in bytes: a power of two from 512 "
                                                   "to 16777216 (default: 65536)", MCA_BASE_VAR_TYPE_UNSIGNED_INT, OPAL_INFO_LVL_6, &p->block_size);
    rc = rc ? rc : add(fs_component, "plain_paths", "Files that are meant to be plain, and may be read although "
                                                    "the job asks for encryption: patterns of absolute names, as "
                                                    "the program uses them, separated by colons. * and ? do not "
                                                    "match a slash. For reading only (default: none)", MCA_BASE_VAR_TYPE_STRING, OPAL_INFO_LVL_3, &p->plain_paths);
    rc = rc ? rc : add(fs_component, "seal", "Seal encrypted files when they are closed after writing, and "
                                             "refuse to read a file that is not sealed or was changed since "
                                             "(default: off)", MCA_BASE_VAR_TYPE_BOOL,
                       OPAL_INFO_LVL_3, &p->seal);
    rc = rc ? rc : opal_cryptproc_verbose_register(fs_component, "Print what fs/crypt does. 10: each file that is "
                                                         "opened, and whether it is encrypted (default: 0)", &p->verbose);
    rc = rc ? rc : add_nfs(fs_component, p);
    rc = rc ? rc : add(fs_component, "trust_locks", "Assume that file locks work between nodes, which a job on "
                                                    "one node cannot test: jobs on several nodes may then write "
                                                    "one file at the same time (default: off)", MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_5, &p->trust_locks);
    rc = rc ? rc : add(fs_component, "durable", "Wait for the storage between the steps of each write, so that a "
                                                "power cut destroys nothing that was synced. Slow (default: off)", MCA_BASE_VAR_TYPE_BOOL,
                       OPAL_INFO_LVL_4, &p->durable);
    return rc ? rc : add(fs_component, "require", OMPI_COMMON_CRYPTMPIO_REQUIRE_HELP,
                         MCA_BASE_VAR_TYPE_BOOL, OPAL_INFO_LVL_3, &p->require);
}

/* As in common/cryptmpi: the storage goes when this library is unloaded.  That
 * library, and with it the group of its variables, may stay. */
static void __attribute__((destructor)) params_deregister(void)
{
    int group = mca_base_var_group_find("ompi", "fs", "crypt");

    if (group >= 0) {
        mca_base_var_group_deregister(group);
    }
    for (int i = 0; i < keystore_variable_count; ++i) {
        (void) mca_base_var_deregister(keystore_variables[i]);
    }
}

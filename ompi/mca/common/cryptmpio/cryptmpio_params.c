/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parameters of encrypted files and of the keystore.  They name labels, files
 * and limits; none of them ever holds a secret.
 */
#include "cryptmpio.h"

#include "opal/mca/base/mca_base_var.h"
#include "opal/mca/base/mca_base_var_group.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"

int ompi_common_cryptmpio_stream = -1;
ompi_common_cryptmpio_params_t ompi_common_cryptmpio_params;

/* The parameters of common/cryptproc's group come first. */
enum { KEYSTORE_PARAMETERS = 8 };
static const opal_cryptproc_parameter_t parameters[] = {
    {"crypt_keystore", &ompi_common_cryptmpio_params.keystore},
    {"crypt_keystore_dir", &ompi_common_cryptmpio_params.keystore_dir},
    {"crypt_keystore_group", &ompi_common_cryptmpio_params.keystore_group},
    {"crypt_keystore_log", &ompi_common_cryptmpio_params.keystore_log},
    {"crypt_keystore_machine_key", &ompi_common_cryptmpio_params.machine_key},
    {"crypt_pkcs11_module", &ompi_common_cryptmpio_params.pkcs11_module},
    {"crypt_pkcs11_token", &ompi_common_cryptmpio_params.pkcs11_token},
    {"crypt_pkcs11_pin_file", &ompi_common_cryptmpio_params.pkcs11_pin_file},
    {"fs_crypt_key_label", &ompi_common_cryptmpio_params.key_label},
    {"fs_crypt_algorithm", &ompi_common_cryptmpio_params.algorithm},
    {"fs_crypt_block_size", &ompi_common_cryptmpio_params.block_size},
    {"fs_crypt_lock_timeout", &ompi_common_cryptmpio_params.lock_timeout},
    {"fs_crypt_one_node_paths", &ompi_common_cryptmpio_params.one_node_paths},
    {"fs_crypt_plain_paths", &ompi_common_cryptmpio_params.plain_paths},
    {"fs_crypt_seal", &ompi_common_cryptmpio_params.seal},
    {"fs_crypt_trust_locks", &ompi_common_cryptmpio_params.trust_locks},
    {"fs_crypt_durable", &ompi_common_cryptmpio_params.durable},
    {"fs_crypt_require", &ompi_common_cryptmpio_params.require},
};

int ompi_common_cryptmpio_params_register(void)
{
    const char *failed;
    int rc = opal_cryptproc_params_register();

    return rc ? rc : opal_cryptproc_register(parameters, sizeof(parameters) / sizeof(parameters[0]), &failed);
}

/* As in common/cryptmpi: the storage is gone when this library is unloaded, while
 * common/cryptproc, and with it the group of its variables, may stay. */
static void __attribute__((destructor)) params_deregister(void)
{
    int index, group = mca_base_var_group_find("ompi", "fs", "crypt");

    if (group >= 0) {
        mca_base_var_group_deregister(group);
    }
    for (int i = 0; i < KEYSTORE_PARAMETERS; ++i) {
        if (OPAL_SUCCESS == mca_base_var_find_by_name(parameters[i].name, &index)) {
            (void) mca_base_var_deregister(index);
        }
    }
}

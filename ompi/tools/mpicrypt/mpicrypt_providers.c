/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The providers that a benchmark may use: every component of the aead
 * framework that opens here, and the naive row.
 */

#include "opal_config.h"
#include "opal/class/opal_list.h"
#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/runtime/opal.h"

#include "ompi/tools/mpicrypt/speed/speed.h"
#include "opal/mca/aead/aead.h"
#include "opal/mca/aead/base/base.h"

int mpicrypt_providers_open(void)
{
    if (OPAL_SUCCESS != opal_init_util(NULL, NULL)) {
        return mpicrypt_error(MPICRYPT_MISSING, "Open MPI's utility layer does not start here");
    }
    if (OPAL_SUCCESS != mca_base_framework_open(&opal_aead_base_framework, 0)) {
        opal_finalize_util();
        return mpicrypt_error(MPICRYPT_MISSING, "the aead framework cannot be opened");
    }
    if (opal_list_is_empty(&opal_aead_base_framework.framework_components)) {
        mpicrypt_providers_close();
        return mpicrypt_error(MPICRYPT_MISSING,
                              "no aead component was found.  Was share/ompi-crypt/env.sh of the "
                              "installation read (it sets OMPI_MCA_mca_base_component_path)?");
    }
    return MPICRYPT_OK;
}

void mpicrypt_providers_close(void)
{
    mca_base_framework_close(&opal_aead_base_framework);
    opal_finalize_util();
}

int mpicrypt_providers(const opal_aead_module_t **list)
{
    mca_base_component_list_item_t *item;
    int count = 0;

    OPAL_LIST_FOREACH(item, &opal_aead_base_framework.framework_components, mca_base_component_list_item_t) {
        const opal_aead_component_t *component = (const opal_aead_component_t *) item->cli_component;
        if (count < MPICRYPT_PROVIDERS_MAX - 1) {
            list[count++] = component->module;
        }
    }
    list[count++] = &mpicrypt_speed_naive;
    return count;
}

bool mpicrypt_provider_usable(const opal_aead_module_t *module, opal_aead_cipher_t cipher)
{
    const opal_aead_module_t *chosen;
    opal_aead_why_t why;

    if (0 == (module->ciphers & OPAL_AEAD_BIT(cipher))) {
        return false;
    }
    if (&mpicrypt_speed_naive == module
        || OPAL_SUCCESS == opal_aead_base_select(module->name, cipher, false, &chosen, &why)) {
        return true;
    }
    opal_aead_base_show(&why);
    return false;
}

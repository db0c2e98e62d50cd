/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The framework: register, open, close.
 */
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/base/base.h"
#include "opal/util/show_help.h"

#include "opal/mca/aead/base/base.h"
#include "opal/mca/aead/base/static-components.h"

/* Help files of a private prefix are not where Open MPI looks.  Done when the
 * library is loaded: the series guard may speak before any framework opens. */
#ifdef OMPI_CRYPT_HELP_DIR
__attribute__((constructor)) static void add_help_dir(void)
{
    opal_show_help_add_dir(OMPI_CRYPT_HELP_DIR);
}
#endif

static int aead_base_register(mca_base_register_flag_t flags)
{
    (void) flags;
    return OPAL_SUCCESS;
}

static int aead_base_open(mca_base_open_flag_t flags)
{
    return mca_base_framework_components_open(&opal_aead_base_framework, flags);
}

static int aead_base_close(void)
{
    return mca_base_framework_components_close(&opal_aead_base_framework, NULL);
}

MCA_BASE_FRAMEWORK_DECLARE(opal, aead, "Authenticated encryption", aead_base_register,
                           aead_base_open, aead_base_close, mca_aead_base_static_components, 0);

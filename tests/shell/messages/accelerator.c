/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * accelerator/pretend, a component for Open MPI 5.0: some memory of the host is an
 * accelerator's.  It does what accelerator/null does with it.
 */
#include "opal_config.h"

#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"

#include "device.h"

extern opal_accelerator_base_module_t opal_accelerator_null_module;

static opal_accelerator_base_module_t module;

static int check_addr(const void *address, int *device, uint64_t *flags)
{
    const char *at = address;

    *device = 0;
    *flags = 0;
    return at >= DEVICE_ADDRESS && at < DEVICE_ADDRESS + DEVICE_BYTES;
}

static opal_accelerator_base_module_t *start(void)
{
    module = opal_accelerator_null_module;
    module.check_addr = check_addr;
    return &module;
}

static void end(opal_accelerator_base_module_t *ours)
{
    (void) ours;
}

opal_accelerator_base_component_t mca_accelerator_pretend_component = {
    .base_version = {
        OPAL_ACCELERATOR_BASE_VERSION_1_0_0,
        .mca_component_name = "pretend",
        MCA_BASE_MAKE_VERSION(component, OPAL_MAJOR_VERSION, OPAL_MINOR_VERSION, OPAL_RELEASE_VERSION),
    },
    .base_data = {MCA_BASE_METADATA_PARAM_CHECKPOINT},
    .accelerator_init = start,
    .accelerator_finalize = end,
};

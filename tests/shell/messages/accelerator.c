/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * accelerator/pretend, a component for Open MPI 5.0: some memory of the host is an
 * accelerator's.  It does what accelerator/null does with it (device.h).
 */
#include "opal_config.h"

#include <stdlib.h>
#include <string.h>

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

static char *alias_of(const void *address)
{
    char *at = (char *) address;

    return at >= DEVICE_ADDRESS && at < DEVICE_ADDRESS + DEVICE_BYTES ? at - DEVICE_ADDRESS + DEVICE_ALIAS : at;
}

static int move(int to_device, int from_device, void *to, const void *from, size_t bytes, opal_accelerator_transfer_type_t type)
{
    memmove(alias_of(to), alias_of(from), bytes);
    return OPAL_SUCCESS;
}

static int move_later(int to_device, int from_device, void *to, const void *from, size_t bytes, opal_accelerator_stream_t *stream,
                      opal_accelerator_transfer_type_t type)
{
    return move(to_device, from_device, to, from, bytes, type);
}

static opal_accelerator_base_module_t *start(void)
{
    module = opal_accelerator_null_module;
    module.check_addr = check_addr;
    if (NULL != getenv("DEVICE_ALIAS")) {
        module.mem_copy = module.mem_move = move;
        module.mem_copy_async = move_later;
    }
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

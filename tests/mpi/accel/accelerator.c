/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * accelerator/pretend, a component for Open MPI from 5.0 on: some memory of the host is an
 * accelerator's (device.h).  DEVICE_FAILS=N: a copy of N bytes or more fails.  Rank 0 fails at its end
 * if it copied nothing: it tested nothing.
 */
#include "opal_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "opal/constants.h"
#include "opal/mca/accelerator/accelerator.h"

#include "device.h"

extern opal_accelerator_base_module_t opal_accelerator_null_module;

static opal_accelerator_base_module_t module;
static size_t fails = SIZE_MAX;
static bool copied;

static int check_addr(const void *address, int *device, uint64_t *flags)
{
    *device = 0;
    *flags = 0;
    return on_device(address);
}

static int move(int to_device, int from_device, void *to, const void *from, size_t bytes, opal_accelerator_transfer_type_t type)
{
    copied = true;
    if (bytes >= fails) {
        return OPAL_ERROR;
    }
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
    const char *text = getenv("DEVICE_FAILS");

    module = opal_accelerator_null_module;
    module.check_addr = check_addr;
    module.mem_copy = module.mem_move = move;
    module.mem_copy_async = move_later;
    fails = NULL == text ? SIZE_MAX : strtoul(text, NULL, 10);
    return &module;
}

static void end(opal_accelerator_base_module_t *ours)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");

    (void) ours;
    if (!copied && NULL != rank && 0 == strcmp(rank, "0")) {
        fprintf(stderr, "accelerator/pretend: nothing was copied\n");
        _exit(1);
    }
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

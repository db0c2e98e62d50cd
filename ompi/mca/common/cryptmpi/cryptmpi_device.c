/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Buffers in the memory of an accelerator.  Ciphers would read them as host
 * memory, so they are refused where Open MPI can detect them.
 */
#include "cryptmpi.h"

#include <string.h>


#if OMPI_COMMON_CRYPTMPI_ACCELERATOR

bool ompi_common_cryptmpi_device_possible = false;

void ompi_common_cryptmpi_device_start(void)
{
    ompi_common_cryptmpi_device_possible =
        0 != strcmp("null", opal_accelerator_base_selected_component.base_version.mca_component_name);
}

static bool on_device(const void *buffer)
{
    uint64_t flags;
    int device;

    return opal_accelerator.check_addr(buffer, &device, &flags) > 0;
}

#elif OPAL_CUDA_SUPPORT

bool ompi_common_cryptmpi_device_possible = true;

void ompi_common_cryptmpi_device_start(void)
{
}

static bool on_device(const void *buffer)
{
    return opal_cuda_check_bufs((char *) buffer, (char *) buffer);
}

#else

bool ompi_common_cryptmpi_device_possible = false;

void ompi_common_cryptmpi_device_start(void)
{
}

static bool on_device(const void *buffer)
{
    (void) buffer;
    return false;
}

#endif

int ompi_common_cryptmpi_device_refuse(const void *buffer)
{
    if (NULL == buffer || !on_device(buffer)) {
        return OMPI_SUCCESS;
    }
    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "device-buffer", buffer);
    return OMPI_ERR_NOT_SUPPORTED;
}

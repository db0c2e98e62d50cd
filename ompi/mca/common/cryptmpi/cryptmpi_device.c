/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Buffers in the memory of an accelerator, which a processor cannot or must not touch.  From Open MPI 5.0 on
 * convertors (cryptmpi_pack.c) copy between there and memory of the host, by the accelerator framework.  4.1 has none:
 * where it was built with CUDA, such a buffer is refused.
 */
#include "cryptmpi.h"

#include <string.h>

#include "ompi/runtime/mpiruntime.h"

#if OMPI_COMMON_CRYPTMPI_ACCELERATOR

bool ompi_common_cryptmpi_device_possible = false;

void ompi_common_cryptmpi_device_start(void)
{
    ompi_common_cryptmpi_device_possible =
        0 != strcmp("null", opal_accelerator_base_selected_component.base_version.mca_component_name);
}

bool ompi_common_cryptmpi_device_has(const void *address)
{
    uint64_t flags;
    int device;

    return opal_accelerator.check_addr(address, &device, &flags) > 0;
}

/* Open MPI's own function calls abort(), which may write a core file. */
static void *copy(void *to, const void *from, size_t bytes, opal_convertor_t *convertor)
{
    const int rc = opal_accelerator.mem_copy(MCA_ACCELERATOR_NO_DEVICE_ID, MCA_ACCELERATOR_NO_DEVICE_ID, to, from, bytes,
                                             MCA_ACCELERATOR_TRANSFER_UNSPEC);

    (void) convertor;
    if (OPAL_SUCCESS != rc) {
        OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "device-copy", (unsigned long) bytes, rc);
        ompi_mpi_abort(&ompi_mpi_comm_world.comm, 1);
        opal_cryptproc_exit_soon();
    }
    return to;
}

void ompi_common_cryptmpi_device_convertor(opal_convertor_t *convertor)
{
    convertor->flags |= CONVERTOR_ACCELERATOR;
    convertor->cbmemcpy = copy;
}

#else

#    if OPAL_CUDA_SUPPORT

bool ompi_common_cryptmpi_device_possible = true;

bool ompi_common_cryptmpi_device_has(const void *address)
{
    return opal_cuda_check_bufs((char *) address, (char *) address);
}

#    else

bool ompi_common_cryptmpi_device_possible = false;

bool ompi_common_cryptmpi_device_has(const void *address)
{
    (void) address;
    return false;
}

#    endif

void ompi_common_cryptmpi_device_start(void)
{
}

void ompi_common_cryptmpi_device_convertor(opal_convertor_t *convertor)
{
    (void) convertor;
}

#endif

int ompi_common_cryptmpi_device_refuse(const void *buffer)
{
    OPAL_CRYPTPROC_SHOW("help-ompi-common-cryptmpi.txt", "device-buffer", buffer);
    return OMPI_ERR_NOT_SUPPORTED;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between a user's buffer and packed bytes, any piece of it, in any order.
 * A contiguous buffer costs one memcpy; anything else goes through Open MPI's
 * convertor, positioned at the piece.
 */
#include "cryptmpi.h"

#include <string.h>

#include "opal/datatype/opal_convertor.h"

void *ompi_common_cryptmpi_contiguous(const void *buffer, const ompi_datatype_t *type, size_t count)
{
    if (!opal_datatype_is_contiguous_memory_layout(&type->super, (int32_t) (count < 2 ? count : 2))) {
        return NULL;
    }
    return (char *) buffer + type->super.true_lb;
}

int ompi_common_cryptmpi_pack(const void *buffer, size_t count, ompi_datatype_t *type,
                              size_t offset, size_t bytes, void *packed)
{
    const char *flat = 0 == bytes ? NULL : ompi_common_cryptmpi_contiguous(buffer, type, count);
    opal_convertor_t convertor;
    int rc = OMPI_SUCCESS;

    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (NULL != flat) {
        memcpy(packed, flat + offset, bytes);
        return OMPI_SUCCESS;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buffer, 0,
                                             &convertor);
    opal_convertor_set_position(&convertor, &offset);
    while (bytes > 0 && OMPI_SUCCESS == rc) {
        struct iovec iov = {.iov_base = packed, .iov_len = bytes};
        uint32_t iovs = 1;
        size_t done = bytes;
        if (opal_convertor_pack(&convertor, &iov, &iovs, &done) < 0 || 0 == done) {
            rc = OMPI_ERROR;
        }
        packed = (char *) packed + done;
        bytes -= done;
    }
    opal_convertor_cleanup(&convertor);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

int ompi_common_cryptmpi_unpack(void *buffer, size_t count, ompi_datatype_t *type,
                                size_t offset, size_t bytes, const void *packed)
{
    char *flat = 0 == bytes ? NULL : ompi_common_cryptmpi_contiguous(buffer, type, count);
    opal_convertor_t convertor;
    int rc = OMPI_SUCCESS;

    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (NULL != flat) {
        memcpy(flat + offset, packed, bytes);
        return OMPI_SUCCESS;
    }
    OBJ_CONSTRUCT(&convertor, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buffer, 0,
                                             &convertor);
    opal_convertor_set_position(&convertor, &offset);
    while (bytes > 0 && OMPI_SUCCESS == rc) {
        struct iovec iov = {.iov_base = (void *) packed, .iov_len = bytes};
        uint32_t iovs = 1;
        size_t done = bytes;
        if (opal_convertor_unpack(&convertor, &iov, &iovs, &done) < 0 || 0 == done) {
            rc = OMPI_ERROR;
        }
        packed = (const char *) packed + done;
        bytes -= done;
    }
    opal_convertor_cleanup(&convertor);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

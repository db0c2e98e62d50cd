/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between a user's buffer and packed bytes, any piece of it, in any order.
 * A contiguous buffer costs one memcpy; anything else goes through Open MPI's
 * convertor, positioned at the piece.
 *
 *     | double | char | double | char | ...      packed bytes
 *          |<----- a piece ------>|
 *
 * A convertor works on whole elements (a double, a char): when it packs it stops
 * before one that does not fit, and begins before one in whose middle it was
 * positioned.  Elements that lie across the edge of a piece are therefore packed
 * on the side: `element`.  When unpacking they are read, completed and written
 * back; two threads may do so with the same one, for the pieces on its sides.
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

enum { LARGEST = 64 };                  /* bytes: longer than any predefined element */

static pthread_mutex_t edges = PTHREAD_MUTEX_INITIALIZER;

/* As near before `offset` as the convertor can be. */
static size_t position(opal_convertor_t *convertor, size_t offset)
{
    opal_convertor_set_position(convertor, &offset);
    return offset;
}

/* Whole elements, as many as there is room for; returns their bytes. */
static size_t pack_some(opal_convertor_t *convertor, void *to, size_t room)
{
    struct iovec iov = {.iov_base = to, .iov_len = room};
    uint32_t iovs = 1;
    size_t done = room;

    return opal_convertor_pack(convertor, &iov, &iovs, &done) < 0 ? 0 : done;
}

static size_t unpack_some(opal_convertor_t *convertor, const void *from, size_t bytes)
{
    struct iovec iov = {.iov_base = (void *) from, .iov_len = bytes};
    uint32_t iovs = 1;
    size_t done = bytes;

    return opal_convertor_unpack(convertor, &iov, &iovs, &done) < 0 ? 0 : done;
}

/* Exactly one, since the next may be another thread's. */
static size_t pack_one(opal_convertor_t *convertor, uint8_t element[LARGEST])
{
    size_t done = 0;

    for (size_t room = 1; room <= LARGEST && 0 == done; room++) {
        done = pack_some(convertor, element, room);
    }
    return done;
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
    size_t skip = offset - position(&convertor, offset);
    while (bytes > 0 && OMPI_SUCCESS == rc) {
        size_t done = 0 == skip ? pack_some(&convertor, packed, bytes) : 0;
        if (0 == done) {
            uint8_t element[LARGEST];
            size_t whole = pack_one(&convertor, element);
            rc = whole > skip ? OMPI_SUCCESS : OMPI_ERROR;
            done = OMPI_SUCCESS != rc ? 0 : whole - skip < bytes ? whole - skip : bytes;
            memcpy(packed, element + skip, done);
            skip = 0;
        }
        packed = (char *) packed + done;
        bytes -= done;
    }
    opal_convertor_cleanup(&convertor);
    OBJ_DESTRUCT(&convertor);
    return rc;
}

/* Two views of the user's buffer. */
typedef struct views {
    opal_convertor_t reader, writer;
} views_t;

/* Bytes of one element, which begins at `start`, from `offset` on.  Returns how
 * many there were; 0: it failed. */
static size_t unpack_edge(views_t *views, size_t start, size_t offset, size_t bytes, const void *packed)
{
    uint8_t element[LARGEST];
    size_t skip = offset - start, whole, done = 0;

    ompi_common_cryptmpi_lock_acquire(&edges);
    position(&views->reader, start);
    whole = pack_one(&views->reader, element);
    if (whole > skip) {
        done = whole - skip < bytes ? whole - skip : bytes;
        memcpy(element + skip, packed, done);
        position(&views->writer, start);
        done = whole == unpack_some(&views->writer, element, whole) ? done : 0;
    }
    ompi_common_cryptmpi_lock_release(&edges);
    return done;
}

static int unpack_piece(views_t *views, size_t offset, size_t bytes, const void *packed)
{
    while (bytes > 0) {
        size_t start = position(&views->reader, offset), end = position(&views->reader, offset + bytes), done;

        if (start == offset && end > offset) {
            position(&views->writer, offset);
            done = unpack_some(&views->writer, packed, end - offset);
        } else {
            done = unpack_edge(views, start, offset, bytes, packed);
        }
        if (0 == done) {
            return OMPI_ERROR;
        }
        packed = (const char *) packed + done;
        offset += done;
        bytes -= done;
    }
    return OMPI_SUCCESS;
}

int ompi_common_cryptmpi_unpack(void *buffer, size_t count, ompi_datatype_t *type,
                                size_t offset, size_t bytes, const void *packed)
{
    char *flat = 0 == bytes ? NULL : ompi_common_cryptmpi_contiguous(buffer, type, count);
    views_t views;
    int rc;

    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (NULL != flat) {
        memcpy(flat + offset, packed, bytes);
        return OMPI_SUCCESS;
    }
    OBJ_CONSTRUCT(&views.writer, opal_convertor_t);
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buffer, 0,
                                             &views.writer);
    if (0 == offset && bytes == ompi_common_cryptmpi_bytes(type, count)) {
        rc = bytes == unpack_some(&views.writer, packed, bytes) ? OMPI_SUCCESS : OMPI_ERROR;
    } else {
        OBJ_CONSTRUCT(&views.reader, opal_convertor_t);
        opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buffer, 0,
                                                 &views.reader);
        rc = unpack_piece(&views, offset, bytes, packed);
        opal_convertor_cleanup(&views.reader);
        OBJ_DESTRUCT(&views.reader);
    }
    opal_convertor_cleanup(&views.writer);
    OBJ_DESTRUCT(&views.writer);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between a user's buffer and packed bytes, any piece of it, in any order.
 * A contiguous buffer costs one memcpy; anything else goes through Open MPI's
 * convertor, which stays open for a whole message (a stream), so that the next
 * piece begins where the last one ended.
 *
 *     | double | char | double | char | ...      packed bytes
 *          |<----- a piece ------>|
 *
 * Pieces end anywhere.  A convertor that unpacks goes on in the middle of an element
 * (a double, a char).  One that packs stops before an element for which there is no
 * room: it is packed on the side, and what is left of it opens the next piece.
 *
 * A convertor is never moved forward but from the start: from within the loops of a
 * nested type it comes out at a wrong place (opal_convertor_generic_simple_position,
 * in all of 4.1 and 5.0).
 */
#include "cryptmpi.h"

#include <stdlib.h>
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

struct ompi_common_cryptmpi_stream {
    opal_convertor_t convertor;
    ompi_common_cryptmpi_lock_t lock;   /* pieces of one message may be several threads' */
    size_t at;                          /* where the next piece begins that needs no move */
    uint8_t element[LARGEST];           /* packed on the side; its last `left` bytes come next */
    size_t whole, left;
};

static void begin(ompi_common_cryptmpi_stream_t *s, const void *buffer, size_t count, const ompi_datatype_t *type, bool sending)
{
    OBJ_CONSTRUCT(&s->convertor, opal_convertor_t);
    if (sending) {
        opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &s->convertor);
    } else {
        opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &s->convertor);
    }
    s->at = s->whole = s->left = 0;
}

static void end(ompi_common_cryptmpi_stream_t *s)
{
    opal_convertor_cleanup(&s->convertor);
    OBJ_DESTRUCT(&s->convertor);
}

/* As near before `offset` as the convertor can be. */
static size_t position(opal_convertor_t *convertor, size_t offset)
{
    size_t start = 0;

    opal_convertor_set_position(convertor, &start);
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

/* Exactly one, on the side; false: there is none. */
static bool pack_one(ompi_common_cryptmpi_stream_t *s)
{
    s->whole = 0;
    for (size_t room = 1; room <= LARGEST && 0 == s->whole; room++) {
        s->whole = pack_some(&s->convertor, s->element, room);
    }
    s->left = s->whole;
    return 0 != s->whole;
}

/* What is left of an element, as much as is wanted. */
static size_t take_left(ompi_common_cryptmpi_stream_t *s, void *to, size_t bytes)
{
    size_t n = bytes < s->left ? bytes : s->left;

    memcpy(to, s->element + s->whole - s->left, n);
    s->left -= n;
    return n;
}

static int pack(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, void *packed)
{
    uint8_t *to = packed;

    if (offset != s->at) {
        size_t skip = offset - position(&s->convertor, offset);
        s->left = 0;
        if (skip > 0 && (!pack_one(s) || s->whole <= skip)) {
            return OMPI_ERROR;
        }
        s->left -= skip;
    }
    s->at = offset + bytes;
    while (bytes > 0) {
        size_t done = s->left > 0 ? take_left(s, to, bytes) : pack_some(&s->convertor, to, bytes);
        if (0 == done && !pack_one(s)) {
            return OMPI_ERROR;
        }
        to += done;
        bytes -= done;
    }
    return OMPI_SUCCESS;
}

static int unpack(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, const void *packed)
{
    const uint8_t *from = packed;

    if (offset != s->at && offset != position(&s->convertor, offset)) {
        return OMPI_ERROR;
    }
    s->at = offset + bytes;
    while (bytes > 0) {
        size_t done = unpack_some(&s->convertor, from, bytes);
        if (0 == done) {
            return OMPI_ERROR;
        }
        from += done;
        bytes -= done;
    }
    return OMPI_SUCCESS;
}

/* ---- a whole message ---- */

ompi_common_cryptmpi_stream_t *ompi_common_cryptmpi_stream_open(const void *buffer, size_t count, const ompi_datatype_t *type,
                                                                bool sending)
{
    ompi_common_cryptmpi_stream_t *s = NULL;

    if (NULL == ompi_common_cryptmpi_contiguous(buffer, type, count)) {
        s = malloc(sizeof(*s));
    }
    if (NULL != s) {
        begin(s, buffer, count, type, sending);
        pthread_mutex_init(&s->lock, NULL);
    }
    return s;
}

void ompi_common_cryptmpi_stream_close(ompi_common_cryptmpi_stream_t *s)
{
    if (NULL != s) {
        end(s);
        pthread_mutex_destroy(&s->lock);
        opal_common_crypt_wipe(s->element, sizeof(s->element));
        free(s);
    }
}

int ompi_common_cryptmpi_stream_pack(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, void *packed)
{
    ompi_common_cryptmpi_lock_acquire(&s->lock);
    int rc = pack(s, offset, bytes, packed);
    ompi_common_cryptmpi_lock_release(&s->lock);
    return rc;
}

int ompi_common_cryptmpi_stream_unpack(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, const void *packed)
{
    ompi_common_cryptmpi_lock_acquire(&s->lock);
    int rc = unpack(s, offset, bytes, packed);
    ompi_common_cryptmpi_lock_release(&s->lock);
    return rc;
}

/* ---- one piece ---- */

int ompi_common_cryptmpi_pack(const void *buffer, size_t count, ompi_datatype_t *type,
                              size_t offset, size_t bytes, void *packed)
{
    const char *flat = 0 == bytes ? NULL : ompi_common_cryptmpi_contiguous(buffer, type, count);
    ompi_common_cryptmpi_stream_t s;
    int rc;

    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (NULL != flat) {
        memcpy(packed, flat + offset, bytes);
        return OMPI_SUCCESS;
    }
    begin(&s, buffer, count, type, true);
    rc = pack(&s, offset, bytes, packed);
    end(&s);
    return rc;
}

int ompi_common_cryptmpi_unpack(void *buffer, size_t count, ompi_datatype_t *type,
                                size_t offset, size_t bytes, const void *packed)
{
    char *flat = 0 == bytes ? NULL : ompi_common_cryptmpi_contiguous(buffer, type, count);
    ompi_common_cryptmpi_stream_t s;
    int rc;

    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (NULL != flat) {
        memcpy(flat + offset, packed, bytes);
        return OMPI_SUCCESS;
    }
    begin(&s, buffer, count, type, false);
    rc = unpack(&s, offset, bytes, packed);
    end(&s);
    return rc;
}

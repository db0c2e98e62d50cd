/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Copies between a user's buffer and packed bytes, any piece of it, in any order.
 * A contiguous buffer costs one memcpy; anything else, and the memory of accelerators, goes
 * through Open MPI's convertor, which stays open for a whole message (a stream), so that the
 * next piece begins where the last one ended.
 *
 *     | double | char | double | char | ...      packed bytes
 *          |<----- a piece ------>|
 *
 * Pieces may end anywhere.  A convertor that packs stops before an element (a double, a char)
 * that does not fit: that one is packed separately, and the rest of it begins the next
 * piece.  One that unpacks can continue in the middle of an element, but writes past its
 * own buffer if the element is longer than 16 bytes, and loses bytes of shorter ones: so it
 * gets whole elements only.  Where they begin is computed from the type's description.
 * A partial element at the end of a piece waits for the next piece or, if another piece comes
 * instead, or none, is merged into the element that is in the buffer.
 *
 * A convertor is moved forward only from the start: from within the loops of a nested
 * type it ends up at a wrong position (opal_convertor_generic_simple_position, in all
 * of 4.1 and 5.0).
 */
#include "cryptmpi.h"

#include <stdlib.h>
#include <string.h>

#include "opal/datatype/opal_convertor.h"
#include "opal/datatype/opal_datatype_internal.h"

static inline char *contiguous_at(const void *buffer, const ompi_datatype_t *type, size_t count)
{
    return opal_datatype_is_contiguous_memory_layout(&type->super, (int32_t) (count < 2 ? count : 2))
               ? (char *) buffer + type->super.true_lb : NULL;
}

void *ompi_common_cryptmpi_contiguous(const void *buffer, const ompi_datatype_t *type, size_t count)
{
    char *first = contiguous_at(buffer, type, count);

    return NULL == first || ompi_common_cryptmpi_on_device(first) ? NULL : first;
}

char *ompi_common_cryptmpi_device_contiguous(const void *buffer, const ompi_datatype_t *type, size_t count)
{
    char *first = contiguous_at(buffer, type, count);

    return OMPI_COMMON_CRYPTMPI_ACCELERATOR && NULL != first && ompi_common_cryptmpi_on_device(first) ? first : NULL;
}

enum { LARGEST = 64 };                  /* bytes: longer than any predefined element */

struct ompi_common_cryptmpi_stream {
    opal_convertor_t convertor;
    ompi_common_cryptmpi_lock_t lock;   /* several threads may handle pieces of one message */
    void *buffer;
    size_t count;
    const ompi_datatype_t *type;
    size_t at;                          /* where the next piece begins if in order */
    size_t expected, got;               /* unpacking: bytes of all pieces, bytes so far */
    size_t place;                       /* unpacking: where the convertor is */
    uint8_t element[LARGEST];           /* packing: its last `left` bytes come next; unpacking: */
    size_t whole, left;                 /* its first `left` bytes are here, it begins at `begins` */
    size_t begins;
};

static void begin(ompi_common_cryptmpi_stream_t *s, const void *buffer, size_t count, const ompi_datatype_t *type, bool sending)
{
    OBJ_CONSTRUCT(&s->convertor, opal_convertor_t);
    if (sending) {
        opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &s->convertor);
    } else {
        opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &type->super, count, buffer, 0, &s->convertor);
    }
    /* Open MPI looks at the buffer's address itself, which is not that of the data under MPI_BOTTOM. */
    if (ompi_common_cryptmpi_on_device((const char *) buffer + type->super.true_lb)) {
        ompi_common_cryptmpi_device_convertor(&s->convertor);
    }
    s->buffer = (void *) (uintptr_t) buffer;
    s->count = count;
    s->type = type;
    s->at = s->whole = s->left = s->place = s->got = s->expected = s->begins = 0;
}

static void end(ompi_common_cryptmpi_stream_t *s)
{
    opal_convertor_cleanup(&s->convertor);
    OBJ_DESTRUCT(&s->convertor);
    opal_crypt_wipe(s->element, sizeof(s->element));
}

/* Move to `offset`, or as close before it as the convertor can. */
static size_t position(opal_convertor_t *convertor, size_t offset)
{
    size_t start = 0;

    opal_convertor_set_position(convertor, &start);
    opal_convertor_set_position(convertor, &offset);
    return offset;
}

/* Pack as many whole elements as fit; returns their bytes. */
static size_t pack_some(opal_convertor_t *convertor, void *to, size_t capacity)
{
    struct iovec iov = {.iov_base = to, .iov_len = capacity};
    uint32_t iovs = 1;
    size_t done = capacity;

    return opal_convertor_pack(convertor, &iov, &iovs, &done) < 0 ? 0 : done;
}

static size_t unpack_some(opal_convertor_t *convertor, const void *from, size_t bytes)
{
    struct iovec iov = {.iov_base = (void *) from, .iov_len = bytes};
    uint32_t iovs = 1;
    size_t done = bytes;

    return opal_convertor_unpack(convertor, &iov, &iovs, &done) < 0 ? 0 : done;
}

/* Pack exactly one element separately; false: there are no more. */
static bool pack_one(ompi_common_cryptmpi_stream_t *s)
{
    s->whole = 0;
    for (size_t capacity = 1; capacity <= LARGEST && 0 == s->whole; capacity++) {
        s->whole = pack_some(&s->convertor, s->element, capacity);
    }
    s->left = s->whole;
    return 0 != s->whole;
}

/* Take up to `bytes` of the rest of an element. */
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

/* ---- unpacking ---- */

/* The element that contains the byte at `offset`. */
static int element_at(const ompi_common_cryptmpi_stream_t *s, size_t offset, size_t *begins, size_t *bytes)
{
    const dt_type_desc_t *list = s->convertor.use_desc;
    const uint32_t kinds = s->type->super.bdt_used;
    size_t rest = offset % s->type->super.size;

    /* Mostly all are of one kind: then there is no need to walk a list of a million blocks. */
    *bytes = 0 != kinds && 0 == (kinds & (kinds - 1)) ? opal_datatype_basicDatatypes[__builtin_ctz(kinds)]->size : 0;
    if (*bytes > 0) {
        *begins = offset - rest % *bytes;
        return *bytes <= LARGEST ? OMPI_SUCCESS : OMPI_ERROR;
    }
    for (opal_datatype_count_t i = 0; i < list->used;) {
        const dt_elem_desc_t *e = &list->desc[i];
        const bool loop = OPAL_DATATYPE_LOOP == e->elem.common.type;
        const size_t one = loop ? (e + e->loop.items)->end_loop.size
                                : opal_datatype_basicDatatypes[e->elem.common.type]->size;
        const size_t all = loop ? one * e->loop.loops : one * e->elem.count * e->elem.blocklen;

        if (rest >= all) {
            rest -= all;
            i += loop ? e->loop.items + 1 : 1;
        } else if (loop) {
            rest %= one;
            i++;
        } else {
            *begins = offset - rest % one;
            *bytes = one;
            return one <= LARGEST ? OMPI_SUCCESS : OMPI_ERROR;
        }
    }
    return OMPI_ERROR;
}

static int put_whole(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, const uint8_t *from)
{
    if (0 == bytes) {
        return OMPI_SUCCESS;
    }
    if (offset != s->place && offset != position(&s->convertor, offset)) {
        return OMPI_ERROR;
    }
    s->place = offset + bytes;
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

/* Merge some bytes into the element that is in the buffer. */
static int put_part(ompi_common_cryptmpi_stream_t *s, size_t begins, size_t bytes, size_t skip, const uint8_t *from, size_t n)
{
    ompi_common_cryptmpi_stream_t there;
    uint8_t element[LARGEST];

    begin(&there, s->buffer, s->count, s->type, true);
    bool good = begins == position(&there.convertor, begins) && bytes == pack_some(&there.convertor, element, bytes);
    end(&there);
    if (!good) {
        return OMPI_ERROR;
    }
    memcpy(element + skip, from, n);
    int rc = put_whole(s, begins, bytes, element);
    opal_crypt_wipe(element, sizeof(element));
    return rc;
}

static int put_waiting(ompi_common_cryptmpi_stream_t *s)
{
    const size_t n = s->left;

    s->left = 0;
    return 0 == n ? OMPI_SUCCESS : put_part(s, s->begins, s->whole, 0, s->element, n);
}

/* Unpack up to the end of the element that an earlier piece began. */
static int unpack_head(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, const uint8_t *from, size_t *taken)
{
    size_t begins, whole;
    int rc = element_at(s, offset, &begins, &whole);

    *taken = 0;
    if (OMPI_SUCCESS != rc || begins == offset) {
        return rc;
    }
    *taken = begins + whole - offset < bytes ? begins + whole - offset : bytes;
    if (0 == s->left) {
        return put_part(s, begins, whole, offset - begins, from, *taken);
    }
    memcpy(s->element + s->left, from, *taken);
    s->left += *taken;
    if (s->left < whole) {
        return OMPI_SUCCESS;
    }
    s->left = 0;
    return put_whole(s, begins, whole, s->element);
}

static int unpack(ompi_common_cryptmpi_stream_t *s, size_t offset, size_t bytes, const void *packed)
{
    const uint8_t *from = packed;
    const size_t stop = offset + bytes;
    size_t taken, tail, whole;
    int rc = offset == s->at ? OMPI_SUCCESS : put_waiting(s);

    rc = OMPI_SUCCESS == rc ? unpack_head(s, offset, bytes, from, &taken) : rc;
    if (OMPI_SUCCESS == rc && taken < bytes) {
        rc = element_at(s, stop, &tail, &whole);
        rc = OMPI_SUCCESS == rc ? put_whole(s, offset + taken, tail - offset - taken, from + taken) : rc;
        if (OMPI_SUCCESS == rc && tail < stop) {
            memcpy(s->element, from + (tail - offset), stop - tail);
            s->begins = tail;
            s->whole = whole;
            s->left = stop - tail;
        }
    }
    s->at = stop;
    s->got += bytes;
    return OMPI_SUCCESS == rc && s->got >= s->expected ? put_waiting(s) : rc;
}

/* ---- a whole message ---- */

ompi_common_cryptmpi_stream_t *ompi_common_cryptmpi_stream_open(const void *buffer, size_t count, const ompi_datatype_t *type,
                                                                bool sending, size_t bytes)
{
    ompi_common_cryptmpi_stream_t *s = malloc(sizeof(*s));

    if (NULL != s) {
        begin(s, buffer, count, type, sending);
        s->expected = bytes;
        pthread_mutex_init(&s->lock, NULL);
    }
    return s;
}

void ompi_common_cryptmpi_stream_close(ompi_common_cryptmpi_stream_t *s)
{
    if (NULL != s) {
        end(s);
        pthread_mutex_destroy(&s->lock);
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
    s.expected = bytes;
    rc = unpack(&s, offset, bytes, packed);
    end(&s);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Storage in memory for tests of the block engine, which dies on demand: after a
 * given number of pieces, where a piece ends at a multiple of `page`, as a killed
 * process may leave a write(2) cut at a page.
 */
#ifndef TESTS_FILE_MEMORY_H
#define TESTS_FILE_MEMORY_H

#include "opal/mca/common/cryptfile/file/file.h"
#include "tests/unit/unit.h"

#include <errno.h>

/* The file, zeros behind its end. */
typedef struct memory {
    opal_cryptfile_storage_t super;
    uint8_t *bytes;
    size_t size, capacity;
    uint64_t page;
    long writes_left;                   /* pieces that may still be written; < 0: for ever */
    unsigned long written;              /* pieces, ever */
    int locks;
} memory_t;

/* Bytes of a block, when `plain_bytes` are in all: B, less for the last one, 0 beyond it. */
static inline uint32_t memory_block_length(uint64_t plain_bytes, uint64_t block, uint32_t block_bytes)
{
    uint64_t whole = plain_bytes / block_bytes;

    return block < whole ? block_bytes : block == whole ? (uint32_t) (plain_bytes % block_bytes) : 0;
}

static inline memory_t *memory_of(opal_cryptfile_storage_t *storage) { return (memory_t *) storage; }

static inline int memory_dead(memory_t *memory)
{
    if (0 == memory->writes_left) {
        errno = EIO;
        return 1;
    }
    return 0;
}

static inline void memory_grow(memory_t *memory, size_t size)
{
    if (size > memory->capacity) {
        size_t capacity = 2 * size;
        memory->bytes = realloc(memory->bytes, capacity);
        UNIT_REQUIRE(NULL != memory->bytes);
        memset(memory->bytes + memory->capacity, 0, capacity - memory->capacity);
        memory->capacity = capacity;
    }
    memory->size = size > memory->size ? size : memory->size;
}

static inline int memory_read(opal_cryptfile_storage_t *storage,
                              const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    memory_t *memory = memory_of(storage);

    if (memory_dead(memory)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    for (size_t i = 0; i < extent_count; ++i) {
        size_t at = (size_t) extents[i].at, have = at >= memory->size ? 0 : memory->size - at;
        have = have < extents[i].count ? have : extents[i].count;
        memset(extents[i].bytes, 0, extents[i].count);
        if (have > 0) {
            memcpy(extents[i].bytes, memory->bytes + at, have);
        }
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_write(opal_cryptfile_storage_t *storage,
                               const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    memory_t *memory = memory_of(storage);
    uint64_t last = 0;

    for (size_t i = 0; i < extent_count; ++i) {
        const uint8_t *bytes = extents[i].bytes;
        uint64_t at = extents[i].at, end = at + extents[i].count;
        UNIT_CHECK(at >= last && end > at);     /* rising, disjoint, not empty */
        last = end;
        while (at < end) {
            uint64_t to = (at / memory->page + 1) * memory->page;
            to = to < end ? to : end;
            if (memory_dead(memory)) {
                return OPAL_CRYPT_ERR_STORAGE;
            }
            memory->writes_left -= memory->writes_left > 0;
            ++memory->written;
            memory_grow(memory, to);
            memcpy(memory->bytes + at, bytes, to - at);
            bytes += to - at;
            at = to;
        }
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_size(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    *bytes = memory_of(storage)->size;
    return memory_dead(memory_of(storage)) ? OPAL_CRYPT_ERR_STORAGE : OPAL_CRYPT_OK;
}

static inline int memory_zero(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    memory_t *memory = memory_of(storage);

    if (memory_dead(memory)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    memory->writes_left -= memory->writes_left > 0;
    ++memory->written;
    if (at < memory->size) {
        memset(memory->bytes + at, 0, bytes < memory->size - at ? bytes : memory->size - at);
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_resize(opal_cryptfile_storage_t *storage, uint64_t bytes)
{
    memory_t *memory = memory_of(storage);

    if (bytes < memory->size) {
        int rc = memory_zero(storage, bytes, memory->size - bytes);
        memory->size = OPAL_CRYPT_OK == rc ? (size_t) bytes : memory->size;
        return rc;
    }
    if (memory_dead(memory)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    memory->writes_left -= memory->writes_left > 0;
    ++memory->written;
    memory_grow(memory, (size_t) bytes);
    return OPAL_CRYPT_OK;
}

static inline int memory_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    (void) exclusive;
    UNIT_CHECK(bytes > 0 && at >= UINT64_C(1) << 62 && at + bytes <= INT64_MAX);
    __atomic_add_fetch(&memory_of(storage)->locks, 1, __ATOMIC_RELAXED);
    return OPAL_CRYPT_OK;
}

static inline int memory_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    (void) at;
    (void) bytes;
    __atomic_sub_fetch(&memory_of(storage)->locks, 1, __ATOMIC_RELAXED);
    return OPAL_CRYPT_OK;
}

static inline int memory_try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    *got = true;
    return memory_lock(storage, at, bytes, exclusive);
}

static inline void memory_init(memory_t *memory)
{
    *memory = (memory_t){.super = {memory_read, memory_write, memory_size, memory_resize, memory_zero, memory_lock, memory_unlock,
                                    memory_try_lock},
                         .page = 4096, .writes_left = -1};
}

static inline void memory_copy(memory_t *to, const memory_t *from)
{
    to->size = 0;
    memory_grow(to, from->size);
    if (from->size > 0) {
        memcpy(to->bytes, from->bytes, from->size);
        memset(to->bytes + to->size, 0, to->capacity - to->size);
    }
    to->page = from->page;
    to->writes_left = -1;
    to->locks = 0;
}

static inline void memory_free(memory_t *memory) { free(memory->bytes); }

#endif

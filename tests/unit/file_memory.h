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

typedef struct memory_part {
    uint8_t *bytes;
    size_t size, room;
} memory_part_t;

typedef struct memory {
    opal_cryptfile_storage_t super;
    memory_part_t parts[2];
    uint64_t page;
    long life;                          /* pieces that may still be written; < 0: for ever */
    unsigned long written;              /* pieces, ever */
    int locks;                          /* except those of sets of rooms, which stay */
    int sets;
} memory_t;

/* The directory's room behind the first regions is never touched: leave it out. */
enum { MEMORY_GAP_FROM = 16384, MEMORY_GAP = (int) OPAL_CRYPTFILE_SIDECAR_FREE - MEMORY_GAP_FROM };

static inline size_t memory_place(opal_cryptfile_part_t part, uint64_t at)
{
    if (OPAL_CRYPTFILE_SIDECAR != part || at <= MEMORY_GAP_FROM) {
        return (size_t) at;
    }
    UNIT_REQUIRE(at >= OPAL_CRYPTFILE_SIDECAR_FREE);
    return (size_t) at - MEMORY_GAP;
}

/* Bytes of a block, when `plain_bytes` are in all: B, less for the last one, 0 beyond it. */
static inline uint32_t memory_block_length(uint64_t plain_bytes, uint64_t block, uint32_t block_bytes)
{
    uint64_t whole = plain_bytes / block_bytes;

    return block < whole ? block_bytes : block == whole ? (uint32_t) (plain_bytes % block_bytes) : 0;
}

static inline memory_t *memory_of(opal_cryptfile_storage_t *storage) { return (memory_t *) storage; }

static inline int memory_dead(memory_t *memory)
{
    if (0 == memory->life) {
        errno = EIO;
        return 1;
    }
    return 0;
}

static inline void memory_grow(memory_part_t *part, size_t size)
{
    if (size > part->room) {
        size_t room = 2 * size;
        part->bytes = realloc(part->bytes, room);
        UNIT_REQUIRE(NULL != part->bytes);
        memset(part->bytes + part->room, 0, room - part->room);
        part->room = room;
    }
    part->size = size > part->size ? size : part->size;
}

static inline int memory_read(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                              const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    memory_part_t *p = &memory_of(storage)->parts[part];

    if (memory_dead(memory_of(storage))) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    for (size_t i = 0; i < extent_count; ++i) {
        size_t at = memory_place(part, extents[i].at), have = at >= p->size ? 0 : p->size - at;
        have = have < extents[i].count ? have : extents[i].count;
        memset(extents[i].bytes, 0, extents[i].count);
        if (have > 0) {
            memcpy(extents[i].bytes, p->bytes + at, have);
        }
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_write(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                               const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    memory_t *memory = memory_of(storage);
    uint64_t last = 0;

    for (size_t i = 0; i < extent_count; ++i) {
        const uint8_t *bytes = extents[i].bytes;
        uint64_t at = memory_place(part, extents[i].at), end = at + extents[i].count;
        UNIT_CHECK(at >= last && end > at);     /* rising, disjoint, not empty */
        last = end;
        while (at < end) {
            uint64_t to = (at / memory->page + 1) * memory->page;
            to = to < end ? to : end;
            if (memory_dead(memory)) {
                return OPAL_CRYPT_ERR_STORAGE;
            }
            memory->life -= memory->life > 0;
            ++memory->written;
            memory_grow(&memory->parts[part], to);
            memcpy(memory->parts[part].bytes + at, bytes, to - at);
            bytes += to - at;
            at = to;
        }
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_size(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t *bytes)
{
    size_t size = memory_of(storage)->parts[part].size;

    *bytes = OPAL_CRYPTFILE_SIDECAR == part && size > MEMORY_GAP_FROM ? size + MEMORY_GAP : size;
    return memory_dead(memory_of(storage)) ? OPAL_CRYPT_ERR_STORAGE : OPAL_CRYPT_OK;
}

static inline int memory_zero(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t at, uint64_t bytes)
{
    memory_t *memory = memory_of(storage);

    if (memory_dead(memory)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    memory->life -= memory->life > 0;
    ++memory->written;
    memory_part_t *p = &memory->parts[part];
    at = memory_place(part, at);
    if (at < p->size) {
        memset(p->bytes + at, 0, bytes < p->size - at ? bytes : p->size - at);
    }
    return OPAL_CRYPT_OK;
}

static inline int memory_resize(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t bytes)
{
    memory_part_t *p = &memory_of(storage)->parts[part];
    size_t size = memory_place(part, bytes);

    if (size < p->size) {
        int rc = memory_zero(storage, part, bytes, p->size - size);
        p->size = OPAL_CRYPT_OK == rc ? size : p->size;
        return rc;
    }
    if (memory_dead(memory_of(storage))) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    memory_of(storage)->life -= memory_of(storage)->life > 0;
    ++memory_of(storage)->written;
    memory_grow(p, size);
    return OPAL_CRYPT_OK;
}

/* The lock of a set, not of a block: a process has it from its first overwrite on. */
static inline int *memory_count_of(opal_cryptfile_storage_t *storage, uint64_t at)
{
    return at % OPAL_CRYPTFILE_SIDECAR_LOCKS < OPAL_CRYPTFILE_SIDECAR_SET_LOCKS ? &memory_of(storage)->locks : &memory_of(storage)->sets;
}

static inline int memory_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    (void) exclusive;
    UNIT_CHECK(bytes > 0);
    __atomic_add_fetch(memory_count_of(storage, at), 1, __ATOMIC_RELAXED);
    return OPAL_CRYPT_OK;
}

static inline int memory_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    (void) bytes;
    __atomic_sub_fetch(memory_count_of(storage, at), 1, __ATOMIC_RELAXED);
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
                         .page = 4096, .life = -1};
}

static inline void memory_copy(memory_t *to, const memory_t *from)
{
    for (int i = 0; i < 2; ++i) {
        free(to->parts[i].bytes);
        to->parts[i] = from->parts[i];
        to->parts[i].bytes = malloc(from->parts[i].room);
        UNIT_REQUIRE(0 == from->parts[i].room || NULL != to->parts[i].bytes);
        if (from->parts[i].room > 0) {
            memcpy(to->parts[i].bytes, from->parts[i].bytes, from->parts[i].room);
        }
    }
    to->page = from->page;
    to->life = -1;
    to->locks = 0;
}

static inline void memory_free(memory_t *memory)
{
    free(memory->parts[0].bytes);
    free(memory->parts[1].bytes);
}

#endif

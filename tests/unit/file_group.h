/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Storage of files that are one file, for tests of the block engine: of groups of 1 MiB.
 */
#ifndef TESTS_FILE_GROUP_H
#define TESTS_FILE_GROUP_H

#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { GROUP = 1 << 20, GROUP_CONTROL = 311296, GROUP_DATA = GROUP - GROUP_CONTROL };

static inline int one_read(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, const opal_cryptfile_extent_t *extents, size_t count)
{
    (void) part;
    return memory_read(storage, OPAL_CRYPTFILE_DATA, extents, count);
}

static inline int one_write(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, const opal_cryptfile_extent_t *extents, size_t count)
{
    (void) part;
    return memory_write(storage, OPAL_CRYPTFILE_DATA, extents, count);
}

static inline int one_size(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t *bytes)
{
    (void) part;
    return memory_size(storage, OPAL_CRYPTFILE_DATA, bytes);
}

static inline int one_resize(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t bytes)
{
    (void) part;
    return memory_resize(storage, OPAL_CRYPTFILE_DATA, bytes);
}

static inline int one_zero(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t at, uint64_t bytes)
{
    (void) part;
    return memory_zero(storage, OPAL_CRYPTFILE_DATA, at, bytes);
}

static inline int one_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    (void) exclusive;
    UNIT_CHECK(bytes > 0 && at >= UINT64_C(1) << 62 && at + bytes <= INT64_MAX);
    ++memory_of(storage)->locks;
    return OPAL_CRYPT_OK;
}

static inline int one_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    (void) at;
    (void) bytes;
    --memory_of(storage)->locks;
    return OPAL_CRYPT_OK;
}

static inline int one_try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    *got = true;
    return one_lock(storage, at, bytes, exclusive);
}

static inline void one_memory(memory_t *memory)
{
    memory_init(memory);
    memory->super = (opal_cryptfile_storage_t){one_read, one_write, one_size, one_resize, one_zero, one_lock, one_unlock, one_try_lock, NULL, NULL, NULL};
}

static uint32_t group_rooms = 4;        /* of files that are opened */

static inline opal_cryptfile_t *open_one(opal_cryptfile_storage_t *storage, const region_spec_t *specs, unsigned count,
                                         const opal_cryptfile_grant_t *grants)
{
    static const uint8_t uuid[16] = "a file all by it";
    opal_cryptfile_t *file = open_file(storage, specs, count, uuid, grants);
    opal_cryptfile_map_t *map = (opal_cryptfile_map_t *) (uintptr_t) opal_cryptfile_map_of(file);
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES];

    map->generation = 1;
    map->geometry = (opal_cryptfile_geometry_t){GROUP, GROUP_CONTROL, 0, 3072, 2048, group_rooms, 4096};
    opal_cryptfile_geometry_write(&map->geometry, bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_parse(bytes, &map->geometry));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_fits(map, 1000));
    return file;
}

#endif

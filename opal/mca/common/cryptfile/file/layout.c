/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the things of a file lie: its data, and the entries, rooms and locks of its blocks.  The
 * rest of the engine asks here.  Everything follows from the geometry, which is part of the map.
 */
#include "file_object.h"

#include <errno.h>

/* ---- data ---- */

uint64_t opal_cryptfile_size_to(const opal_cryptfile_t *file, uint64_t end)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    uint64_t most = opal_cryptfile_geometry_most(geometry), bytes = opal_cryptfile_geometry_size(geometry, end);

    return bytes < most ? bytes : most;
}

int opal_cryptfile_size(opal_cryptfile_t *file, uint64_t *bytes)
{
    int rc = file->storage->size(file->storage, bytes);

    *bytes = OPAL_CRYPT_OK == rc ? opal_cryptfile_size_to(file, *bytes) : *bytes;
    return rc;
}

int opal_cryptfile_size_set(opal_cryptfile_t *file, uint64_t bytes)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);

    if (bytes > opal_cryptfile_geometry_most(geometry)) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    return file->storage->resize(file->storage, opal_cryptfile_geometry_end(geometry, bytes));
}

uint64_t opal_cryptfile_group_left(const opal_cryptfile_t *file, uint64_t offset)
{
    uint64_t data = opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file));

    return data - offset % data;
}

uint64_t opal_cryptfile_stand(const opal_cryptfile_t *file, uint32_t region, uint64_t offset)
{
    return opal_cryptfile_geometry_stand(opal_cryptfile_geometry_of(file), &file->map->regions[region].tiling, offset);
}

bool opal_cryptfile_locate(const opal_cryptfile_t *file, uint32_t region, uint64_t plain, uint64_t *offset, uint64_t *together)
{
    return opal_cryptfile_geometry_locate(opal_cryptfile_geometry_of(file), &file->map->regions[region].tiling, plain, offset, together);
}

/* ---- blocks of groups ---- */

/* The most blocks of a region that a group can have. */
static uint64_t in_group(const opal_cryptfile_t *file, uint32_t region)
{
    return opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file)) / file->map->regions[region].block_bytes;
}

static uint64_t group_of(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return block / in_group(file, region);
}

uint64_t opal_cryptfile_blocks_most(const opal_cryptfile_t *file, uint32_t region)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);

    return ((opal_cryptfile_geometry_most(geometry) - 1) / opal_cryptfile_geometry_data(geometry) + 1) * in_group(file, region);
}

uint32_t opal_cryptfile_capacity(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];

    if (block >= opal_cryptfile_blocks_most(file, region)) {
        return 0;
    }
    uint64_t before = block % in_group(file, region) * of->block_bytes;
    uint64_t bytes = opal_cryptfile_geometry_bytes(opal_cryptfile_geometry_of(file), &of->tiling, group_of(file, region, block));
    bytes = bytes > before ? bytes - before : 0;
    return bytes < of->block_bytes ? (uint32_t) bytes : of->block_bytes;
}

uint64_t opal_cryptfile_together(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    uint64_t blocks = opal_cryptfile_geometry_blocks(opal_cryptfile_geometry_of(file), &of->tiling, of->block_bytes, group_of(file, region, block));

    return blocks > block % in_group(file, region) ? blocks - block % in_group(file, region) : 0;
}

uint64_t opal_cryptfile_block_next(const opal_cryptfile_t *file, uint32_t region, uint64_t block, uint64_t end)
{
    while (block < end && 0 == opal_cryptfile_together(file, region, block)) {
        block = (group_of(file, region, block) + 1) * in_group(file, region);       /* past groups without blocks, too */
    }
    return block < end ? block : end;
}

uint64_t opal_cryptfile_block_offset(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    uint64_t offset = 0, together;

    (void) opal_cryptfile_locate(file, region, block * file->map->regions[region].block_bytes, &offset, &together);
    return offset;
}

uint64_t opal_cryptfile_entry_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return opal_cryptfile_geometry_entry_at(opal_cryptfile_geometry_of(file), group_of(file, region, block),
                                            opal_cryptfile_geometry_entry(file->map, region, block));
}

/* ---- locks ---- */

uint64_t opal_cryptfile_lock_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return opal_cryptfile_geometry_entry_lock(opal_cryptfile_entry_at(file, region, block));
}

void opal_cryptfile_locks_behind(const opal_cryptfile_t *file, uint64_t offset, uint64_t *at, uint64_t *count)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    uint64_t most = opal_cryptfile_geometry_most(geometry) - 1;
    uint64_t group = (offset < most ? offset : most) / opal_cryptfile_geometry_data(geometry);

    *at = opal_cryptfile_geometry_entry_lock(opal_cryptfile_geometry_entry_at(geometry, group, 0));
    *count = opal_cryptfile_geometry_head_lock(0) - *at;
}

/* ---- rooms ---- */

opal_cryptfile_redo_place_t opal_cryptfile_redo_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    uint64_t group = group_of(file, region, block);

    return number < 1 || number > geometry->redo_rooms ? (opal_cryptfile_redo_place_t){.head = 0}
           : (opal_cryptfile_redo_place_t){opal_cryptfile_geometry_head_at(geometry, group, number),
                                           opal_cryptfile_geometry_redo_at(geometry, group, number)};
}

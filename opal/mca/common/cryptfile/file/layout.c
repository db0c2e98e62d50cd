/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the things of a file lie: its data, and the entries, rooms and locks of its blocks.  The
 * rest of the engine asks here.
 *
 * A file with a sidecar is one endless group: its data part has nothing but the data, and its entries and rooms
 * are in segments.  In a file that is one file, which the kind of its map says, everything follows from the
 * geometry, and both parts are the same.
 */
#include "file_object.h"

#include <errno.h>

/* ---- data ---- */

int opal_cryptfile_size(opal_cryptfile_t *file, uint64_t *bytes)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);
    int rc = file->storage->size(file->storage, OPAL_CRYPTFILE_DATA, bytes);

    if (OPAL_CRYPT_OK == rc && NULL != one) {
        uint64_t most = opal_cryptfile_geometry_most(one);
        *bytes = opal_cryptfile_geometry_size(one, *bytes);
        *bytes = *bytes < most ? *bytes : most;
    }
    return rc;
}

int opal_cryptfile_size_set(opal_cryptfile_t *file, uint64_t bytes)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);

    if (NULL != one && bytes > opal_cryptfile_geometry_most(one)) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    return file->storage->resize(file->storage, OPAL_CRYPTFILE_DATA, NULL == one ? bytes : opal_cryptfile_geometry_end(one, bytes));
}

uint64_t opal_cryptfile_most(const opal_cryptfile_t *file)
{
    return NULL == opal_cryptfile_one(file) ? OPAL_CRYPTFILE_OFFSET_MAX : opal_cryptfile_geometry_most(opal_cryptfile_one(file));
}

uint64_t opal_cryptfile_place(const opal_cryptfile_t *file, uint64_t offset)
{
    return NULL == opal_cryptfile_one(file) ? offset : opal_cryptfile_geometry_place(opal_cryptfile_one(file), offset);
}

uint64_t opal_cryptfile_group_left(const opal_cryptfile_t *file, uint64_t offset)
{
    uint64_t data = NULL == opal_cryptfile_one(file) ? 0 : opal_cryptfile_geometry_data(opal_cryptfile_one(file));

    return 0 == data ? UINT64_MAX : data - offset % data;
}

uint64_t opal_cryptfile_stand(const opal_cryptfile_t *file, uint32_t region, uint64_t offset)
{
    const opal_cryptfile_tiling_t *tiling = &file->map->regions[region].tiling;

    return NULL == opal_cryptfile_one(file) ? opal_cryptfile_tiling_before(tiling, offset)
                                            : opal_cryptfile_geometry_stand(opal_cryptfile_one(file), tiling, offset);
}

bool opal_cryptfile_locate(const opal_cryptfile_t *file, uint32_t region, uint64_t plain, uint64_t *offset, uint64_t *together)
{
    const opal_cryptfile_tiling_t *tiling = &file->map->regions[region].tiling;

    return NULL == opal_cryptfile_one(file) ? opal_cryptfile_tiling_locate(tiling, plain, offset, together)
                                            : opal_cryptfile_geometry_locate(opal_cryptfile_one(file), tiling, plain, offset, together);
}

/* ---- blocks of groups ---- */

/* The most blocks of a region that a group can have. */
static uint64_t in_group(const opal_cryptfile_t *file, uint32_t region)
{
    return opal_cryptfile_geometry_data(&file->map->geometry) / file->map->regions[region].block_bytes;
}

static uint64_t group_of(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return block / in_group(file, region);
}

/* Where the entry of a block lies. */
static uint64_t one_entry_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return opal_cryptfile_geometry_entry_at(&file->map->geometry, group_of(file, region, block),
                                            opal_cryptfile_geometry_entry(file->map, region, block));
}

uint64_t opal_cryptfile_blocks_most(const opal_cryptfile_t *file, uint32_t region)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);

    return NULL == one ? OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX
                       : ((opal_cryptfile_geometry_most(one) - 1) / opal_cryptfile_geometry_data(one) + 1) * in_group(file, region);
}

uint32_t opal_cryptfile_capacity(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);

    if (NULL == one) {
        return of->block_bytes;
    }
    if (block >= opal_cryptfile_blocks_most(file, region)) {
        return 0;
    }
    uint64_t before = block % in_group(file, region) * of->block_bytes;
    uint64_t bytes = opal_cryptfile_geometry_bytes(one, &of->tiling, group_of(file, region, block));
    bytes = bytes > before ? bytes - before : 0;
    return bytes < of->block_bytes ? (uint32_t) bytes : of->block_bytes;
}

uint64_t opal_cryptfile_together(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    opal_cryptfile_sidecar_index_t index = {0};

    if (NULL == opal_cryptfile_one(file)) {
        (void) opal_cryptfile_sidecar_index(block, &index);
        return index.blocks;
    }
    uint64_t blocks = opal_cryptfile_geometry_blocks(&file->map->geometry, &of->tiling, of->block_bytes, group_of(file, region, block));
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

int opal_cryptfile_entry_at(opal_cryptfile_t *file, uint32_t region, uint64_t block, bool make, uint64_t *at)
{
    opal_cryptfile_sidecar_index_t index;

    *at = 0;
    if (NULL != opal_cryptfile_one(file) && 0 != opal_cryptfile_capacity(file, region, block)) {
        *at = one_entry_at(file, region, block);
        return OPAL_CRYPT_OK;
    }
    if (NULL != opal_cryptfile_one(file) || !opal_cryptfile_sidecar_index(block, &index)) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    int rc = opal_cryptfile_segment(file, region, false, index.segment, make, at);
    *at = OPAL_CRYPT_OK != rc || 0 == *at ? 0 : opal_cryptfile_sidecar_entry_at(*at, index.within);
    return rc;
}

/* ---- locks ---- */

uint64_t opal_cryptfile_lock_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    return NULL == opal_cryptfile_one(file) ? opal_cryptfile_sidecar_lock_at(region, block)
                                            : opal_cryptfile_geometry_entry_lock(one_entry_at(file, region, block));
}

/* In one file, the locks of all regions are mixed: the first encrypted region's range has all that are beyond. */
bool opal_cryptfile_locks_behind(const opal_cryptfile_t *file, uint32_t region, uint64_t offset, uint64_t *at, uint64_t *count)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);

    if (NULL == one) {
        uint64_t first = opal_cryptfile_stand(file, region, offset) / file->map->regions[region].block_bytes;
        /* Other locks follow these. */
        first = first < OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX ? first : OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX - 1;
        *at = opal_cryptfile_sidecar_lock_at(region, first);
        *count = OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX - first;
        return true;
    }
    for (uint32_t i = 0; i < region; ++i) {
        if (file->map->regions[i].encrypted) {
            return false;
        }
    }
    uint64_t most = opal_cryptfile_geometry_most(one) - 1;
    uint64_t group = (offset < most ? offset : most) / opal_cryptfile_geometry_data(one);
    *at = opal_cryptfile_geometry_entry_lock(opal_cryptfile_geometry_entry_at(one, group, 0));
    *count = opal_cryptfile_geometry_head_lock(0) - *at;
    return true;
}

/* ---- rooms ---- */

int opal_cryptfile_set_at(opal_cryptfile_t *file, uint32_t region, uint32_t set, bool make, uint64_t *at)
{
    uint64_t within;
    unsigned segment = opal_cryptfile_sidecar_set_segment(set, &within);
    int rc = opal_cryptfile_segment(file, region, true, segment, make, at);

    *at += 0 == *at ? 0 : within * opal_cryptfile_sidecar_set_bytes(file->map->regions[region].block_bytes);
    return rc;
}

int opal_cryptfile_room_at(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number, opal_cryptfile_room_place_t *place)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);
    uint32_t block_bytes = file->map->regions[region].block_bytes, within;
    uint64_t set_at = 0;

    if (NULL != one) {
        bool there = number >= 1 && number <= one->rooms;
        place->head = there ? opal_cryptfile_geometry_head_at(one, group_of(file, region, block), number) : 0;
        place->cipher = there ? opal_cryptfile_geometry_room_at(one, group_of(file, region, block), number) : 0;
        return OPAL_CRYPT_OK;
    }
    uint32_t set = opal_cryptfile_sidecar_room_set(number, block_bytes, &within);
    int rc = set < OPAL_CRYPTFILE_SIDECAR_SETS ? opal_cryptfile_set_at(file, region, set, false, &set_at) : OPAL_CRYPT_OK;
    place->head = OPAL_CRYPT_OK != rc || 0 == set_at ? 0 : opal_cryptfile_sidecar_room_at(set_at, within, block_bytes);
    place->cipher = place->head + OPAL_CRYPTFILE_ROOM_HEAD_BYTES;
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the things of a file lie: its data, and the entries, rooms and locks of its blocks.  The
 * rest of the engine asks here.
 */
#include "file_object.h"

#include <errno.h>

/* ---- data ---- */

int opal_cryptfile_size(opal_cryptfile_t *file, uint64_t *bytes)
{
    return file->storage->size(file->storage, OPAL_CRYPTFILE_DATA, bytes);
}

int opal_cryptfile_size_set(opal_cryptfile_t *file, uint64_t bytes)
{
    return file->storage->resize(file->storage, OPAL_CRYPTFILE_DATA, bytes);
}

uint64_t opal_cryptfile_place(const opal_cryptfile_t *file, uint64_t offset)
{
    (void) file;
    return offset;
}

uint64_t opal_cryptfile_group_left(const opal_cryptfile_t *file, uint64_t offset)
{
    (void) file;
    (void) offset;
    return UINT64_MAX;                  /* one group without an end */
}

uint64_t opal_cryptfile_stand(const opal_cryptfile_t *file, uint32_t region, uint64_t offset)
{
    return opal_cryptfile_tiling_before(&file->map->regions[region].tiling, offset);
}

bool opal_cryptfile_locate(const opal_cryptfile_t *file, uint32_t region, uint64_t plain, uint64_t *offset, uint64_t *together)
{
    return opal_cryptfile_tiling_locate(&file->map->regions[region].tiling, plain, offset, together);
}

/* ---- blocks ---- */

uint64_t opal_cryptfile_blocks_most(const opal_cryptfile_t *file, uint32_t region)
{
    (void) file;
    (void) region;
    return OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX;
}

uint32_t opal_cryptfile_capacity(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    (void) block;
    return file->map->regions[region].block_bytes;
}

uint64_t opal_cryptfile_lock_at(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    (void) file;
    return opal_cryptfile_sidecar_lock_at(region, block);
}

uint64_t opal_cryptfile_together(const opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    opal_cryptfile_sidecar_index_t index = {0};

    (void) file;
    (void) region;
    (void) opal_cryptfile_sidecar_index(block, &index);
    return index.blocks;
}

int opal_cryptfile_entry_at(opal_cryptfile_t *file, uint32_t region, uint64_t block, bool make, uint64_t *at)
{
    opal_cryptfile_sidecar_index_t index;

    *at = 0;
    if (!opal_cryptfile_sidecar_index(block, &index)) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    int rc = opal_cryptfile_segment(file, region, false, index.segment, make, at);
    *at = OPAL_CRYPT_OK != rc || 0 == *at ? 0 : opal_cryptfile_sidecar_entry_at(*at, index.within);
    return rc;
}

int opal_cryptfile_room_at(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number, opal_cryptfile_room_place_t *place)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes, within;
    uint32_t set = opal_cryptfile_sidecar_room_set(number, block_bytes, &within);
    uint64_t set_at = 0;

    (void) block;
    int rc = set < OPAL_CRYPTFILE_SIDECAR_SETS ? opal_cryptfile_set_at(file, region, set, false, &set_at) : OPAL_CRYPT_OK;
    place->head = OPAL_CRYPT_OK != rc || 0 == set_at ? 0 : opal_cryptfile_sidecar_room_at(set_at, within, block_bytes);
    place->cipher = place->head + OPAL_CRYPTFILE_ROOM_HEAD_BYTES;
    return rc;
}

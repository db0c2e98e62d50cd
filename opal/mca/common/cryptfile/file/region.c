/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The arithmetic of regions: see cryptfile/file/region.h for the drawing.  Called
 * for every piece of every read and write, so each question is answered by
 * one division and one binary search.  No I/O happens here.
 */
#include "map.h"

#include <stdlib.h>
#include <string.h>

/* The last run that starts at or before `offset`; run 0 starts at 0. */
static uint32_t last_run(const opal_cryptfile_tiling_t *tiling, uint64_t offset)
{
    uint32_t low = 0, high = tiling->run_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (tiling->runs[middle].offset <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The run that holds byte `packed` of a tile. */
static uint32_t run_of(const opal_cryptfile_tiling_t *tiling, uint64_t packed)
{
    uint32_t low = 0, high = tiling->run_count;

    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (tiling->runs[middle].packed <= packed) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool contiguous(const opal_cryptfile_tiling_t *tiling)
{
    return tiling->tile_bytes == tiling->extent;
}

uint64_t opal_cryptfile_tiling_before(const opal_cryptfile_tiling_t *tiling,
                                      uint64_t file_offset)
{
    if (file_offset <= tiling->displacement) {
        return 0;
    }
    uint64_t tile = (file_offset - tiling->displacement) / tiling->extent;
    uint64_t within = (file_offset - tiling->displacement) % tiling->extent;
    if (tiling->once && tile > 0) {
        return tiling->tile_bytes;
    }
    const opal_cryptfile_run_t *run = &tiling->runs[last_run(tiling, within)];
    uint64_t inside = within < opal_cryptfile_run_end(run) ? within - run->offset : run->bytes;
    return tile * tiling->tile_bytes + run->packed + inside;
}

bool opal_cryptfile_tiling_locate(const opal_cryptfile_tiling_t *tiling, uint64_t plain,
                                  uint64_t *file_offset, uint64_t *file_bytes)
{
    uint64_t tile = plain / tiling->tile_bytes, within = plain % tiling->tile_bytes;

    if (tiling->once && tile > 0) {
        return false;
    }
    if (!tiling->once && contiguous(tiling)) {
        *file_offset = tiling->displacement + plain;
        *file_bytes = UINT64_MAX;
        return true;
    }
    const opal_cryptfile_run_t *run = &tiling->runs[run_of(tiling, within)];
    *file_offset = tiling->displacement + tile * tiling->extent + run->offset + (within - run->packed);
    *file_bytes = run->bytes - (within - run->packed);
    return true;
}

bool opal_cryptfile_tiling_find(const opal_cryptfile_tiling_t *tiling, uint64_t file_offset,
                                uint64_t *plain, uint64_t *file_bytes)
{
    if (file_offset < tiling->displacement) {
        *file_bytes = tiling->displacement - file_offset;
        return false;
    }
    uint64_t tile = (file_offset - tiling->displacement) / tiling->extent;
    uint64_t within = (file_offset - tiling->displacement) % tiling->extent;
    if (tiling->once && tile > 0) {
        *file_bytes = UINT64_MAX;
        return false;
    }
    if (!tiling->once && contiguous(tiling)) {
        *plain = file_offset - tiling->displacement;
        *file_bytes = UINT64_MAX;
        return true;
    }
    uint32_t index = last_run(tiling, within);
    const opal_cryptfile_run_t *run = &tiling->runs[index];
    if (within < opal_cryptfile_run_end(run)) {
        *plain = tile * tiling->tile_bytes + run->packed + (within - run->offset);
        *file_bytes = opal_cryptfile_run_end(run) - within;
        return true;
    }
    if (index + 1 < tiling->run_count) {
        *file_bytes = run[1].offset - within;
    } else {
        *file_bytes = tiling->once ? UINT64_MAX : tiling->extent - within;
    }
    return false;
}

bool opal_cryptfile_map_find(const opal_cryptfile_map_t *map, uint32_t *hint, uint64_t file_offset,
                             uint32_t *region, uint64_t *plain, uint64_t *file_bytes)
{
    uint64_t nearest = UINT64_MAX;
    uint32_t rest = UINT32_MAX;

    for (uint32_t k = 0; k < map->region_count; ++k) {
        uint32_t i = (*hint + k) % map->region_count;
        uint64_t same;
        if (0 == map->regions[i].tiling.run_count) {
            rest = i;
        } else if (opal_cryptfile_tiling_find(&map->regions[i].tiling, file_offset, plain, &same)) {
            *region = *hint = i;
            *file_bytes = same;
            return true;
        } else if (same < nearest) {
            nearest = same;
        }
    }
    *file_bytes = nearest;
    *region = rest;
    *plain = file_offset;
    return UINT32_MAX != rest;
}

bool opal_cryptfile_tiling_same(const opal_cryptfile_tiling_t *a,
                                const opal_cryptfile_tiling_t *b)
{
    if (a->displacement != b->displacement || a->extent != b->extent || a->once != b->once ||
        a->run_count != b->run_count) {
        return false;
    }
    for (uint32_t i = 0; i < a->run_count; ++i) {
        if (a->runs[i].offset != b->runs[i].offset || a->runs[i].bytes != b->runs[i].bytes) {
            return false;
        }
    }
    return true;
}

void opal_cryptfile_tiling_free(opal_cryptfile_tiling_t *tiling)
{
    free(tiling->runs);
    memset(tiling, 0, sizeof(*tiling));
}

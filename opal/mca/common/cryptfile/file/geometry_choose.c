/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which geometry a new file gets.  Readers take any valid one that fits the map, so nothing here is part of the format.
 *
 * By default a group of 16 MiB has 252 blocks of 64 KiB.  T, and with it D, is a multiple of the largest block, so that
 * every B divides D; of 256 KiB, the part that aggregators use; and of the period after which all repeating regions
 * have had a whole number of blocks, so that the end of a group cuts few blocks short.
 */
#include "geometry.h"
#include "map.h"

#include <string.h>

#define MIB (UINT64_C(1) << 20)

enum { FREE_AT = 28672, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES, SMALL_MAP = 3072, SMALL_ROOTS = 13, PAGE = 4096, PART = 262144 };
enum { REDO_BYTES = 196608 };           /* of ciphertext in rooms, or at least three rooms */

static uint64_t up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

typedef struct sizes {
    uint32_t smallest, largest, encrypted;
    uint64_t period;                    /* 0: no period, or not a power of two */
} sizes_t;

static sizes_t sizes_of(const opal_cryptfile_map_t *map)
{
    sizes_t sizes = {.smallest = UINT32_MAX};
    uint64_t extent = 0;
    bool same = true;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        if (!region->encrypted) {
            continue;
        }
        sizes.smallest = region->block_bytes < sizes.smallest ? region->block_bytes : sizes.smallest;
        sizes.largest = region->block_bytes > sizes.largest ? region->block_bytes : sizes.largest;
        same = same && !region->tiling.once && region->tiling.extent <= 64 * MIB && (0 == sizes.encrypted || region->tiling.extent == extent);
        extent = region->tiling.extent;
        ++sizes.encrypted;
        if (same) {
            const uint64_t shared = opal_cryptfile_gcd(region->block_bytes, region->tiling.tile_bytes);
            sizes.period = larger(sizes.period, extent * (region->block_bytes / shared));
        }
    }
    sizes.period = same && sizes.period <= 64 * MIB && 0 == (sizes.period & (sizes.period - 1)) ? sizes.period : 0;
    return sizes;
}

/* The smallest T that has room for all entries; G if no T has.  `map` has G and T meanwhile. */
static int choose_control(opal_cryptfile_map_t *map, const sizes_t *sizes)
{
    opal_cryptfile_geometry_t *g = &map->geometry;
    uint64_t part = g->group_bytes / 64 < PART ? g->group_bytes / 64 : PART;
    uint64_t unit = larger(larger(sizes->largest, part), larger(sizes->period, PAGE)), active;

    for (g->control_bytes = unit; g->control_bytes < g->group_bytes;) {
        int rc = opal_cryptfile_geometry_active(map, &active);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        uint64_t entries = up(opal_cryptfile_geometry_data(g) / sizes->smallest + active + 32, 32);
        uint64_t more = up(FREE_AT + (uint64_t) g->redo_rooms * g->redo_bytes + ENTRY * entries, unit);
        if (more <= g->control_bytes) {
            break;
        }
        g->control_bytes = more;
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_geometry_choose(opal_cryptfile_map_t *map, size_t map_bytes)
{
    opal_cryptfile_geometry_t *g = &map->geometry;
    const sizes_t sizes = sizes_of(map);
    uint32_t redo_rooms = REDO_BYTES / sizes.largest;

    redo_rooms = redo_rooms < 3 ? 3 : redo_rooms > OPAL_CRYPTFILE_REDO_ROOMS_MAX ? OPAL_CRYPTFILE_REDO_ROOMS_MAX : redo_rooms;
    *g = (opal_cryptfile_geometry_t){.group_bytes = larger(16 * MIB, 256 * (uint64_t) sizes.largest), .redo_rooms = redo_rooms,
                                     .redo_bytes = sizes.largest, .map_bytes = SMALL_MAP};
    for (;; g->group_bytes *= 2) {      /* with small blocks a third is entries, with many regions more */
        int rc = choose_control(map, &sizes);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        if (g->control_bytes <= g->group_bytes / (sizes.smallest < PAGE ? 3 : 16)) {
            break;
        }
    }
    g->entries = (uint32_t) ((g->control_bytes - FREE_AT - (uint64_t) g->redo_rooms * g->redo_bytes) / ENTRY / 32 * 32);
    if (map_bytes + 4 > SMALL_MAP || sizes.encrypted > SMALL_ROOTS) {
        uint32_t roots = 2 * sizes.encrypted < OPAL_CRYPTFILE_REGIONS_MAX ? 2 * sizes.encrypted : OPAL_CRYPTFILE_REGIONS_MAX;
        g->map_bytes = (uint32_t) up(2 * (map_bytes + 4), PAGE);
        g->header_bytes = up(PAGE + 2 * (uint64_t) g->map_bytes + 80 + (uint64_t) OPAL_CRYPT_HASH_BYTES * roots, MIB);
    }
    return OPAL_CRYPT_OK;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All offset arithmetic: see cryptfile/file/geometry.h
 * for the drawing.  No I/O.
 */
#include "geometry.h"
#include "map.h"
#include "opal/mca/common/crypt/base/le.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define put32 opal_crypt_le_put32
#define put64 opal_crypt_le_put64
#define get32 opal_crypt_le_get32
#define get64 opal_crypt_le_get64

#define MIB (UINT64_C(1) << 20)

typedef opal_cryptfile_geometry_t geometry_t;

enum { FIRST_BYTES = 8192, TABLE_BYTES = 4096, HEADS_AT = 24576, FREE_AT = 28672, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };
/* In the header area, for a small map (H is 0) and a large one. */
enum { SMALL_MAP = 3072, SMALL_SEAL_AT = 512, SMALL_MAP_AT = 1024, SMALL_MAP_1_AT = 4096, LARGE_MAP_AT = 4096 };
enum { SEAL_BYTES = 80, ROOT_BYTES = OPAL_CRYPT_HASH_BYTES };

static_assert(3 * 8 + 4 * 4 == OPAL_CRYPTFILE_GEOMETRY_BYTES, "geometry");
static_assert(SMALL_MAP_AT + SMALL_MAP == SMALL_MAP_1_AT && SMALL_MAP_1_AT + SMALL_MAP <= FIRST_BYTES, "small map places");
static_assert(FIRST_BYTES + 4 * TABLE_BYTES == HEADS_AT, "tables of four levels");
static_assert(HEADS_AT + OPAL_CRYPTFILE_REDO_ROOMS_MAX * ENTRY <= FREE_AT, "heads of rooms");

/* ---- the geometry itself ---- */

static bool two_to_some(uint64_t value, uint64_t least, uint64_t most)
{
    return value >= least && value <= most && 0 == (value & (value - 1));
}

static bool header_valid(const geometry_t *g)
{
    if (0 == g->header_bytes) {
        return SMALL_MAP == g->map_bytes;
    }
    return 0 == g->header_bytes % MIB && g->header_bytes <= UINT64_C(1) << 32 && 0 == g->map_bytes % 4096 && g->map_bytes >= 4096 &&
           g->map_bytes <= 64 * MIB && LARGE_MAP_AT + 2 * (uint64_t) g->map_bytes + SEAL_BYTES + ROOT_BYTES <= g->header_bytes;
}

/* All values are bounded before the last line multiplies and adds them, so that it cannot overflow. */
static bool geometry_valid(const geometry_t *g)
{
    return two_to_some(g->group_bytes, MIB, UINT64_C(1) << 36) && two_to_some(g->redo_bytes, OPAL_CRYPTFILE_BLOCK_MIN, OPAL_CRYPTFILE_BLOCK_MAX) &&
           g->redo_rooms >= 1 && g->redo_rooms <= OPAL_CRYPTFILE_REDO_ROOMS_MAX && g->entries >= 32 && g->entries < UINT32_C(1) << 31 &&
           0 == g->entries % 32 && g->control_bytes > 0 && g->control_bytes < g->group_bytes && 0 == g->control_bytes % 4096 &&
           0 == g->control_bytes % g->redo_bytes && header_valid(g) &&
           FREE_AT + (uint64_t) g->redo_rooms * g->redo_bytes + (uint64_t) ENTRY * g->entries <= g->control_bytes;
}

void opal_cryptfile_geometry_write(const geometry_t *g, uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES])
{
    put64(bytes, g->group_bytes);
    put64(bytes + 8, g->control_bytes);
    put64(bytes + 16, g->header_bytes);
    put32(bytes + 24, g->map_bytes);
    put32(bytes + 28, g->entries);
    put32(bytes + 32, g->redo_rooms);
    put32(bytes + 36, g->redo_bytes);
}

int opal_cryptfile_geometry_parse(const uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES], geometry_t *g)
{
    *g = (geometry_t){get64(bytes), get64(bytes + 8), get64(bytes + 16), get32(bytes + 24), get32(bytes + 28), get32(bytes + 32), get32(bytes + 36)};
    return geometry_valid(g) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

bool opal_cryptfile_geometry_same(const geometry_t *a, const geometry_t *b)
{
    uint8_t one[OPAL_CRYPTFILE_GEOMETRY_BYTES], two[OPAL_CRYPTFILE_GEOMETRY_BYTES];

    opal_cryptfile_geometry_write(a, one);
    opal_cryptfile_geometry_write(b, two);
    return 0 == memcmp(one, two, sizeof(one));
}

/* ---- bytes ---- */

uint64_t opal_cryptfile_geometry_size(const geometry_t *g, uint64_t end)
{
    uint64_t behind = end > g->header_bytes ? end - g->header_bytes : 0, within = behind % g->group_bytes;

    return behind / g->group_bytes * opal_cryptfile_geometry_data(g) + (within > g->control_bytes ? within - g->control_bytes : 0);
}

uint64_t opal_cryptfile_geometry_most(const geometry_t *g)
{
    return opal_cryptfile_geometry_size(g, OPAL_CRYPTFILE_END_MAX);
}

static uint64_t control_at(const geometry_t *g, uint64_t group)
{
    return g->header_bytes + group * g->group_bytes;
}

uint64_t opal_cryptfile_geometry_place(const geometry_t *g, uint64_t offset)
{
    uint64_t data = opal_cryptfile_geometry_data(g);

    return control_at(g, offset / data) + g->control_bytes + offset % data;
}

uint64_t opal_cryptfile_geometry_end(const geometry_t *g, uint64_t bytes)
{
    uint64_t none = g->header_bytes > FIRST_BYTES ? g->header_bytes : FIRST_BYTES;

    return 0 == bytes ? none : opal_cryptfile_geometry_place(g, bytes - 1) + 1;
}

/* ---- header area ---- */

uint64_t opal_cryptfile_geometry_map_at(const geometry_t *g, unsigned place)
{
    if (0 == g->header_bytes) {
        return 0 == place ? SMALL_MAP_AT : SMALL_MAP_1_AT;
    }
    return LARGE_MAP_AT + place * (uint64_t) g->map_bytes;
}

uint64_t opal_cryptfile_geometry_seal_at(const geometry_t *g)
{
    return 0 == g->header_bytes ? SMALL_SEAL_AT : opal_cryptfile_geometry_map_at(g, 2);
}

uint32_t opal_cryptfile_geometry_roots(const geometry_t *g)
{
    uint64_t end = 0 == g->header_bytes ? SMALL_MAP_AT : g->header_bytes;
    uint64_t roots = (end - opal_cryptfile_geometry_seal_at(g) - SEAL_BYTES) / ROOT_BYTES;

    return roots < OPAL_CRYPTFILE_REGIONS_MAX ? (uint32_t) roots : OPAL_CRYPTFILE_REGIONS_MAX;
}

/* ---- control areas ---- */

uint64_t opal_cryptfile_geometry_entry_at(const geometry_t *g, uint64_t group, uint64_t entry)
{
    return control_at(g, group) + g->control_bytes - ENTRY * (g->entries - entry);
}

uint64_t opal_cryptfile_geometry_head_at(const geometry_t *g, uint64_t group, uint32_t redo)
{
    return control_at(g, group) + HEADS_AT + (uint64_t) ENTRY * (redo - 1);
}

uint64_t opal_cryptfile_geometry_redo_at(const geometry_t *g, uint64_t group, uint32_t redo)
{
    return opal_cryptfile_geometry_entry_at(g, group, 0) - (uint64_t) (g->redo_rooms - redo + 1) * g->redo_bytes;
}

uint64_t opal_cryptfile_geometry_table_at(const geometry_t *g, unsigned level, uint64_t node)
{
    return control_at(g, node << 7 * level) + FIRST_BYTES + TABLE_BYTES * (level - 1);
}

/* ---- a region's blocks ---- */

uint64_t opal_cryptfile_geometry_stand(const geometry_t *g, const opal_cryptfile_tiling_t *tiling, uint64_t offset)
{
    uint64_t start = offset - offset % opal_cryptfile_geometry_data(g);

    return start + opal_cryptfile_tiling_before(tiling, offset) - opal_cryptfile_tiling_before(tiling, start);
}

uint64_t opal_cryptfile_geometry_bytes(const geometry_t *g, const opal_cryptfile_tiling_t *tiling, uint64_t group)
{
    uint64_t data = opal_cryptfile_geometry_data(g);

    return opal_cryptfile_tiling_before(tiling, (group + 1) * data) - opal_cryptfile_tiling_before(tiling, group * data);
}

bool opal_cryptfile_geometry_locate(const geometry_t *g, const opal_cryptfile_tiling_t *tiling, uint64_t stand,
                                    uint64_t *offset, uint64_t *together)
{
    uint64_t data = opal_cryptfile_geometry_data(g), group = stand / data, within = stand % data;

    if (within >= opal_cryptfile_geometry_bytes(g, tiling, group) ||
        !opal_cryptfile_tiling_locate(tiling, opal_cryptfile_tiling_before(tiling, group * data) + within, offset, together)) {
        return false;
    }
    uint64_t left = (group + 1) * data - *offset;
    *together = *together < left ? *together : left;
    return true;
}

uint64_t opal_cryptfile_geometry_blocks(const geometry_t *g, const opal_cryptfile_tiling_t *tiling, uint32_t block_bytes, uint64_t group)
{
    return (opal_cryptfile_geometry_bytes(g, tiling, group) + block_bytes - 1) / block_bytes;
}

/* ---- all regions of a map ---- */

static int by_group(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *) a, right = *(const uint64_t *) b;

    return left < right ? -1 : left > right;
}

int opal_cryptfile_geometry_active(const opal_cryptfile_map_t *map, uint64_t *most)
{
    uint64_t data = opal_cryptfile_geometry_data(&map->geometry), *first = calloc(2 * (size_t) map->region_count, sizeof(*first));
    size_t count = 0, ended = 0;

    if (NULL == first) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    uint64_t *last = first + map->region_count;
    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_tiling_t *tiling = &map->regions[i].tiling;
        if (map->regions[i].encrypted) {
            first[count] = tiling->displacement / data;
            last[count++] = tiling->once ? (tiling->displacement + tiling->extent - 1) / data : UINT64_MAX;
        }
    }
    qsort(first, count, sizeof(*first), by_group);
    qsort(last, count, sizeof(*last), by_group);
    *most = 0;
    for (size_t i = 0; i < count; ++i) {
        while (last[ended] < first[i]) {
            ++ended;
        }
        *most = i + 1 - ended > *most ? i + 1 - ended : *most;
    }
    free(first);
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_geometry_fits(const opal_cryptfile_map_t *map, size_t map_bytes)
{
    const geometry_t *g = &map->geometry;
    uint32_t smallest = UINT32_MAX, largest = 0, encrypted = 0;
    uint64_t active;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        uint32_t block_bytes = map->regions[i].block_bytes;
        if (map->regions[i].encrypted) {
            smallest = block_bytes < smallest ? block_bytes : smallest;
            largest = block_bytes > largest ? block_bytes : largest;
            ++encrypted;
        }
    }
    if (0 == encrypted || largest > g->redo_bytes || encrypted > opal_cryptfile_geometry_roots(g) || map_bytes > g->map_bytes - 4 ||
        map_bytes > OPAL_CRYPTFILE_MAP_MAX_BYTES - 4) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    int rc = opal_cryptfile_geometry_active(map, &active);
    return OPAL_CRYPT_OK == rc && opal_cryptfile_geometry_data(g) / smallest + active > g->entries ? OPAL_CRYPT_ERR_AUTH : rc;
}

uint64_t opal_cryptfile_geometry_entry(const opal_cryptfile_map_t *map, uint32_t region, uint64_t block)
{
    uint64_t in_group = opal_cryptfile_geometry_data(&map->geometry) / map->regions[region].block_bytes;
    uint64_t entry = block % in_group;

    for (uint32_t i = 0; i < region; ++i) {
        if (map->regions[i].encrypted) {
            entry += opal_cryptfile_geometry_blocks(&map->geometry, &map->regions[i].tiling, map->regions[i].block_bytes, block / in_group);
        }
    }
    return entry;
}

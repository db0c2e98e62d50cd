/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The arithmetic of files that are one file, on random maps.  Each map twice: with groups of a few
 * bytes, where every byte is counted by hand, and with a valid geometry, at random places and at
 * the very end.
 */
#include "opal/mca/common/cryptfile/file/header.h"
#include "tests/unit/unit.h"

enum { MAPS = 10000, REGIONS = 8, RUNS = 4, GROUPS = 4 };

static uint64_t state = 1;
static unsigned long wrong;

#define EXPECT(condition) ((condition) ? 0 : (wrong++, fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition)))

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 8) % below;
}

/* ---- random maps ---- */

static void add_region_at(opal_cryptfile_map_t *map, uint64_t displacement, uint64_t extent, bool once, const opal_cryptfile_run_t *runs,
                          uint32_t run_count, uint32_t block_bytes)
{
    opal_cryptfile_region_t *region = &map->regions[map->region_count++];

    UNIT_REQUIRE(map->region_count <= REGIONS);
    *region = (opal_cryptfile_region_t){.encrypted = true, .block_bytes = block_bytes};
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&region->tiling, displacement, extent, once, runs, run_count, NULL));
}

/* Cut [at, at + extent) into runs of up to three regions, and of no region. */
static void add_cut(opal_cryptfile_map_t *map, uint64_t at, uint64_t extent, bool once, bool small)
{
    opal_cryptfile_run_t runs[3][RUNS];
    uint32_t count[3] = {0, 0, 0};
    static const uint32_t sizes[2][4] = {{512, 4096, 65536, 1 << 20}, {1, 2, 4, 8}};

    for (uint64_t from = 0; from < extent;) {
        uint64_t bytes = 1 + draw(extent / 4 + 1), who = draw(4);
        bytes = bytes < extent - from ? bytes : extent - from;
        if (who < 3 && count[who] < RUNS) {
            runs[who][count[who]++] = (opal_cryptfile_run_t){.offset = from, .bytes = bytes};
        }
        from += bytes;
    }
    for (unsigned who = 0; who < 3; ++who) {
        if (count[who] > 0) {
            add_region_at(map, at, extent, once, runs[who], count[who], sizes[small][draw(4)]);
        }
    }
}

/* Disjoint regions: some of one tile, then a repeating tile of others.  A plain one is between them. */
static void make_random(opal_cryptfile_map_t *map, bool small)
{
    uint64_t at = draw(2) * draw(small ? 20 : 5000), extent = 1 + draw(small ? 30 : 1u << (7 + draw(20)));
    opal_cryptfile_run_t all = {.bytes = 1};

    *map = (opal_cryptfile_map_t){.regions = calloc(REGIONS, sizeof(*map->regions))};
    if (0 == draw(3)) {
        add_cut(map, at, extent, true, small);
        at += extent;
    }
    map->regions[map->region_count++] = (opal_cryptfile_region_t){.encrypted = false};
    if (0 == draw(3)) {
        add_region_at(map, at, 1, false, &all, 1, small ? 4 : 65536);
    } else {
        add_cut(map, at, 1 + draw(extent), false, small);
    }
    if (map->region_count < 2) {
        add_region_at(map, at, 1, false, &all, 1, small ? 2 : 4096);
    }
}

static void drop_map(opal_cryptfile_map_t *map)
{
    for (uint32_t i = 0; i < map->region_count; ++i) {
        opal_cryptfile_tiling_free(&map->regions[i].tiling);
    }
    free(map->regions);
}

static void block_sizes(const opal_cryptfile_map_t *map, uint32_t *smallest, uint32_t *largest)
{
    *smallest = UINT32_MAX;
    *largest = 0;
    for (uint32_t i = 0; i < map->region_count; ++i) {
        uint32_t block_bytes = map->regions[i].block_bytes;
        if (map->regions[i].encrypted) {
            *smallest = block_bytes < *smallest ? block_bytes : *smallest;
            *largest = block_bytes > *largest ? block_bytes : *largest;
        }
    }
}

/* ---- counted by hand ---- */

static bool is_member(const opal_cryptfile_tiling_t *tiling, uint64_t offset)
{
    for (uint64_t tile = tiling->displacement; tile <= offset; tile += tiling->extent) {
        for (uint32_t i = 0; i < tiling->run_count; ++i) {
            uint64_t from = tile + tiling->runs[i].offset;
            if (offset >= from && offset < from + tiling->runs[i].bytes) {
                return true;
            }
        }
        if (tiling->once) {
            break;
        }
    }
    return false;
}

static void count_region(const opal_cryptfile_map_t *map, uint32_t number, uint64_t group, uint64_t *entries)
{
    const opal_cryptfile_geometry_t *g = &map->geometry;
    const opal_cryptfile_region_t *region = &map->regions[number];
    uint64_t data = opal_cryptfile_geometry_data(g), in_group = data / region->block_bytes, bytes = 0, back, together;

    for (uint64_t o = group * data; o < (group + 1) * data; ++o) {
        uint64_t stand = opal_cryptfile_geometry_stand(g, &region->tiling, o);
        EXPECT(stand == group * data + bytes);
        if (is_member(&region->tiling, o)) {
            EXPECT(opal_cryptfile_geometry_locate(g, &region->tiling, stand, &back, &together) && back == o);
            EXPECT(together > 0 && back + together <= (group + 1) * data && is_member(&region->tiling, o + together - 1));
            uint64_t k = bytes++ / region->block_bytes, block = group * in_group + k;
            EXPECT(stand / region->block_bytes == block && opal_cryptfile_geometry_entry(map, number, block) == *entries + k);
        }
    }
    EXPECT(!opal_cryptfile_geometry_locate(g, &region->tiling, group * data + bytes, &back, &together) || bytes == data);
    EXPECT(bytes == opal_cryptfile_geometry_bytes(g, &region->tiling, group));
    uint64_t blocks = (bytes + region->block_bytes - 1) / region->block_bytes;
    EXPECT(blocks == opal_cryptfile_geometry_blocks(g, &region->tiling, region->block_bytes, group));
    *entries += blocks;
}

/* All regions begin before offset 200. */
static uint64_t most_active_by_hand(const opal_cryptfile_map_t *map)
{
    uint64_t data = opal_cryptfile_geometry_data(&map->geometry), most = 0;

    for (uint64_t group = 0; group * data < 200; ++group) {
        uint64_t active = 0;
        for (uint32_t i = 0; i < map->region_count; ++i) {
            const opal_cryptfile_tiling_t *tiling = &map->regions[i].tiling;
            active += map->regions[i].encrypted && tiling->displacement < (group + 1) * data &&
                      (!tiling->once || tiling->displacement + tiling->extent > group * data);
        }
        most = active > most ? active : most;
    }
    return most;
}

/* The smallest number of entries fits, and one less does not. */
static void check_fits(opal_cryptfile_map_t *map, uint32_t smallest)
{
    const opal_cryptfile_geometry_t kept = map->geometry;
    opal_cryptfile_geometry_t *g = &map->geometry;

    g->header_bytes = 0;
    g->entries = (uint32_t) (opal_cryptfile_geometry_data(g) / smallest + most_active_by_hand(map));
    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_fits(map, 200));
    --g->entries;
    EXPECT(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_geometry_fits(map, 200));
    ++g->entries;
    g->redo_bytes /= 2;
    EXPECT(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_geometry_fits(map, 200));
    *g = kept;
}

static void by_hand(void)
{
    opal_cryptfile_map_t map;
    uint32_t smallest, largest;
    uint64_t below = 0, last = 0;

    make_random(&map, true);
    block_sizes(&map, &smallest, &largest);
    uint64_t data = largest * (1 + draw(6)), control = largest * (1 + draw(3));
    opal_cryptfile_geometry_t *g = &map.geometry;
    *g = (opal_cryptfile_geometry_t){data + control, control, draw(2) * largest, 4096, UINT32_MAX, 1, largest};
    for (uint64_t group = 0; group < GROUPS; ++group) {
        uint64_t entries = 0;
        for (uint32_t i = 0; i < map.region_count; ++i) {
            if (map.regions[i].encrypted) {
                count_region(&map, i, group, &entries);
            }
        }
        EXPECT(entries <= data / smallest + most_active_by_hand(&map));
    }
    check_fits(&map, smallest);
    for (uint64_t p = 0; p < g->header_bytes + GROUPS * g->group_bytes; ++p) {
        EXPECT(opal_cryptfile_geometry_size(g, p) == below);
        if (below < GROUPS * data && opal_cryptfile_geometry_place(g, below) == p) {
            EXPECT(0 == below || p > last);
            last = p;
            ++below;
        }
    }
    EXPECT(GROUPS * data == below);
    drop_map(&map);
}

/* ---- valid geometries ---- */

static uint64_t up_to(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

/* With entries for all possible blocks. */
static void suit(opal_cryptfile_map_t *map)
{
    uint32_t smallest, largest;
    opal_cryptfile_geometry_t *g = &map->geometry;

    block_sizes(map, &smallest, &largest);
    *g = (opal_cryptfile_geometry_t){UINT64_C(1) << (20 + draw(10)), 0, draw(2) * (1 + draw(4095)) << 20, 3072, 0, 1 + (uint32_t) draw(32),
                                     largest << draw(2)};
    g->redo_bytes = g->redo_bytes > OPAL_CRYPTFILE_BLOCK_MAX ? largest : g->redo_bytes;
    g->map_bytes = 0 == g->header_bytes ? 3072 : 4096 * (1 + (uint32_t) draw(100));
    do {
        uint64_t entries = up_to(g->group_bytes / smallest + map->region_count + 32 * draw(3), 32), before = 28672 + (uint64_t) g->redo_rooms * g->redo_bytes;
        g->control_bytes = up_to(before + 128 * entries, g->redo_bytes > 4096 ? g->redo_bytes : 4096);
        g->entries = (uint32_t) entries;
        g->group_bytes *= g->control_bytes < g->group_bytes ? 1 : 2;
    } while (g->control_bytes >= g->group_bytes);
}

static void check_control_area(const opal_cryptfile_geometry_t *g)
{
    uint64_t control = g->header_bytes + 3 * g->group_bytes, largest = opal_cryptfile_geometry_data(g) * 3;

    EXPECT(opal_cryptfile_geometry_table_at(g, 1, 0) == g->header_bytes + 8192);
    EXPECT(opal_cryptfile_geometry_table_at(g, 4, 0) + 4096 == opal_cryptfile_geometry_head_at(g, 0, 1));
    EXPECT(opal_cryptfile_geometry_table_at(g, 2, 1) == g->header_bytes + 16384 * g->group_bytes + 12288);
    EXPECT(opal_cryptfile_geometry_head_at(g, 3, g->redo_rooms) + 128 <= control + 28672);
    EXPECT(opal_cryptfile_geometry_redo_at(g, 3, 1) >= control + 28672);
    EXPECT(opal_cryptfile_geometry_redo_at(g, 3, g->redo_rooms) + g->redo_bytes == opal_cryptfile_geometry_entry_at(g, 3, 0));
    EXPECT(opal_cryptfile_geometry_entry_at(g, 3, g->entries - 1) + 128 == opal_cryptfile_geometry_place(g, largest));
    uint64_t maps_end = opal_cryptfile_geometry_map_at(g, 1) + g->map_bytes, seal_at = opal_cryptfile_geometry_seal_at(g);
    uint64_t roots_end = seal_at + 80 + UINT64_C(32) * opal_cryptfile_geometry_roots(g);
    EXPECT(opal_cryptfile_geometry_map_at(g, 0) + g->map_bytes <= opal_cryptfile_geometry_map_at(g, 1));
    EXPECT(0 == g->header_bytes ? maps_end <= 8192 && seal_at >= 512 && roots_end <= opal_cryptfile_geometry_map_at(g, 0)
                                : maps_end <= seal_at && roots_end <= g->header_bytes);
    EXPECT(opal_cryptfile_geometry_roots(g) > 0);
}

/* The entries of all blocks of a group follow one another, region by region, and exist. */
static void check_entries(const opal_cryptfile_map_t *map, uint64_t group)
{
    const opal_cryptfile_geometry_t *g = &map->geometry;
    uint64_t data = opal_cryptfile_geometry_data(g), next = 0;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        if (region->encrypted) {
            uint64_t blocks = opal_cryptfile_geometry_blocks(g, &region->tiling, region->block_bytes, group);
            uint64_t first = group * (data / region->block_bytes);
            EXPECT(blocks <= data / region->block_bytes);
            EXPECT(0 == blocks || opal_cryptfile_geometry_entry(map, i, first) == next);
            EXPECT(0 == blocks || opal_cryptfile_geometry_entry(map, i, first + blocks - 1) == next + blocks - 1);
            next += blocks;
        }
    }
    EXPECT(next <= g->entries);
}

/* A byte of a region, and back. */
static void check_byte(const opal_cryptfile_map_t *map, const opal_cryptfile_region_t *region, uint64_t near)
{
    const opal_cryptfile_geometry_t *g = &map->geometry;
    uint64_t packed = opal_cryptfile_tiling_before(&region->tiling, near), offset, together, back;

    if (!opal_cryptfile_tiling_locate(&region->tiling, packed, &offset, &together) || offset >= opal_cryptfile_geometry_most(g)) {
        return;
    }
    uint64_t stand = opal_cryptfile_geometry_stand(g, &region->tiling, offset), data = opal_cryptfile_geometry_data(g);
    EXPECT(stand / data == offset / data);
    EXPECT(opal_cryptfile_geometry_locate(g, &region->tiling, stand, &back, &together) && back == offset);
    EXPECT(together > 0 && offset / data == (offset + together - 1) / data);
    EXPECT(stand + together == opal_cryptfile_geometry_stand(g, &region->tiling, offset + together - 1) + 1);
}

/* The geometry of a new file of these regions is valid, fits, and leaves most of a group to data. */
static void check_choice(opal_cryptfile_map_t *map)
{
    opal_cryptfile_geometry_t read, *g = &map->geometry;
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    size_t map_bytes = (size_t) draw(4000);

    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_choose(map, map_bytes));
    opal_cryptfile_geometry_write(g, bytes);
    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_parse(bytes, &read));
    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_fits(map, map_bytes));
    EXPECT(g->control_bytes <= g->group_bytes / 3);
    for (uint32_t i = 0; i < map->region_count; ++i) {
        EXPECT(!map->regions[i].encrypted || 0 == opal_cryptfile_geometry_data(g) % map->regions[i].block_bytes);
    }
}

static void by_default(void)
{
    opal_cryptfile_map_t map = {.regions = calloc(1, sizeof(*map.regions))};
    const opal_cryptfile_run_t run = {.offset = 0, .bytes = 1};

    add_region_at(&map, 0, 1, false, &run, 1, 65536);
    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_choose(&map, 300));
    EXPECT(16u << 20 == map.geometry.group_bytes && 262144 == map.geometry.control_bytes && 0 == map.geometry.header_bytes);
    EXPECT(288 == map.geometry.entries && 3 == map.geometry.redo_rooms && 65536 == map.geometry.redo_bytes && 3072 == map.geometry.map_bytes);
    opal_cryptfile_tiling_free(&map.regions[0].tiling);
    free(map.regions);
}

static void at_random(void)
{
    opal_cryptfile_map_t map;
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    opal_cryptfile_geometry_t read;

    make_random(&map, false);
    suit(&map);
    const opal_cryptfile_geometry_t *g = &map.geometry;
    opal_cryptfile_geometry_write(g, bytes);
    if (OPAL_CRYPT_OK != opal_cryptfile_geometry_parse(bytes, &read)) {
        EXPECT(g->group_bytes > UINT64_C(1) << 36);
        drop_map(&map);
        return;
    }
    EXPECT(opal_cryptfile_geometry_same(g, &read));
    EXPECT(OPAL_CRYPT_OK == opal_cryptfile_geometry_fits(&map, g->map_bytes - 4));
    EXPECT(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_geometry_fits(&map, g->map_bytes - 3));
    check_control_area(g);
    uint64_t most = opal_cryptfile_geometry_most(g), data = opal_cryptfile_geometry_data(g);
    const uint64_t sizes[] = {0, 1, data - 1, data, data + 1, draw(UINT64_C(1) << 45), most - 1, most};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
        uint64_t end = opal_cryptfile_geometry_end(g, sizes[i]), group = sizes[i] < most ? sizes[i] / data : (most - 1) / data;
        EXPECT(end <= OPAL_CRYPTFILE_END_MAX && opal_cryptfile_geometry_size(g, end) == sizes[i]);
        EXPECT(sizes[i] < 2 || opal_cryptfile_geometry_size(g, end - 1) == sizes[i] - 1);
        check_entries(&map, group);
        EXPECT(opal_cryptfile_geometry_entry_lock(opal_cryptfile_geometry_entry_at(g, group, g->entries - 1)) <
               opal_cryptfile_geometry_head_lock(opal_cryptfile_geometry_head_at(g, 0, 1)));
        EXPECT(opal_cryptfile_geometry_head_lock(opal_cryptfile_geometry_head_at(g, group, g->redo_rooms)) < UINT64_C(1) << 63);
        for (uint32_t r = 0; r < map.region_count; ++r) {
            if (map.regions[r].encrypted) {
                check_byte(&map, &map.regions[r], sizes[i]);
            }
        }
    }
    check_choice(&map);
    drop_map(&map);
}

/* ---- invalid geometries ---- */

static int parse_of(const opal_cryptfile_geometry_t *g)
{
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    opal_cryptfile_geometry_t read;

    opal_cryptfile_geometry_write(g, bytes);
    return opal_cryptfile_geometry_parse(bytes, &read);
}

static void test_bounds(void)
{
    const opal_cryptfile_geometry_t good = {1u << 24, 1u << 18, 0, 3072, 288, 3, 65536}, large = {1u << 24, 1u << 18, 1u << 20, 8192, 288, 3, 65536};
    opal_cryptfile_geometry_t g;

    UNIT_GROUP("geometries that may not be");
    UNIT_CHECK(OPAL_CRYPT_OK == parse_of(&good) && OPAL_CRYPT_OK == parse_of(&large));
#define REFUSED(of, field, value) \
    (g = (of), g.field = (value), UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == parse_of(&g)))
    static const uint64_t groups[] = {0, 1u << 19, (1u << 24) + 4096, 3u << 22, UINT64_C(1) << 37, UINT64_C(1) << 63};
    static const uint64_t controls[] = {0, 65536, (1u << 18) + 4096, 1u << 24, 1u << 25, UINT64_MAX - 65535, UINT64_C(1) << 63};
    static const uint64_t headers[] = {4096, (1u << 20) + 4096, (UINT64_C(1) << 32) + (1u << 20), UINT64_C(1) << 63, UINT64_MAX};
    for (unsigned i = 0; i < 7; ++i) {
        REFUSED(good, group_bytes, groups[i % 6]);
        REFUSED(good, control_bytes, controls[i]);
        REFUSED(large, header_bytes, headers[i % 5]);
    }
    REFUSED(good, header_bytes, 1u << 20);              /* with a small map's place */
    static const uint32_t maps[] = {0, 3071, 3072, 4097, 524288, 65u << 20, UINT32_MAX};
    static const uint32_t entries[] = {0, 31, 33, 320, 1u << 31, UINT32_MAX, UINT32_MAX - 31};
    static const uint32_t redo_rooms[] = {0, 4, 33, UINT32_MAX};
    static const uint32_t sizes[] = {0, 256, 511, 4097, 131072, 1u << 25, 1u << 31};
    for (unsigned i = 0; i < 7; ++i) {
        REFUSED(large, map_bytes, maps[i]);
        REFUSED(good, entries, entries[i]);
        REFUSED(good, redo_rooms, redo_rooms[i % 4]);
        REFUSED(good, redo_bytes, sizes[i]);
    }
    REFUSED(good, map_bytes, 4096);
    g = good;
    g.redo_bytes = 512;
    UNIT_CHECK(OPAL_CRYPT_OK == parse_of(&g));
    g.control_bytes += 512;                             /* whole rooms, but not whole pages */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == parse_of(&g));
}

int main(void)
{
    test_bounds();
    by_default();
    UNIT_GROUP("%d random maps, every byte counted", MAPS);
    for (unsigned i = 0; i < MAPS; ++i) {
        by_hand();
    }
    UNIT_CHECK(0 == wrong);
    UNIT_GROUP("%d random maps with geometries that may be", MAPS);
    for (unsigned i = 0; i < MAPS; ++i) {
        at_random();
    }
    UNIT_CHECK(0 == wrong);
    return unit_done();
}

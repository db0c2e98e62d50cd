/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The beginning of files that are one file, against tests/vectors/onefile-v1.txt: what is chosen, where
 * things lie, and what becomes of every file there, good or bad.
 */
#include "tests/unit/file_one.h"

static unsigned good_count, changed_count;

/* ---- geometries and places ---- */

/* n regions of `run` bytes in turn, as a map has them. */
static opal_cryptfile_map_t *turns(const vector_block_t *vector)
{
    uint32_t regions = (uint32_t) number_of(vector, "regions"), number;
    uint64_t run_bytes = (uint64_t) number_of(vector, "run");
    opal_cryptfile_map_t *map;
    bool added;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    for (uint32_t i = 0; i < regions; ++i) {
        const opal_cryptfile_run_t run = {.bytes = run_bytes};
        opal_cryptfile_tiling_t tiling;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, i * run_bytes, regions * run_bytes, false, &run, 1, NULL));
        const opal_cryptfile_region_ask_t ask = {true, OPAL_AEAD_AES_128_GCM, (uint32_t) number_of(vector, "block"), "lab", &tiling};
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &ask, &number, &added, NULL) && added);
        opal_cryptfile_tiling_free(&tiling);
    }
    return map;
}

static void check_geometry(const vector_block_t *vector, opal_cryptfile_map_t *map)
{
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES], again[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    opal_cryptfile_geometry_t *g = &map->geometry;

    UNIT_REQUIRE(sizeof(bytes) == vector_bytes(vector, "bytes", bytes, sizeof(bytes)));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_parse(bytes, g));
    UNIT_CHECK(g->group_bytes == (uint64_t) number_of(vector, "G") && g->control_bytes == (uint64_t) number_of(vector, "T"));
    UNIT_CHECK(g->header_bytes == (uint64_t) number_of(vector, "H") && g->map_bytes == (uint32_t) number_of(vector, "m"));
    UNIT_CHECK(g->entries == (uint32_t) number_of(vector, "N") && g->rooms == (uint32_t) number_of(vector, "W"));
    UNIT_CHECK(g->room_bytes == (uint32_t) number_of(vector, "b"));
    opal_cryptfile_geometry_write(g, again);
    UNIT_EQUAL_BYTES(bytes, again, sizeof(bytes));
}

static void check_place(const vector_block_t *vector, const opal_cryptfile_map_t *map)
{
    const opal_cryptfile_geometry_t *g = &map->geometry;
    uint64_t offset = (uint64_t) number_of(vector, "offset"), group = (uint64_t) number_of(vector, "group"), back, together;
    uint32_t region = (uint32_t) number_of(vector, "region"), block_bytes = map->regions[region].block_bytes;
    const opal_cryptfile_tiling_t *tiling = &map->regions[region].tiling;
    uint64_t stand = opal_cryptfile_geometry_stand(g, tiling, offset), block = stand / block_bytes;
    uint64_t left = opal_cryptfile_geometry_bytes(g, tiling, group) - (stand - group * opal_cryptfile_geometry_data(g)) + stand % block_bytes;
    uint64_t entry = opal_cryptfile_geometry_entry(map, region, block);

    UNIT_CHECK(opal_cryptfile_geometry_place(g, offset) == (uint64_t) number_of(vector, "place"));
    UNIT_CHECK(opal_cryptfile_geometry_end(g, offset + 1) == (uint64_t) number_of(vector, "end"));
    UNIT_CHECK(block == (uint64_t) number_of(vector, "block") && stand % block_bytes == (uint64_t) number_of(vector, "within"));
    UNIT_CHECK((left < block_bytes ? left : block_bytes) == (uint64_t) number_of(vector, "capacity"));
    UNIT_CHECK(entry == (uint64_t) number_of(vector, "entry"));
    UNIT_CHECK(opal_cryptfile_geometry_entry_at(g, group, entry) == (uint64_t) number_of(vector, "entry_at"));
    UNIT_CHECK(opal_cryptfile_geometry_locate(g, tiling, stand, &back, &together) && back == offset && together > 0);
}

/* ---- files ---- */

static void check_good(const one_file_t *file)
{
    uint8_t again[OPAL_CRYPTFILE_HEADER_BYTES], *place;
    one_opened_t opened;

    UNIT_CHECK(opal_cryptfile_header_magic(file->image.bytes, file->image.size));
    UNIT_REQUIRE(0 == strcmp("encrypted", one_open(&file->image, NULL, 0, one_keystore(file), &opened)));
    const opal_cryptfile_geometry_t *g = &opened.header.geometry;
    const opal_cryptfile_map_t *map = opened.copies[opened.chosen].map;
    UNIT_CHECK(OPAL_CRYPTFILE_COPY_SIDECAR_1 == opened.chosen && !opened.differ);
    UNIT_CHECK((OPAL_CRYPTFILE_STATE_SEALED == opened.state) == file->sealed);
    UNIT_CHECK(opal_cryptfile_geometry_size(g, file->image.size) == file->plain_bytes);
    UNIT_CHECK(0 == file->plain_bytes || opal_cryptfile_geometry_end(g, file->plain_bytes) == file->image.size);
    opal_cryptfile_header_write(&opened.header, again);
    UNIT_EQUAL_BYTES(file->image.bytes, again, sizeof(again));
    size_t bytes = opal_cryptfile_place_bytes(map);
    place = malloc(bytes);
    opal_cryptfile_place_write(map, place);
    UNIT_EQUAL_BYTES(file->image.bytes + opal_cryptfile_geometry_map_at(g, 0), place, bytes);

    /* The attribute has the map: nothing to replace.  Old and new maps are not taken for one another. */
    one_opened_t other;
    opal_cryptfile_map_t *old;
    UNIT_CHECK(0 == strcmp("encrypted", one_open(&file->image, place, bytes - 4, one_keystore(file), &other)) && !other.differ);
    one_close(&other);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_map_parse(place, bytes - 4, &old));

    const one_file_t no_keys = {.key_count = 0};
    UNIT_CHECK(0 == strcmp("no key", one_open(&file->image, NULL, 0, one_keystore(&no_keys), &other)));
    one_close(&other);
    free(place);
    one_close(&opened);
    ++good_count;
}

static void check_changed(const one_file_t *file, const one_changed_t *changed)
{
    one_opened_t opened;
    const char *verdict = one_open(&changed->image, changed->attribute, changed->attribute_bytes, one_keystore(file), &opened);

    if (!UNIT_CHECK(0 == strcmp(changed->open, verdict))) {
        fprintf(stderr, "  %s, %s: %s (%s)\n", file->name, changed->name, verdict, NULL == opened.why.topic ? "" : opened.why.detail);
    }
    one_close(&opened);
    ++changed_count;
}

static void test_places(void)
{
    FILE *input = vector_file("onefile-v1.txt");
    static vector_block_t vector;
    opal_cryptfile_map_t *map = NULL;
    unsigned geometries = 0, places = 0;

    UNIT_GROUP("geometries, and where things lie");
    while (vector_next(input, &vector)) {
        if (kind_is(&vector, "geometry")) {
            opal_cryptfile_map_destroy(map);
            map = turns(&vector);
            check_geometry(&vector, map);
            ++geometries;
        } else if (kind_is(&vector, "place")) {
            check_place(&vector, map);
            ++places;
        }
    }
    UNIT_CHECK(9 == geometries && 54 == places);
    opal_cryptfile_map_destroy(map);
    fclose(input);
}

int main(void)
{
    test_places();
    UNIT_GROUP("files, and what was made of them");
    one_walk(check_good, check_changed);
    UNIT_CHECK(7 == good_count && 241 == changed_count);
    return unit_done();
}

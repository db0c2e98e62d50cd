/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as the beginning of a file that is one file: header, state, geometry, and what is behind
 * the first 512 as a map place.  CRCs are put right, or nothing would come through.  What is accepted
 * is written back as the same bytes, and what it locates lies within bounds.
 */
#include "fuzz.h"

#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/cryptfile/file/header.h"

static void layout(const opal_cryptfile_geometry_t *geometry, uint64_t bytes)
{
    uint64_t most = opal_cryptfile_geometry_most(geometry), within = bytes % (most + 1);
    uint64_t end = opal_cryptfile_geometry_end(geometry, within);
    uint64_t group = within / opal_cryptfile_geometry_data(geometry);

    FUZZ_CHECK(end <= OPAL_CRYPTFILE_END_MAX && opal_cryptfile_geometry_size(geometry, end) == within);
    FUZZ_CHECK(opal_cryptfile_geometry_size(geometry, UINT64_MAX) > most);
    FUZZ_CHECK(opal_cryptfile_geometry_head_at(geometry, group, geometry->redo_rooms) < opal_cryptfile_geometry_redo_at(geometry, group, 1));
    FUZZ_CHECK(opal_cryptfile_geometry_redo_at(geometry, group, geometry->redo_rooms) < opal_cryptfile_geometry_entry_at(geometry, group, 0));
    FUZZ_CHECK(opal_cryptfile_geometry_seal_at(geometry) + 80 + UINT64_C(32) * opal_cryptfile_geometry_roots(geometry) <=
               (0 == geometry->header_bytes ? 1024 : geometry->header_bytes));
}

static void blocks_of(const opal_cryptfile_map_t *map, uint64_t offset)
{
    uint64_t data = opal_cryptfile_geometry_data(&map->geometry), most = opal_cryptfile_geometry_most(&map->geometry), back, together;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        uint64_t o = offset % most, stand = region->encrypted ? opal_cryptfile_geometry_stand(&map->geometry, &region->tiling, o) : 0;
        if (region->encrypted && opal_cryptfile_geometry_locate(&map->geometry, &region->tiling, stand, &back, &together) && back / data == o / data) {
            FUZZ_CHECK(back >= o && together > 0);
            FUZZ_CHECK(opal_cryptfile_geometry_entry(map, i, stand / region->block_bytes) < map->geometry.entries);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t head[OPAL_CRYPTFILE_HEADER_BYTES], again[OPAL_CRYPTFILE_HEADER_BYTES];
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    opal_cryptfile_copy_t chosen;
    opal_crypt_why_t why = {.topic = NULL};
    bool differ;

    if (size < sizeof(head)) {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_header_parse(data, size, &header));
        return 0;
    }
    memcpy(head, data, sizeof(head));
    opal_crypt_le_put32(head + 80, opal_cryptfile_crc(0, head, 80));
    if (OPAL_CRYPT_OK != opal_cryptfile_header_parse(head, sizeof(head), &header)) {
        return 0;
    }
    opal_cryptfile_header_write(&header, again);
    FUZZ_CHECK(0 == memcmp(again, head, sizeof(again)));
    (void) opal_cryptfile_state_parse(data + 508, &header.geometry, size, &state);
    layout(&header.geometry, opal_crypt_le_get64(data + 24));
    layout(&header.geometry, UINT64_MAX);

    size_t count = size - sizeof(head), map_bytes;
    uint8_t *place = malloc(count + 1);
    FUZZ_CHECK(NULL != place);
    memcpy(place, data + sizeof(head), count);
    map_bytes = count < OPAL_CRYPTFILE_MAP_HEAD_BYTES ? 0 : opal_cryptfile_place_peek(place, &header.geometry);
    map_bytes = map_bytes + 4 <= count ? map_bytes : 0;
    if (map_bytes > 0) {
        opal_crypt_le_put32(place + map_bytes, opal_cryptfile_crc(0, place, map_bytes));
    }
    memset(copies, 0, sizeof(copies));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_cryptfile_place_judge(place, count, &header, NULL, NULL, &copies[OPAL_CRYPTFILE_COPY_PLACE_1]));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_cryptfile_copy_judge(place, map_bytes, NULL, NULL,
                                                               &copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE]));
    FUZZ_CHECK(OPAL_CRYPT_OK != opal_cryptfile_header_choose(copies, &header, &chosen, &differ, &why) && NULL != why.topic);
    if (NULL != copies[OPAL_CRYPTFILE_COPY_PLACE_1].map) {
        const opal_cryptfile_map_t *map = copies[OPAL_CRYPTFILE_COPY_PLACE_1].map;
        FUZZ_CHECK(map_bytes + 4 == opal_cryptfile_place_bytes(map));
        uint8_t *written = malloc(map_bytes + 4);
        FUZZ_CHECK(NULL != written);
        opal_cryptfile_place_write(map, written);
        FUZZ_CHECK(0 == memcmp(written, place, map_bytes + 4));
        free(written);
        blocks_of(map, opal_crypt_le_get64(data + 24));
        copies[OPAL_CRYPTFILE_COPY_PLACE_1].verified = true;     /* as if some process had its key */
        if (OPAL_CRYPT_OK == opal_cryptfile_header_choose(copies, &header, &chosen, &differ, &why)) {
            FUZZ_CHECK(OPAL_CRYPTFILE_COPY_PLACE_1 == chosen && differ);     /* there is nothing in place 0 */
            FUZZ_CHECK(opal_cryptfile_geometry_same(&map->geometry, &header.geometry));
        }
    }
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        opal_cryptfile_copy_free(&copies[i]);
    }
    free(place);
    return 0;
}

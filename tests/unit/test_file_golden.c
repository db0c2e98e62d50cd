/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Encrypted files that Python wrote (tests/vectors): map, blocks, rooms and
 * seal can be read, and the bytes are right.
 */
#include "opal/mca/common/cryptfile/file/seal.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"
#include "tests/unit/file_vectors.h"

typedef struct golden {
    memory_t memory;
    uint8_t plain[65536];
    uint64_t size;
    unsigned key_count;
    char labels[4][OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    uint8_t keys[4][32];
    bool sealed;
    uint8_t seal[OPAL_CRYPT_HASH_BYTES];
} golden_t;

static void golden_take(golden_t *g, const vector_block_t *vector)
{
    uint8_t bytes[4096];

    if (kind_is(vector, "key")) {
        UNIT_REQUIRE(g->key_count < 4);
        snprintf(g->labels[g->key_count], sizeof(g->labels[0]), "%s", vector_text(vector, "label"));
        vector_bytes(vector, "key", g->keys[g->key_count++], 32);
    } else if (kind_is(vector, "data")) {
        size_t count = vector_bytes(vector, "cipher", bytes, sizeof(bytes));
        const opal_cryptfile_extent_t extent = {(uint64_t) number_of(vector, "at"), bytes, count};
        UNIT_CHECK(OPAL_CRYPT_OK == memory_write(&g->memory.super, OPAL_CRYPTFILE_DATA, &extent, 1));
        vector_bytes(vector, "plain", g->plain + extent.at, sizeof(g->plain) - extent.at);
    } else {
        size_t count = vector_bytes(vector, "bytes", bytes, sizeof(bytes));
        const opal_cryptfile_extent_t extent = {(uint64_t) number_of(vector, "at"), bytes, count};
        UNIT_CHECK(OPAL_CRYPT_OK == memory_write(&g->memory.super, OPAL_CRYPTFILE_SIDECAR, &extent, 1));
    }
}

static void golden_check(golden_t *g)
{
    opal_cryptfile_sidecar_header_t header;
    opal_cryptfile_map_t *map;
    const opal_cryptfile_of_t of = {&g->memory.super, first_provider, NULL, file_part_bytes};
    opal_cryptfile_t *file;
    uint8_t *bytes, out[65536];
    size_t count;
    unsigned wrong = 0, looked = 0;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_read(&g->memory.super, &header));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_map_read(&g->memory.super, &header, 0, &bytes, &count));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_parse(bytes, count, &map));
    free(bytes);
    opal_cryptfile_key_t *keys = calloc(map->region_count, sizeof(*keys));
    for (uint32_t i = 0; i < map->region_count; ++i) {
        for (unsigned k = 0; map->regions[i].encrypted && k < g->key_count; ++k) {
            if (0 == strcmp(g->labels[k], map->regions[i].label)) {
                keys[i].data_key = opal_crypt_secmem_alloc(32);
                keys[i].grant = OPAL_CRYPTFILE_GRANT_SEAL;
                UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_rfc3394_unwrap(g->keys[k], map->regions[i].wrapped->blob + 6, keys[i].data_key));
                UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_check(map, i, keys[i].data_key));
            }
        }
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_create(&of, &file));
    if (OPAL_CRYPT_OK == opal_cryptfile_use(file, map, keys)) {
        opal_crypt_why_t why = {.topic = NULL};
        UNIT_CHECK(!g->sealed || OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, g->seal, &why));
        uint32_t region, hint = 0;
        for (uint64_t at = 0; at < g->size; ++at) {
            uint64_t plain, together, got;
            if (opal_cryptfile_map_find(map, &hint, at, &region, &plain, &together) && 0 != map->regions[region].tiling.run_count) {
                together = together < g->size - at ? together : g->size - at;
                wrong += OPAL_CRYPT_OK != get_bytes(file, at, out, together, &got) || got != together || 0 != memcmp(out, g->plain + at, together);
                at += together - 1;
                ++looked;
            }
        }
        UNIT_CHECK(0 == wrong && looked > 10);
    } else {
        printf("  (no provider here has one of its algorithms)\n");
        opal_cryptfile_map_destroy(map);
    }
    opal_cryptfile_keys_free(keys, map->region_count);
    opal_cryptfile_destroy(file);
}

static void test_golden(void)
{
    static golden_t golden;
    FILE *input = vector_file("file-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned files = 0;

    while (vector_next(input, &vector)) {
        if (kind_is(&vector, "file")) {
            if (files++ > 0) {
                golden_check(&golden);
                memory_free(&golden.memory);
            }
            memset(&golden, 0, sizeof(golden));
            memory_init(&golden.memory);
            golden.size = (uint64_t) number_of(&vector, "size");
            memory_grow(&golden.memory.parts[OPAL_CRYPTFILE_SIDECAR], (size_t) number_of(&vector, "sidecar_size"));
            golden.sealed = vector_has(&vector, "seal");
            if (golden.sealed) {
                vector_bytes(&vector, "seal", golden.seal, sizeof(golden.seal));
            }
            UNIT_GROUP("a file that Python wrote: %s%s", vector_text(&vector, "name"), golden.sealed ? ", sealed" : "");
        } else {
            golden_take(&golden, &vector);
        }
    }
    golden_check(&golden);
    memory_free(&golden.memory);
    UNIT_CHECK(4 == files);
    vector_clear(&vector);
    fclose(input);
}

int main(void)
{
    providers_init();
    test_golden();
    providers_fini();
    return unit_done();
}

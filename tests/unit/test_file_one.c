/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The block engine on files that are one file: every block of the files that Python wrote, and of altered copies
 * of them; random requests and sizes against a shadow; and a process that dies at each of its writes.
 *
 *     test_file_one DIRECTORY SEED     leaves the random files there, for the other reader (shell/vectors)
 */
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"
#include "tests/unit/file_one.h"

enum { SHADOW = 5 << 19, B = 4096 };

/* ---- the vectors ---- */

static unsigned block_count, bad_count, seal_count;

/* The engine on an image that was opened; takes over the map. */
static opal_cryptfile_t *engine_of(memory_t *memory, const one_image_t *image, one_opened_t *opened)
{
    const opal_cryptfile_of_t of = {&memory->super, first_provider, NULL, 0};
    opal_cryptfile_copy_state_t *copy = &opened->copies[opened->chosen];
    opal_cryptfile_t *file;

    memory_init(memory);
    memory_grow(memory, image->size);
    memcpy(memory->bytes, image->bytes, image->size);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_create(&of, &file));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_use(file, copy->map, copy->keys));
    opal_cryptfile_keys_free(copy->keys, copy->map->region_count);
    copy->map = NULL;
    copy->keys = NULL;
    return file;
}

/* "region:group:block=forged ..." of all blocks that do not read. */
static void blocks_that_do_not_read(opal_cryptfile_t *file, uint64_t end, char *text, size_t capacity)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    uint64_t size = opal_cryptfile_geometry_size(&map->geometry, end), data = opal_cryptfile_geometry_data(&map->geometry);
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t r = 0; r < map->region_count; ++r) {
        uint32_t block_bytes = map->regions[r].block_bytes;
        for (uint64_t g = 0; map->regions[r].encrypted && g * data < size; ++g) {
            const opal_cryptfile_tiling_t *tiling = &map->regions[r].tiling;
            uint64_t blocks = opal_cryptfile_geometry_blocks(&map->geometry, tiling, block_bytes, g), offset, together;
            for (uint64_t k = 0; k < blocks; ++k) {
                uint64_t block = g * (data / block_bytes) + k;
                opal_cryptfile_block_condition_t condition;
                uint32_t bytes;
                UNIT_REQUIRE(opal_cryptfile_geometry_locate(&map->geometry, tiling, block * block_bytes, &offset, &together));
                if (offset >= size) {
                    break;
                }
                UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_check(file, r, block, &condition, &bytes));
                if (OPAL_CRYPTFILE_BLOCK_TORN == condition || OPAL_CRYPTFILE_BLOCK_BAD == condition) {
                    used += (size_t) snprintf(text + used, capacity - used, "%s%u:%u:%u=%s", 0 == used ? "" : " ", (unsigned) r, (unsigned) g,
                                              (unsigned) k, OPAL_CRYPTFILE_BLOCK_TORN == condition ? "torn" : "forged");
                }
                ++block_count;
            }
        }
    }
}

/* Every room that was ever used is complete, by its check; returns how many there are. */
static unsigned redo_complete(const memory_t *memory, const opal_cryptfile_geometry_t *geometry)
{
    unsigned complete = 0;

    for (uint64_t g = 0; g * geometry->group_bytes < memory->size; ++g) {
        for (uint32_t w = 1; w <= geometry->redo_rooms; ++w) {
            uint64_t at = opal_cryptfile_geometry_head_at(geometry, g, w);
            uint8_t head[OPAL_CRYPTFILE_REDO_HEAD_BYTES];
            if (at + sizeof(head) > memory->size || 0 == memory->bytes[at + 16]) {
                continue;
            }
            memcpy(head, memory->bytes + at, sizeof(head));
            memset(head + OPAL_CRYPTFILE_REDO_CHECK_AT, 0, 4);
            uint32_t check = opal_cryptfile_crc(0, head, sizeof(head));
            check = opal_cryptfile_crc(check, memory->bytes + opal_cryptfile_geometry_redo_at(geometry, g, w), opal_crypt_le_get32(head + 20));
            UNIT_CHECK(check == opal_crypt_le_get32(memory->bytes + at + OPAL_CRYPTFILE_REDO_CHECK_AT));
            ++complete;
        }
    }
    return complete;
}

/* ---- seals ---- */

/* In the words of the vectors: is the whole file what was sealed?  `hash`: for the user. */
static const char *seal_of(opal_cryptfile_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_crypt_why_t why = {.topic = NULL};
    opal_cryptfile_tree_t tree;
    int rc = opal_cryptfile_tree_check(file, &tree, hash, &why);

    UNIT_CHECK(OPAL_CRYPT_OK == rc || (OPAL_CRYPT_ERR_AUTH == rc && NULL != why.topic));
    return OPAL_CRYPT_OK == rc ? "fits" : NULL != strstr(why.detail, "there is none") ? "none" : "forged";
}

static int seal_all(opal_cryptfile_t *file, uint64_t size)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    opal_cryptfile_tree_t tree = {.size = size, .id = "an id of a seal"};
    opal_cryptfile_outcome_t outcome;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = map->regions[i].encrypted ? opal_cryptfile_tree_fields(file, i, size, &outcome) : rc;
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_make(file, &tree, true) : rc;
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = map->regions[i].encrypted ? opal_cryptfile_tree_root(file, i, &tree) : rc;
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_finish(file, &tree) : rc;
}

static void good_file(const one_file_t *one)
{
    one_opened_t opened;
    memory_t memory;
    char text[200];

    UNIT_REQUIRE(0 == strcmp("encrypted", one_open(&one->image, NULL, 0, one_keystore(one), &opened)));
    opal_cryptfile_t *file = engine_of(&memory, &one->image, &opened);
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    blocks_that_do_not_read(file, one->image.size, text, sizeof(text));
    UNIT_CHECK('\0' == text[0]);
    UNIT_CHECK((0 == strcmp("rooms", one->name) ? 3 : 0) <= redo_complete(&memory, &map->geometry));
    if (one->sealed) {
        uint8_t hash[OPAL_CRYPT_HASH_BYTES];
        opal_crypt_why_t why = {.topic = NULL};
        UNIT_CHECK(0 == strcmp("fits", seal_of(file, hash)));
        UNIT_EQUAL_BYTES(hash, one->root, sizeof(hash));
        hash[0] ^= 1;
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_seal_demand(file, hash, &why));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, one->root, &why));
    }
    uint8_t *out = malloc(one->plain_bytes + 1);
    uint32_t hint = 0, region;
    for (uint64_t at = 0, plain, together, got; at < one->plain_bytes; at += together) {
        bool there = opal_cryptfile_map_find(map, &hint, at, &region, &plain, &together);
        together = together < one->plain_bytes - at ? together : one->plain_bytes - at;
        if (there) {
            UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, at, out, together, &got) && got == together);
            UNIT_EQUAL_BYTES(out, one->plain + at, together);
        }
    }
    UNIT_CHECK(0 == memory.locks);
    free(out);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    one_close(&opened);
}

static void changed_file(const one_file_t *one, const one_changed_t *changed)
{
    one_opened_t opened;
    memory_t memory;
    char text[200];

    if (0 == strcmp("encrypted", one_open(&changed->image, changed->attribute, changed->attribute_bytes, one_keystore(one), &opened))) {
        opal_cryptfile_t *file = engine_of(&memory, &changed->image, &opened);
        blocks_that_do_not_read(file, changed->image.size, text, sizeof(text));
        if (!UNIT_CHECK(0 == strcmp(changed->blocks, text))) {
            fprintf(stderr, "  %s, %s: \"%s\", not \"%s\"\n", one->name, changed->name, text, changed->blocks);
        }
        bad_count += '\0' != text[0];
        uint8_t hash[OPAL_CRYPT_HASH_BYTES];
        if (one->sealed && !UNIT_CHECK(0 == strcmp(changed->seal, seal_of(file, hash)))) {
            fprintf(stderr, "  %s, %s: the seal is \"%s\", not \"%s\"\n", one->name, changed->name, seal_of(file, hash), changed->seal);
        }
        seal_count += one->sealed;
        opal_cryptfile_destroy(file);
        memory_free(&memory);
    }
    one_close(&opened);
}

/* ---- files of our own ---- */

/* Rows of 1,000 and 3,000 bytes alternate, with plain ones between them, after a plain head.  Groups end in rows. */
static const region_spec_t rows[] = {
    {1, OPAL_AEAD_AES_128_GCM, 512, 1000, 5000, false, 1, {{0, 1000, 0}}},
    {1, OPAL_AEAD_AES_256_GCM, B, 2000, 5000, false, 1, {{0, 3000, 0}}},
    {0, 0, 0, 5000, 5000, false, 1, {{0, 1000, 0}}},
    {0, 0, 0, 0, 1000, true, 1, {{0, 1000, 0}}}};
/* Regions of one tile, with short blocks at their ends, across the border of a group. */
static const region_spec_t parts[] = {
    {1, OPAL_AEAD_AES_256_GCM, 1024, 0, 700001, true, 1, {{0, 700001, 0}}},
    {1, OPAL_AEAD_AES_128_GCM, 2048, 700001, 900000, true, 2, {{0, 300000, 0}, {400000, 500000, 0}}},
    {1, OPAL_AEAD_AES_128_GCM, B, 1000001, 100000, true, 1, {{0, 100000, 0}}},
    {1, OPAL_AEAD_AES_256_GCM, 512, 1600001, 1, false, 1, {{0, 1, 0}}}};
static const region_spec_t whole[] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};

static uint64_t state = 7;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 8) % below;
}

typedef struct shadow {
    uint8_t bytes[SHADOW];
    uint64_t size;
} shadow_t;

/* Near the borders of groups as often as elsewhere. */
static uint64_t some_offset(uint64_t below)
{
    uint64_t data = GROUP_DATA, near = (1 + draw(3)) * data - 5000 + draw(10000);

    return 0 == draw(2) && near < below ? near : draw(below);
}

static bool step_of(opal_cryptfile_t *file, shadow_t *shadow, uint8_t *buffer)
{
    uint64_t at = some_offset(SHADOW - 40000), bytes = 1 + draw(0 == draw(8) ? 40000 : 6000), got;
    opal_cryptfile_outcome_t outcome;

    switch (draw(8)) {
    case 0:
        shadow->size = at;
        memset(shadow->bytes + at, 0, SHADOW - at);
        return OPAL_CRYPT_OK == opal_cryptfile_resize(file, at, &outcome);
    case 1: case 2: case 3: {
        bool right = OPAL_CRYPT_OK == get_bytes(file, at, buffer, bytes, &got);
        uint64_t have = at < shadow->size ? shadow->size - at : 0;
        have = have < bytes ? have : bytes;
        return right && got == have && 0 == memcmp(buffer, shadow->bytes + at, have);
    }
    default: {
        const opal_cryptfile_request_t request = {buffer, at, bytes};
        for (uint64_t i = 0; i < bytes; ++i) {
            buffer[i] = (uint8_t) draw(256);
        }
        memcpy(shadow->bytes + at, buffer, bytes);
        shadow->size = at + bytes > shadow->size ? at + bytes : shadow->size;
        return OPAL_CRYPT_OK == opal_cryptfile_write(file, &request, 1, 0 == draw(3), &outcome) && bytes == outcome.bytes;
    }
    }
}

/* ---- for the other reader ---- */

static const char *directory;

static void leave_bytes(const char *name, const char *what, const void *bytes, size_t count)
{
    char path[512];

    snprintf(path, sizeof(path), "%s/%s.%s", directory, name, what);
    FILE *out = fopen(path, "wb");
    UNIT_REQUIRE(NULL != out && count == fwrite(bytes, 1, count, out) && 0 == fclose(out));
}

/* Put a header, and a map with wrapped keys, in front of what the engine made. */
static void leave_file(const char *name, memory_t *memory, const opal_cryptfile_map_t *of, const shadow_t *shadow)
{
    static const uint8_t label_key[32] = "the key of a label, of 32 bytes", head[4] = {1, 1, 1, 0};
    opal_cryptfile_map_t *map = (opal_cryptfile_map_t *) (uintptr_t) of;
    opal_cryptfile_header_t header = {.geometry = map->geometry};
    uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES], *bytes = memory->bytes;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        opal_cryptfile_region_t *region = &map->regions[i];
        if (region->encrypted) {
            memset(data_key, (int) (17 * i + 3), sizeof(data_key));        /* as open_file has it */
            *region->wrapped = (opal_cryptfile_wrapped_t){.bytes = 72};
            memcpy(region->wrapped->blob, head, sizeof(head));
            region->wrapped->blob[28] = 40;
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_rfc3394_wrap(label_key, data_key, region->wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT));
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_mac(map, i, data_key, region->mac));
        }
    }
    memcpy(header.uuid, map->uuid, sizeof(header.uuid));
    opal_cryptfile_header_write(&header, bytes);
    for (unsigned place = 0; place < 2; ++place) {
        opal_cryptfile_place_write(map, bytes + opal_cryptfile_geometry_map_at(&map->geometry, place));
    }
    leave_bytes(name, "one", bytes, memory->size);
    leave_bytes(name, "plain", shadow->bytes, shadow->size);
}

/* Seal the file, and read it with that seal demanded; leaves the seal's hash as text. */
static void seal_and_demand(const char *name, memory_t *memory, opal_cryptfile_t *file, const region_spec_t *specs, unsigned count,
                            const shadow_t *shadow)
{
    static uint8_t buffer[SHADOW];
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    uint8_t hash[OPAL_CRYPT_HASH_BYTES], *sealed;
    char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES];
    opal_crypt_why_t why = {.topic = NULL};
    uint64_t got;

    UNIT_CHECK(OPAL_CRYPT_OK == seal_all(file, shadow->size) && 0 == strcmp("fits", seal_of(file, hash)));
    opal_cryptfile_t *reader = open_file(&memory->super, specs, count, NULL);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(reader, hash, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(reader, 0, buffer, SHADOW, &got) && got == shadow->size);
    UNIT_CHECK(0 == memcmp(buffer, shadow->bytes, shadow->size));
    sealed = memory->bytes + opal_cryptfile_geometry_entry_at(&map->geometry, 0, 0) + OPAL_CRYPTFILE_SLOTS_BYTES;
    *sealed ^= 1;                       /* of any block of the group */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == get_bytes(reader, 2000, buffer, 1, &got) && 0 == strcmp("forged", seal_of(file, hash)));
    *sealed ^= 1;
    opal_cryptfile_destroy(reader);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 2000, shadow->bytes + 2000, 1));
    UNIT_CHECK(0 == strcmp("forged", seal_of(file, hash)) && OPAL_CRYPT_OK == opal_cryptfile_tree_unseal(file));
    UNIT_CHECK(0 == strcmp("none", seal_of(file, hash)));
    UNIT_CHECK(OPAL_CRYPT_OK == seal_all(file, shadow->size) && 0 == strcmp("fits", seal_of(file, hash)));
    opal_cryptfile_seal_text(hash, text);
    if (NULL != directory) {
        leave_bytes(name, "root", text, strlen(text));
    }
}

static void test_random(const char *name, const region_spec_t *specs, unsigned count)
{
    static shadow_t shadow;
    static uint8_t buffer[SHADOW];
    memory_t memory;
    unsigned wrong = 0;
    uint64_t end, got;

    UNIT_GROUP("%s: random requests and sizes", name);
    memset(&shadow, 0, sizeof(shadow));
    memory_init(&memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == memory_resize(&memory.super, 8192));
    opal_cryptfile_t *file = open_file(&memory.super, specs, count, NULL);
    const opal_cryptfile_geometry_t geometry = opal_cryptfile_map_of(file)->geometry;
    for (unsigned i = 0; i < 1500; ++i) {
        if (0 == draw(50)) {            /* another process */
            opal_cryptfile_destroy(file);
            file = open_file(&memory.super, specs, count, NULL);
        }
        wrong += !step_of(file, &shadow, buffer);
        wrong += OPAL_CRYPT_OK != memory_size(&memory.super, &end) ||
                 end != opal_cryptfile_geometry_end(&geometry, shadow.size) || 0 != memory.locks;
    }
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, buffer, sizeof(buffer), &got) && got == shadow.size);
    UNIT_CHECK(0 == memcmp(buffer, shadow.bytes, shadow.size));
    UNIT_CHECK(0 == wrong && redo_complete(&memory, &geometry) > 2);
    seal_and_demand(name, &memory, file, specs, count, &shadow);
    if (NULL != directory) {
        leave_file(name, &memory, opal_cryptfile_map_of(file), &shadow);
    }
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

/* ---- short blocks, at the end of a group's share of a region ---- */

static void test_short_blocks(void)
{
    enum { DATA = GROUP_DATA, SHORT = 415, LONG = 1200000, END = 700500 };     /* of region 1 in group 0 */
    static const opal_cryptfile_grant_t grants[4] = {OPAL_CRYPTFILE_GRANT_OPEN, OPAL_CRYPTFILE_GRANT_SEAL, OPAL_CRYPTFILE_GRANT_SEAL,
                                                     OPAL_CRYPTFILE_GRANT_SEAL};
    static uint8_t text[LONG], out[LONG];
    opal_cryptfile_outcome_t outcome;
    memory_t memory;
    uint64_t got;

    UNIT_GROUP("short blocks");
    memory_init(&memory);
    memset(text, 't', sizeof(text));
    UNIT_REQUIRE(OPAL_CRYPT_OK == memory_resize(&memory.super, 8192));
    opal_cryptfile_t *file = open_file(&memory.super, parts, 4, NULL);
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, LONG));

    /* A damaged one is written in full; its sealed field stays in its entry. */
    uint64_t block = opal_cryptfile_geometry_stand(&map->geometry, &map->regions[1].tiling, DATA - 1) / map->regions[1].block_bytes;
    uint8_t *entry = memory.bytes + opal_cryptfile_geometry_entry_at(&map->geometry, 0, opal_cryptfile_geometry_entry(map, 1, block));
    memset(entry + OPAL_CRYPTFILE_SLOTS_BYTES, 's', OPAL_CRYPT_HASH_BYTES);
    memory.bytes[opal_cryptfile_geometry_place(&map->geometry, DATA - 1)] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == get_bytes(file, DATA - 1, out, 1, &got));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == put_bytes(file, DATA - SHORT, text, SHORT - 1));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, DATA - SHORT, text, SHORT));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, LONG, &got) && LONG == got && 0 == memcmp(out, text, LONG));
    entry = memory.bytes + opal_cryptfile_geometry_entry_at(&map->geometry, 0, opal_cryptfile_geometry_entry(map, 1, block));
    for (unsigned i = 0; i < OPAL_CRYPT_HASH_BYTES; ++i) {
        UNIT_CHECK('s' == entry[OPAL_CRYPTFILE_SLOTS_BYTES + i]);
    }
    opal_cryptfile_destroy(file);

    /* Region 0 ended before: a cut goes through no block of it, and needs no key. */
    file = open_file(&memory.super, parts, 4, grants);
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == opal_cryptfile_resize(file, 600000 + 1, &outcome));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, END, &outcome));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, LONG, &got) && END == got && 0 == memcmp(out, text, END));
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

/* ---- death ---- */

/* Every block of [from, to) reads as in `a` or as in `b`; with `torn`, or not at all. */
static void check_either(opal_cryptfile_t *file, const uint8_t *a, const uint8_t *b, uint64_t from, uint64_t to, bool torn)
{
    uint8_t out[B];
    unsigned wrong = 0;

    for (uint64_t at = from / B * B; at < to; at += B) {
        uint64_t got, bytes = to - at < B ? to - at : B;
        int rc = get_bytes(file, at, out, bytes, &got);
        bool right = OPAL_CRYPT_OK == rc && (0 == memcmp(out, a + at, got) || 0 == memcmp(out, b + at, got));
        wrong += !right && !(torn && OPAL_CRYPT_ERR_TORN == rc);
    }
    UNIT_CHECK(0 == wrong);
}

static int put_all(opal_cryptfile_t *file, uint64_t at, uint8_t *bytes, size_t count, bool atomic)
{
    const opal_cryptfile_request_t request = {bytes, at, count};
    opal_cryptfile_outcome_t outcome;

    return opal_cryptfile_write(file, &request, 1, atomic, &outcome);
}

/* In pieces of a sector. */
static void test_death(const char *name, bool overwrite, bool atomic)
{
    static uint8_t before[SHADOW], after[SHADOW];
    enum { DATA = GROUP_DATA, FROM = DATA - 5 * B - 100, TO = DATA + 6 * B + 77 };
    memory_t base, memory = {.writes_left = -1};
    bool died = true;
    long writes_left = 0;

    UNIT_GROUP("%s: death at each write", name);
    memory_init(&base);
    memory_init(&memory);
    base.page = 512;
    UNIT_REQUIRE(OPAL_CRYPT_OK == memory_resize(&base.super, 8192));
    opal_cryptfile_t *file = open_file(&base.super, whole, 1, NULL);
    memset(before, 0, sizeof(before));
    if (overwrite) {
        memset(before, 'a', TO + B);
        UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, before, TO + B));
    }
    opal_cryptfile_destroy(file);
    memcpy(after, before, sizeof(after));
    memset(after + FROM, 'b', TO - FROM);
    for (; died; ++writes_left) {
        memory_copy(&memory, &base);
        memory.writes_left = writes_left;
        file = open_file(&memory.super, whole, 1, NULL);
        died = OPAL_CRYPT_OK != put_all(file, FROM, after + FROM, TO - FROM, atomic);
        opal_cryptfile_destroy(file);
        memory.writes_left = -1;
        memory.locks = 0;
        file = open_file(&memory.super, whole, 1, NULL);
        check_either(file, before, after, overwrite ? 0 : FROM, TO, !overwrite);
        UNIT_CHECK(OPAL_CRYPT_OK == put_all(file, FROM - 50, after + FROM - 50, TO - FROM + 50, atomic));    /* finishes what was left */
        check_either(file, after, after, overwrite ? 0 : FROM, TO, false);
        UNIT_CHECK(0 == memory.locks);
        opal_cryptfile_destroy(file);
    }
    printf("  %ld points of death\n", writes_left - 1);
    UNIT_CHECK(writes_left > 10);
    memory_free(&base);
    memory_free(&memory);
}

int main(int argc, char **argv)
{
    providers_init();
    directory = 3 == argc ? argv[1] : NULL;
    state = 3 == argc ? 7 + strtoull(argv[2], NULL, 10) : state;
    test_random("whole", whole, 1);
    test_random("rows", rows, 4);
    test_random("parts", parts, 4);
    if (NULL != directory) {
        return unit_done();
    }
    UNIT_GROUP("files that Python wrote, and what was made of them");
    one_walk(good_file, changed_file);
    printf("  %u blocks, %u files with some that do not read, %u that were sealed\n", block_count, bad_count, seal_count);
    UNIT_CHECK(seal_count > 20);
    test_short_blocks();
    test_death("first write", false, false);
    test_death("overwrite", true, false);
    test_death("overwrite, as one", true, true);
    providers_fini();
    return unit_done();
}

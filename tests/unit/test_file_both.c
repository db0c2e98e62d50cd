/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The engine on files with random maps that Python wrote (tests/vectors/onefile_both.py): it reads what Python wrote,
 * then writes, cuts, lengthens and seals, and leaves the file for Python to read.
 *
 *     test_file_both NAME...       NAME.one and NAME.plain are read, and replaced; NAME.root is made
 */
#include "opal/mca/common/cryptfile/file/seal_tree.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"
#include "tests/unit/file_one.h"

enum { SHADOW = ONE_CAPACITY, PIECES = 64 };

static const one_file_t keys = {.key_count = 2, .labels = {"lab", "other"},
                                .keys = {"the key of a label, of 32 bytes", "the key of others, of 32 bytes."}};

typedef struct both {
    memory_t memory;
    opal_cryptfile_t *file;
    const opal_cryptfile_map_t *map;
    uint8_t shadow[SHADOW], out[SHADOW];
    uint64_t size, limit;
} both_t;

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 8) % below;
}

static size_t load_bytes(const char *name, const char *what, uint8_t *bytes)
{
    char path[512];

    snprintf(path, sizeof(path), "%s.%s", name, what);
    FILE *in = fopen(path, "rb");
    UNIT_REQUIRE(NULL != in);
    size_t count = fread(bytes, 1, ONE_CAPACITY, in);
    UNIT_REQUIRE(count < ONE_CAPACITY && 0 == fclose(in));
    return count;
}

static void leave_bytes(const char *name, const char *what, const void *bytes, size_t count)
{
    char path[512];

    snprintf(path, sizeof(path), "%s.%s", name, what);
    FILE *out = fopen(path, "wb");
    UNIT_REQUIRE(NULL != out && count == fwrite(bytes, 1, count, out) && 0 == fclose(out));
}

/* As another process, with fresh S. */
static void open_both(both_t *both)
{
    const opal_cryptfile_of_t of = {&both->memory.super, first_provider, NULL, 0};
    one_image_t image = {calloc(1, ONE_CAPACITY), both->memory.size};
    one_opened_t opened;

    UNIT_REQUIRE(both->memory.size <= ONE_CAPACITY);
    memcpy(image.bytes, both->memory.bytes, both->memory.size);
    UNIT_REQUIRE(0 == strcmp("encrypted", one_open(&image, NULL, 0, one_keystore(&keys), &opened)) && !opened.differ);
    opal_cryptfile_copy_state_t *copy = &opened.copies[opened.chosen];
    opal_cryptfile_destroy(both->file);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_create(&of, &both->file));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_use(both->file, copy->map, copy->keys));
    both->map = copy->map;
    opal_cryptfile_keys_free(copy->keys, copy->map->region_count);
    copy->map = NULL;
    copy->keys = NULL;
    one_close(&opened);
    free(image.bytes);
}

/* Pieces of regions from `at` on, at most `bytes` bytes, each at its own place in `buffer`. */
static size_t pieces_from(const both_t *both, uint64_t at, uint64_t bytes, uint8_t *buffer, opal_cryptfile_request_t *requests)
{
    uint32_t hint = 0, region;
    uint64_t plain, together;
    size_t count = 0;

    for (uint64_t end = at + bytes; at < end && count < PIECES; at += together) {
        bool there = opal_cryptfile_map_find(both->map, &hint, at, &region, &plain, &together);
        together = together < end - at ? together : end - at;
        if (there) {
            requests[count++] = (opal_cryptfile_request_t){buffer + at, at, (size_t) together};
        }
    }
    return count;
}

static void compare(both_t *both, uint64_t at, uint64_t bytes)
{
    opal_cryptfile_request_t requests[PIECES];
    opal_cryptfile_outcome_t outcome;

    bytes = at + bytes < both->size ? bytes : at < both->size ? both->size - at : 0;
    size_t count = pieces_from(both, at, bytes, both->out, requests);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(both->file, requests, count, false, &outcome));
    for (size_t i = 0; i < count; ++i) {
        UNIT_CHECK(0 == memcmp(both->shadow + requests[i].offset, both->out + requests[i].offset, requests[i].bytes));
    }
}

/* All of it, a part at a time. */
static void compare_all(both_t *both)
{
    uint32_t hint = 0, region;
    uint64_t plain, together, got, size;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_size(both->file, &size) && size == both->size);
    for (uint64_t at = 0; at < both->size; at += together) {
        bool there = opal_cryptfile_map_find(both->map, &hint, at, &region, &plain, &together);
        together = together < both->size - at ? together : both->size - at;
        if (there) {
            UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(both->file, at, both->out, together, &got) && together == got);
            UNIT_CHECK(0 == memcmp(both->shadow + at, both->out, together));
        }
    }
}

static void write_some(both_t *both, uint64_t at, uint64_t bytes)
{
    opal_cryptfile_request_t requests[PIECES];
    opal_cryptfile_outcome_t outcome;
    size_t count = pieces_from(both, at, bytes, both->out, requests);

    for (size_t i = 0; i < count; ++i) {
        uint8_t *memory = requests[i].memory;
        for (size_t k = 0; k < requests[i].bytes; ++k) {
            memory[k] = (uint8_t) draw(256);
        }
        memcpy(both->shadow + requests[i].offset, memory, requests[i].bytes);
        both->size = requests[i].offset + requests[i].bytes > both->size ? requests[i].offset + requests[i].bytes : both->size;
    }
    UNIT_CHECK(0 == count || OPAL_CRYPT_OK == opal_cryptfile_write(both->file, requests, count, 0 == draw(3), &outcome));
}

static void resize(both_t *both, uint64_t bytes)
{
    opal_cryptfile_outcome_t outcome;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(both->file, bytes, &outcome));
    if (bytes < both->size) {
        memset(both->shadow + bytes, 0, both->size - bytes);
    }
    both->size = bytes;
}

static void seal_it(both_t *both, const char *name)
{
    opal_cryptfile_tree_t tree = {.size = both->size, .id = "an engine's seal"};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES];
    opal_cryptfile_outcome_t outcome;
    opal_crypt_why_t why = {.topic = NULL};

    for (uint32_t i = 0; i < both->map->region_count; ++i) {
        UNIT_CHECK(!both->map->regions[i].encrypted || OPAL_CRYPT_OK == opal_cryptfile_tree_fields(both->file, i, tree.size, &outcome));
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_make(both->file, &tree, true));
    for (uint32_t i = 0; i < both->map->region_count; ++i) {
        UNIT_CHECK(!both->map->regions[i].encrypted || OPAL_CRYPT_OK == opal_cryptfile_tree_root(both->file, i, &tree));
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_finish(both->file, &tree));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_check(both->file, &tree, hash, &why));
    opal_cryptfile_seal_text(hash, text);
    leave_bytes(name, "root", text, strlen(text));
}

/* Check and remove the seal that Python made; it wrote the root's text. */
static void take_off_seal(both_t *both, const char *name)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES], wanted[OPAL_CRYPT_HASH_BYTES], text[ONE_CAPACITY >> 8] = "";
    opal_crypt_why_t why = {.topic = NULL};
    opal_cryptfile_tree_t tree;

    if (0 == load_bytes(name, "root", text)) {
        return;
    }
    UNIT_CHECK(opal_cryptfile_seal_parse((const char *) text, wanted));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_check(both->file, &tree, hash, &why) && tree.size == both->size);
    UNIT_EQUAL_BYTES(hash, wanted, sizeof(hash));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(both->file, wanted, &why));
    compare_all(both);
    open_both(both);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_unseal(both->file));
}

static void do_one(const char *name)
{
    static both_t both;

    memset(both.shadow, 0, sizeof(both.shadow));
    memory_init(&both.memory);
    size_t bytes = load_bytes(name, "one", both.out);
    memory_grow(&both.memory, bytes);
    memcpy(both.memory.bytes, both.out, bytes);
    both.size = load_bytes(name, "plain", both.shadow);
    both.limit = both.size + both.size / 4 + 3000;
    both.file = NULL;
    open_both(&both);
    compare_all(&both);
    take_off_seal(&both, name);
    for (unsigned i = 0; i < 40; ++i) {
        uint64_t at = draw(both.limit), most = both.limit - at;
        switch (draw(8)) {
        case 0:  resize(&both, at); break;
        case 1:  open_both(&both); break;
        case 2:
        case 3:  compare(&both, at, 1 + draw(most < 70000 ? most : 70000)); break;
        default: write_some(&both, at, 1 + draw(most < 70000 ? most : 70000));
        }
    }
    compare_all(&both);
    UNIT_CHECK(0 == both.memory.locks);
    if (0 != draw(4)) {
        seal_it(&both, name);
    } else {
        leave_bytes(name, "root", "", 0);
    }
    leave_bytes(name, "one", both.memory.bytes, both.memory.size);
    leave_bytes(name, "plain", both.shadow, both.size);
    opal_cryptfile_destroy(both.file);
    memory_free(&both.memory);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        return unit_skip("shell/both gives it files");
    }
    providers_init();
    for (int i = 1; i < argc; ++i) {
        state = UINT64_C(0x9e3779b97f4a7c15) + (uint64_t) i;
        unsigned long failures = unit_failures;
        do_one(argv[i]);
        if (failures != unit_failures) {
            fprintf(stderr, "  %s\n", argv[i]);
        }
    }
    providers_fini();
    return unit_done();
}

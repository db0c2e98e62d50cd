/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Storage that answers the same read differently each time: data that is read again
 * may differ from what was checked, unless that was kept.
 */
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, BLOCKS = 3, SIZE = B * BLOCKS };

static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t one[SIZE], two[SIZE];

/* These bytes of the file differ in some reads: bit n stands for read n. */
static struct {
    uint64_t at;
    const uint8_t *bytes;
    size_t count;
    unsigned when, reads;
} lie;

static int fickle_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents,
                       size_t count)
{
    int rc = memory_read(storage, extents, count);

    for (size_t i = 0; i < count; ++i) {
        if (lie.at >= extents[i].at && lie.at + lie.count <= extents[i].at + extents[i].count) {
            if (0 != (lie.when >> lie.reads++ & 1)) {
                memcpy((uint8_t *) extents[i].bytes + (lie.at - extents[i].at), lie.bytes, lie.count);
            }
        }
    }
    return rc;
}

static void answer_with(memory_t *memory, uint64_t at, const uint8_t *bytes, size_t count, unsigned when)
{
    lie.at = at;
    lie.bytes = bytes;
    lie.count = count;
    lie.when = when;
    lie.reads = 0;
    memory->super.read = fickle_read;
}

static opal_cryptfile_t *opened(memory_t *memory) { return open_file(&memory->super, spec, 1, NULL); }

static void put(memory_t *memory, const uint8_t *text)
{
    opal_cryptfile_t *file = opened(memory);

    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, text, SIZE));
    opal_cryptfile_destroy(file);
}

/* An entry is empty when a writer looks first, and leads to an older version when it looks again. */
static void test_entry(uint64_t block)
{
    static const uint8_t empty[OPAL_CRYPTFILE_ENTRY_BYTES];
    memory_t memory, old;
    opal_cryptfile_outcome_t outcome;
    const opal_cryptfile_request_t request = {two, block * B + 100, 50};

    memory_init(&memory);
    memory_init(&old);
    put(&memory, one);
    memory_copy(&old, &memory);
    put(&memory, two);
    memcpy(memory.bytes + place_of(0), old.bytes + place_of(0), SIZE);
    memset(memory.bytes + redo_head_place(1), 0, group_redo_rooms * OPAL_CRYPTFILE_REDO_HEAD_BYTES);   /* no room helps */
    opal_cryptfile_t *file = opened(&memory);
    answer_with(&memory, entry_place(block, B), empty, sizeof(empty), 1);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_write(file, &request, 1, false, &outcome) && lie.reads > 1);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    memory_free(&old);
}

static void seal(memory_t *memory, uint8_t number, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_tree_t tree = {.size = SIZE, .id = {number}};
    opal_cryptfile_t *file = opened(memory);
    opal_cryptfile_outcome_t outcome;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tree_fields(file, 0, SIZE, &outcome));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tree_make(file, &tree, true));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tree_root(file, 0, &tree));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tree_finish(file, &tree));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_seal_hash(file, hash));
    opal_cryptfile_destroy(file);
}

static void unseal(memory_t *memory)
{
    opal_cryptfile_t *file = opened(memory);

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tree_unseal(file));
    opal_cryptfile_destroy(file);
}

/* The root that a user keeps is that of the sealed data, and the data read matches the root that the user kept. */
static void test_root(void)
{
    enum { RECORD_AT = 512, RECORD = 80 + OPAL_CRYPT_HASH_BYTES };
    uint8_t first[OPAL_CRYPT_HASH_BYTES], second[OPAL_CRYPT_HASH_BYTES], told[OPAL_CRYPT_HASH_BYTES], record[2][RECORD];
    memory_t memory, old;
    opal_crypt_why_t why = {.topic = NULL};

    memory_init(&memory);
    memory_init(&old);
    put(&memory, one);
    seal(&memory, 1, first);
    memory_copy(&old, &memory);
    memcpy(record[0], old.bytes + RECORD_AT, RECORD);
    unseal(&memory);
    put(&memory, two);
    answer_with(&memory, RECORD_AT, record[0], RECORD, 0);
    seal(&memory, 2, second);
    const unsigned reads = lie.reads;

    /* Printing it: the earlier root is read from the last read on, or from any other. */
    UNIT_CHECK(0 != memcmp(first, second, sizeof(first)));
    for (unsigned n = 0; n <= reads; ++n) {
        unseal(&memory);
        answer_with(&memory, RECORD_AT, record[0], RECORD, ~0u << n);
        seal(&memory, 2, told);
        UNIT_CHECK(0 == memcmp(second, told, sizeof(told)));
    }

    /* Demanding it: everything is old, except for the record from the nth read on. */
    memcpy(record[1], memory.bytes + RECORD_AT, RECORD);
    for (unsigned n = 0; n < 4; ++n) {
        opal_cryptfile_t *file = opened(&old);
        answer_with(&old, RECORD_AT, record[1], RECORD, ~0u << n);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_seal_demand(file, second, &why) && lie.reads > 0);
        opal_cryptfile_destroy(file);
    }
    answer_with(&old, RECORD_AT, record[1], RECORD, 0);
    opal_cryptfile_t *file = opened(&old);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, first, &why));
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    memory_free(&old);
}

int main(void)
{
    providers_init();
    fill(one, SIZE, 1);
    fill(two, SIZE, 2);
    UNIT_GROUP("an entry that is empty, and then is not");
    test_entry(0);
    test_entry(1);
    UNIT_GROUP("the root of a seal is that of what was sealed, or read");
    test_root();
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seals: what single blocks cannot show.  A file is sealed, everything that an
 * attacker could put in its place without a key is put there, and every reader
 * that demands the seal gets an error; the same reader without it does not
 * notice.
 */
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { BLOCK = 512, BLOCKS = 1600, BYTES = BLOCK * BLOCKS - 100 };

static const region_spec_t specs[] = {
    {1, OPAL_AEAD_AES_128_GCM, BLOCK, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t text[BYTES], out[BYTES];

static opal_cryptfile_t *open_it(memory_t *memory) { return open_file(&memory->super, specs, 1, NULL); }

/* Version `number` of the whole file, which has two groups; block 77 stays a hole. */
static void write_version(memory_t *memory, int number)
{
    opal_cryptfile_t *file = open_it(memory);

    fill(text, sizeof(text), (uint64_t) number);
    memset(text + 77 * BLOCK, 0, BLOCK);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, 77 * BLOCK));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 78 * BLOCK, text + 78 * BLOCK, BYTES - 78 * BLOCK));
    opal_cryptfile_destroy(file);
}

/* Every seal has an id of its own. */
static const uint8_t *next_id(void)
{
    static uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES];

    ++id[0];
    return id;
}

/* With the id `said` in the record. */
static int seal_as(opal_cryptfile_t *file, uint64_t bytes, const uint8_t *id, const uint8_t *said)
{
    opal_cryptfile_tree_t tree = {.size = bytes};
    opal_cryptfile_outcome_t outcome;

    memcpy(tree.id, id, sizeof(tree.id));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_fields(file, 0, bytes, &outcome));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_make(file, &tree, true));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_root(file, 0, &tree));
    memcpy(tree.id, said, sizeof(tree.id));
    return opal_cryptfile_tree_finish(file, &tree);
}

static void seal(memory_t *memory, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_t *file = open_it(memory);
    const uint8_t *id = next_id();

    UNIT_CHECK(OPAL_CRYPT_OK == seal_as(file, BYTES, id, id));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_hash(file, hash));
    opal_cryptfile_destroy(file);
}

static void set_state(memory_t *memory, opal_cryptfile_state_t state)
{
    opal_cryptfile_t *file = open_it(memory);

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_state_put(&memory->super, &opal_cryptfile_map_of(file)->geometry, state));
    opal_cryptfile_destroy(file);
}

typedef enum { FINE, REFUSED, UNREADABLE } result_t;

/* Open and read every block; demanding the seal, or not. */
static result_t reader(memory_t *memory, bool demand, const uint8_t *wanted)
{
    opal_cryptfile_t *file = open_it(memory);
    opal_crypt_why_t why = {.topic = NULL};
    result_t result = FINE;
    uint64_t got;

    if (demand && OPAL_CRYPT_OK != opal_cryptfile_seal_demand(file, wanted, &why)) {
        UNIT_CHECK(0 == strcmp(why.topic, "file-seal"));
        result = REFUSED;
    } else if (OPAL_CRYPT_OK != get_bytes(file, 0, out, BYTES, &got)) {
        result = UNREADABLE;
    } else {
        UNIT_CHECK(got <= BYTES);
    }
    opal_cryptfile_destroy(file);
    return result;
}

static bool reads_as(const uint8_t *plain) { return 0 == memcmp(out, plain, BYTES); }

static void test_good(memory_t *memory, const uint8_t *hash)
{
    UNIT_GROUP("what was sealed is read, in one piece and in others");
    UNIT_CHECK(FINE == reader(memory, true, NULL) && reads_as(text));
    UNIT_CHECK(FINE == reader(memory, true, hash) && reads_as(text));
    opal_cryptfile_t *file = open_it(memory);
    opal_crypt_why_t why = {.topic = NULL};
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, hash, &why));
    for (uint64_t at = 0; at < BYTES; at += 3001) {
        uint64_t got, count = BYTES - at < 4000 ? BYTES - at : 4000;
        UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, at, out, count, &got) && got == count && 0 == memcmp(out, text + at, count));
    }
    for (uint64_t block = 0; block < BLOCKS; ++block) {
        opal_cryptfile_block_condition_t condition;
        uint32_t bytes;
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_check(file, 0, block, &condition, &bytes) &&
                   condition == (77 == block ? OPAL_CRYPTFILE_BLOCK_HOLE : OPAL_CRYPTFILE_BLOCK_GOOD));
    }
    opal_cryptfile_destroy(file);
}

static void replay(memory_t *memory, const memory_t *old, uint64_t at, size_t bytes) { memcpy(memory->bytes + at, old->bytes + at, bytes); }

/* An attacker's change, which only a reader that demands the seal notices. */
static void expect(memory_t *memory, const char *what, bool unnoticed, result_t result)
{
    result_t without = reader(memory, false, NULL), with = reader(memory, true, NULL);

    if (unnoticed != (FINE == without) || result != with) {
        printf("  %s: %d without the seal, %d with it\n", what, without, with);
    }
    UNIT_CHECK(unnoticed == (FINE == without) && result == with);
}

/* Each of these bytes changed: no reader that demands the seal gets anything. */
static void expect_changed(memory_t *memory, uint64_t at, size_t bytes)
{
    for (size_t i = 0; i < bytes; ++i) {
        memory->bytes[at + i] ^= 1;
        UNIT_CHECK(REFUSED == reader(memory, true, NULL));
        memory->bytes[at + i] ^= 1;
    }
}

static void test_entries(memory_t *memory)
{
    for (uint64_t block = 0; block < BLOCKS; block += 97) {
        uint8_t *entry = memory->bytes + entry_place(block, BLOCK);
        opal_cryptfile_slot_t slots[2];
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry, BLOCK, &slots[0]) &&
                     OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry + OPAL_CRYPTFILE_SLOT_BYTES, BLOCK, &slots[1]));
        int newer = opal_cryptfile_entry_newer(slots);
        for (unsigned byte = 0; byte < OPAL_CRYPTFILE_SLOT_BYTES; ++byte) {
            if (newer >= 0 && (byte > 3 || (0 == byte && 0 == newer))) {        /* its room is not sealed */
                entry[(unsigned) newer * OPAL_CRYPTFILE_SLOT_BYTES + byte] ^= 1;
                UNIT_CHECK(FINE != reader(memory, true, NULL));
                entry[(unsigned) newer * OPAL_CRYPTFILE_SLOT_BYTES + byte] ^= 1;
            }
        }
        for (unsigned byte = OPAL_CRYPTFILE_SLOTS_BYTES; byte < OPAL_CRYPTFILE_ENTRY_BYTES; ++byte) {
            entry[byte] ^= 1;
            UNIT_CHECK(UNREADABLE == reader(memory, true, NULL));
            entry[byte] ^= 1;
        }
    }
}

static void test_attacks(const memory_t *sealed, const memory_t *old, const uint8_t *hash)
{
    enum { RECORD_AT = 512, TABLE_AT = 8192, LATE = BLOCKS - 70 };      /* in the second group */
    memory_t memory;

    memory_init(&memory);
    UNIT_GROUP("older versions, holes, the end, tables, the record");
    for (uint64_t block = 5; block < BLOCKS; block += LATE - 5) {
        for (size_t entry = OPAL_CRYPTFILE_SLOTS_BYTES; entry <= OPAL_CRYPTFILE_ENTRY_BYTES; entry += OPAL_CRYPT_HASH_BYTES) {
            memory_copy(&memory, sealed);
            replay(&memory, old, place_of(block * BLOCK), BLOCK);
            replay(&memory, old, entry_place(block, BLOCK), entry);     /* with the sealed field, or without */
            expect(&memory, "an older version of a block", true, UNREADABLE);
            memory_copy(&memory, sealed);
            memset(memory.bytes + place_of(block * BLOCK), 0, BLOCK);
            memset(memory.bytes + entry_place(block, BLOCK), 0, entry);
            expect(&memory, "a block turned into a hole", true, UNREADABLE);
        }
        memory_copy(&memory, sealed);
        replay(&memory, old, place_of(block * BLOCK), BLOCK);
        expect(&memory, "an older version of a block's data", true, UNREADABLE);
    }
    memory_copy(&memory, sealed);
    memory.size -= 1000;
    expect(&memory, "the end cut off within a block", false, REFUSED);
    memory_copy(&memory, sealed);
    memory.size = place_of(100 * BLOCK);
    expect(&memory, "the end cut off between blocks", true, REFUSED);
    memory_copy(&memory, old);
    set_state(&memory, OPAL_CRYPTFILE_STATE_SEALED);
    expect(&memory, "an older version of the file, which calls itself sealed", true, REFUSED);
    memory_copy(&memory, sealed);
    expect_changed(&memory, RECORD_AT, 80 + OPAL_CRYPT_HASH_BYTES);
    expect_changed(&memory, TABLE_AT, 2 * OPAL_CRYPT_HASH_BYTES);
    test_entries(&memory);
    UNIT_GROUP("another sealed version is not the one whose hash was kept");
    memory_copy(&memory, sealed);
    uint8_t other[OPAL_CRYPT_HASH_BYTES];
    opal_cryptfile_t *file = open_it(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 700, "x", 1));
    opal_cryptfile_destroy(file);
    UNIT_CHECK(FINE != reader(&memory, true, NULL));
    seal(&memory, other);
    UNIT_CHECK(FINE == reader(&memory, true, NULL) && FINE == reader(&memory, true, other));
    UNIT_CHECK(REFUSED == reader(&memory, true, hash) && 0 != memcmp(hash, other, sizeof(other)));
    memory_free(&memory);
}

static void test_reopened(const memory_t *sealed)
{
    memory_t memory;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];

    memory_init(&memory);
    UNIT_GROUP("opening for writing ends it; an overwrite that was cut short is finished first");
    memory_copy(&memory, sealed);
    set_state(&memory, OPAL_CRYPTFILE_STATE_OPEN);
    UNIT_CHECK(REFUSED == reader(&memory, true, NULL) && FINE == reader(&memory, false, NULL));
    for (long writes_left = 1; writes_left < 6; ++writes_left) { /* mark, head, room, data, entry */
        memory_copy(&memory, sealed);
        opal_cryptfile_t *file = open_it(&memory);
        uint8_t fresh[BLOCK];
        memset(fresh, 0x5c, sizeof(fresh));
        memory.writes_left = writes_left;
        (void) put_bytes(file, 9 * BLOCK, fresh, BLOCK);
        memory.writes_left = -1;
        opal_cryptfile_destroy(file);
        seal(&memory, hash);
        UNIT_CHECK(FINE == reader(&memory, true, hash));
        UNIT_CHECK(0 == memcmp(out + 9 * BLOCK, fresh, BLOCK) || reads_as(text));
    }
    memory_free(&memory);
}

static result_t demand(opal_cryptfile_t *file, opal_crypt_why_t *why)
{
    return OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, NULL, why) ? FINE : REFUSED;
}

static void test_small(void)
{
    memory_t memory;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES], byte = 7;
    opal_crypt_why_t why = {.topic = NULL};
    opal_cryptfile_outcome_t outcome;

    UNIT_GROUP("an empty file; a file of holes");
    for (uint64_t bytes = 0; bytes < 300 * BLOCK; bytes += 150 * BLOCK - 1) {
        memory_init(&memory);
            opal_cryptfile_t *file = open_it(&memory);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, bytes, &outcome));
        uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES];
        memcpy(id, next_id(), sizeof(id));
        UNIT_CHECK(OPAL_CRYPT_OK == seal_as(file, bytes, id, next_id()) && REFUSED == demand(file, &why));
        UNIT_CHECK(OPAL_CRYPT_OK == seal_as(file, bytes, id, id));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_hash(file, hash));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, hash, &why));
        uint64_t got = 1;
        UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, &byte, 1, &got) && got == (bytes > 0) && byte == (bytes > 0 ? 0 : 7));
        opal_cryptfile_destroy(file);
        memory_free(&memory);
    }
}

int main(void)
{
    memory_t memory, old;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char hex[OPAL_CRYPTFILE_SEAL_TEXT_BYTES];
    uint8_t again[OPAL_CRYPT_HASH_BYTES];

    providers_init();
    memory_init(&memory);
    memory_init(&old);
    write_version(&memory, 1);
    memory_copy(&old, &memory);
    write_version(&memory, 2);
    UNIT_CHECK(REFUSED == reader(&memory, true, NULL));
    seal(&memory, hash);
    opal_cryptfile_seal_text(hash, hex);
    UNIT_CHECK(opal_cryptfile_seal_parse(hex, again) && 0 == memcmp(hash, again, sizeof(hash)) &&
               !opal_cryptfile_seal_parse("12", again));
    test_good(&memory, hash);
    test_attacks(&memory, &old, hash);
    test_reopened(&memory);
    test_small();
    memory_free(&memory);
    memory_free(&old);
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seals: what single blocks cannot show.  A file is sealed, everything that an
 * attacker could put in its place without a key is put there, and every reader
 * that demands the seal gets an error; the same reader without it does not
 * notice.
 */
#include "opal/mca/common/cryptfile/file/seal.h"
#include "opal/mca/common/cryptfile/file/store.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { BLOCK = 512, BLOCKS = 200, BYTES = BLOCK * BLOCKS - 100 };

static const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES] = "file seal  uuid";
static const region_spec_t specs[] = {
    {1, OPAL_AEAD_AES_128_GCM, BLOCK, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t text[BYTES], out[BYTES];

static opal_cryptfile_t *open_it(memory_t *memory) { return open_file(&memory->super, specs, 1, uuid, NULL); }

/* Version `number` of the whole file; block 77 stays a hole. */
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

static void seal(memory_t *memory, uint8_t hash[OPAL_CRYPT_HASH_BYTES])
{
    opal_cryptfile_t *file = open_it(memory);
    opal_cryptfile_outcome_t outcome;
    opal_crypt_why_t why = {.topic = NULL};
    const uint8_t *id = next_id();

    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_region(file, 0, BYTES, id, &outcome, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_finish(&memory->super, BYTES, id));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_hash(file, hash));
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

/* Copy `bytes` of a part of the file from `old` to `memory`. */
static void replay(memory_t *memory, const memory_t *old, opal_cryptfile_part_t part, uint64_t at, size_t bytes)
{
    memcpy(memory->parts[part].bytes + memory_place(part, at), old->parts[part].bytes + memory_place(part, at), bytes);
}

static uint64_t entries_at(memory_t *memory, uint64_t block)
{
    opal_cryptfile_sidecar_index_t index;
    opal_cryptfile_sidecar_directory_t directory;

    UNIT_REQUIRE(opal_cryptfile_sidecar_index(block, &index));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_directory_parse(memory->parts[1].bytes + 4096, 512, BLOCK, &directory));
    return opal_cryptfile_sidecar_entry_at(directory.entries[index.segment], index.within);
}

/* An attacker's change, which only a reader that demands the seal notices. */
static void expect(memory_t *memory, const char *what, bool unnoticed, result_t result)
{
    result_t without = reader(memory, false, NULL), with = reader(memory, true, NULL);

    if (unnoticed != (FINE == without) || result != with) {
        printf("  %s: %d without the seal, %d with it\n", what, without, with);
    }
    UNIT_CHECK(unnoticed == (FINE == without) && result == with);
}

static void test_attacks(const memory_t *sealed, const memory_t *old, const uint8_t *hash)
{
    memory_t memory;
    uint8_t zeros[OPAL_CRYPTFILE_ENTRY_BYTES] = {0};

    memory_init(&memory);
    UNIT_GROUP("older versions, holes, the end, the list, the header");
    memory_copy(&memory, sealed);
    replay(&memory, old, OPAL_CRYPTFILE_DATA, 5 * BLOCK, BLOCK);
    replay(&memory, old, OPAL_CRYPTFILE_SIDECAR, entries_at(&memory, 5), OPAL_CRYPTFILE_ENTRY_BYTES);
    expect(&memory, "an older version of a block", true, UNREADABLE);
    memory_copy(&memory, sealed);
    replay(&memory, old, OPAL_CRYPTFILE_DATA, 5 * BLOCK, BLOCK);
    expect(&memory, "an older version of a block's data", true, UNREADABLE);
    memory_copy(&memory, sealed);
    memcpy(memory.parts[1].bytes + memory_place(OPAL_CRYPTFILE_SIDECAR, entries_at(&memory, 130)), zeros, sizeof(zeros));
    memset(memory.parts[0].bytes + 130 * BLOCK, 0, BLOCK);
    expect(&memory, "a block turned into a hole", true, UNREADABLE);
    memory_copy(&memory, sealed);
    memory.parts[0].size -= 1000;
    expect(&memory, "the end cut off within a block, which has a room", false, REFUSED);
    memory_copy(&memory, sealed);
    memory.parts[0].size = 100 * BLOCK;
    expect(&memory, "the end cut off between blocks", true, REFUSED);
    memory_copy(&memory, sealed);
    memory_copy(&memory, old);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_finish(&memory.super, BYTES, next_id()));
    expect(&memory, "an older version of both parts, which calls itself sealed", true, REFUSED);
    for (uint64_t at = OPAL_CRYPTFILE_SIDECAR_STATE_AT; at < 72 + OPAL_CRYPTFILE_SEAL_ID_BYTES; ++at) {
        if (at >= 16 && at < 64) {      /* opening checks UUID and maps */
            continue;
        }
        memory_copy(&memory, sealed);
        memory.parts[1].bytes[at] ^= 1;
        UNIT_CHECK(FINE != reader(&memory, true, NULL));
    }
    for (uint64_t at = 4096 + 448; at < 4096 + 496; ++at) {
        memory_copy(&memory, sealed);
        memory.parts[1].bytes[at] ^= 1;
        UNIT_CHECK(FINE != reader(&memory, true, NULL));
    }
    opal_cryptfile_sidecar_directory_t directory;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_directory_parse(sealed->parts[1].bytes + 4096, 512, BLOCK, &directory));
    for (uint64_t at = 0; at < 2 * OPAL_CRYPT_HASH_BYTES; ++at) {
        memory_copy(&memory, sealed);
        memory.parts[1].bytes[memory_place(OPAL_CRYPTFILE_SIDECAR, directory.seal_list + at)] ^= 1;
        UNIT_CHECK(REFUSED == reader(&memory, true, NULL));
    }
    for (uint64_t block = 0; block < BLOCKS; block += 7) {
        for (unsigned byte = 0; byte < OPAL_CRYPTFILE_SLOT_BYTES; ++byte) {
            memory_copy(&memory, sealed);
            opal_cryptfile_slot_t slots[2];
            uint8_t *entry = memory.parts[1].bytes + memory_place(OPAL_CRYPTFILE_SIDECAR, entries_at(&memory, block));
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry, BLOCK, &slots[0]) &&
                         OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry + OPAL_CRYPTFILE_SLOT_BYTES, BLOCK, &slots[1]));
            int newer = opal_cryptfile_entry_newer(slots);
            if (newer >= 0 && (byte > 3 || (0 == byte && 0 == newer))) {    /* its room is not sealed */
                entry[(unsigned) newer * OPAL_CRYPTFILE_SLOT_BYTES + byte] ^= 1;
                UNIT_CHECK(FINE != reader(&memory, true, NULL));
            }
        }
    }
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

static void test_life(const memory_t *sealed)
{
    memory_t memory;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];

    memory_init(&memory);
    UNIT_GROUP("opening for writing ends it; an overwrite that was cut short is finished first");
    memory_copy(&memory, sealed);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_sidecar_unseal(&memory.super));
    UNIT_CHECK(REFUSED == reader(&memory, true, NULL) && FINE == reader(&memory, false, NULL));
    for (long life = 1; life < 6; ++life) {     /* set of rooms, mark, room, data, entry */
        memory_copy(&memory, sealed);
        opal_cryptfile_t *file = open_it(&memory);
        uint8_t fresh[BLOCK];
        memset(fresh, 0x5c, sizeof(fresh));
        memory.life = life;
        (void) put_bytes(file, 9 * BLOCK, fresh, BLOCK);
        memory.life = -1;
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
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_create(&memory.super, uuid));
        opal_cryptfile_t *file = open_it(&memory);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, bytes, &outcome));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_region(file, 0, bytes, next_id(), &outcome, &why));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_finish(&memory.super, bytes, next_id()) &&
                   REFUSED == demand(file, &why));
        const uint8_t *id = next_id();
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_region(file, 0, bytes, id, &outcome, &why));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_finish(&memory.super, bytes, id));
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
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_create(&memory.super, uuid));
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
    test_life(&memory);
    test_small();
    memory_free(&memory);
    memory_free(&old);
    providers_fini();
    return unit_done();
}

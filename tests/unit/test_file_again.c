/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Blocks that start over: beyond a cut, where the earlier block's room still is, and
 * after a first write that was cut short.  No old data is ever returned as valid, a
 * writer can go on, and forged data stays an error for every process.  And a call
 * whose lock cannot be released.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, BLOCKS = 100, SIZE = B * BLOCKS };

static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t one[SIZE], two[SIZE], out[SIZE];

static opal_cryptfile_t *opened(memory_t *memory) { return open_file(&memory->super, spec, 1, NULL); }

static int write_as(memory_t *memory, uint64_t at, const void *bytes, size_t count, opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_request_t request = {(void *) (uintptr_t) bytes, at, count};
    opal_cryptfile_t *file = opened(memory);
    int rc = opal_cryptfile_write(file, &request, 1, false, outcome);

    opal_cryptfile_destroy(file);
    return rc;
}

static int read_block(memory_t *memory, uint64_t block)
{
    opal_cryptfile_t *file = opened(memory);
    uint64_t got;
    int rc = get_bytes(file, block * B, out, B, &got);

    opal_cryptfile_destroy(file);
    return rc;
}

static uint8_t *entry_of(memory_t *memory, uint64_t block) { return memory->bytes + entry_place(block, B); }
static uint8_t *data_of(memory_t *memory, uint64_t block) { return memory->bytes + place_of(block * B); }

/* ---- beyond a cut ---- */

static void test_cut(uint64_t keep)
{
    memory_t memory;
    opal_cryptfile_outcome_t outcome;

    memory_init(&memory);
    opal_cryptfile_t *file = opened(&memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, one, SIZE));
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, two, SIZE));       /* into rooms, too */
    uint8_t *old = malloc(SIZE);
    UNIT_REQUIRE(NULL != old);
    memcpy(old, data_of(&memory, 0), SIZE);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_resize(file, keep, &outcome));
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, keep, one + keep, SIZE - keep));
    opal_cryptfile_destroy(file);
    for (uint64_t block = (keep + B - 1) / B; block < BLOCKS; ++block) {
        uint8_t *data = data_of(&memory, block);
        UNIT_REQUIRE(OPAL_CRYPT_OK == read_block(&memory, block) && 0 == memcmp(out, one + block * B, B));
        data[3] ^= 1;                   /* its data is damaged */
        UNIT_REQUIRE(OPAL_CRYPT_ERR_AUTH == read_block(&memory, block));
        memcpy(data, old + block * B, B);       /* the earlier data was never replaced */
        UNIT_REQUIRE(OPAL_CRYPT_ERR_AUTH == read_block(&memory, block));
    }
    UNIT_CHECK(true);
    free(old);
    memory_free(&memory);
}

/* A process dies at every piece of cutting, and the next one writes the block, dies
 * before its entry, and so on: block 3 is never again what it was. */
static void test_cut_deaths(void)
{
    memory_t base, memory;
    opal_cryptfile_outcome_t outcome;
    unsigned wrong = 0, n = 0;

    memory_init(&base);
    UNIT_REQUIRE(OPAL_CRYPT_OK == write_as(&base, 0, one, SIZE, &outcome));
    UNIT_REQUIRE(OPAL_CRYPT_OK == write_as(&base, 0, two, SIZE, &outcome));
    memory_init(&memory);
    for (int rc = -1; OPAL_CRYPT_OK != rc; ++n) {
        memory_copy(&memory, &base);
        opal_cryptfile_t *file = opened(&memory);
        memory.writes_left = n;
        rc = opal_cryptfile_resize(file, 2 * B + 100, &outcome);
        opal_cryptfile_destroy(file);
        memory.writes_left = -1;
        file = opened(&memory);
        wrong += OPAL_CRYPT_OK != opal_cryptfile_resize(file, 2 * B + 100, &outcome);
        opal_cryptfile_destroy(file);
        wrong += OPAL_CRYPT_OK != write_as(&memory, 3 * B, one + 3 * B, B, &outcome);
        *data_of(&memory, 3) ^= 1;
        wrong += OPAL_CRYPT_ERR_AUTH != read_block(&memory, 3);
    }
    UNIT_CHECK(0 == wrong && n > 3);
    memory_free(&base);
    memory_free(&memory);
}

/* ---- a first write that was cut short ---- */

/* Block 1 has data, and no entry. */
static void tear(memory_t *memory)
{
    opal_cryptfile_outcome_t outcome;

    memory_init(memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == write_as(memory, 0, one, 3 * B, &outcome));
    memset(entry_of(memory, 1), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    UNIT_REQUIRE(OPAL_CRYPT_ERR_TORN == read_block(memory, 1));
}

static void test_torn(void)
{
    static const uint8_t zeros[B];
    memory_t memory;
    opal_cryptfile_outcome_t outcome;

    tear(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == write_as(&memory, B + 100, two, 50, &outcome) && outcome.torn && 1 == outcome.torn_block &&
               50 == outcome.bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == read_block(&memory, 1) && 0 == memcmp(out, zeros, 100) && 0 == memcmp(out + 100, two, 50) &&
               0 == memcmp(out + 150, zeros, B - 150));
    UNIT_CHECK(OPAL_CRYPT_OK == write_as(&memory, B + 400, two, 50, &outcome) && !outcome.torn);
    UNIT_CHECK(OPAL_CRYPT_OK == read_block(&memory, 1) && 0 == memcmp(out + 100, two, 50) &&
               0 == memcmp(out + 150, zeros, 250) && 0 == memcmp(out + 400, two, 50));
    UNIT_CHECK(OPAL_CRYPT_OK == read_block(&memory, 0) && 0 == memcmp(out, one, B));
    memory_free(&memory);

    tear(&memory);                /* several in one open file: one warning */
    memset(entry_of(&memory, 2), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    opal_cryptfile_t *file = opened(&memory);
    opal_cryptfile_request_t request = {two, 2 * B - 10, 20};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_write(file, &request, 1, false, &outcome) && outcome.torn);
    memory_free(&memory);
    tear(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_write(file, &request, 1, true, &outcome) && !outcome.torn);
    opal_cryptfile_destroy(file);
    memory_free(&memory);

    tear(&memory);                /* cut through it */
    file = opened(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, B + 200, &outcome));
    opal_cryptfile_destroy(file);
    UNIT_CHECK(OPAL_CRYPT_ERR_TORN == read_block(&memory, 1));
    UNIT_CHECK(OPAL_CRYPT_OK == write_as(&memory, B + 10, two, 10, &outcome) && OPAL_CRYPT_OK == read_block(&memory, 1) &&
               0 == memcmp(out, zeros, 10) && 0 == memcmp(out + 10, two, 10) && 0 == memcmp(out + 20, zeros, B - 20));
    memory_free(&memory);
}

/* A complete entry whose data does not match is not a torn block, for readers or writers. */
static void test_forged(int overwritten, int what)
{
    memory_t memory, before;
    opal_cryptfile_outcome_t outcome;

    memory_init(&memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == write_as(&memory, 0, one, 3 * B, &outcome));
    if (overwritten) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == write_as(&memory, 0, two, 3 * B, &outcome));
    }
    data_of(&memory, 1)[7] ^= 4;
    if (overwritten) {                  /* and so is its room: its slot matches nothing */
        memset(entry_of(&memory, 1) + OPAL_CRYPTFILE_SLOT_BYTES + 20, 7, 5);
        for (uint32_t redo = 1; redo <= group_redo_rooms; ++redo) {
            memset(memory.bytes + redo_place(redo), 5, 4096);
        }
    }
    if (what > 0) {
        memset(entry_of(&memory, 1), 0xff, 4);  /* flags that are never written */
    }
    memory_init(&before);
    memory_copy(&before, &memory);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == write_as(&memory, B + 100, two, 50, &outcome) && !outcome.torn);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == read_block(&memory, 1));
    UNIT_CHECK(0 == memcmp(data_of(&before, 0), data_of(&memory, 0), 3 * B));
    memory_free(&memory);
    memory_free(&before);
}

/* ---- a lock that is lost ---- */

static int unlock_lost(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    (void) memory_unlock(storage, at, bytes);
    errno = EIO;
    return OPAL_CRYPT_ERR_STORAGE;
}

/* Others may have written there meanwhile. */
static void test_lock_lost(void)
{
    memory_t memory;
    opal_cryptfile_outcome_t outcome;
    const opal_cryptfile_request_t request = {one, 0, B};

    memory_init(&memory);
    opal_cryptfile_t *file = opened(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, one, 3 * B) && OPAL_CRYPT_OK == opal_cryptfile_finish_block(file, 0, 1));
    memory.super.unlock = unlock_lost;
    errno = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == opal_cryptfile_finish_block(file, 0, 1) && EIO == errno);
    for (int atomic = 0; atomic < 2; ++atomic) {
        UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == opal_cryptfile_write(file, &request, 1, atomic, &outcome) && EIO == outcome.error);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(file, &request, 1, atomic, &outcome) && B == outcome.bytes);
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == opal_cryptfile_resize(file, 2 * B + 10, &outcome));
    UNIT_CHECK(0 == memory.locks);
    memory.super.unlock = memory_unlock;
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

int main(void)
{
    providers_init();
    fill(one, SIZE, 1);
    fill(two, SIZE, 2);
    UNIT_GROUP("behind a cut, no room of before counts");
    test_cut(0);
    test_cut(3 * B);
    test_cut(3 * B + 100);
    test_cut(70 * B);
    test_cut_deaths();
    UNIT_GROUP("a torn block is a hole to a writer, and an error to a reader");
    test_torn();
    UNIT_GROUP("a forged block is neither");
    test_forged(0, 0);
    test_forged(0, 1);
    test_forged(1, 0);
    UNIT_GROUP("who wrote under a lock that was lost does not say that all is well");
    test_lock_lost();
    providers_fini();
    return unit_done();
}

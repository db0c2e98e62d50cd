/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rooms, where overwrites go first: their number depends neither on the file's size nor on the
 * number of overwrites; no two processes have the same; what a killed process left in one is
 * finished by the next owner; and a room can make a block valid only as the version that follows
 * the entry's.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 4096, IN_SET = 64, BLOCKS = 200, SIZE = B * BLOCKS, LOCKS = 64 };

static const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES] = "file rooms uuid";
static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t one[SIZE], two[SIZE], three[SIZE], out[SIZE];

/* ---- processes that share the storage: the active one holds its locks ---- */

static int who;

static struct {
    uint64_t at, bytes;
    int owner;
} table[LOCKS];

static bool table_lock(uint64_t at, uint64_t bytes)
{
    int place = -1;

    for (int i = 0; i < LOCKS; ++i) {
        if (0 == table[i].bytes) {
            place = i;
        } else if (who != table[i].owner && at < table[i].at + table[i].bytes && table[i].at < at + bytes) {
            return false;
        }
    }
    UNIT_REQUIRE(place >= 0);
    table[place].at = at;
    table[place].bytes = bytes;
    table[place].owner = who;
    return true;
}

static int lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    (void) storage;
    (void) exclusive;
    UNIT_REQUIRE(table_lock(at, bytes));        /* no other process is active that could release it */
    return OPAL_CRYPT_OK;
}

static int try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    (void) storage;
    (void) exclusive;
    *got = table_lock(at, bytes);
    return OPAL_CRYPT_OK;
}

/* A stopped process releases nothing. */
static int unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    for (int i = 0; i < LOCKS && 0 != memory_of(storage)->life; ++i) {
        if (who == table[i].owner && at == table[i].at && bytes == table[i].bytes) {
            table[i].bytes = 0;
        }
    }
    return OPAL_CRYPT_OK;
}

static void killed(int process)
{
    for (int i = 0; i < LOCKS; ++i) {
        table[i].bytes = process == table[i].owner ? 0 : table[i].bytes;
    }
}

static opal_cryptfile_t *opened(memory_t *memory) { return open_file(&memory->super, spec, 1, uuid, NULL); }

static void start(memory_t *memory)
{
    memory_init(memory);
    memory->super.lock = lock;
    memory->super.try_lock = try_lock;
    memory->super.unlock = unlock;
    memset(table, 0, sizeof(table));
    who = 1;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_create(&memory->super, uuid));
    opal_cryptfile_t *file = opened(memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, one, SIZE));
    opal_cryptfile_destroy(file);
}

static uint64_t sidecar_bytes(memory_t *memory)
{
    uint64_t bytes;

    UNIT_REQUIRE(OPAL_CRYPT_OK == memory->super.size(&memory->super, OPAL_CRYPTFILE_SIDECAR, &bytes));
    return bytes;
}

static int read_block(memory_t *memory, uint64_t block)
{
    opal_cryptfile_t *file = opened(memory);
    uint64_t got;
    int rc = get_bytes(file, block * B, out, B, &got);

    opal_cryptfile_destroy(file);
    return rc;
}

static bool reads_as(memory_t *memory, uint64_t block, const uint8_t *text)
{
    return OPAL_CRYPT_OK == read_block(memory, block) && 0 == memcmp(out, text + block * B, B);
}

static bool reads_small(opal_cryptfile_t *file, const uint8_t *text)
{
    uint64_t got;

    return OPAL_CRYPT_OK == get_bytes(file, 0, out, B, &got) && B == got && 0 == memcmp(out, text, B);
}

/* ---- how many there are ---- */

static const uint64_t far = UINT64_C(1) << 30, first_kept = (UINT64_C(1) << 30) - (4u << 16);

static int sparse_transfer(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                           const opal_cryptfile_extent_t *extents, size_t extent_count, bool writing)
{
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; i < extent_count && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_extent_t extent = extents[i];
        UNIT_REQUIRE(OPAL_CRYPTFILE_SIDECAR == part || extent.at >= first_kept);
        extent.at -= OPAL_CRYPTFILE_DATA == part ? first_kept : 0;
        rc = (writing ? memory_write : memory_read)(storage, part, &extent, 1);
    }
    return rc;
}

static int sparse_read(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                       const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    return sparse_transfer(storage, part, extents, extent_count, false);
}

static int sparse_write(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                        const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    return sparse_transfer(storage, part, extents, extent_count, true);
}

static int sparse_size(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t *bytes)
{
    *bytes = far;
    return OPAL_CRYPTFILE_DATA == part ? OPAL_CRYPT_OK : memory_size(storage, part, bytes);
}

/* The last block of a sparse file of 1 GiB. */
static void test_far(void)
{
    static const region_spec_t usual[1] = {{1, OPAL_AEAD_AES_128_GCM, 65536, 0, 1, false, 1, {{0, 1, 0}}}};
    memory_t memory;
    uint64_t got;

    memory_init(&memory);
    memory.super.read = sparse_read;
    memory.super.write = sparse_write;
    memory.super.size = sparse_size;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_create(&memory.super, uuid));
    opal_cryptfile_t *file = open_file(&memory.super, usual, 1, uuid, NULL);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, far - 65536, one, 65536));
    uint64_t before = sidecar_bytes(&memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, far - 65536, two, 65536));
    printf("  the sidecar grew by %llu bytes\n", (unsigned long long) (sidecar_bytes(&memory) - before));
    UNIT_CHECK(sidecar_bytes(&memory) - before <= 300u << 10);
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, far - 65536, out, 65536, &got) && 0 == memcmp(out, two, 65536));
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

static void test_many(void)
{
    memory_t memory;
    uint64_t size = 0, random = 1;
    unsigned wrong = 0;

    start(&memory);
    uint64_t before = sidecar_bytes(&memory);
    for (int life = 0; life < 20; ++life) {
        opal_cryptfile_t *file = opened(&memory);
        for (int i = 0; i < 500; ++i) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            uint64_t from = (random >> 33) % (SIZE - 2 * B), count = 1 + (random >> 20) % (2 * B);
            wrong += OPAL_CRYPT_OK != put_bytes(file, from, one + from, (size_t) count);
        }
        opal_cryptfile_destroy(file);
        size = 0 == life ? sidecar_bytes(&memory) : size;
        wrong += size != sidecar_bytes(&memory);
    }
    printf("  the sidecar grew by %llu bytes\n", (unsigned long long) (size - before));
    UNIT_CHECK(0 == wrong && size - before <= 300u << 10);
    memory_free(&memory);
}

/* ---- several processes ---- */

/* Process `process` overwrites two blocks from `block` on, and is stopped after `pieces`; *done: it was not. */
static opal_cryptfile_t *stopped(memory_t *memory, int process, uint64_t block, const uint8_t *text, long pieces, bool *done)
{
    who = process;
    opal_cryptfile_t *file = opened(memory);
    memory->life = pieces;
    *done = OPAL_CRYPT_OK == put_bytes(file, block * B, text + block * B, 2 * B);
    return file;
}

static void resume(memory_t *memory, int process)
{
    memory->life = -1;
    who = process;
}

static void test_two(void)
{
    memory_t start_with, memory;
    unsigned wrong = 0, old = 0, fresh = 0;
    bool done = false;
    long pieces = 3;                    /* by then there is a set */

    start(&start_with);
    memory_init(&memory);
    for (; !done; ++pieces) {
        memory_copy(&memory, &start_with);
        memory.super = start_with.super;
        opal_cryptfile_t *first = stopped(&memory, 1, 9, two, pieces, &done);
        resume(&memory, 2);             /* the first is there still */
        uint64_t with_one = sidecar_bytes(&memory);
        opal_cryptfile_t *second = opened(&memory);
        wrong += OPAL_CRYPT_OK != put_bytes(second, 100 * B, three + 100 * B, IN_SET * B);
        uint64_t with_two = sidecar_bytes(&memory);
        wrong += with_two <= with_one;  /* sets of its own */
        killed(1);
        resume(&memory, 3);
        opal_cryptfile_t *third = opened(&memory);
        wrong += OPAL_CRYPT_OK != put_bytes(third, 20 * B, three + 20 * B, IN_SET * B);
        wrong += with_two != sidecar_bytes(&memory);    /* the first one's */
        for (uint64_t block = 9; block < 11; ++block) {
            bool before = reads_as(&memory, block, one), after = reads_as(&memory, block, two);
            wrong += !before && !after;
            old += before;
            fresh += after;
        }
        wrong += !reads_as(&memory, 100, three) || !reads_as(&memory, 20 + IN_SET - 1, three) || !reads_as(&memory, 11, one);
        opal_cryptfile_destroy(third);
        who = 2;
        opal_cryptfile_destroy(second);
        who = 1;
        opal_cryptfile_destroy(first);
    }
    printf("  %ld points of death: %u blocks old, %u new\n", pieces - 4, old, fresh);
    UNIT_CHECK(0 == wrong && old > 4 && fresh > 4);
    memory_free(&start_with);
    memory_free(&memory);
}

/* A process does not wait for a set that another process, or it itself, holds: it takes another one. */
static void test_in_use(void)
{
    memory_t memory;
    bool done;

    start(&memory);
    opal_cryptfile_t *first = stopped(&memory, 1, 9, two, 8, &done);
    UNIT_REQUIRE(!done);
    killed(1);
    resume(&memory, 2);                 /* a reader of the block, say */
    uint64_t with_one = sidecar_bytes(&memory);
    UNIT_REQUIRE(table_lock(opal_cryptfile_sidecar_lock_at(0, 9), 1));
    resume(&memory, 3);
    opal_cryptfile_t *third = opened(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(third, 100 * B, three + 100 * B, B) && sidecar_bytes(&memory) > with_one);
    killed(2);
    opal_cryptfile_destroy(third);
    who = 4;
    opal_cryptfile_t *fourth = opened(&memory);                /* the very blocks that were left, and more */
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(fourth, 5 * B, three + 5 * B, 20 * B) && reads_as(&memory, 9, three));
    opal_cryptfile_destroy(fourth);
    uint64_t then = sidecar_bytes(&memory);
    for (int i = 0; i < 10; ++i) {
        fourth = opened(&memory);
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(fourth, 5 * B, two + 5 * B, 20 * B));
        opal_cryptfile_destroy(fourth);
    }
    UNIT_CHECK(then == sidecar_bytes(&memory) && reads_as(&memory, 9, two));
    who = 1;
    opal_cryptfile_destroy(first);
    memory_free(&memory);
}

static uint32_t taken;                  /* sets below it are taken */

static int try_lock_crowded(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    int rc = memory_try_lock(storage, at, bytes, exclusive, got);

    *got = at >= opal_cryptfile_sidecar_set_lock_at(0, taken);
    return rc;
}

/* After the sets that are tried in order, others are; and if all are taken, the write fails. */
static void test_crowded(void)
{
    static const region_spec_t small[1] = {{1, OPAL_AEAD_AES_128_GCM, 512, 0, 1, false, 1, {{0, 1, 0}}}};
    memory_t memory;

    memory_init(&memory);
    memory.super.try_lock = try_lock_crowded;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_create(&memory.super, uuid));
    opal_cryptfile_t *file = open_file(&memory.super, small, 1, uuid, NULL);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, one, B));
    taken = UINT32_MAX;
    errno = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == put_bytes(file, 0, two, B) && ENOLCK == errno);
    UNIT_CHECK(reads_small(file, one));
    taken = 70;
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, two, B) && reads_small(file, two));
    uint64_t with_one = sidecar_bytes(&memory);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, one, B) && reads_small(file, one) && with_one == sidecar_bytes(&memory));
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

/* ---- an attacker who controls the storage ---- */

static uint8_t *entry_of(memory_t *memory, uint64_t block)
{
    opal_cryptfile_sidecar_index_t index;
    opal_cryptfile_sidecar_directory_t directory;

    UNIT_REQUIRE(opal_cryptfile_sidecar_index(block, &index));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_directory_parse(memory->parts[1].bytes + 4096, 512, B, &directory));
    return memory->parts[1].bytes +
           memory_place(OPAL_CRYPTFILE_SIDECAR, opal_cryptfile_sidecar_entry_at(directory.entries[index.segment], index.within));
}

static uint8_t *room_of(memory_t *memory, uint32_t number)
{
    opal_cryptfile_sidecar_directory_t directory;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_sidecar_directory_parse(memory->parts[1].bytes + 4096, 512, B, &directory));
    UNIT_REQUIRE(number > 0 && number <= IN_SET);
    return memory->parts[1].bytes +
           memory_place(OPAL_CRYPTFILE_SIDECAR, opal_cryptfile_sidecar_room_at(directory.rooms[0], number - 1, B));
}

/* A mark that leads to room `number`, on the slot that is written next. */
static void mark(memory_t *memory, uint64_t block, uint32_t number)
{
    opal_cryptfile_slot_t slots[2];
    uint8_t *entry = entry_of(memory, block);

    for (int i = 0; i < 2; ++i) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry + i * OPAL_CRYPTFILE_SLOT_BYTES, B, &slots[i]));
    }
    int next = !opal_cryptfile_entry_newer(slots);
    slots[next].pending = true;
    slots[next].room = number;
    opal_cryptfile_slot_write(&slots[next], entry + next * OPAL_CRYPTFILE_SLOT_BYTES);
}

/* Blocks 5 to 7 have versions one, two and three; their rooms are put back in place of others. */
static void test_forged(void)
{
    memory_t memory, begin, second, third, last;
    unsigned wrong = 0;

    memory_init(&memory);
    memory_init(&second);
    memory_init(&third);
    memory_init(&last);
    start(&begin);
    opal_cryptfile_t *file = opened(&begin);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 5 * B, two + 5 * B, 3 * B));
    memory_copy(&second, &begin);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 5 * B, three + 5 * B, 3 * B));
    memory_copy(&third, &begin);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 20 * B, two + 20 * B, 3 * B));        /* in the same rooms, 1 to 3 */
    memory_copy(&last, &begin);
    opal_cryptfile_destroy(file);
    const memory_t *const of[] = {&second, &third, &last};
    for (unsigned from = 0; from < 3; ++from) {         /* whose rooms */
        for (uint32_t number = 1; number <= 4; ++number) {      /* 4 was never written */
            for (uint64_t block = 5; block < 9; ++block) {
                memory_copy(&memory, of[from]);
                uint8_t *rooms = room_of(&memory, 1);
                size_t place = (size_t) (rooms - memory.parts[1].bytes);
                memory_copy(&memory, &last);
                memcpy(memory.parts[1].bytes + place, of[from]->parts[1].bytes + place, 3 * (OPAL_CRYPTFILE_ROOM_HEAD_BYTES + B));
                mark(&memory, block, number);
                wrong += !reads_as(&memory, block, block < 8 ? three : one);
                memset(memory.parts[0].bytes + block * B, 7, 10);
                int rc = read_block(&memory, block);    /* the room of its newest version may help, if left in place */
                wrong += 1 == from && block < 8 ? OPAL_CRYPT_OK != rc || 0 != memcmp(out, three + block * B, B) : OPAL_CRYPT_ERR_AUTH != rc;
            }
        }
    }
    UNIT_CHECK(0 == wrong);
    for (unsigned at = 0; at < OPAL_CRYPTFILE_ROOM_HEAD_BYTES + 4; ++at) {      /* any byte changed: refused */
        memory_copy(&memory, &third);
        memory.parts[0].bytes[5 * B] ^= 1;
        wrong += 0 == at && !reads_as(&memory, 5, three);
        room_of(&memory, 1)[at] ^= 1;
        wrong += OPAL_CRYPT_ERR_AUTH != read_block(&memory, 5);
    }
    UNIT_CHECK(0 == wrong);
    for (unsigned i = 0; i < 3; ++i) {          /* rooms that were never made, or cannot exist */
        static const uint32_t numbers[] = {IN_SET + 1, 1u << 23, (1u << 24) - 1};
        memory_copy(&memory, &last);
        mark(&memory, 8, numbers[i]);
        UNIT_CHECK(reads_as(&memory, 8, one));
        file = opened(&memory);
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 8 * B, two + 8 * B, B) && reads_as(&memory, 8, two));
        opal_cryptfile_destroy(file);
    }
    memory_free(&memory);
    memory_free(&begin);
    memory_free(&second);
    memory_free(&third);
    memory_free(&last);
}

int main(void)
{
    providers_init();
    fill(one, SIZE, 1);
    fill(two, SIZE, 2);
    fill(three, SIZE, 3);
    UNIT_GROUP("one overwrite at the end of 1 GiB");
    test_far();
    UNIT_GROUP("10,000 overwrites in 20 lives");
    test_many();
    UNIT_GROUP("a process that is stopped, others, and who gets its rooms");
    test_two();
    test_in_use();
    test_crowded();
    UNIT_GROUP("marks and rooms as somebody else wants them");
    test_forged();
    providers_fini();
    return unit_done();
}

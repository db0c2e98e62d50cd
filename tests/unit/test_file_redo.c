/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Marks and rooms as an attacker wants them, who controls the storage: a room can make a block valid only
 * as the version that follows the entry's.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 4096, BLOCKS = 24, SIZE = B * BLOCKS };

static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t one[SIZE], two[SIZE], three[SIZE], out[SIZE];

static opal_cryptfile_t *opened(memory_t *memory) { return open_file(&memory->super, spec, 1, NULL); }

static void start(memory_t *memory)
{
    memory_init(memory);
    opal_cryptfile_t *file = opened(memory);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, one, SIZE));
    opal_cryptfile_destroy(file);
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

/* A mark that leads to room `number`, on the slot that is written next. */
static void mark(memory_t *memory, uint64_t block, uint32_t number)
{
    opal_cryptfile_slot_t slots[2];
    uint8_t *entry = memory->bytes + entry_place(block, B);

    for (int i = 0; i < 2; ++i) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(entry + i * OPAL_CRYPTFILE_SLOT_BYTES, B, &slots[i]));
    }
    int next = !opal_cryptfile_entry_newer(slots);
    slots[next].pending = true;
    slots[next].redo = number;
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
                memory_copy(&memory, &last);
                memcpy(memory.bytes + redo_head_place(1), of[from]->bytes + redo_head_place(1), 3 * OPAL_CRYPTFILE_REDO_HEAD_BYTES);
                memcpy(memory.bytes + redo_place(1), of[from]->bytes + redo_place(1), 3 * B);
                mark(&memory, block, number);
                wrong += !reads_as(&memory, block, block < 8 ? three : one);
                memset(memory.bytes + place_of(block * B), 7, 10);
                int rc = read_block(&memory, block);    /* the room of its newest version may help, if left in place */
                wrong += 1 == from && block < 8 ? OPAL_CRYPT_OK != rc || 0 != memcmp(out, three + block * B, B) : OPAL_CRYPT_ERR_AUTH != rc;
            }
        }
    }
    UNIT_CHECK(0 == wrong);
    memory_copy(&memory, &third);
    memory.bytes[place_of(5 * B)] ^= 1;
    UNIT_CHECK(reads_as(&memory, 5, three));
    for (unsigned at = 0; at < OPAL_CRYPTFILE_REDO_HEAD_BYTES + 4; ++at) {      /* any byte changed: refused */
        uint8_t *byte = memory.bytes + (at < OPAL_CRYPTFILE_REDO_HEAD_BYTES ? redo_head_place(1) + at
                                                                            : redo_place(1) + at - OPAL_CRYPTFILE_REDO_HEAD_BYTES);
        bool check = at / 4 == OPAL_CRYPTFILE_REDO_CHECK_AT / 4;        /* it authenticates nothing */
        *byte ^= 1;
        wrong += (check ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH) != read_block(&memory, 5);
        *byte ^= 1;
    }
    UNIT_CHECK(0 == wrong);
    for (unsigned i = 0; i < 3; ++i) {          /* rooms that were never made, or cannot exist */
        static const uint32_t numbers[] = {5, 1u << 23, (1u << 24) - 1};
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

/* The last write of an overwrite, its entry, was cut anywhere behind the flags: other blocks do not get the room that has
 * the version, nor does the block itself, until the entry is whole. */
static void test_entry_cut(void)
{
    enum { SLOT = OPAL_CRYPTFILE_SLOT_BYTES, FLAGS = 4 };
    memory_t memory, before, after;
    unsigned wrong = 0;

    memory_init(&memory);
    memory_init(&before);
    memory_init(&after);
    start(&after);
    opal_cryptfile_t *file = opened(&after);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 5 * B, two + 5 * B, B));
    memory_copy(&before, &after);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 5 * B, three + 5 * B, B));
    opal_cryptfile_destroy(file);
    const size_t entry = entry_place(5, B);
    const size_t newer = entry + (0 == memcmp(before.bytes + entry, after.bytes + entry, SLOT) ? SLOT : 0);
    for (size_t cut = FLAGS; cut < SLOT; ++cut) {
        for (uint64_t block = 4; block <= 20; block += 8) {
            memory_copy(&memory, &after);
            memcpy(memory.bytes + newer + cut, before.bytes + newer + cut, SLOT - cut);
            wrong += !reads_as(&memory, 5, three);
            file = opened(&memory);
            wrong += OPAL_CRYPT_OK != put_bytes(file, block * B, one + block * B, 3 * B);
            opal_cryptfile_destroy(file);
            wrong += !reads_as(&memory, 5, 4 == block ? one : three) || !reads_as(&memory, block, one);
        }
    }
    UNIT_GROUP("an entry that was cut within a slot: %u wrong", wrong);
    UNIT_CHECK(0 == wrong);
    memory_free(&memory);
    memory_free(&before);
    memory_free(&after);
}

int main(void)
{
    providers_init();
    fill(one, SIZE, 1);
    fill(two, SIZE, 2);
    fill(three, SIZE, 3);
    UNIT_GROUP("marks and rooms as somebody else wants them");
    test_forged();
    test_entry_cut();
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Slots, entries and heads of rooms as bytes: written and read, every byte flipped, and the
 * order of an entry's two slots over many overwrites.
 */
#include "opal/mca/common/cryptfile/file/slot.h"
#include "tests/unit/unit.h"

static opal_cryptfile_slot_t slot_with(uint32_t redo, bool pending, uint8_t seed)
{
    opal_cryptfile_slot_t slot = {.used = true, .pending = pending, .redo = redo, .plain_bytes = 500u + seed, .counter = 7u + seed};

    memset(slot.salt, 0x50 + seed, sizeof(slot.salt));
    memset(slot.tag, 0xa0 + seed, sizeof(slot.tag));
    return slot;
}

static void test_entry(void)
{
    const opal_cryptfile_slot_t none = {.used = false}, first = {.pending = true, .redo = 3};
    const opal_cryptfile_slot_t entries[][2] = {{none, none}, {slot_with(0, false, 1), none}, {slot_with(0, false, 1), first},
                                                {slot_with(2, false, 1), slot_with((1u << 24) - 1, true, 2)}};
    static const int newer[] = {-1, 0, 0, 1};

    UNIT_GROUP("entries: marks and numbers of rooms");
    for (unsigned i = 0; i < sizeof(newer) / sizeof(*newer); ++i) {
        uint8_t bytes[OPAL_CRYPTFILE_SLOTS_BYTES], again[OPAL_CRYPTFILE_SLOTS_BYTES];
        opal_cryptfile_slot_t slots[2];
        opal_cryptfile_entry_write(entries[i], bytes);
        for (int k = 0; k < 2; ++k) {
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes + k * OPAL_CRYPTFILE_SLOT_BYTES, 512, &slots[k]));
            UNIT_CHECK(opal_cryptfile_slot_same(&slots[k], &entries[i][k]) && slots[k].redo == entries[i][k].redo &&
                       slots[k].pending == entries[i][k].pending);
        }
        opal_cryptfile_entry_write(slots, again);
        UNIT_EQUAL_BYTES(bytes, again, sizeof(bytes));
        UNIT_CHECK(newer[i] == opal_cryptfile_entry_newer(slots));
    }
}

static void test_redo(void)
{
    const opal_cryptfile_redo_room_t redo = {.region = 4, .block = (UINT64_C(1) << 40) + 9, .slot = slot_with(3, true, 1), .before = slot_with(1, false, 2)};
    uint8_t head[OPAL_CRYPTFILE_REDO_HEAD_BYTES], again[OPAL_CRYPTFILE_REDO_HEAD_BYTES];
    opal_cryptfile_redo_room_t read, other;
    unsigned unseen = 0;

    UNIT_GROUP("a room's head: written and read, every byte flipped");
    opal_cryptfile_redo_write(&redo, head);
    UNIT_REQUIRE(opal_cryptfile_redo_parse(head, 4, 512, &read));
    UNIT_CHECK(4 == read.region && redo.block == read.block && opal_cryptfile_slot_same(&redo.slot, &read.slot) &&
               opal_cryptfile_slot_same(&redo.before, &read.before));
    UNIT_CHECK(0 == read.slot.redo && !read.slot.pending && 0 == read.before.redo);     /* of the version alone */
    opal_cryptfile_redo_write(&read, again);
    UNIT_EQUAL_BYTES(head, again, sizeof(head));
    for (unsigned at = 0; at < sizeof(head); ++at) {
        head[at] ^= 0x81;
        unseen += opal_cryptfile_redo_parse(head, 4, 512, &other) && other.block == redo.block &&
                  opal_cryptfile_slot_same(&other.slot, &redo.slot) && opal_cryptfile_slot_same(&other.before, &redo.before);
        head[at] ^= 0x81;
    }
    UNIT_CHECK(0 == unseen);
    UNIT_CHECK(!opal_cryptfile_redo_parse(head, 3, 512, &other) && !opal_cryptfile_redo_parse(head, 4, 64, &other));
}

static void test_slots(void)
{
    opal_cryptfile_slot_t slots[2] = {{.used = false}, {.used = false}};
    uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES];
    bool generation;
    unsigned wrong = 0;

    UNIT_GROUP("an entry over 100 overwrites: the slot written last is the newer one");
    UNIT_CHECK(-1 == opal_cryptfile_entry_newer(slots));
    for (int turn = 0; turn < 100; ++turn) {
        int next = opal_cryptfile_entry_next(slots, &generation);
        wrong += next != turn % 2;
        slots[next] = (opal_cryptfile_slot_t){.used = true, .generation = generation, .plain_bytes = 1};
        wrong += opal_cryptfile_entry_newer(slots) != next;
    }
    UNIT_CHECK(0 == wrong);
    slots[0].used = false;
    UNIT_CHECK(1 == opal_cryptfile_entry_newer(slots) && 0 == opal_cryptfile_entry_next(slots, &generation));

    UNIT_GROUP("slots that cannot be");
    opal_cryptfile_slot_t slot = {.used = true, .generation = true, .plain_bytes = 512, .counter = UINT64_MAX}, read;
    opal_cryptfile_slot_write(&slot, bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes, 512, &read));
    UNIT_CHECK(read.used && read.generation && 512 == read.plain_bytes && UINT64_MAX == read.counter);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_slot_parse(bytes, 511, &read));
    bytes[4] = bytes[5] = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_slot_parse(bytes, 512, &read));
    opal_cryptfile_slot_write(&slot, bytes);
    for (unsigned bit = 2; bit < 32; ++bit) {
        bytes[bit / 8] ^= (uint8_t) (1u << bit % 8);
        UNIT_CHECK((bit < 8 ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK) == opal_cryptfile_slot_parse(bytes, 512, &read));
        UNIT_CHECK(!read.pending && (bit < 8 ? 0 : 1u << (bit - 8)) == read.redo);     /* a mark, but no room */
        bytes[bit / 8] ^= (uint8_t) (1u << bit % 8);
    }
    bytes[0] = 2;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_slot_parse(bytes, 512, &read));
    memset(bytes, 0, sizeof(bytes));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes, 512, &read) && !read.used);
    for (unsigned mark = 0; mark < 2; ++mark) {
        for (unsigned at = mark ? 4 : 1; at < sizeof(bytes); ++at) {
            bytes[at] = 1;
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_slot_parse(bytes, 512, &read));
            bytes[at] = 0;
        }
        bytes[0] = 4;
        bytes[1] = 9;
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes, 512, &read) && !read.used && read.pending && 9 == read.redo);
    }
}

int main(void)
{
    test_entry();
    test_redo();
    test_slots();
    return unit_done();
}

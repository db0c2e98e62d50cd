/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The sidecar's arithmetic and records: vectors, every byte flipped, and the
 * order of an entry's two slots over many overwrites.
 */
#include "opal/mca/common/cryptfile/file/sidecar.h"
#include "tests/unit/unit.h"
#include "tests/unit/file_vectors.h"

static void check_index(const vector_block_t *vector)
{
    opal_cryptfile_sidecar_index_t index;

    UNIT_REQUIRE(opal_cryptfile_sidecar_index((uint64_t) number_of(vector, "block"), &index));
    UNIT_CHECK(index.segment == (unsigned) number_of(vector, "segment"));
    UNIT_CHECK(index.within == (uint64_t) number_of(vector, "within"));
    UNIT_CHECK(index.within + index.blocks == opal_cryptfile_sidecar_segment_blocks(index.segment));
    UNIT_CHECK(opal_cryptfile_sidecar_entries_bytes(index.segment) == (uint64_t) number_of(vector, "entries_bytes"));
}

static void check_place(const vector_block_t *vector)
{
    uint32_t block_bytes = (uint32_t) number_of(vector, "block_bytes"), within;
    uint32_t set = opal_cryptfile_sidecar_room_set((uint32_t) number_of(vector, "room"), block_bytes, &within);
    uint64_t place;

    UNIT_CHECK(opal_cryptfile_sidecar_set_rooms(block_bytes) == (uint32_t) number_of(vector, "rooms"));
    UNIT_CHECK(set == (uint32_t) number_of(vector, "set") && within == (uint32_t) number_of(vector, "within"));
    UNIT_CHECK(opal_cryptfile_sidecar_set_segment(set, &place) == (unsigned) number_of(vector, "segment") &&
               place == (uint64_t) number_of(vector, "place"));
    uint64_t set_bytes = opal_cryptfile_sidecar_set_bytes(block_bytes);
    UNIT_CHECK(set_bytes == (uint64_t) number_of(vector, "set_bytes"));
    UNIT_CHECK(opal_cryptfile_sidecar_room_at(place * set_bytes, within, block_bytes) == (uint64_t) number_of(vector, "offset"));
}

static void check_room(const vector_block_t *vector)
{
    uint8_t head[OPAL_CRYPTFILE_ROOM_HEAD_BYTES], slot[OPAL_CRYPTFILE_SLOT_BYTES], again[OPAL_CRYPTFILE_ROOM_HEAD_BYTES];
    opal_cryptfile_room_t room, other;
    opal_cryptfile_slot_t expected;
    uint32_t region = (uint32_t) number_of(vector, "region");

    UNIT_REQUIRE(sizeof(head) == vector_bytes(vector, "head", head, sizeof(head)));
    UNIT_REQUIRE(opal_cryptfile_room_parse(head, region, 512, &room));
    UNIT_CHECK(region == room.region && (uint64_t) number_of(vector, "block") == room.block);
    UNIT_REQUIRE(sizeof(slot) == vector_bytes(vector, "slot", slot, sizeof(slot)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(slot, 512, &expected) && opal_cryptfile_slot_same(&expected, &room.slot));
    UNIT_REQUIRE(sizeof(slot) == vector_bytes(vector, "before", slot, sizeof(slot)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(slot, 512, &expected) && opal_cryptfile_slot_same(&expected, &room.before));
    opal_cryptfile_room_write(&room, again);
    UNIT_EQUAL_BYTES(head, again, sizeof(head));

    UNIT_GROUP("every byte of a room's head flipped");
    unsigned unseen = 0;
    for (unsigned at = 0; at < sizeof(head); ++at) {
        head[at] ^= 0x81;
        unseen += opal_cryptfile_room_parse(head, region, 512, &other) && other.block == room.block &&
                  opal_cryptfile_slot_same(&other.slot, &room.slot) && opal_cryptfile_slot_same(&other.before, &room.before);
        head[at] ^= 0x81;
    }
    UNIT_CHECK(0 == unseen);
    UNIT_CHECK(!opal_cryptfile_room_parse(head, region - 1, 512, &other) && !opal_cryptfile_room_parse(head, region, 64, &other));
}

static void check_entry(const vector_block_t *vector)
{
    uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES], again[OPAL_CRYPTFILE_ENTRY_BYTES];
    opal_cryptfile_slot_t slots[2];

    UNIT_REQUIRE(sizeof(bytes) == vector_bytes(vector, "entry", bytes, sizeof(bytes)));
    for (int i = 0; i < 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes + i * OPAL_CRYPTFILE_SLOT_BYTES, 512, &slots[i]));
        opal_cryptfile_slot_write(&slots[i], again + i * OPAL_CRYPTFILE_SLOT_BYTES);
    }
    UNIT_EQUAL_BYTES(bytes, again, sizeof(bytes));
    UNIT_CHECK(opal_cryptfile_entry_newer(slots) == number_of(vector, "newer"));
    unsigned pending[2], rooms[2];
    UNIT_REQUIRE(2 == sscanf(vector_text(vector, "pending"), "%u %u", &pending[0], &pending[1]));
    UNIT_REQUIRE(2 == sscanf(vector_text(vector, "rooms"), "%u %u", &rooms[0], &rooms[1]));
    for (int i = 0; i < 2; ++i) {
        UNIT_CHECK(slots[i].pending == pending[i] && slots[i].room == rooms[i]);
    }
}

static void test_vectors(void)
{
    FILE *file = vector_file("sidecar-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned indices = 0, places = 0, entries = 0;

    UNIT_GROUP("vectors: segments, entries and rooms");
    while (vector_next(file, &vector)) {
        if (kind_is(&vector, "index")) {
            check_index(&vector);
            ++indices;
        } else if (kind_is(&vector, "place")) {
            check_place(&vector);
            ++places;
        } else if (kind_is(&vector, "room")) {
            check_room(&vector);
        } else {
            check_entry(&vector);
            ++entries;
        }
    }
    UNIT_CHECK(10 == indices && 10 == places && 8 == entries);
    vector_clear(&vector);
    fclose(file);
}

static void test_index(void)
{
    opal_cryptfile_sidecar_index_t index, last = {0, 0, 0};
    unsigned wrong = 0;

    UNIT_GROUP("every block has one place, without gaps");
    for (uint64_t block = 0; block < 20000; ++block) {
        UNIT_REQUIRE(opal_cryptfile_sidecar_index(block, &index));
        wrong += block > 0 && !(index.segment == last.segment ? index.within == last.within + 1
                                                              : index.segment == last.segment + 1 && 0 == index.within && 1 == last.blocks);
        last = index;
    }
    UNIT_CHECK(0 == wrong);
    UNIT_CHECK(opal_cryptfile_sidecar_index(OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX - 1, &index) && 1 == index.blocks);
    UNIT_CHECK(!opal_cryptfile_sidecar_index(OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX, &index));
    UNIT_CHECK(!opal_cryptfile_sidecar_index(UINT64_MAX, &index));
    UNIT_CHECK(opal_cryptfile_sidecar_sets_bytes(OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS - 1, OPAL_CRYPTFILE_BLOCK_MAX) < INT64_MAX);
    UNIT_CHECK(opal_cryptfile_sidecar_set_lock_at(OPAL_CRYPTFILE_REGIONS_MAX - 1, OPAL_CRYPTFILE_SIDECAR_SETS) < INT64_MAX);
    UNIT_CHECK(opal_cryptfile_sidecar_set_lock_at(0, 0) > opal_cryptfile_sidecar_lock_at(0, OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX) &&
               opal_cryptfile_sidecar_set_lock_at(0, OPAL_CRYPTFILE_SIDECAR_SETS) < opal_cryptfile_sidecar_lock_at(1, 0));
    UNIT_CHECK(opal_cryptfile_sidecar_lock_at(OPAL_CRYPTFILE_REGIONS_MAX - 1, OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX) < INT64_MAX);
    UNIT_CHECK(opal_cryptfile_sidecar_lock_at(0, OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX) < opal_cryptfile_sidecar_lock_at(1, 0));

    UNIT_GROUP("the worked totals of docs/file-format.rst");
    UNIT_CHECK(OPAL_CRYPTFILE_SIDECAR_FREE + 4096 + opal_cryptfile_sidecar_entries_bytes(0) +
                   opal_cryptfile_sidecar_entries_bytes(1) == 2125824);
    UNIT_CHECK(266240 == opal_cryptfile_sidecar_sets_bytes(0, 65536));
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
        UNIT_CHECK(!read.pending && (bit < 8 ? 0 : 1u << (bit - 8)) == read.room);     /* a mark, but no room */
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
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes, 512, &read) && !read.used && read.pending && 9 == read.room);
    }
}

static void test_header(void)
{
    opal_cryptfile_sidecar_header_t header = {.sealed = true, .maps = {{OPAL_CRYPTFILE_SIDECAR_FREE, 181}, {0, 0}}, .sealed_size = 99, .seal_id = "id of a seal"}, read;
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES];
    unsigned unseen = 0;

    UNIT_GROUP("header: written and read, every byte flipped");
    memset(header.uuid, 3, sizeof(header.uuid));
    opal_cryptfile_sidecar_header_write(&header, bytes);
    memset(&read, 0, sizeof(read));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_sidecar_header_parse(bytes, sizeof(bytes), &read));
    UNIT_EQUAL_BYTES(read.seal_id, header.seal_id, sizeof(read.seal_id));
    UNIT_CHECK(read.sealed && 99 == read.sealed_size && 181 == read.maps[0].bytes && 0 == read.maps[1].offset);
    UNIT_EQUAL_BYTES(read.uuid, header.uuid, 16);
    for (unsigned at = 0; at < sizeof(bytes); ++at) {
        bytes[at] ^= 0x81;
        opal_cryptfile_sidecar_header_t other;
        memset(&other, 0, sizeof(other));
        if (OPAL_CRYPT_OK == opal_cryptfile_sidecar_header_parse(bytes, sizeof(bytes), &other)) {
            unseen += other.sealed == read.sealed && other.sealed_size == read.sealed_size && 0 == memcmp(other.uuid, read.uuid, 16) &&
                      0 == memcmp(other.seal_id, read.seal_id, sizeof(read.seal_id)) && 0 == memcmp(other.maps, read.maps, sizeof(read.maps));
        }
        bytes[at] ^= 0x81;
    }
    UNIT_CHECK(0 == unseen);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_sidecar_header_parse(bytes, 4095, &read));
    static const opal_cryptfile_sidecar_place_t bad[] = {
        {4096, 181}, {OPAL_CRYPTFILE_SIDECAR_FREE + 1, 181}, {OPAL_CRYPTFILE_SIDECAR_FREE, 47}, {OPAL_CRYPTFILE_SIDECAR_FREE, 33u << 20},
        {INT64_MAX - 4095, 4096}, {UINT64_MAX - 4095, 181}, {0, 181}, {OPAL_CRYPTFILE_SIDECAR_FREE, 0}};
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); ++i) {
        header.maps[1] = bad[i];
        opal_cryptfile_sidecar_header_write(&header, bytes);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_sidecar_header_parse(bytes, sizeof(bytes), &read));
    }
}

static void test_directory(void)
{
    opal_cryptfile_sidecar_directory_t directory = {.sealed_blocks = 20000, .seal_list = OPAL_CRYPTFILE_SIDECAR_FREE,
                                                       .sealed_slots = OPAL_CRYPTFILE_SIDECAR_FREE + 20480}, read;
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES];
    static const uint64_t bad[] = {1, 4096, OPAL_CRYPTFILE_SIDECAR_FREE - 4096, OPAL_CRYPTFILE_SIDECAR_FREE + 512, UINT64_MAX,
                                   UINT64_MAX - 4095, INT64_MAX - 4095};

    UNIT_GROUP("directory: written and read, segments where none can lie");
    directory.entries[0] = OPAL_CRYPTFILE_SIDECAR_FREE + 4096;
    directory.rooms[17] = OPAL_CRYPTFILE_SIDECAR_FREE + 8192;
    memset(directory.root, 8, sizeof(directory.root));
    opal_cryptfile_sidecar_directory_write(&directory, bytes);
    memset(&read, 0, sizeof(read));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_sidecar_directory_parse(bytes, sizeof(bytes), 4096, &read));
    UNIT_EQUAL_BYTES(&read, &directory, sizeof(read));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_sidecar_directory_parse(bytes, 511, 4096, &read));
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); ++i) {
        for (unsigned at = 0; at < 504; at += at < 448 ? 56 : 48) {       /* segments, what is 0, the seal's list and slots */
            uint8_t changed[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES];
            memcpy(changed, bytes, sizeof(bytes));
            for (unsigned b = 0; b < 8; ++b) {
                changed[at + b] = (uint8_t) (bad[i] >> 8 * b);
            }
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_sidecar_directory_parse(changed, sizeof(changed), 4096, &read));
        }
    }
    bytes[511] = 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_sidecar_directory_parse(bytes, sizeof(bytes), 4096, &read));
    UNIT_CHECK(4096 + 512 * 4095 == opal_cryptfile_sidecar_directory_at(4095));
    UNIT_CHECK(OPAL_CRYPTFILE_SIDECAR_FREE == opal_cryptfile_sidecar_end(0));
    UNIT_CHECK(OPAL_CRYPTFILE_SIDECAR_FREE + 4096 == opal_cryptfile_sidecar_end(OPAL_CRYPTFILE_SIDECAR_FREE + 1));
}

int main(void)
{
    test_vectors();
    test_index();
    test_slots();
    test_header();
    test_directory();
    return unit_done();
}

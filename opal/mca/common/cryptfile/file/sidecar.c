/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All offset arithmetic of the sidecar, and its records as bytes.  No I/O.
 */
#include "sidecar.h"
#include "opal/mca/common/crypt/base/le.h"

#include <assert.h>
#include <string.h>

#define put32 opal_crypt_le_put32
#define put64 opal_crypt_le_put64
#define get32 opal_crypt_le_get32
#define get64 opal_crypt_le_get64

enum { SLOT_USED = 1, SLOT_GENERATION = 2, SLOT_PENDING = 4, SLOT_ROOM_SHIFT = 8 };
enum { ROOM_ZERO_AT = 16 + 2 * OPAL_CRYPTFILE_SLOT_BYTES, ROOM_ZEROS = 16 };
enum { STATE_OPEN = 0, STATE_SEALED = 1 };
enum {
    SEALED_SIZE_AT = OPAL_CRYPTFILE_SIDECAR_SEALED_SIZE_AT,
    SEAL_ID_AT = SEALED_SIZE_AT + 8,
    HEADER_ZERO_AT = SEAL_ID_AT + OPAL_CRYPTFILE_SEAL_ID_BYTES
};
enum {
    ROOMS_AT = 8 * OPAL_CRYPTFILE_SIDECAR_SEGMENTS,
    ROOMS_ZERO_AT = ROOMS_AT + 8 * OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS,
    ROOMS_ZEROS = 80,
    SEAL_LIST_AT = ROOMS_ZERO_AT + ROOMS_ZEROS,
    SEALED_BLOCKS_AT = SEAL_LIST_AT + 8,
    ROOT_AT = SEALED_BLOCKS_AT + 8,
    SEALED_SLOTS_AT = ROOT_AT + OPAL_CRYPT_HASH_BYTES,
    DIRECTORY_ZERO_AT = SEALED_SLOTS_AT + 8,
    DIRECTORY_ZEROS = 8
};

static_assert(OPAL_CRYPTFILE_SIDECAR_FREE ==
                  OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES + OPAL_CRYPTFILE_REGIONS_MAX * OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES,
              "allocations begin behind the directory");
static_assert(0 == OPAL_CRYPTFILE_SIDECAR_FREE % OPAL_CRYPTFILE_SIDECAR_GRAIN, "on the grain");
static_assert(SEALED_SIZE_AT == OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_AT + 2 * OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES, "header");
static_assert(DIRECTORY_ZERO_AT + DIRECTORY_ZEROS == OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES, "directory");
static_assert(4 + 4 + 8 + OPAL_CRYPTFILE_SALT_BYTES + OPAL_AEAD_TAG_BYTES == OPAL_CRYPTFILE_SLOT_BYTES, "slot");
static_assert(2 * OPAL_CRYPTFILE_SLOT_BYTES == OPAL_CRYPTFILE_ENTRY_BYTES, "entry");
static_assert(16 + 2 * OPAL_CRYPTFILE_SLOT_BYTES + ROOM_ZEROS == OPAL_CRYPTFILE_ROOM_HEAD_BYTES, "head of a room");
static_assert((uint64_t) OPAL_CRYPTFILE_SIDECAR_SETS * OPAL_CRYPTFILE_SET_ROOMS_MAX < UINT64_C(1) << (32 - SLOT_ROOM_SHIFT),
              "a slot's flags have room for the number of any room");

static uint64_t to_grain(uint64_t bytes)
{
    return (bytes + OPAL_CRYPTFILE_SIDECAR_GRAIN - 1) / OPAL_CRYPTFILE_SIDECAR_GRAIN * OPAL_CRYPTFILE_SIDECAR_GRAIN;
}

/* Is this a valid place for `bytes` bytes? */
static bool place_valid(uint64_t offset, uint64_t bytes)
{
    return offset >= OPAL_CRYPTFILE_SIDECAR_FREE && 0 == offset % OPAL_CRYPTFILE_SIDECAR_GRAIN &&
           offset <= OPAL_CRYPTFILE_OFFSET_MAX && bytes <= OPAL_CRYPTFILE_OFFSET_MAX - offset;
}

/* ---- header ---- */

void opal_cryptfile_sidecar_header_write(const opal_cryptfile_sidecar_header_t *header,
                                         uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES])
{
    memset(bytes, 0, OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES);
    memcpy(bytes, OPAL_CRYPTFILE_MAGIC, OPAL_CRYPTFILE_MAGIC_BYTES);
    opal_crypt_le_put16(bytes + 8, OPAL_CRYPTFILE_VERSION);
    opal_crypt_le_put16(bytes + 10, OPAL_CRYPTFILE_KIND_SIDECAR);
    put32(bytes + OPAL_CRYPTFILE_SIDECAR_STATE_AT, header->sealed ? STATE_SEALED : STATE_OPEN);
    memcpy(bytes + 16, header->uuid, OPAL_CRYPTFILE_UUID_BYTES);
    for (int i = 0; i < 2; ++i) {
        uint8_t *slot = bytes + OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_AT + i * OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES;
        put64(slot, header->maps[i].offset);
        put64(slot + 8, header->maps[i].bytes);
    }
    put64(bytes + SEALED_SIZE_AT, header->sealed_size);
    memcpy(bytes + SEAL_ID_AT, header->seal_id, OPAL_CRYPTFILE_SEAL_ID_BYTES);
}

int opal_cryptfile_sidecar_header_parse(const uint8_t *bytes, size_t count,
                                        opal_cryptfile_sidecar_header_t *header)
{
    opal_cryptfile_kind_t kind;

    if (OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES != count || OPAL_CRYPT_OK != opal_cryptfile_kind(bytes, count, &kind) ||
        OPAL_CRYPTFILE_KIND_SIDECAR != kind || get32(bytes + OPAL_CRYPTFILE_SIDECAR_STATE_AT) > STATE_SEALED ||
        !opal_crypt_all_zero(bytes + HEADER_ZERO_AT, count - HEADER_ZERO_AT)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    for (int i = 0; i < 2; ++i) {
        const uint8_t *slot = bytes + OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_AT + i * OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES;
        header->maps[i].offset = get64(slot);
        header->maps[i].bytes = get64(slot + 8);
        bool none = 0 == header->maps[i].offset && 0 == header->maps[i].bytes;
        if (!none && (!place_valid(header->maps[i].offset, header->maps[i].bytes) ||
                      header->maps[i].bytes < OPAL_CRYPTFILE_MAP_HEAD_BYTES ||
                      header->maps[i].bytes > OPAL_CRYPTFILE_MAP_MAX_BYTES)) {
            return OPAL_CRYPT_ERR_AUTH;
        }
    }
    header->sealed = STATE_SEALED == get32(bytes + OPAL_CRYPTFILE_SIDECAR_STATE_AT);
    memcpy(header->uuid, bytes + 16, OPAL_CRYPTFILE_UUID_BYTES);
    header->sealed_size = get64(bytes + SEALED_SIZE_AT);
    memcpy(header->seal_id, bytes + SEAL_ID_AT, OPAL_CRYPTFILE_SEAL_ID_BYTES);
    return header->sealed_size <= OPAL_CRYPTFILE_OFFSET_MAX ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

/* ---- directory ---- */

uint64_t opal_cryptfile_sidecar_directory_at(uint32_t region)
{
    return OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES + (uint64_t) region * OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES;
}

void opal_cryptfile_sidecar_directory_write(const opal_cryptfile_sidecar_directory_t *directory,
                                            uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES])
{
    memset(bytes, 0, OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES);
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_SEGMENTS; ++k) {
        put64(bytes + 8 * k, directory->entries[k]);
    }
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS; ++k) {
        put64(bytes + ROOMS_AT + 8 * k, directory->rooms[k]);
    }
    put64(bytes + SEAL_LIST_AT, directory->seal_list);
    put64(bytes + SEALED_BLOCKS_AT, directory->sealed_blocks);
    memcpy(bytes + ROOT_AT, directory->root, sizeof(directory->root));
    put64(bytes + SEALED_SLOTS_AT, directory->sealed_slots);
}

int opal_cryptfile_sidecar_directory_parse(const uint8_t *bytes, size_t count, uint32_t block_bytes,
                                           opal_cryptfile_sidecar_directory_t *directory)
{
    if (OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES != count || !opal_crypt_all_zero(bytes + ROOMS_ZERO_AT, ROOMS_ZEROS) ||
        !opal_crypt_all_zero(bytes + DIRECTORY_ZERO_AT, DIRECTORY_ZEROS)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_SEGMENTS; ++k) {
        directory->entries[k] = get64(bytes + 8 * k);
        if (0 != directory->entries[k] && !place_valid(directory->entries[k], opal_cryptfile_sidecar_entries_bytes(k))) {
            return OPAL_CRYPT_ERR_AUTH;
        }
    }
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS; ++k) {
        directory->rooms[k] = get64(bytes + ROOMS_AT + 8 * k);
        if (0 != directory->rooms[k] && !place_valid(directory->rooms[k], opal_cryptfile_sidecar_sets_bytes(k, block_bytes))) {
            return OPAL_CRYPT_ERR_AUTH;
        }
    }
    directory->seal_list = get64(bytes + SEAL_LIST_AT);
    directory->sealed_blocks = get64(bytes + SEALED_BLOCKS_AT);
    memcpy(directory->root, bytes + ROOT_AT, sizeof(directory->root));
    directory->sealed_slots = get64(bytes + SEALED_SLOTS_AT);
    if (directory->sealed_blocks > OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX ||
        (0 != directory->seal_list && !place_valid(directory->seal_list, (directory->sealed_blocks + 127) / 128 * OPAL_CRYPT_HASH_BYTES)) ||
        (0 != directory->sealed_slots && !place_valid(directory->sealed_slots, directory->sealed_blocks * OPAL_CRYPTFILE_SLOT_BYTES))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    return OPAL_CRYPT_OK;
}

static uint64_t later(uint64_t end, uint64_t offset, uint64_t bytes)
{
    return 0 != offset && offset + bytes > end ? offset + bytes : end;
}

uint64_t opal_cryptfile_sidecar_directory_end(const opal_cryptfile_sidecar_directory_t *directory, uint32_t block_bytes)
{
    uint64_t end = later(0, directory->seal_list, (directory->sealed_blocks + 127) / 128 * OPAL_CRYPT_HASH_BYTES);

    end = later(end, directory->sealed_slots, directory->sealed_blocks * OPAL_CRYPTFILE_SLOT_BYTES);
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_SEGMENTS; ++k) {
        end = later(end, directory->entries[k], opal_cryptfile_sidecar_entries_bytes(k));
    }
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS; ++k) {
        end = later(end, directory->rooms[k], opal_cryptfile_sidecar_sets_bytes(k, block_bytes));
    }
    return end;
}

/* ---- segments ---- */

uint64_t opal_cryptfile_sidecar_segment_blocks(unsigned segment)
{
    return (uint64_t) OPAL_CRYPTFILE_SIDECAR_FIRST_BLOCKS << segment;
}

uint64_t opal_cryptfile_sidecar_entries_bytes(unsigned segment)
{
    return to_grain(opal_cryptfile_sidecar_segment_blocks(segment) * OPAL_CRYPTFILE_ENTRY_BYTES);
}

bool opal_cryptfile_sidecar_index(uint64_t block, opal_cryptfile_sidecar_index_t *index)
{
    if (block >= OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX) {
        return false;
    }
    /* block / 64 + 1 lies between 2^k and 2^(k+1) - 1 in segment k. */
    unsigned k = 63 - (unsigned) __builtin_clzll(block / OPAL_CRYPTFILE_SIDECAR_FIRST_BLOCKS + 1);
    uint64_t first = OPAL_CRYPTFILE_SIDECAR_FIRST_BLOCKS * ((UINT64_C(1) << k) - 1);

    index->segment = k;
    index->within = block - first;
    index->blocks = opal_cryptfile_sidecar_segment_blocks(k) - index->within;
    return true;
}

uint64_t opal_cryptfile_sidecar_end(uint64_t sidecar_bytes)
{
    return sidecar_bytes < OPAL_CRYPTFILE_SIDECAR_FREE ? OPAL_CRYPTFILE_SIDECAR_FREE : to_grain(sidecar_bytes);
}

uint64_t opal_cryptfile_sidecar_lock_at(uint32_t region, uint64_t block)
{
    /* 2^62 + region x 2^35 + block: below 2^63 for 4,096 regions, and 2^35
     * is more blocks than a region can have. */
    static_assert(OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX < OPAL_CRYPTFILE_SIDECAR_SET_LOCKS &&
                      OPAL_CRYPTFILE_SIDECAR_SETS < OPAL_CRYPTFILE_SIDECAR_SET_LOCKS, "locks of two regions are apart");
    return (UINT64_C(1) << 62) + region * OPAL_CRYPTFILE_SIDECAR_LOCKS + block;
}

/* ---- rooms ---- */

uint32_t opal_cryptfile_sidecar_set_rooms(uint32_t block_bytes)
{
    uint32_t rooms = (256u << 10) / block_bytes;

    return rooms > OPAL_CRYPTFILE_SET_ROOMS_MAX ? OPAL_CRYPTFILE_SET_ROOMS_MAX : rooms < 1 ? 1 : rooms;
}

uint64_t opal_cryptfile_sidecar_set_bytes(uint32_t block_bytes)
{
    return to_grain(opal_cryptfile_sidecar_set_rooms(block_bytes) * (OPAL_CRYPTFILE_ROOM_HEAD_BYTES + (uint64_t) block_bytes));
}

uint64_t opal_cryptfile_sidecar_sets_bytes(unsigned segment, uint32_t block_bytes)
{
    return opal_cryptfile_sidecar_set_bytes(block_bytes) << segment;
}

unsigned opal_cryptfile_sidecar_set_segment(uint32_t set, uint64_t *within)
{
    unsigned k = 31 - (unsigned) __builtin_clz(set + 1);

    *within = set + 1 - (1u << k);
    return k;
}

/* ---- slots ---- */

void opal_cryptfile_slot_write(const opal_cryptfile_slot_t *slot, uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES])
{
    uint32_t flags = (slot->pending ? SLOT_PENDING : 0) | slot->room << SLOT_ROOM_SHIFT;

    memset(bytes, 0, OPAL_CRYPTFILE_SLOT_BYTES);
    put32(bytes, flags);
    if (slot->used) {
        put32(bytes, flags | SLOT_USED | (slot->generation ? SLOT_GENERATION : 0));
        put32(bytes + 4, slot->plain_bytes);
        put64(bytes + 8, slot->counter);
        memcpy(bytes + 16, slot->salt, OPAL_CRYPTFILE_SALT_BYTES);
        memcpy(bytes + 32, slot->tag, OPAL_AEAD_TAG_BYTES);
    }
}

void opal_cryptfile_entry_write(const opal_cryptfile_slot_t slots[2], uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES])
{
    opal_cryptfile_slot_write(&slots[0], bytes);
    opal_cryptfile_slot_write(&slots[1], bytes + OPAL_CRYPTFILE_SLOT_BYTES);
}

int opal_cryptfile_slot_parse(const uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES], uint32_t block_bytes,
                              opal_cryptfile_slot_t *slot)
{
    uint32_t flags = get32(bytes);

    memset(slot, 0, sizeof(*slot));
    slot->room = flags >> SLOT_ROOM_SHIFT;
    slot->pending = 0 != (flags & SLOT_PENDING) && slot->room > 0;
    flags &= (1u << SLOT_ROOM_SHIFT) - 1;
    if (0 != (flags & SLOT_PENDING) && !slot->pending) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    if (0 == (flags & SLOT_USED)) {
        return 0 == (flags & ~(uint32_t) SLOT_PENDING) && slot->pending == (slot->room > 0) &&
               opal_crypt_all_zero(bytes + 4, OPAL_CRYPTFILE_SLOT_BYTES - 4) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
    }
    if (0 != (flags & ~(uint32_t) (SLOT_USED | SLOT_GENERATION | SLOT_PENDING)) || 0 == get32(bytes + 4) ||
        get32(bytes + 4) > block_bytes) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    slot->used = true;
    slot->generation = 0 != (flags & SLOT_GENERATION);
    slot->plain_bytes = get32(bytes + 4);
    slot->counter = get64(bytes + 8);
    memcpy(slot->salt, bytes + 16, OPAL_CRYPTFILE_SALT_BYTES);
    memcpy(slot->tag, bytes + 32, OPAL_AEAD_TAG_BYTES);
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_entry_newer(const opal_cryptfile_slot_t slots[2])
{
    if (slots[0].used && slots[1].used) {
        return slots[0].generation == slots[1].generation;
    }
    return slots[0].used ? 0 : slots[1].used ? 1 : -1;
}

int opal_cryptfile_entry_next(const opal_cryptfile_slot_t slots[2], bool *generation)
{
    int newer = opal_cryptfile_entry_newer(slots);

    if (0 == newer) {
        *generation = slots[0].generation;      /* equal bits: slot 1 is newer */
        return 1;
    }
    *generation = 1 == newer ? !slots[1].generation : true;
    return 0;
}

/* ---- what rooms hold ---- */

bool opal_cryptfile_slot_same(const opal_cryptfile_slot_t *a, const opal_cryptfile_slot_t *b)
{
    return a->used == b->used && a->plain_bytes == b->plain_bytes && a->counter == b->counter &&
           0 == memcmp(a->salt, b->salt, sizeof(a->salt)) && 0 == memcmp(a->tag, b->tag, sizeof(a->tag));
}

void opal_cryptfile_room_write(const opal_cryptfile_room_t *room, uint8_t bytes[OPAL_CRYPTFILE_ROOM_HEAD_BYTES])
{
    const opal_cryptfile_slot_t slot = opal_cryptfile_slot_plain(&room->slot), before = opal_cryptfile_slot_plain(&room->before);

    memset(bytes, 0, OPAL_CRYPTFILE_ROOM_HEAD_BYTES);
    put32(bytes, room->region);
    put64(bytes + 8, room->block);
    opal_cryptfile_slot_write(&slot, bytes + 16);
    opal_cryptfile_slot_write(&before, bytes + 16 + OPAL_CRYPTFILE_SLOT_BYTES);
}

bool opal_cryptfile_room_parse(const uint8_t bytes[OPAL_CRYPTFILE_ROOM_HEAD_BYTES], uint32_t region, uint32_t block_bytes,
                               opal_cryptfile_room_t *room)
{
    const uint8_t *before = bytes + 16 + OPAL_CRYPTFILE_SLOT_BYTES;

    room->region = get32(bytes);
    room->block = get64(bytes + 8);
    return region == room->region && opal_crypt_all_zero(bytes + OPAL_CRYPTFILE_ROOM_CHECK_AT, 4) &&
           SLOT_USED == get32(bytes + 16) && OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes + 16, block_bytes, &room->slot) &&
           SLOT_USED == get32(before) && OPAL_CRYPT_OK == opal_cryptfile_slot_parse(before, block_bytes, &room->before) &&
           opal_crypt_all_zero(bytes + ROOM_ZERO_AT, ROOM_ZEROS);
}

bool opal_cryptfile_room_follows(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_room_t *room)
{
    int newer = opal_cryptfile_entry_newer(slots);

    if (newer < 0) {
        return false;
    }
    return (slots[!newer].pending && number == slots[!newer].room && opal_cryptfile_slot_same(&room->before, &slots[newer])) ||
           (number == slots[newer].room && opal_cryptfile_slot_same(&room->before, &slots[!newer]));
}

bool opal_cryptfile_room_needed(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_room_t *room)
{
    int newer = opal_cryptfile_entry_newer(slots);

    return opal_cryptfile_room_follows(slots, number, room) && !opal_cryptfile_slot_same(&room->slot, &slots[newer]);
}

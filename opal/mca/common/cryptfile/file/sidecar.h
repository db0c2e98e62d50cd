/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The sidecar F.mpicrypt: where everything in it lies, and its records as
 * bytes.  docs/file-format.rst, "Sidecar".  Arithmetic only, no I/O.
 *
 *     0          header 4,096
 *     4,096      directory, 512 for each region: where its segments lie
 *     2,101,248  maps, segments, seal lists, each at a multiple of 4,096
 *
 *     segment k  entries of blocks 64 (2^k - 1) .. 64 (2^(k+1) - 1) - 1
 *     entry      | slot 48 | slot 48 |
 *     slot       | flags 4 | length 4 | counter 8 | S 16 | tag 16 |
 *
 *     segment k  sets of rooms 2^k - 1 .. 2^(k+1) - 2
 *     room       | region 4 | 0 4 | block 8 | slot 48 | slot before 48 | 0 16 | ciphertext B |
 *
 * What is read from storage is attacker's input: it may name any offset and
 * any slot.  Offsets are checked here; what a slot says is believed only after
 * its block opened.
 */
#ifndef OPAL_CRYPTFILE_FILE_SIDECAR_H
#define OPAL_CRYPTFILE_FILE_SIDECAR_H

#include "opal/mca/common/crypt/base/base.h"
#include "map.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_SIDECAR_SUFFIX           ".mpicrypt"
#define OPAL_CRYPTFILE_SIDECAR_GRAIN            4096u
#define OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES     4096u
#define OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES  512u
#define OPAL_CRYPTFILE_SIDECAR_FREE             2101248u  /* the first byte to allocate from */
#define OPAL_CRYPTFILE_SIDECAR_SEGMENTS         28
#define OPAL_CRYPTFILE_SIDECAR_FIRST_BLOCKS     64u
#define OPAL_CRYPTFILE_SLOT_BYTES               48u
#define OPAL_CRYPTFILE_ENTRY_BYTES              96u
#define OPAL_CRYPTFILE_SALT_BYTES               16      /* S */
#define OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS    18
#define OPAL_CRYPTFILE_SIDECAR_SETS             ((1u << OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS) - 1)
#define OPAL_CRYPTFILE_SET_ROOMS_MAX            64u
#define OPAL_CRYPTFILE_ROOM_HEAD_BYTES          128u
#define OPAL_CRYPTFILE_ROOM_CHECK_AT            4u      /* 0 in a sidecar */
#define OPAL_CRYPTFILE_SEAL_ID_BYTES            16
#define OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX \
    ((uint64_t) OPAL_CRYPTFILE_SIDECAR_FIRST_BLOCKS * ((1u << OPAL_CRYPTFILE_SIDECAR_SEGMENTS) - 1))

/* ---- header ---- */

typedef struct opal_cryptfile_sidecar_place {
    uint64_t offset, bytes;             /* both 0: nothing there */
} opal_cryptfile_sidecar_place_t;

typedef struct opal_cryptfile_sidecar_header {
    bool sealed;
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    opal_cryptfile_sidecar_place_t maps[2];
    uint64_t sealed_size;
    uint8_t seal_id[OPAL_CRYPTFILE_SEAL_ID_BYTES];
} opal_cryptfile_sidecar_header_t;

/* Where in the header the parts are that are written separately. */
#define OPAL_CRYPTFILE_SIDECAR_STATE_AT         12u
#define OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_AT      32u
#define OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES   16u
#define OPAL_CRYPTFILE_SIDECAR_SEALED_SIZE_AT   64u     /* the seal's id follows it */

void opal_cryptfile_sidecar_header_write(const opal_cryptfile_sidecar_header_t *header,
                                         uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES]);
int opal_cryptfile_sidecar_header_parse(const uint8_t *bytes, size_t count,
                                        opal_cryptfile_sidecar_header_t *header);

/* ---- directory ---- */

typedef struct opal_cryptfile_sidecar_directory {
    uint64_t entries[OPAL_CRYPTFILE_SIDECAR_SEGMENTS];  /* 0: not made yet */
    uint64_t rooms[OPAL_CRYPTFILE_SIDECAR_ROOM_SEGMENTS];
    uint64_t seal_list, sealed_blocks;
    uint8_t root[OPAL_CRYPT_HASH_BYTES];
    uint64_t sealed_slots;
} opal_cryptfile_sidecar_directory_t;

uint64_t opal_cryptfile_sidecar_directory_at(uint32_t region);

void opal_cryptfile_sidecar_directory_write(const opal_cryptfile_sidecar_directory_t *directory,
                                            uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES]);
/* ERR_AUTH unless the place of every segment is valid. */
int opal_cryptfile_sidecar_directory_parse(const uint8_t *bytes, size_t count, uint32_t block_bytes,
                                           opal_cryptfile_sidecar_directory_t *directory);

/* The end of everything that a directory names. */
uint64_t opal_cryptfile_sidecar_directory_end(const opal_cryptfile_sidecar_directory_t *directory, uint32_t block_bytes);

/* ---- segments ---- */

typedef struct opal_cryptfile_sidecar_index {
    unsigned segment;
    uint64_t within;                    /* block of the segment */
    uint64_t blocks;                    /* blocks from here to the segment's end */
} opal_cryptfile_sidecar_index_t;

/* False beyond the last segment (more than 17 billion blocks). */
bool opal_cryptfile_sidecar_index(uint64_t block, opal_cryptfile_sidecar_index_t *index);

uint64_t opal_cryptfile_sidecar_segment_blocks(unsigned segment);
uint64_t opal_cryptfile_sidecar_entries_bytes(unsigned segment);        /* a multiple of the grain */

static inline uint64_t opal_cryptfile_sidecar_entry_at(uint64_t segment_at, uint64_t within)
{
    return segment_at + within * OPAL_CRYPTFILE_ENTRY_BYTES;
}

/* Where the next allocation starts in a sidecar of this size. */
uint64_t opal_cryptfile_sidecar_end(uint64_t sidecar_bytes);

/* The byte that is locked around block `block` of `region`; the header's own
 * lock is byte 0.  Locks need no bytes to exist; these lie far beyond any. */
#define OPAL_CRYPTFILE_SIDECAR_LOCKS        (UINT64_C(1) << 35)  /* of each region */
uint64_t opal_cryptfile_sidecar_lock_at(uint32_t region, uint64_t block);

/* ---- rooms: where overwrites go first ---- */

uint32_t opal_cryptfile_sidecar_set_rooms(uint32_t block_bytes);
uint64_t opal_cryptfile_sidecar_set_bytes(uint32_t block_bytes);        /* a multiple of the grain */
uint64_t opal_cryptfile_sidecar_sets_bytes(unsigned segment, uint32_t block_bytes);

/* The segment of a set, below SIDECAR_SETS, and the set's place in it. */
unsigned opal_cryptfile_sidecar_set_segment(uint32_t set, uint64_t *within);

static inline uint64_t opal_cryptfile_sidecar_room_at(uint64_t set_at, uint32_t within, uint32_t block_bytes)
{
    return set_at + within * (OPAL_CRYPTFILE_ROOM_HEAD_BYTES + (uint64_t) block_bytes);
}

/* Rooms are numbered from 1; the set of one, and its place there. */
static inline uint32_t opal_cryptfile_sidecar_room_set(uint32_t room, uint32_t block_bytes, uint32_t *within)
{
    *within = (room - 1) % opal_cryptfile_sidecar_set_rooms(block_bytes);
    return (room - 1) / opal_cryptfile_sidecar_set_rooms(block_bytes);
}

/* A process owns the set while it has this byte locked, which is beyond those of all blocks. */
#define OPAL_CRYPTFILE_SIDECAR_SET_LOCKS    (OPAL_CRYPTFILE_SIDECAR_LOCKS / 2)
static inline uint64_t opal_cryptfile_sidecar_set_lock_at(uint32_t region, uint32_t set)
{
    return opal_cryptfile_sidecar_lock_at(region, OPAL_CRYPTFILE_SIDECAR_SET_LOCKS + set);
}

/* ---- slots ---- */

typedef struct opal_cryptfile_slot {
    bool used, generation;
    bool pending;                       /* this slot is about to be written, through the room */
    uint32_t room;                      /* through which it was written, or is about to be; 0: none */
    uint32_t plain_bytes;
    uint64_t counter;
    uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES];
    uint8_t tag[OPAL_AEAD_TAG_BYTES];
} opal_cryptfile_slot_t;

/* An unused slot is 48 zero bytes, except for what its flags say about a room. */
void opal_cryptfile_slot_write(const opal_cryptfile_slot_t *slot, uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES]);
/* ERR_AUTH for unknown flags, a length of 0 or above B, other bytes in an unused one; `pending`
 * and `room` are set all the same. */
int opal_cryptfile_slot_parse(const uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES], uint32_t block_bytes,
                              opal_cryptfile_slot_t *slot);

void opal_cryptfile_entry_write(const opal_cryptfile_slot_t slots[2], uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES]);

/* Which of an entry's two slots is the newer one (0, 1), or -1: none used. */
int opal_cryptfile_entry_newer(const opal_cryptfile_slot_t slots[2]);

/* Which slot the next version goes to, and the generation bit it gets there. */
int opal_cryptfile_entry_next(const opal_cryptfile_slot_t slots[2], bool *generation);

bool opal_cryptfile_slot_same(const opal_cryptfile_slot_t *a, const opal_cryptfile_slot_t *b);

/* The version alone, as it is sealed: without its slot, and the room through which it came. */
static inline opal_cryptfile_slot_t opal_cryptfile_slot_plain(const opal_cryptfile_slot_t *slot)
{
    opal_cryptfile_slot_t plain = *slot;

    plain.generation = plain.pending = false;
    plain.room = 0;
    return plain;
}

/* What a room holds: a version that is to follow another one. */
typedef struct opal_cryptfile_room {
    uint32_t region;
    uint64_t block;
    opal_cryptfile_slot_t slot, before;
} opal_cryptfile_room_t;

void opal_cryptfile_room_write(const opal_cryptfile_room_t *room, uint8_t bytes[OPAL_CRYPTFILE_ROOM_HEAD_BYTES]);
/* False unless it is a version of a block of this region. */
bool opal_cryptfile_room_parse(const uint8_t bytes[OPAL_CRYPTFILE_ROOM_HEAD_BYTES], uint32_t region, uint32_t block_bytes,
                               opal_cryptfile_room_t *room);

/* Does what room `number` holds of this block follow the entry's version?  The mark leads there, or the newer slot,
 * whose write may have been cut short; and the version before the room's is in the other slot. */
bool opal_cryptfile_room_follows(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_room_t *room);
/* The same, and the entry does not have it yet. */
bool opal_cryptfile_room_needed(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_room_t *room);

#pragma GCC visibility pop

#endif

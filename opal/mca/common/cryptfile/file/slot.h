/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Slots, and heads of rooms, as bytes.  docs/file-format.rst.  No I/O.
 *
 *     slot       | flags 4 | length 4 | counter 8 | S 16 | tag 16 |
 *     room head  | region 4 | check 4 | block 8 | slot 48 | slot before 48 | 0 16 |
 *
 * What is read from storage is attacker's input: it may have any slot.  What a slot says
 * is believed only after its block opened.
 */
#ifndef OPAL_CRYPTFILE_FILE_SLOT_H
#define OPAL_CRYPTFILE_FILE_SLOT_H

#include "opal/mca/common/crypt/base/base.h"
#include "map.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_SLOT_BYTES               48u
#define OPAL_CRYPTFILE_SLOTS_BYTES              96u
#define OPAL_CRYPTFILE_SALT_BYTES               16      /* S */
#define OPAL_CRYPTFILE_REDO_HEAD_BYTES          128u
#define OPAL_CRYPTFILE_REDO_CHECK_AT            4u      /* set by the room's owner; see redo.c */
#define OPAL_CRYPTFILE_SEAL_ID_BYTES            16

/* ---- slots ---- */

typedef struct opal_cryptfile_slot {
    bool used, generation;
    bool pending;                       /* this slot is about to be written, through the room */
    uint32_t redo;                      /* through which it was written, or is about to be; 0: none */
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

void opal_cryptfile_entry_write(const opal_cryptfile_slot_t slots[2], uint8_t bytes[OPAL_CRYPTFILE_SLOTS_BYTES]);

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
    plain.redo = 0;
    return plain;
}

/* What a room holds: a version that is to follow another one. */
typedef struct opal_cryptfile_redo_room {
    uint32_t region;
    uint64_t block;
    opal_cryptfile_slot_t slot, before;
} opal_cryptfile_redo_room_t;

void opal_cryptfile_redo_write(const opal_cryptfile_redo_room_t *redo, uint8_t bytes[OPAL_CRYPTFILE_REDO_HEAD_BYTES]);
/* False unless it is a version of a block of this region. */
bool opal_cryptfile_redo_parse(const uint8_t bytes[OPAL_CRYPTFILE_REDO_HEAD_BYTES], uint32_t region, uint32_t block_bytes,
                               opal_cryptfile_redo_room_t *redo);

/* Does what room `number` holds of this block follow the entry's version?  The mark leads there, or the newer slot,
 * whose write may have been cut short; and the version before the room's is in the other slot. */
bool opal_cryptfile_redo_follows(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_redo_room_t *redo);
#pragma GCC visibility pop

#endif

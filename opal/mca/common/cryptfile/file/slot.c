/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Slots, and heads of rooms, as bytes.  No I/O.
 */
#include "slot.h"
#include "opal/mca/common/crypt/base/le.h"

#include <assert.h>
#include <string.h>

#define put32 opal_crypt_le_put32
#define put64 opal_crypt_le_put64
#define get32 opal_crypt_le_get32
#define get64 opal_crypt_le_get64

enum { SLOT_USED = 1, SLOT_GENERATION = 2, SLOT_PENDING = 4, SLOT_REDO_SHIFT = 8 };
enum { HEAD_ZERO_AT = 16 + 2 * OPAL_CRYPTFILE_SLOT_BYTES, HEAD_ZEROS = 16 };

static_assert(4 + 4 + 8 + OPAL_CRYPTFILE_SALT_BYTES + OPAL_AEAD_TAG_BYTES == OPAL_CRYPTFILE_SLOT_BYTES, "slot");
static_assert(2 * OPAL_CRYPTFILE_SLOT_BYTES == OPAL_CRYPTFILE_SLOTS_BYTES, "entry");
static_assert(16 + 2 * OPAL_CRYPTFILE_SLOT_BYTES + HEAD_ZEROS == OPAL_CRYPTFILE_REDO_HEAD_BYTES, "head of a room");

/* ---- slots ---- */

void opal_cryptfile_slot_write(const opal_cryptfile_slot_t *slot, uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES])
{
    uint32_t flags = (slot->pending ? SLOT_PENDING : 0) | slot->redo << SLOT_REDO_SHIFT;

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

void opal_cryptfile_entry_write(const opal_cryptfile_slot_t slots[2], uint8_t bytes[OPAL_CRYPTFILE_SLOTS_BYTES])
{
    opal_cryptfile_slot_write(&slots[0], bytes);
    opal_cryptfile_slot_write(&slots[1], bytes + OPAL_CRYPTFILE_SLOT_BYTES);
}

int opal_cryptfile_slot_parse(const uint8_t bytes[OPAL_CRYPTFILE_SLOT_BYTES], uint32_t block_bytes,
                              opal_cryptfile_slot_t *slot)
{
    uint32_t flags = get32(bytes);

    memset(slot, 0, sizeof(*slot));
    slot->redo = flags >> SLOT_REDO_SHIFT;
    slot->pending = 0 != (flags & SLOT_PENDING) && slot->redo > 0;
    flags &= (1u << SLOT_REDO_SHIFT) - 1;
    if (0 != (flags & SLOT_PENDING) && !slot->pending) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    if (0 == (flags & SLOT_USED)) {
        return 0 == (flags & ~(uint32_t) SLOT_PENDING) && slot->pending == (slot->redo > 0) &&
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

void opal_cryptfile_redo_write(const opal_cryptfile_redo_room_t *redo, uint8_t bytes[OPAL_CRYPTFILE_REDO_HEAD_BYTES])
{
    const opal_cryptfile_slot_t slot = opal_cryptfile_slot_plain(&redo->slot), before = opal_cryptfile_slot_plain(&redo->before);

    memset(bytes, 0, OPAL_CRYPTFILE_REDO_HEAD_BYTES);
    put32(bytes, redo->region);
    put64(bytes + 8, redo->block);
    opal_cryptfile_slot_write(&slot, bytes + 16);
    opal_cryptfile_slot_write(&before, bytes + 16 + OPAL_CRYPTFILE_SLOT_BYTES);
}

bool opal_cryptfile_redo_parse(const uint8_t bytes[OPAL_CRYPTFILE_REDO_HEAD_BYTES], uint32_t region, uint32_t block_bytes,
                               opal_cryptfile_redo_room_t *redo)
{
    const uint8_t *before = bytes + 16 + OPAL_CRYPTFILE_SLOT_BYTES;

    redo->region = get32(bytes);
    redo->block = get64(bytes + 8);
    return region == redo->region && opal_crypt_all_zero(bytes + OPAL_CRYPTFILE_REDO_CHECK_AT, 4) &&
           SLOT_USED == get32(bytes + 16) && OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes + 16, block_bytes, &redo->slot) &&
           SLOT_USED == get32(before) && OPAL_CRYPT_OK == opal_cryptfile_slot_parse(before, block_bytes, &redo->before) &&
           opal_crypt_all_zero(bytes + HEAD_ZERO_AT, HEAD_ZEROS);
}

bool opal_cryptfile_redo_follows(const opal_cryptfile_slot_t slots[2], uint32_t number, const opal_cryptfile_redo_room_t *redo)
{
    int newer = opal_cryptfile_entry_newer(slots);

    if (newer < 0) {
        return false;
    }
    return (slots[!newer].pending && number == slots[!newer].redo && opal_cryptfile_slot_same(&redo->before, &slots[newer])) ||
           (number == slots[newer].redo && opal_cryptfile_slot_same(&redo->before, &slots[!newer]));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Finding the current version of a block that the fast path did not open, and
 * finishing what a killed process began.  Always under the block's lock.
 *
 *     killed while it wrote     data opens with       found
 *     the mark, the room        the newer slot        current
 *     the data                  nothing: use room     room
 *     the entry                 the room's slot       ahead
 *
 * The mark leads to the room.  An entry that was cut at a page may have lost it, and then
 * the newer slot names the room through which it was written.  Rooms are reused for
 * other blocks only when nothing depends on them any more; finish_entry sees to that.
 */
#include "file_object.h"

#include <string.h>

/* A block under examination: its data in work->old, a room's ciphertext after it. */
typedef struct recovery {
    opal_cryptfile_t *file;
    opal_cryptfile_work_t *work;
    uint32_t region;
    uint64_t block;
    uint8_t *plain;
    opal_cryptfile_found_t *found;
} recovery_t;

static int read_data(const recovery_t *l)
{
    const opal_cryptfile_region_t *of = &l->file->map->regions[l->region];
    int rc;

    l->work->extent_count = 0;
    rc = opal_cryptfile_extent_packed(l->file, l->work, l->region, l->block * of->block_bytes, l->work->old, of->block_bytes);
    return OPAL_CRYPT_OK == rc ? l->file->storage->read(l->file->storage, l->work->extents, l->work->extent_count)
                               : rc;
}

/* ERR_AUTH: this is not it. */
static int try_one(const recovery_t *l, const opal_cryptfile_slot_t *slot, const uint8_t *cipher, int how)
{
    int rc = opal_cryptfile_block_open(l->file->regions[l->region]->blocks, l->block, slot, cipher, l->plain);

    if (OPAL_CRYPT_OK == rc) {
        memset(l->plain + slot->plain_bytes, 0, l->file->map->regions[l->region].block_bytes - slot->plain_bytes);
        l->found->how = how;
        l->found->slot = *slot;
    }
    return rc;
}

/* Did a program that knows nothing of entries and rooms cut the data?  An overwrite that was cut short leaves at least
 * as many bytes as the shorter of the two versions has, and neither ends in zeros, as data does that was cut and then
 * made longer again.  A room's version of such a block is older than the cut. */
static int was_cut(const recovery_t *l, const opal_cryptfile_redo_room_t *redo, bool *cut)
{
    enum { END_BYTES = 8 };             /* of ciphertext: zeros once in 2^64 */
    const opal_cryptfile_region_t *of = &l->file->map->regions[l->region];
    uint32_t bytes = redo->before.plain_bytes < redo->slot.plain_bytes ? redo->before.plain_bytes : redo->slot.plain_bytes;
    uint64_t size, last, together;
    int rc = opal_cryptfile_size(l->file, &size);

    *cut = 0 == bytes || !opal_cryptfile_locate(l->file, l->region, l->block * of->block_bytes + bytes - 1, &last, &together)
           || last >= size || (bytes >= END_BYTES && opal_crypt_all_zero(l->work->old + bytes - END_BYTES, END_BYTES));
    return rc;
}

/* If the room has a version of this block that follows the entry's. */
static int try_redo(const recovery_t *l, const opal_cryptfile_slots_t *now, uint32_t number)
{
    uint8_t *cipher = l->work->old + l->file->map->regions[l->region].block_bytes;
    opal_cryptfile_redo_room_t redo;
    bool there;
    int rc = opal_cryptfile_redo_read(l->file, l->region, l->block, number, &redo, cipher, &there);

    if (OPAL_CRYPT_OK != rc || !there || !opal_cryptfile_redo_follows(now->slot, number, &redo)) {
        return OPAL_CRYPT_OK == rc ? OPAL_CRYPT_ERR_AUTH : rc;
    }
    redo.slot.redo = number;
    rc = try_one(l, &redo.slot, l->work->old, OPAL_CRYPTFILE_FOUND_AHEAD);
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        bool cut;
        rc = was_cut(l, &redo, &cut);
        rc = OPAL_CRYPT_OK != rc ? rc : cut ? OPAL_CRYPT_ERR_AUTH : try_one(l, &redo.slot, cipher, OPAL_CRYPTFILE_FOUND_REDO);
    }
    return rc;
}

/* A sealed file has no versions but those of its entries. */
static int try_all(const recovery_t *l, const opal_cryptfile_slots_t *now, int newer)
{
    const opal_cryptfile_slot_t *slot = &now->slot[newer], *next = &now->slot[!newer];
    int rc = try_one(l, slot, l->work->old, OPAL_CRYPTFILE_FOUND_CURRENT);

    if (OPAL_CRYPT_ERR_AUTH == rc && !l->file->sealed && now->behind) {
        rc = try_redo(l, now, next->redo);
    }
    if (OPAL_CRYPT_ERR_AUTH == rc && !l->file->sealed && slot->redo > 0) {
        rc = try_redo(l, now, slot->redo);
    }
    if (OPAL_CRYPT_ERR_AUTH == rc && !l->file->sealed && next->used) {
        rc = try_one(l, next, l->work->old, OPAL_CRYPTFILE_FOUND_OLDER);
    }
    return rc;
}

/* Was the block cut off, and all after it?  Then its entry is void.  A sealed file has all blocks. */
static int is_cut_off(const recovery_t *l, bool *cut_off)
{
    uint64_t plain = l->block * l->file->map->regions[l->region].block_bytes, offset, together, size = 0;
    bool may_be = !l->file->sealed;
    int rc = may_be ? opal_cryptfile_size(l->file, &size) : OPAL_CRYPT_OK;

    *cut_off = may_be && (!opal_cryptfile_locate(l->file, l->region, plain, &offset, &together) || offset >= size);
    return rc;
}

int opal_cryptfile_recover(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                           uint64_t block, uint8_t *plain, opal_cryptfile_found_t *found)
{
    const recovery_t recovery = {file, work, region, block, plain, found};
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    opal_cryptfile_slots_t *slots = &work->slots[0], kept = work->slots[0];
    bool cut_off = true;

    *found = (opal_cryptfile_found_t){.how = OPAL_CRYPTFILE_FOUND_HOLE};
    int rc = opal_cryptfile_entries_read(file, work, region, block, 1, &found->entry_at);
    opal_cryptfile_slots_t now = *slots;

    *slots = kept;                      /* the caller's run keeps what it read */
    rc = OPAL_CRYPT_OK == rc ? is_cut_off(&recovery, &cut_off) : rc;
    rc = OPAL_CRYPT_OK == rc && !cut_off ? read_data(&recovery) : rc;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    int newer = opal_cryptfile_entry_newer(now.slot);
    if (newer >= 0 && !cut_off) {
        return try_all(&recovery, &now, newer);
    }
    memset(plain, 0, block_bytes);
    return cut_off ? OPAL_CRYPT_OK : now.bad[0] || now.bad[1] ? OPAL_CRYPT_ERR_AUTH : opal_crypt_all_zero(work->old, block_bytes) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_TORN;
}

int opal_cryptfile_recover_alone(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                 uint64_t block, uint8_t *plain, opal_cryptfile_found_t *found)
{
    opal_cryptfile_range_t range;
    int rc = opal_cryptfile_range_lock(file, &range, opal_cryptfile_lock_at(file, region, block), 1, false);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_recover(file, work, region, block, plain, found);
        (void) opal_cryptfile_range_unlock(file, &range, rc);
    }
    return rc;
}

/* The room's version becomes the block's data.  Only the mark leads to the room, and it is removed after a barrier. */
static int finish_data(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                       const opal_cryptfile_found_t *found)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    int rc = OPAL_CRYPT_OK;

    if (OPAL_CRYPTFILE_FOUND_REDO == found->how) {
        work->extent_count = 0;
        rc = opal_cryptfile_extent_packed(file, work, region, block * of->block_bytes, work->old + of->block_bytes,
                                          found->slot.plain_bytes);
        if (OPAL_CRYPT_OK == rc) {
            rc = file->storage->write(file->storage, work->extents, work->extent_count);
        }
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file) : rc;
}

/* After recover.  A version that the mark led to becomes the next one.  One that the newer slot led to
 * replaces that slot, and so does an older one that opens, where the newer slot fits nothing. */
static int finish_entry(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                        const opal_cryptfile_found_t *found, opal_cryptfile_slots_t *slots)
{
    uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES];
    const opal_cryptfile_extent_t extent = {found->entry_at, bytes, sizeof(bytes)};

    if (OPAL_CRYPTFILE_FOUND_CURRENT != found->how) {
        int newer = opal_cryptfile_entry_newer(slots->slot);
        bool next = OPAL_CRYPTFILE_FOUND_OLDER != found->how && slots->slot[!newer].pending &&
                    found->slot.redo == slots->slot[!newer].redo;
        bool generation = slots->slot[newer].generation;
        if (next) {
            (void) opal_cryptfile_entry_next(slots->slot, &generation);
        }
        opal_cryptfile_slot_t *which = &slots->slot[next ? !newer : newer];
        *which = found->slot;
        which->generation = generation;
        int rc = finish_data(file, work, region, block, found);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
    for (unsigned k = 0; k < 2; ++k) {
        slots->slot[k].redo = slots->slot[k].used ? slots->slot[k].redo : 0;
        slots->slot[k].pending = slots->bad[k] = false;
    }
    slots->behind = false;
    if (slots->redo > 0) {              /* it is being overwritten, and has a new mark */
        opal_cryptfile_mark(slots);
    }
    opal_cryptfile_entry_put(slots, bytes);
    return file->storage->write(file->storage, &extent, 1);
}

int opal_cryptfile_finish(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                          uint8_t *plain, opal_cryptfile_found_t *found, opal_cryptfile_slots_t *slots)
{
    int rc = opal_cryptfile_recover(file, work, region, block, plain, found);

    if (OPAL_CRYPT_OK != rc || OPAL_CRYPTFILE_FOUND_HOLE == found->how ||
        (OPAL_CRYPTFILE_FOUND_CURRENT == found->how && !slots->behind)) {
        return rc;
    }
    /* The caller read the entry before, and storage may return something else each time. */
    return opal_cryptfile_entry_newer(slots->slot) < 0
               ? OPAL_CRYPT_ERR_AUTH : finish_entry(file, work, region, block, found, slots);
}

int opal_cryptfile_redo(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t number, const opal_cryptfile_redo_room_t *redo,
                        opal_cryptfile_slots_t *slots)
{
    opal_cryptfile_found_t found = {.how = OPAL_CRYPTFILE_FOUND_REDO, .slot = redo->slot};
    const recovery_t recovery = {file, work, redo->region, redo->block, NULL, &found};
    uint8_t *cipher = work->old + file->map->regions[redo->region].block_bytes;
    opal_cryptfile_redo_room_t again;
    bool cut = true, there = false;

    found.entry_at = opal_cryptfile_entry_at(file, redo->region, redo->block);
    found.slot.redo = number;
    int rc = opal_cryptfile_redo_read(file, redo->region, redo->block, number, &again, cipher, &there);
    rc = OPAL_CRYPT_OK == rc ? read_data(&recovery) : rc;
    rc = OPAL_CRYPT_OK == rc ? was_cut(&recovery, redo, &cut) : rc;
    if (OPAL_CRYPT_OK != rc || cut || !there) {
        return rc;
    }
    rc = opal_cryptfile_barrier(file);     /* the room's contents may not be on the storage yet */
    return OPAL_CRYPT_OK == rc ? finish_entry(file, work, redo->region, redo->block, &found, slots) : rc;
}

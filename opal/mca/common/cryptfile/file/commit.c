/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A sealed run goes to storage: marks, rooms, data, entries, in this order for each
 * block, so that a process that is killed anywhere leaves the old blocks or the
 * new ones.  The mark of a block says in which room its new version is; it is four bytes
 * of the entry, so that all of it is there or nothing, and the previous version stays in the entry.
 * A block that had no entry needs no room: its first write, cut short, is torn.  One that is
 * behind and could not be finished has no version to go back to, and keeps its mark.
 *
 * Marks are written at the beginning of a run and entries at its end, rooms and data part
 * by part.  A group may have fewer rooms than a run has blocks; then there are rounds, and the
 * entries of one and the marks of the next are one write.  To survive a loss of power, the storage must keep that
 * order, too.  With barriers (|):
 *
 *     first write                     data | entries
 *     overwrite   | marks   rooms   | data | entries
 *     rounds      | marks   rooms   | data | entries, marks | rooms | data | entries
 *
 * The rooms may still hold versions that other
 * blocks need: whichever process wrote those, and however it ended, their data and entries are on
 * the storage first.  So the entries need no barrier after them.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/le.h"

int opal_cryptfile_commit_begin(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run)
{
    uint32_t redo_rooms = 0;

    work->redo_rooms.count = work->redo_rooms.range_count = 0;
    for (uint64_t i = 0; i < run->count; ++i) {
        opal_cryptfile_slots_t *slots = &work->slots[i];
        slots->overwritten = opal_cryptfile_entry_newer(slots->slot) >= 0 && !slots->behind;
        redo_rooms += slots->overwritten;
    }
    if (0 == redo_rooms) {
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_redo_take(file, work, run, redo_rooms);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file) : rc;
}

/* Add to the extents the entry of block i, as it is in work->slots. */
static int put_entry(opal_cryptfile_work_t *work, uint64_t at, uint64_t i)
{
    enum { ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };
    uint8_t *bytes = work->slot_bytes + i * ENTRY;

    opal_cryptfile_entry_put(&work->slots[i], bytes);
    return opal_cryptfile_extent_add(work, at + i * ENTRY, bytes, ENTRY);
}

/* Add to the extents the entries of blocks [from, to), with their new versions. */
static int put_entries(opal_cryptfile_work_t *work, uint64_t from, uint64_t to, uint64_t at)
{
    int rc = OPAL_CRYPT_OK;

    work->extent_count = 0;
    for (uint64_t i = from; i < to && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_slots_t *slots = &work->slots[i];
        bool generation;
        opal_cryptfile_slot_t *next = &slots->slot[opal_cryptfile_entry_next(slots->slot, &generation)];
        *next = work->fresh[i];
        next->redo = slots->redo;       /* if this write is cut at a page, the room's version counts */
        rc = put_entry(work, at, i);
    }
    return rc;
}

static int write_entries(opal_cryptfile_t *file, opal_cryptfile_work_t *work)
{
    return 0 == work->extent_count ? OPAL_CRYPT_OK
                                   : file->storage->write(file->storage, work->extents, work->extent_count);
}

int opal_cryptfile_commit_round(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run,
                                uint64_t entered, uint64_t from, uint64_t at, uint64_t *count)
{
    uint32_t used = 0;
    int rc = put_entries(work, entered, from, at);
    uint64_t i = from;

    for (; OPAL_CRYPT_OK == rc && i < run->count && (!work->slots[i].overwritten || used < work->redo_rooms.count); ++i) {
        opal_cryptfile_slots_t *slots = &work->slots[i];
        if (slots->overwritten) {
            slots->redo = work->redo_rooms.numbers[used++];
            slots->redo_at = opal_cryptfile_redo_at(file, run->region, run->first + i, slots->redo);
            opal_cryptfile_mark(slots);
            rc = put_entry(work, at, i);
        }
    }
    *count = i - from;
    rc = OPAL_CRYPT_OK == rc ? write_entries(file, work) : rc;
    return OPAL_CRYPT_OK == rc && from > 0 ? opal_cryptfile_barrier(file) : rc;
}

static int redo_rooms_write(opal_cryptfile_t *file, opal_cryptfile_work_t *work,
                            const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count)
{
    uint32_t block_bytes = file->map->regions[run->region].block_bytes;
    uint8_t *heads = work->slot_bytes + run->count * OPAL_CRYPTFILE_ENTRY_BYTES;
    int rc = OPAL_CRYPT_OK;

    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        const opal_cryptfile_slot_t *fresh = &work->fresh[from + i];
        const opal_cryptfile_slots_t *slots = &work->slots[from + i];
        uint8_t *head = heads + (from + i) * OPAL_CRYPTFILE_REDO_HEAD_BYTES;
        if (0 == slots->redo) {
            continue;
        }
        const opal_cryptfile_redo_room_t redo = {run->region, run->first + from + i, *fresh,
                                                 slots->slot[opal_cryptfile_entry_newer(slots->slot)]};
        opal_cryptfile_redo_write(&redo, head);
        opal_crypt_le_put32(head + OPAL_CRYPTFILE_REDO_CHECK_AT,
                            opal_cryptfile_redo_check(head, work->cipher + i * block_bytes, fresh->plain_bytes));
        rc = opal_cryptfile_extent_add(work, slots->redo_at.head, head, OPAL_CRYPTFILE_REDO_HEAD_BYTES);
    }
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {       /* after the heads of all */
        const opal_cryptfile_slots_t *slots = &work->slots[from + i];
        rc = 0 == slots->redo ? OPAL_CRYPT_OK
             : opal_cryptfile_extent_add(work, slots->redo_at.cipher, work->cipher + i * block_bytes, work->fresh[from + i].plain_bytes);
    }
    if (OPAL_CRYPT_OK == rc && work->extent_count > 0) {
        rc = file->storage->write(file->storage, work->extents, work->extent_count);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file) : rc;
    }
    return rc;
}

static int data_write(opal_cryptfile_t *file, opal_cryptfile_work_t *work,
                      const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count)
{
    const opal_cryptfile_region_t *of = &file->map->regions[run->region];
    int rc = OPAL_CRYPT_OK;

    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_extent_packed(file, work, run->region, (run->first + from + i) * of->block_bytes,
                                          work->cipher + i * of->block_bytes, work->fresh[from + i].plain_bytes);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = file->storage->write(file->storage, work->extents, work->extent_count);
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file) : rc;
}

int opal_cryptfile_commit_part(opal_cryptfile_t *file, opal_cryptfile_work_t *work,
                               const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count)
{
    int rc = redo_rooms_write(file, work, run, from, count);

    return OPAL_CRYPT_OK == rc ? data_write(file, work, run, from, count) : rc;
}

int opal_cryptfile_commit_end(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint64_t entered, uint64_t done, uint64_t at, int rc)
{
    int error = put_entries(work, entered, done, at);

    error = OPAL_CRYPT_OK == error ? write_entries(file, work) : error;
    rc = OPAL_CRYPT_OK == rc ? error : rc;
    return opal_cryptfile_redo_give(file, work, rc);
}

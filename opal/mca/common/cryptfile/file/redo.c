/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rooms, where overwrites go first.  A group has a few of them, and a call has
 * some for a run of blocks of the group, whose locks it has.
 *
 *     head  | region 4 | check 4 | block 8 | slot 48 | slot before 48 | 0 16 |
 *
 * A room may be needed by a block whose overwrite was cut short: its mark leads there, and nothing else does.
 * A process that wants the room finishes that block, with its key or without.  While a call has no room it waits for
 * one, in the order of locks: blocks, then rooms.  A process that has rooms waits for nothing, and one that waits for
 * rooms has finished its own blocks in the rooms of the group: so one of them always makes progress.
 */
#include "file_object.h"
#include "header.h"
#include "opal/mca/common/crypt/base/le.h"

#include <string.h>
#include <time.h>

enum { HEAD_BYTES = OPAL_CRYPTFILE_REDO_HEAD_BYTES, REDO_ROOMS_MAX = OPAL_CRYPTFILE_REDO_ROOMS_MAX, ROUND_BYTES = 65536 };

/* ---- what a room holds ---- */

uint32_t opal_cryptfile_redo_check(const uint8_t head[HEAD_BYTES], const uint8_t *cipher, uint32_t cipher_bytes)
{
    uint8_t bytes[HEAD_BYTES];

    memcpy(bytes, head, sizeof(bytes));
    memset(bytes + OPAL_CRYPTFILE_REDO_CHECK_AT, 0, 4);
    return opal_cryptfile_crc(opal_cryptfile_crc(0, bytes, sizeof(bytes)), cipher, cipher_bytes);
}

/* Parse a room's head as stored; false unless it is a version of a block that can exist. */
static bool parse_redo_head(const opal_cryptfile_t *file, uint32_t region, const uint8_t head[HEAD_BYTES], opal_cryptfile_redo_room_t *redo)
{
    uint8_t bytes[HEAD_BYTES];

    memcpy(bytes, head, sizeof(bytes));
    memset(bytes + OPAL_CRYPTFILE_REDO_CHECK_AT, 0, 4);         /* it authenticates nothing */
    return opal_cryptfile_redo_parse(bytes, region, file->map->regions[region].block_bytes, redo) &&
           redo->block < opal_cryptfile_blocks_most(file, region) &&
           redo->slot.plain_bytes <= opal_cryptfile_capacity(file, region, redo->block) &&
           redo->before.plain_bytes <= opal_cryptfile_capacity(file, region, redo->block);
}

int opal_cryptfile_redo_read(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint32_t number,
                             opal_cryptfile_redo_room_t *redo, uint8_t *cipher, bool *there)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    uint8_t head[HEAD_BYTES];
    const opal_cryptfile_redo_place_t at = opal_cryptfile_redo_at(file, region, block, number);

    *there = false;
    if (0 == at.head) {
        return OPAL_CRYPT_OK;
    }
    const opal_cryptfile_extent_t extents[2] = {{at.head, head, sizeof(head)}, {at.cipher, cipher, block_bytes}};
    int rc = file->storage->read(file->storage, extents, 2);
    *there = OPAL_CRYPT_OK == rc && parse_redo_head(file, region, head, redo) && block == redo->block;
    return rc;
}

/* ---- freeing one, with its lock ---- */

/* A room under examination, and the version in it. */
typedef struct candidate {
    opal_cryptfile_t *file;
    opal_cryptfile_work_t *work;        /* for this block alone */
    const opal_cryptfile_range_t *held; /* the block locks that the call holds */
    const opal_cryptfile_blockrun_t *run;
    opal_cryptfile_slots_t *slots;      /* of the run's blocks, as the call read them */
    uint32_t number;
    const uint8_t *head;
    opal_cryptfile_redo_room_t redo;
    uint64_t *blocked;                  /* the lock of the block, if another process has it */
} candidate_t;

/* Does the head name a block of this group that begins below the size? */
static bool is_named(candidate_t *l, uint64_t head_at, uint64_t size)
{
    const opal_cryptfile_map_t *map = l->file->map;
    uint32_t region = opal_crypt_le_get32(l->head);
    uint64_t offset, together;

    return region < map->region_count && map->regions[region].encrypted && parse_redo_head(l->file, region, l->head, &l->redo) &&
           head_at == opal_cryptfile_redo_at(l->file, region, l->redo.block, l->number).head &&
           opal_cryptfile_locate(l->file, region, l->redo.block * map->regions[region].block_bytes, &offset, &together) && offset < size;
}

/* Does the block's mark, or an entry that was cut and names the room, lead to a version that is whole?  Only the holder of
 * a room's lock writes either: so a block seen without, even without the block's lock, will not get one. */
static int is_needed(const candidate_t *l, bool *needed)
{
    uint8_t *cipher = l->work->old + l->file->map->regions[l->redo.region].block_bytes;
    const opal_cryptfile_slots_t *slots = &l->work->slots[0];
    opal_cryptfile_redo_room_t again;
    uint64_t entry_at;
    int rc = opal_cryptfile_entries_read(l->file, l->work, l->redo.region, l->redo.block, 1, &entry_at);
    int newer = OPAL_CRYPT_OK == rc ? opal_cryptfile_entry_newer(slots->slot) : -1;

    *needed = newer >= 0 && opal_cryptfile_redo_follows(slots->slot, l->number, &l->redo) &&
              !opal_cryptfile_slot_same(&l->redo.slot, &slots->slot[newer]);    /* the entry is not all there yet */
    if (*needed) {
        rc = opal_cryptfile_redo_read(l->file, l->redo.region, l->redo.block, l->number, &again, cipher, needed);
        *needed = OPAL_CRYPT_OK == rc && *needed &&
                  opal_crypt_le_get32(l->head + OPAL_CRYPTFILE_REDO_CHECK_AT) == opal_cryptfile_redo_check(l->head, cipher, l->redo.slot.plain_bytes);
    }
    return rc;
}

/* If no version of the block opens, nothing is lost with the room. */
static int finish_needed(const candidate_t *l, bool *is_free)
{
    uint64_t lock_at = opal_cryptfile_lock_at(l->file, l->redo.region, l->redo.block);
    bool ours = NULL != l->held && l->held->first <= lock_at && lock_at <= l->held->last, got = ours, needed = false;
    opal_cryptfile_range_t range;
    opal_cryptfile_found_t found;
    int rc = ours ? OPAL_CRYPT_OK : opal_cryptfile_range_try(l->file, &range, lock_at, 1, &got);

    if (OPAL_CRYPT_OK != rc || !got) {
        *l->blocked = lock_at;
        return rc;
    }
    rc = is_needed(l, &needed);
    if (needed && NULL == l->file->regions[l->redo.region]->blocks) {
        rc = opal_cryptfile_redo(l->file, l->work, l->number, &l->redo, &l->work->slots[0]);
    } else if (needed) {
        rc = opal_cryptfile_finish(l->file, l->work, l->redo.region, l->redo.block, l->work->plain, &found, &l->work->slots[0]);
        rc = OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
    }
    if (ours && l->redo.region == l->run->region && l->redo.block - l->run->first < l->run->count) {
        memcpy(l->slots[l->redo.block - l->run->first].slot, l->work->slots[0].slot, sizeof(l->work->slots[0].slot));
    }
    rc = ours ? rc : opal_cryptfile_range_unlock(l->file, &range, rc);
    *is_free = OPAL_CRYPT_OK == rc;
    return rc;
}

static int free_one(candidate_t *l, uint64_t head_at, uint64_t size, bool *is_free)
{
    bool needed;

    *is_free = !is_named(l, head_at, size);
    if (*is_free) {
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_work_take(l->file, &l->work);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_work_reserve(l->file, l->work, 1, l->file->map->regions[l->redo.region].block_bytes);
    rc = OPAL_CRYPT_OK == rc ? is_needed(l, &needed) : rc;
    *is_free = OPAL_CRYPT_OK == rc && !needed;
    if (OPAL_CRYPT_OK == rc && needed) {
        rc = finish_needed(l, is_free);
    }
    opal_cryptfile_work_give(l->file, l->work);
    return rc;
}

/* Wipe an abandoned version that follows one of a block of this run: a new mark of the block would lead to
 * it. */
static int wipe(opal_cryptfile_t *file, const opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run, uint64_t head_at,
                const uint8_t head[HEAD_BYTES])
{
    uint8_t none[HEAD_BYTES] = {0};
    const opal_cryptfile_extent_t extent = {head_at, none, sizeof(none)};
    opal_cryptfile_redo_room_t redo;

    if (!parse_redo_head(file, run->region, head, &redo) || redo.block < run->first || redo.block - run->first >= run->count) {
        return OPAL_CRYPT_OK;
    }
    const opal_cryptfile_slot_t *slots = work->slots[redo.block - run->first].slot;
    int newer = opal_cryptfile_entry_newer(slots);
    return newer >= 0 && opal_cryptfile_slot_same(&redo.before, &slots[newer])
               ? file->storage->write(file->storage, &extent, 1) : OPAL_CRYPT_OK;
}

/* ---- for a call ---- */

/* What keeps a call from a room. */
typedef struct obstacle {
    uint32_t busy;                      /* a room that another process has; 0: no room is */
    uint64_t blocked;                   /* the lock, held by another process, of a block that needs a room */
} obstacle_t;

/* Takes the free ones of `count` rooms from `first` on.  If another process has one of them, takes none. */
static int take_some(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run, uint32_t first,
                     uint32_t count, obstacle_t *obstacle)
{
    opal_cryptfile_redo_rooms_t *redo_rooms = &work->redo_rooms;
    opal_cryptfile_range_t *range = &redo_rooms->ranges[redo_rooms->range_count];
    uint8_t heads[REDO_ROOMS_MAX][HEAD_BYTES];
    uint32_t before = redo_rooms->count;
    const uint64_t at = opal_cryptfile_redo_at(file, run->region, run->first, first).head;
    uint64_t size;
    bool got, is_free;
    int rc = opal_cryptfile_range_try(file, range, opal_cryptfile_geometry_head_lock(at), count, &got);

    if (OPAL_CRYPT_OK != rc || !got) {
        obstacle->busy = first;
        return rc;
    }
    const opal_cryptfile_extent_t extent = {at, heads, count * HEAD_BYTES};
    rc = file->storage->read(file->storage, &extent, 1);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_size(file, &size) : rc;
    for (uint32_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        candidate_t candidate = {.file = file, .held = work->held, .run = run, .slots = work->slots, .number = first + i,
                                 .head = heads[i], .blocked = &obstacle->blocked};
        uint64_t head_at = at + i * HEAD_BYTES;
        rc = free_one(&candidate, head_at, size, &is_free);
        if (OPAL_CRYPT_OK == rc && is_free) {
            redo_rooms->numbers[redo_rooms->count++] = first + i;
            rc = wipe(file, work, run, head_at, heads[i]);
        }
    }
    if (OPAL_CRYPT_OK == rc && redo_rooms->count > before) {
        ++redo_rooms->range_count;
        return rc;
    }
    redo_rooms->count = before;
    return opal_cryptfile_range_unlock(file, range, rc);
}

/* No holder of a room waits for us.  If no room is held, another process is finishing or reading the block that needs
 * it, and we must not block on that block's lock, since we hold those of other blocks. */
static int wait_for_one(opal_cryptfile_t *file, const opal_cryptfile_blockrun_t *run, const obstacle_t *obstacle, opal_cryptfile_wait_t *wait)
{
    const struct timespec delay = {.tv_nsec = 1000000};
    opal_cryptfile_range_t range;

    if (0 == obstacle->busy && NULL != file->storage->wait_once) {
        return file->storage->wait_once(file->storage, obstacle->blocked, wait);
    }
    if (0 == obstacle->busy) {
        (void) nanosleep(&delay, NULL);
        return OPAL_CRYPT_OK;
    }
    const uint64_t at = opal_cryptfile_redo_at(file, run->region, run->first, obstacle->busy).head;
    int rc = opal_cryptfile_range_lock(file, &range, opal_cryptfile_geometry_head_lock(at), 1, true);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_range_unlock(file, &range, rc) : rc;
}

/* A call leaves rooms to others, as smaller rounds cost less than waiting.  With barriers a round costs three of them. */
static uint32_t redo_limit(const opal_cryptfile_t *file, uint32_t wanted)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    uint32_t most = NULL != file->storage->barrier ? geometry->redo_rooms : ROUND_BYTES / geometry->redo_bytes;

    most = most < geometry->redo_rooms ? most : geometry->redo_rooms;
    most = most < wanted ? most : wanted;
    return most > 0 ? most : 1;
}

int opal_cryptfile_redo_take(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_blockrun_t *run,
                                    uint32_t wanted)
{
    uint32_t all = opal_cryptfile_geometry_of(file)->redo_rooms, most = redo_limit(file, wanted);
    opal_cryptfile_wait_t wait = {.since = 0};
    int rc = OPAL_CRYPT_OK;

    work->redo_rooms.count = work->redo_rooms.range_count = 0;
    while (OPAL_CRYPT_OK == rc && 0 == work->redo_rooms.count) {
        obstacle_t obstacle = {.busy = 0};
        for (uint32_t number = 1; OPAL_CRYPT_OK == rc && number + most <= all + 1 && 0 == work->redo_rooms.count; number += most) {
            rc = take_some(file, work, run, number, most, &obstacle);   /* usually with one lock */
        }
        obstacle.busy = 0;
        for (uint32_t number = 1; OPAL_CRYPT_OK == rc && number <= all && work->redo_rooms.count < most; ++number) {
            rc = take_some(file, work, run, number, 1, &obstacle);
        }
        if (OPAL_CRYPT_OK == rc && 0 == work->redo_rooms.count) {
            rc = wait_for_one(file, run, &obstacle, &wait);
        }
    }
    return OPAL_CRYPT_OK == rc ? rc : opal_cryptfile_redo_give(file, work, rc);
}

int opal_cryptfile_redo_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work, int rc)
{
    while (work->redo_rooms.range_count > 0) {
        rc = opal_cryptfile_range_unlock(file, &work->redo_rooms.ranges[--work->redo_rooms.range_count], rc);
    }
    work->redo_rooms.count = 0;
    return rc;
}

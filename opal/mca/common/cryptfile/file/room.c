/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rooms in a sidecar, where overwrites go first, in sets.  A process owns a set as long as
 * it holds the set's lock, from call to call, until it closes the file or dies: so
 * there are as many sets as calls that ever overwrote at the same time, however large the
 * file is and however often it is overwritten.
 *
 * A free set may still be needed by blocks whose overwrite was cut short.  The process that
 * takes it examines each room, and finishes what is left.  For that it never waits: it holds
 * block locks itself, and the holder of that block's lock may want one of them.  A room that is
 * in use elsewhere, or cannot be read, is left as it is, and the next set is tried.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first sets are tried in order, then, for very many processes that overwrite at the same
 * time, random ones from a growing range. */
enum { IN_TURN = 64, A_WINDOW = 16, TRIES = IN_TURN + 12 * A_WINDOW };

static uint32_t set_to_try(unsigned turn)
{
    uint32_t any, window;

    if (turn < IN_TURN) {
        return turn;
    }
    opal_crypt_random(&any, sizeof(any));
    window = (uint32_t) IN_TURN << ((turn - IN_TURN) / A_WINDOW + 1);
    return any % (window < OPAL_CRYPTFILE_SIDECAR_SETS ? window : OPAL_CRYPTFILE_SIDECAR_SETS);
}

/* ---- getting a set ---- */

static int look_at_entry(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint32_t number,
                         const opal_cryptfile_room_t *room, bool *is_free)
{
    uint64_t entry_at;
    int rc = opal_cryptfile_entries_read(file, work, region, room->block, 1, false, &entry_at);

    *is_free = OPAL_CRYPT_OK == rc && !opal_cryptfile_room_needed(work->slots[0].slot, number, room);
    return rc;
}

/* The room has a version that its block still needs: finish that block. */
static int finish_block(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint32_t number,
                        const opal_cryptfile_room_t *room, bool *is_free)
{
    opal_cryptfile_range_t range;
    opal_cryptfile_found_t found;
    bool got;
    int rc = opal_cryptfile_range_try(file, &range, opal_cryptfile_lock_at(file, region, room->block), 1, &got);

    if (OPAL_CRYPT_OK != rc || !got) {
        return rc;
    }
    rc = look_at_entry(file, work, region, number, room, is_free);
    if (OPAL_CRYPT_OK == rc && !*is_free) {
        rc = opal_cryptfile_finish(file, work, region, room->block, work->plain, &found, &work->slots[0]);
    }
    rc = opal_cryptfile_range_unlock(file, &range, rc);
    *is_free = OPAL_CRYPT_OK == rc;
    return OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
}

/* Only the owner of a set sets marks to it: so a block that needs none of its rooms now, even
 * if seen without a lock, will not need one. */
static int free_room(opal_cryptfile_t *file, uint32_t region, uint32_t number, const opal_cryptfile_room_t *room, bool *is_free)
{
    opal_cryptfile_work_t *work = NULL;
    int rc = opal_cryptfile_work_take(file, &work);

    *is_free = false;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_work_room(file, work, 1, file->map->regions[region].block_bytes);
    rc = OPAL_CRYPT_OK == rc ? look_at_entry(file, work, region, number, room, is_free) : rc;
    if (OPAL_CRYPT_OK == rc && !*is_free) {
        rc = finish_block(file, work, region, number, room, is_free);
    }
    opal_cryptfile_work_give(file, work);
    return rc;
}

/* With the set's lock. */
static int free_set(opal_cryptfile_t *file, uint32_t region, const opal_cryptfile_set_t *set, bool *is_free)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes, rooms = opal_cryptfile_sidecar_set_rooms(block_bytes);
    uint8_t heads[OPAL_CRYPTFILE_SET_ROOMS_MAX][OPAL_CRYPTFILE_ROOM_HEAD_BYTES];
    opal_cryptfile_extent_t extents[OPAL_CRYPTFILE_SET_ROOMS_MAX];

    for (uint32_t i = 0; i < rooms; ++i) {
        extents[i] = (opal_cryptfile_extent_t){opal_cryptfile_sidecar_room_at(set->at, i, block_bytes), heads[i], sizeof(heads[i])};
    }
    int rc = file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, extents, rooms);
    *is_free = OPAL_CRYPT_OK == rc;
    for (uint32_t i = 0; i < rooms && *is_free && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_room_t room;
        if (opal_cryptfile_room_head(file, region, heads[i], &room)) {
            rc = free_room(file, region, set->set * rooms + i + 1, &room, is_free);
        }
    }
    return rc;
}

/* Sets are sorted by place, since writes must be in ascending order. */
static int insert_set(opal_cryptfile_region_state_t *of, const opal_cryptfile_set_t *set)
{
    size_t i = of->set_count;

    if (of->set_count == of->set_room) {
        size_t larger_room = 0 == of->set_room ? 4 : 2 * of->set_room;
        opal_cryptfile_set_t *larger = realloc(of->sets, larger_room * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        of->sets = larger;
        of->set_room = larger_room;
    }
    for (; i > 0 && of->sets[i - 1].at > set->at; --i) {
        of->sets[i] = of->sets[i - 1];
    }
    of->sets[i] = *set;
    ++of->set_count;
    return OPAL_CRYPT_OK;
}

static opal_cryptfile_set_t *find_set(opal_cryptfile_region_state_t *of, uint64_t lock_at)
{
    size_t i = 0;

    while (i < of->set_count && lock_at != of->sets[i].lock_at) {
        ++i;
    }
    return i < of->set_count ? &of->sets[i] : NULL;
}

/* Under set_lock, like the functions below. */
static int get_one(opal_cryptfile_t *file, uint32_t region)
{
    opal_cryptfile_storage_t *storage = file->storage;
    opal_cryptfile_region_state_t *of = file->regions[region];
    int rc = OPAL_CRYPT_OK;

    for (unsigned turn = 0; turn < TRIES && OPAL_CRYPT_OK == rc; ++turn) {
        opal_cryptfile_set_t set = {.set = set_to_try(turn)};
        bool got = false, is_free = false;
        set.lock_at = opal_cryptfile_sidecar_set_lock_at(region, set.set);
        if (NULL != find_set(of, set.lock_at)) {
            continue;
        }
        rc = storage->try_lock(storage, set.lock_at, 1, true, &got);
        if (OPAL_CRYPT_OK != rc || !got) {
            continue;
        }
        rc = opal_cryptfile_set_at(file, region, set.set, true, &set.at);
        rc = OPAL_CRYPT_OK == rc ? free_set(file, region, &set, &is_free) : rc;
        rc = OPAL_CRYPT_OK == rc && is_free ? insert_set(of, &set) : rc;
        if (OPAL_CRYPT_OK == rc && is_free) {
            return OPAL_CRYPT_OK;
        }
        int error = errno;
        (void) storage->unlock(storage, set.lock_at, 1);
        errno = error;
    }
    errno = OPAL_CRYPT_OK == rc ? ENOLCK : errno;
    return OPAL_CRYPT_OK == rc ? OPAL_CRYPT_ERR_STORAGE : rc;
}

static size_t idle_sets(const opal_cryptfile_region_state_t *of)
{
    size_t idle = 0;

    for (size_t i = 0; i < of->set_count; ++i) {
        idle += !of->sets[i].busy;
    }
    return idle;
}

/* ---- for a call ---- */

static int room_for_sets(opal_cryptfile_work_t *work, size_t count)
{
    if (count > work->set_room) {
        opal_cryptfile_set_t *larger = realloc(work->sets, count * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        work->sets = larger;
        work->set_room = count;
    }
    return OPAL_CRYPT_OK;
}

/* Under set_lock: gives back the lock of a set, and forgets it. */
static void leave_set(opal_cryptfile_t *file, opal_cryptfile_region_state_t *of, opal_cryptfile_set_t *set)
{
    int error = errno;

    (void) file->storage->unlock(file->storage, set->lock_at, 1);
    memmove(set, set + 1, (size_t) (of->sets + of->set_count - (set + 1)) * sizeof(*set));
    --of->set_count;
    errno = error;
}

int opal_cryptfile_rooms_take(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t rooms)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    uint32_t in_set = opal_cryptfile_sidecar_set_rooms(file->map->regions[region].block_bytes);
    size_t wanted = (size_t) ((rooms + in_set - 1) / in_set);
    int rc = room_for_sets(work, wanted);

    work->set_count = 0;
    pthread_mutex_lock(&of->set_lock);
    while (OPAL_CRYPT_OK == rc && idle_sets(of) < wanted) {
        rc = get_one(file, region);
    }
    for (size_t i = 0; OPAL_CRYPT_OK == rc && work->set_count < wanted; ++i) {
        if (!of->sets[i].busy) {
            of->sets[i].busy = true;
            work->sets[work->set_count++] = of->sets[i];
        }
    }
    pthread_mutex_unlock(&of->set_lock);
    return rc;
}

void opal_cryptfile_rooms_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, bool done)
{
    opal_cryptfile_region_state_t *of = file->regions[region];

    pthread_mutex_lock(&of->set_lock);
    for (size_t i = 0; i < work->set_count; ++i) {
        opal_cryptfile_set_t *set = find_set(of, work->sets[i].lock_at);
        if (done) {
            set->busy = false;
        } else {
            leave_set(file, of, set);
        }
    }
    work->set_count = 0;
    pthread_mutex_unlock(&of->set_lock);
}

void opal_cryptfile_rooms_end(opal_cryptfile_t *file, uint32_t region)
{
    opal_cryptfile_region_state_t *of = file->regions[region];

    for (size_t i = 0; i < of->set_count; ++i) {
        (void) file->storage->unlock(file->storage, of->sets[i].lock_at, 1);
    }
    of->set_count = 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What every call needs: memory to work with, which is kept for the next one, extents for the
 * storage, locks, and the outcome of a failure.
 *
 * The storage's locks belong to processes: two threads of one process would both get a lock,
 * and the first to release it would take it from the other.  So threads exclude one another
 * here first, always exclusively.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

/* ---- memory ---- */

int opal_cryptfile_work_take(opal_cryptfile_t *file, opal_cryptfile_work_t **work)
{
    pthread_mutex_lock(&file->work_lock);
    opal_cryptfile_work_t *found = file->idle;
    if (NULL != found) {
        file->idle = found->next;
    }
    pthread_mutex_unlock(&file->work_lock);
    if (NULL == found) {
        found = calloc(1, sizeof(*found));
    }
    if (NULL != found) {
        found->held = NULL;
    }
    *work = found;
    return NULL == found ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
}

void opal_cryptfile_work_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work)
{
    pthread_mutex_lock(&file->work_lock);
    work->next = file->idle;
    file->idle = work;
    pthread_mutex_unlock(&file->work_lock);
}

void opal_cryptfile_work_secret(opal_cryptfile_t *file) { file->secret = true; }

static void release_memory(const opal_cryptfile_t *file, uint8_t *memory)
{
    if (file->secret) {
        opal_crypt_secmem_free(memory);
    } else {
        free(memory);
    }
}

static int enlarge(const opal_cryptfile_t *file, uint8_t **memory, size_t *have, size_t want)
{
    if (*have < want) {
        void *larger = file->secret ? opal_crypt_secmem_alloc(want) : NULL;
        if (NULL == larger && (file->secret || 0 != posix_memalign(&larger, PAGE, want))) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        release_memory(file, *memory);
        *memory = larger;
        *have = want;
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_work_reserve(const opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint64_t blocks,
                                uint32_t block_bytes)
{
    size_t part = opal_cryptfile_run_part(file, block_bytes, blocks) * block_bytes;
    int rc = enlarge(file, &work->cipher, &work->cipher_capacity, part);

    if (OPAL_CRYPT_OK == rc) {
        rc = enlarge(file, &work->plain, &work->plain_capacity, part);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = enlarge(file, &work->old, &work->old_capacity, 2 * (size_t) block_bytes);
    }
    if (OPAL_CRYPT_OK == rc && work->block_capacity < blocks) {
        free(work->slot_bytes);
        free(work->slots);
        free(work->fresh);
        work->slot_bytes = malloc(blocks * (OPAL_CRYPTFILE_ENTRY_BYTES + OPAL_CRYPTFILE_REDO_HEAD_BYTES));
        work->slots = malloc(blocks * sizeof(*work->slots));
        work->fresh = malloc(blocks * sizeof(*work->fresh));
        work->block_capacity = blocks;
        if (NULL == work->slot_bytes || NULL == work->slots || NULL == work->fresh) {
            work->block_capacity = 0;
            rc = OPAL_CRYPT_ERR_MEMORY;
        }
    }
    return rc;
}

void opal_cryptfile_work_end(opal_cryptfile_t *file)
{
    while (NULL != file->idle) {
        opal_cryptfile_work_t *work = file->idle;
        file->idle = work->next;
        release_memory(file, work->cipher);
        release_memory(file, work->plain);
        release_memory(file, work->old);
        free(work->slot_bytes);
        free(work->slots);
        free(work->fresh);
        free(work->extents);
        free(work);
    }
}

/* ---- extents ---- */

int opal_cryptfile_extent_add(opal_cryptfile_work_t *work, uint64_t at, void *bytes, size_t count)
{
    opal_cryptfile_extent_t *last = 0 == work->extent_count ? NULL : &work->extents[work->extent_count - 1];

    if (NULL != last && last->at + last->count == at && (uint8_t *) last->bytes + last->count == bytes) {
        last->count += count;
        return OPAL_CRYPT_OK;
    }
    if (work->extent_count == work->extent_capacity) {
        size_t larger_capacity = 0 == work->extent_capacity ? 64 : 2 * work->extent_capacity;
        opal_cryptfile_extent_t *larger = realloc(work->extents, larger_capacity * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        work->extents = larger;
        work->extent_capacity = larger_capacity;
    }
    work->extents[work->extent_count++] = (opal_cryptfile_extent_t){at, bytes, count};
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_extent_packed(const opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                 uint64_t plain, void *bytes, size_t count)
{
    uint8_t *memory = bytes;
    int rc = OPAL_CRYPT_OK;

    while (count > 0 && OPAL_CRYPT_OK == rc) {
        uint64_t offset, together;
        if (!opal_cryptfile_locate(file, region, plain, &offset, &together)) {
            memset(memory, 0, count);   /* a region of one tile ends in this block */
            break;
        }
        size_t part = together < count ? (size_t) together : count;
        rc = opal_cryptfile_extent_add(work, opal_cryptfile_geometry_place(opal_cryptfile_geometry_of(file), offset), memory, part);
        plain += part;
        memory += part;
        count -= part;
    }
    return rc;
}

/* ---- outcome ---- */

int opal_cryptfile_outcome_set(const opal_cryptfile_t *file, opal_cryptfile_outcome_t *outcome, int rc,
                               uint32_t region, uint64_t block)
{
    int error = errno;

    if (OPAL_CRYPT_OK == outcome->rc) {
        const opal_cryptfile_region_t *of = &file->map->regions[region];
        uint64_t together;
        outcome->rc = rc;
        outcome->region = region;
        outcome->block = block;
        outcome->error = OPAL_CRYPT_ERR_STORAGE == rc ? error : 0;
        if (!of->encrypted || !opal_cryptfile_locate(file, region, block * of->block_bytes, &outcome->file_offset, &together)) {
            outcome->file_offset = 0;
        }
    }
    return rc;
}

/* ---- locks ---- */

static bool is_held(const opal_cryptfile_t *file, uint64_t first, uint64_t last)
{
    const opal_cryptfile_range_t *range = file->ranges;

    while (NULL != range && (range->last < first || last < range->first)) {
        range = range->next;
    }
    return NULL != range;
}

static void leave(opal_cryptfile_t *file, opal_cryptfile_range_t *range)
{
    opal_cryptfile_range_t **link = &file->ranges;

    pthread_mutex_lock(&file->range_lock);
    while (range != *link) {
        link = &(*link)->next;
    }
    *link = range->next;
    pthread_cond_broadcast(&file->range_free);
    pthread_mutex_unlock(&file->range_lock);
}

/* The half of range_lock between threads.  False: another thread has a part of it, and `wait` is false. */
static bool enter_range(opal_cryptfile_t *file, opal_cryptfile_range_t *range, uint64_t at, uint64_t count, bool wait)
{
    range->first = at;
    range->last = at + count - 1;
    pthread_mutex_lock(&file->range_lock);
    bool held = is_held(file, range->first, range->last);
    while (held && wait) {
        pthread_cond_wait(&file->range_free, &file->range_lock);
        held = is_held(file, range->first, range->last);
    }
    if (!held) {
        range->next = file->ranges;
        file->ranges = range;
    }
    pthread_mutex_unlock(&file->range_lock);
    return !held;
}

int opal_cryptfile_range_lock(opal_cryptfile_t *file, opal_cryptfile_range_t *range,
                              uint64_t at, uint64_t count, bool exclusive)
{
    (void) enter_range(file, range, at, count, true);
    int rc = file->storage->lock(file->storage, at, count, exclusive);
    if (OPAL_CRYPT_OK != rc) {
        leave(file, range);
    }
    return rc;
}

int opal_cryptfile_range_try(opal_cryptfile_t *file, opal_cryptfile_range_t *range,
                             uint64_t at, uint64_t count, bool *got)
{
    *got = enter_range(file, range, at, count, false);
    if (!*got) {
        return OPAL_CRYPT_OK;
    }
    int rc = file->storage->try_lock(file->storage, at, count, true, got);
    if (OPAL_CRYPT_OK != rc || !*got) {
        *got = false;
        leave(file, range);
    }
    return rc;
}

int opal_cryptfile_range_unlock(opal_cryptfile_t *file, opal_cryptfile_range_t *range, int rc)
{
    int error = errno, unlocked = file->storage->unlock(file->storage, range->first, range->last - range->first + 1);

    error = OPAL_CRYPT_OK == rc ? errno : error;
    leave(file, range);
    errno = error;
    return OPAL_CRYPT_OK == rc ? unlocked : rc;
}

/* ---- a whole call ---- */

/* The first and the last lock of a piece, and where it ends in the file. */
static void locks_of(const opal_cryptfile_t *file, const opal_cryptfile_piece_t *piece, uint64_t *first, uint64_t *last, uint64_t *end)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    uint64_t to = piece->plain + piece->bytes - 1, together;

    if (file->map->regions[piece->region].encrypted) {
        uint32_t block_bytes = file->map->regions[piece->region].block_bytes;
        *first = opal_cryptfile_lock_at(file, piece->region, piece->plain / block_bytes);
        *last = opal_cryptfile_lock_at(file, piece->region, to / block_bytes);
        *end = opal_cryptfile_locate(file, piece->region, to, end, &together) ? *end + 1 : 0;
    } else {                            /* treated as all of the group */
        uint64_t group = (piece->plain - geometry->header_bytes) / geometry->group_bytes;
        *first = opal_cryptfile_geometry_entry_lock(opal_cryptfile_geometry_entry_at(geometry, group, 0));
        *last = *first + geometry->entries - 1;
        *end = opal_cryptfile_geometry_size(geometry, to + 1);
    }
}

/* Other regions' locks are between those of a region's blocks: one range covers all. */
int opal_cryptfile_hold(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_plan_t *plan, bool exclusive,
                        opal_cryptfile_held_t *held)
{
    uint64_t first = UINT64_MAX, last = 0, end = 0;

    held->is_held = false;
    for (size_t i = 0; i < plan->piece_count; ++i) {
        uint64_t from, to, until;
        locks_of(file, &plan->pieces[i], &from, &to, &until);
        first = from < first ? from : first;
        last = to > last ? to : last;
        end = until > end ? until : end;
    }
    if (0 == plan->piece_count) {
        return OPAL_CRYPT_OK;
    }
    int rc = exclusive ? opal_cryptfile_lengthen_lock(file, work, &held->range, first, last - first + 1, end)
                       : opal_cryptfile_range_lock(file, &held->range, first, last - first + 1, false);
    held->is_held = OPAL_CRYPT_OK == rc;
    return rc;
}

int opal_cryptfile_hold_end(opal_cryptfile_t *file, opal_cryptfile_held_t *held, int rc)
{
    rc = held->is_held ? opal_cryptfile_range_unlock(file, &held->range, rc) : rc;
    held->is_held = false;
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What precedes lengthening a file.  A cut leaves the entries beyond the new end, void: if they were
 * cleared first, and power failed before the cut, blocks would be lost.  So a process that lengthens the file clears
 * the entries of blocks that begin between the old end and the new one.
 *
 *     finish blocks that the old end is in | clear void entries | then write, or ftruncate
 *
 * A cleared entry has a mark that leads nowhere, and counts as void until its block is written: if the process that
 * cleared it was killed, it may not be on the storage yet.
 *
 * Only the group that the file ends in has such entries.  Those of later groups are cut off, but that cut may not be
 * on the storage yet, either: hence a barrier before a group gets its first data.  What is between the ends is certain
 * once a lock beyond the old end is held, since nobody can cut the file then; if void entries have other locks, all
 * locks are released, and taken again together with those.
 */
#include "file_object.h"

#include <string.h>

enum { AT_A_TIME = 64, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };

typedef struct lengthening {
    opal_cryptfile_t *file;
    opal_cryptfile_work_t *work;
    uint64_t now, end;                  /* bytes of the file */
    uint64_t first, last;               /* the locks of the entries to change; last is 0: no entry */
    bool fresh;                         /* a group gets its first data */
    const opal_cryptfile_range_t *held; /* do it; NULL: look only */
} lengthening_t;

/* Note an entry that must be changed.  True: its lock is held, so it can be changed now. */
static bool note(lengthening_t *l, uint64_t at)
{
    uint64_t lock_at = opal_cryptfile_geometry_entry_lock(at);

    l->first = lock_at < l->first ? lock_at : l->first;
    l->last = lock_at > l->last ? lock_at : l->last;
    return NULL != l->held && l->held->first <= lock_at && lock_at <= l->held->last;
}

static int clear_some(lengthening_t *l, uint64_t at, uint64_t count)
{
    uint8_t bytes[AT_A_TIME * ENTRY];
    const opal_cryptfile_extent_t extent = {at, bytes, count * ENTRY};
    opal_cryptfile_storage_t *storage = l->file->storage;
    int rc = storage->read(storage, &extent, 1);

    l->work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        uint8_t *entry = bytes + i * ENTRY;
        if (!opal_crypt_all_zero(entry, OPAL_CRYPTFILE_SLOTS_BYTES) && note(l, at + i * ENTRY)) {
            opal_cryptfile_entry_void(entry);
            rc = opal_cryptfile_extent_add(l->work, at + i * ENTRY, entry, ENTRY);
        }
    }
    return OPAL_CRYPT_OK == rc && l->work->extent_count > 0
               ? storage->write(storage, l->work->extents, l->work->extent_count) : rc;
}

/* A process that was killed here may have been lengthening the block: bytes beyond the end would come back later.  Without the
 * key, a write leaves it: docs/design/012-one-file.rst says why nothing is lost. */
static int finish_end(lengthening_t *l, uint32_t region, uint64_t block)
{
    opal_cryptfile_found_t found;
    uint64_t at;
    int rc = NULL == l->file->regions[region]->blocks ? OPAL_CRYPT_OK
             : opal_cryptfile_work_reserve(l->file, l->work, 1, l->file->map->regions[region].block_bytes);

    if (OPAL_CRYPT_OK != rc || NULL == l->file->regions[region]->blocks) {
        return rc;
    }
    rc = opal_cryptfile_entries_read(l->file, l->work, region, block, 1, &at);
    if (OPAL_CRYPT_OK == rc && l->work->slots[0].behind && note(l, at)) {
        rc = opal_cryptfile_finish(l->file, l->work, region, block, l->work->plain, &found, &l->work->slots[0]);
        rc = OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
    }
    return rc;
}

/* A region's blocks in the group, whose entries are from `index` on. */
static int walk_region(lengthening_t *l, uint32_t region, uint64_t group, uint64_t index, uint64_t blocks)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(l->file);
    uint32_t block_bytes = l->file->map->regions[region].block_bytes;
    uint64_t first = group * (opal_cryptfile_geometry_data(geometry) / block_bytes), stand = opal_cryptfile_stand(l->file, region, l->now);
    uint64_t k = stand / block_bytes - first, to = (opal_cryptfile_stand(l->file, region, l->end) + block_bytes - 1) / block_bytes - first;
    int rc = OPAL_CRYPT_OK;

    to = to < blocks ? to : blocks;
    if (0 != stand % block_bytes && k < blocks) {
        rc = finish_end(l, region, first + k++);
    }
    for (uint64_t count; k < to && OPAL_CRYPT_OK == rc; k += count) {
        count = to - k < AT_A_TIME ? to - k : AT_A_TIME;
        rc = clear_some(l, opal_cryptfile_geometry_entry_at(geometry, group, index + k), count);
    }
    return rc;
}

static int walk(lengthening_t *l, const opal_cryptfile_range_t *held)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(l->file);
    uint64_t group = l->now / opal_cryptfile_geometry_data(geometry), index = 0;
    int rc = OPAL_CRYPT_OK;

    l->held = held;
    l->first = UINT64_MAX;
    l->last = 0;
    for (uint32_t i = 0; i < l->file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        const opal_cryptfile_region_t *of = &l->file->map->regions[i];
        if (of->encrypted) {
            uint64_t blocks = opal_cryptfile_geometry_blocks(geometry, &of->tiling, of->block_bytes, group);
            rc = walk_region(l, i, group, index, blocks);
            index += blocks;
        }
    }
    return rc;
}

/* Find out what must be done when the file has `bytes` bytes. */
static int find_work_at(lengthening_t *l, uint64_t bytes)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(l->file);
    uint64_t data = opal_cryptfile_geometry_data(geometry);

    l->last = 0;
    l->fresh = false;
    l->now = opal_cryptfile_size_to(l->file, bytes);
    if (l->end <= l->now) {
        return OPAL_CRYPT_OK;
    }
    l->fresh = 0 == l->now || (l->now - 1) / data < (l->end - 1) / data;
    return bytes > opal_cryptfile_geometry_entry_at(geometry, l->now / data, 0) ? walk(l, NULL) : OPAL_CRYPT_OK;
}

/* An entry is void if the file was no longer after it was read: a process that writes a block lengthens the file first. */
static int find_work(lengthening_t *l)
{
    uint64_t before, bytes = 0;
    int rc = l->file->storage->size(l->file->storage, &bytes);

    do {
        before = bytes;
        rc = OPAL_CRYPT_OK == rc ? find_work_at(l, bytes) : rc;
        rc = OPAL_CRYPT_OK == rc && 0 != l->last ? l->file->storage->size(l->file->storage, &bytes) : rc;
    } while (OPAL_CRYPT_OK == rc && bytes > before);
    return rc;
}

static int do_it(lengthening_t *l, const opal_cryptfile_range_t *held)
{
    int rc = 0 != l->last || l->fresh ? opal_cryptfile_barrier(l->file) : OPAL_CRYPT_OK;  /* after the cut */

    if (OPAL_CRYPT_OK != rc || 0 == l->last) {
        return rc;
    }
    rc = walk(l, held);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(l->file) : rc;
}

int opal_cryptfile_lengthen(opal_cryptfile_t *file, opal_cryptfile_work_t *work, const opal_cryptfile_range_t *held, uint64_t end)
{
    lengthening_t l = {.file = file, .work = work, .end = end};
    int rc = find_work(&l);

    return OPAL_CRYPT_OK == rc ? do_it(&l, held) : rc;
}

int opal_cryptfile_lengthen_lock(opal_cryptfile_t *file, opal_cryptfile_work_t *work, opal_cryptfile_range_t *range, uint64_t at,
                                 uint64_t count, uint64_t end)
{
    lengthening_t l = {.file = file, .work = work, .end = end};

    for (;;) {
        int rc = opal_cryptfile_range_lock(file, range, at, count, true);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        rc = find_work(&l);
        bool all = 0 == l.last || (range->first <= l.first && l.last <= range->last);
        rc = OPAL_CRYPT_OK == rc && all ? do_it(&l, range) : rc;
        if (OPAL_CRYPT_OK == rc && all) {
            return rc;
        }
        rc = opal_cryptfile_range_unlock(file, range, rc);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        uint64_t last = l.last > range->last ? l.last : range->last;
        at = l.first < at ? l.first : at;
        count = last - at + 1;
    }
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Cutting and lengthening.  Lengthening makes holes.  Cutting goes from the
 * inside out, so that a process that is killed leaves nothing that looks
 * forged: the block that is cut is sealed anew at its new length, in a sidecar the entries
 * behind it become zeros, and the data goes last; with a barrier before that, where
 * the storage has one.  In one file those entries stay, and count for nothing: see lengthen.c.
 *
 * Whatever the new size is, the block that the file ended in may be behind: a process that
 * was killed there was lengthening it, and finishing that later would bring back bytes beyond
 * the end.  So it is finished first, and then cut.  Entries of a sidecar beyond the end are cleared even if nothing is
 * cut: another program that cut the data, or a loss of power, may have left them.
 */
#include "file_object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Seal the block again, whose text is in work->plain, without the bytes beyond `keep`. */
static int seal_shorter(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                        uint32_t keep, uint64_t entry_at)
{
    const opal_cryptfile_blockrun_t run = {.region = region, .first = block, .count = 1};
    uint64_t round;
    int rc = opal_cryptfile_block_seal(file->regions[region]->blocks, block, work->plain, keep, work->cipher,
                                       &work->fresh[0]);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    (void) opal_cryptfile_entry_next(work->slots[0].slot, &work->fresh[0].generation);
    rc = opal_cryptfile_commit_begin(file, work, &run);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_commit_round(file, work, &run, 0, 0, entry_at, &round) : rc;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_commit_part(file, work, &run, 0, 1) : rc;
    return opal_cryptfile_commit_end(file, work, &run, 0, OPAL_CRYPT_OK == rc ? 1 : 0, entry_at, rc);
}

/* The block that the file is going to end in, or, if it gets longer, ended in (then `cuts` is false),
 * keeps its first `keep` bytes. */
static int cut_block(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                     uint32_t keep, bool cuts)
{
    opal_cryptfile_found_t found;
    uint64_t entry_at;

    int rc = opal_cryptfile_entries_read(file, work, region, block, 1, false, &entry_at);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    int newer = opal_cryptfile_entry_newer(work->slots[0].slot);
    if (!work->slots[0].behind && (!cuts || newer < 0 || work->slots[0].slot[newer].plain_bytes <= keep)) {
        /* Storage says that there is nothing to cut: sealing checks whether that was true. */
        const opal_cryptfile_slot_t none = {.used = false};
        return !cuts ? OPAL_CRYPT_OK
                     : opal_cryptfile_seal_based(file, region, block, newer < 0 ? &none : &work->slots[0].slot[newer]);
    }
    if (file->regions[region]->grant < OPAL_CRYPTFILE_GRANT_SEAL) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    rc = opal_cryptfile_finish(file, work, region, block, work->plain, &found, &work->slots[0]);
    if (!cuts && (OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc)) {
        return OPAL_CRYPT_OK;           /* no version opens, and none can come back */
    }
    if (OPAL_CRYPT_ERR_TORN == rc) {    /* nothing to keep: clear the half entry; the block stays torn */
        return file->storage->zero(file->storage, OPAL_CRYPTFILE_SIDECAR, entry_at, opal_cryptfile_entry_bytes(file));
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_seal_based(file, region, block, &found.slot);
    }
    return OPAL_CRYPT_OK == rc && found.slot.plain_bytes > keep ? seal_shorter(file, work, region, block, keep, entry_at) : rc;
}

/* Clear the entries of blocks from this one on, as if never written. */
static int clear_entries(opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    int rc = OPAL_CRYPT_OK;

    for (uint64_t blocks; block < OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX && OPAL_CRYPT_OK == rc; block += blocks) {
        uint64_t at;
        blocks = opal_cryptfile_together(file, region, block);
        rc = opal_cryptfile_entry_at(file, region, block, false, &at);
        if (OPAL_CRYPT_OK == rc && 0 != at) {
            rc = file->storage->zero(file->storage, OPAL_CRYPTFILE_SIDECAR, at, blocks * opal_cryptfile_entry_bytes(file));
        }
    }
    return rc;
}

/* Does a cut of the file from `now` to `bytes` go through a block of the region? */
static bool goes_through(const opal_cryptfile_t *file, uint32_t region, uint64_t now, uint64_t bytes)
{
    uint64_t plain = opal_cryptfile_stand(file, region, bytes), keep = plain % file->map->regions[region].block_bytes;

    return 0 != keep && keep < opal_cryptfile_capacity(file, region, plain / file->map->regions[region].block_bytes) &&
           plain < opal_cryptfile_stand(file, region, now);
}

/* Lock everything beyond `bytes`; the caller releases it once the data is cut,
 * too, so that nobody sees data without its entry. */
static int lock_region(opal_cryptfile_t *file, uint32_t region, uint64_t bytes, opal_cryptfile_range_t *range)
{
    uint64_t at, count;

    if (!opal_cryptfile_locks_behind(file, region, bytes, &at, &count)) {
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_range_lock(file, range, at, count, true);

    range->last = OPAL_CRYPT_OK == rc ? range->last : 0;
    return rc;
}

static int cut_region(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t now, uint64_t bytes)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    uint64_t plain = opal_cryptfile_stand(file, region, bytes), first = plain / of->block_bytes;
    uint32_t keep = (uint32_t) (plain % of->block_bytes);
    int rc = OPAL_CRYPT_OK;

    if (first >= opal_cryptfile_blocks_most(file, region)) {   /* no region has that many blocks */
        return rc;
    }
    if (0 != keep) {
        rc = opal_cryptfile_work_room(file, work, 1, of->block_bytes);
        if (OPAL_CRYPT_OK == rc) {
            rc = cut_block(file, work, region, first, keep, goes_through(file, region, now, bytes));
        }
    }
    first += keep > 0 ? 1 : 0;
    return OPAL_CRYPT_OK == rc && NULL == opal_cryptfile_one(file) ? clear_entries(file, region, first) : rc;
}

/* A block that is cut must be opened and sealed. */
static int may_cut(const opal_cryptfile_t *file, uint64_t now, uint64_t bytes, opal_cryptfile_outcome_t *outcome)
{
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        if (file->map->regions[i].encrypted && file->regions[i]->grant < OPAL_CRYPTFILE_GRANT_SEAL && goes_through(file, i, now, bytes)) {
            return opal_cryptfile_outcome_set(file, outcome, OPAL_CRYPT_ERR_ACCESS, i, 0);
        }
    }
    return OPAL_CRYPT_OK;
}

/* Under the locks of all beyond `bytes`, which may be where the file ends. */
static int cut(opal_cryptfile_t *file, const opal_cryptfile_range_t *held, uint64_t now, uint64_t bytes, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_work_t *work = NULL;
    int rc = may_cut(file, now, bytes, outcome);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_work_take(file, &work) : rc;
    if (NULL != work) {
        work->held = held;
    }
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (file->map->regions[i].encrypted) {
            rc = cut_region(file, work, i, now, bytes);
            if (OPAL_CRYPT_OK != rc) {
                (void) opal_cryptfile_outcome_set(file, outcome, rc, i, 0);
            }
        }
    }
    if (NULL != work) {
        opal_cryptfile_work_give(file, work);
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file, OPAL_CRYPTFILE_SIDECAR) : rc;
}

/* Under the locks of rooms that are cut off, so that nobody writes to them. */
static int cut_off(opal_cryptfile_t *file, uint64_t bytes)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);
    opal_cryptfile_range_t range;

    if (NULL == one) {
        return opal_cryptfile_size_set(file, bytes);
    }
    uint64_t at = opal_cryptfile_geometry_head_lock(opal_cryptfile_geometry_head_at(one, bytes / opal_cryptfile_geometry_data(one), 1));
    int rc = opal_cryptfile_range_lock(file, &range, at, INT64_MAX - at, true);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_range_unlock(file, &range, opal_cryptfile_size_set(file, bytes)) : rc;
}

static int lengthen_to(opal_cryptfile_t *file, const opal_cryptfile_range_t *held, uint64_t bytes)
{
    opal_cryptfile_work_t *work;
    int rc = opal_cryptfile_work_take(file, &work);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_lengthen(file, work, held, bytes);
        opal_cryptfile_work_give(file, work);
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_size_set(file, bytes) : rc;
}

/* A file that the job will seal is at least as long as it was, whatever storage says. */
static int end_of_data(opal_cryptfile_t *file, uint64_t *now)
{
    int rc = opal_cryptfile_size(file, now);

    *now = file->watched && file->before_bytes > *now ? file->before_bytes : *now;
    return rc;
}

/* Under the locks of all beyond `from`.  Asks for the size again, now that nobody can lengthen the file.
 * *again: it was cut since, and now ends before `from`. */
static int resize_locked(opal_cryptfile_t *file, const opal_cryptfile_range_t *held, uint64_t from, uint64_t bytes, bool *again,
                         opal_cryptfile_outcome_t *outcome)
{
    uint64_t now = 0, after = 0;
    int rc = end_of_data(file, &now);

    *again = OPAL_CRYPT_OK == rc && now < from;
    if (OPAL_CRYPT_OK != rc || *again) {
        return rc;
    }
    rc = cut(file, held, now, bytes < now ? bytes : now, outcome);
    if (OPAL_CRYPT_OK != rc || NULL == opal_cryptfile_one(file) || bytes <= now) {
        return OPAL_CRYPT_OK == rc ? cut_off(file, bytes) : rc;
    }
    /* A block that was finished and cut may have made the file longer. */
    rc = opal_cryptfile_size(file, &after);
    rc = OPAL_CRYPT_OK == rc && after > now ? cut_off(file, now) : rc;
    return OPAL_CRYPT_OK == rc ? lengthen_to(file, held, bytes) : rc;
}

static int resize_once(opal_cryptfile_t *file, opal_cryptfile_range_t *ranges, uint64_t bytes, bool *again,
                       opal_cryptfile_outcome_t *outcome)
{
    const opal_cryptfile_range_t *held = NULL;  /* in one file: the only range */
    uint64_t now = 0, from;
    int rc = end_of_data(file, &now);

    *again = false;
    from = bytes < now ? bytes : now;
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        ranges[i].last = 0;
        if (OPAL_CRYPT_OK == rc && file->map->regions[i].encrypted) {
            rc = lock_region(file, i, from, &ranges[i]);
            held = 0 != ranges[i].last ? &ranges[i] : held;
        }
    }
    rc = OPAL_CRYPT_OK == rc ? resize_locked(file, held, from, bytes, again, outcome) : rc;
    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        if (0 != ranges[i].last) {
            rc = opal_cryptfile_range_unlock(file, &ranges[i], rc);
        }
    }
    return rc;
}

int opal_cryptfile_resize(opal_cryptfile_t *file, uint64_t bytes,
                          opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_range_t *ranges = NULL == file->map ? NULL : calloc(file->map->region_count, sizeof(*ranges));
    int rc = NULL == file->map ? OPAL_CRYPT_ERR_ACCESS : NULL == ranges ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
    bool again = OPAL_CRYPT_OK == rc;

    opal_cryptfile_outcome_init(outcome);
    while (OPAL_CRYPT_OK == rc && again) {
        rc = resize_once(file, ranges, bytes, &again, outcome);
    }
    if (OPAL_CRYPT_ERR_STORAGE == rc && 0 == outcome->error) {
        outcome->error = errno;
    }
    free(ranges);
    outcome->bytes = bytes;
    return outcome->rc = rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Cutting and lengthening.  Lengthening makes holes.  Cutting goes from the
 * inside out, so that a process that is killed leaves nothing that looks
 * forged: the block that is cut is sealed anew at its new length, and the data
 * goes last; with a barrier before that, where the storage has one.  Entries behind
 * the new end stay, and count for nothing: see lengthen.c.
 *
 * Whatever the new size is, the block that the file ended in may be behind: a process that
 * was killed there was lengthening it, and finishing that later would bring back bytes beyond
 * the end.  So it is finished first, and then cut.
 */
#include "file_object.h"

#include <errno.h>

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
    return opal_cryptfile_commit_end(file, work, 0, OPAL_CRYPT_OK == rc ? 1 : 0, entry_at, rc);
}

/* The block that the file is going to end in, or, if it gets longer, ended in (then `cuts` is false),
 * keeps its first `keep` bytes. */
static int cut_block(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block,
                     uint32_t keep, bool cuts)
{
    opal_cryptfile_found_t found;
    uint64_t entry_at;

    int rc = opal_cryptfile_entries_read(file, work, region, block, 1, &entry_at);
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
    if (OPAL_CRYPT_ERR_TORN == rc) {    /* it has no entry, and stays torn */
        return OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_seal_based(file, region, block, &found.slot);
    }
    return OPAL_CRYPT_OK == rc && found.slot.plain_bytes > keep ? seal_shorter(file, work, region, block, keep, entry_at) : rc;
}

/* Does a cut of the file from `now` to `bytes` go through a block of the region? */
static bool goes_through(const opal_cryptfile_t *file, uint32_t region, uint64_t now, uint64_t bytes)
{
    uint64_t plain = opal_cryptfile_stand(file, region, bytes), keep = plain % file->map->regions[region].block_bytes;

    return 0 != keep && keep < opal_cryptfile_capacity(file, region, plain / file->map->regions[region].block_bytes) &&
           plain < opal_cryptfile_stand(file, region, now);
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
        rc = opal_cryptfile_work_reserve(file, work, 1, of->block_bytes);
        if (OPAL_CRYPT_OK == rc) {
            rc = cut_block(file, work, region, first, keep, goes_through(file, region, now, bytes));
        }
    }
    return rc;
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
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file) : rc;
}

/* Under the locks of rooms that are cut off, so that nobody writes to them. */
static int cut_off(opal_cryptfile_t *file, uint64_t bytes)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(file);
    opal_cryptfile_range_t range;
    uint64_t at = opal_cryptfile_geometry_head_lock(opal_cryptfile_geometry_head_at(geometry, bytes / opal_cryptfile_geometry_data(geometry), 1));
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
    if (OPAL_CRYPT_OK != rc || bytes <= now) {
        return OPAL_CRYPT_OK == rc ? cut_off(file, bytes) : rc;
    }
    /* A block that was finished and cut may have made the file longer. */
    rc = opal_cryptfile_size(file, &after);
    rc = OPAL_CRYPT_OK == rc && after > now ? cut_off(file, now) : rc;
    return OPAL_CRYPT_OK == rc ? lengthen_to(file, held, bytes) : rc;
}

static int resize_once(opal_cryptfile_t *file, uint64_t bytes, bool *again, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_range_t range;
    uint64_t now = 0, at, count;
    int rc = end_of_data(file, &now);

    *again = false;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    uint64_t from = bytes < now ? bytes : now;
    opal_cryptfile_locks_behind(file, from, &at, &count);
    rc = opal_cryptfile_range_lock(file, &range, at, count, true);
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_range_unlock(file, &range, resize_locked(file, &range, from, bytes, again, outcome)) : rc;
}

int opal_cryptfile_resize(opal_cryptfile_t *file, uint64_t bytes,
                          opal_cryptfile_outcome_t *outcome)
{
    int rc = NULL == file->map ? OPAL_CRYPT_ERR_ACCESS : OPAL_CRYPT_OK;
    bool again = OPAL_CRYPT_OK == rc;

    opal_cryptfile_outcome_init(outcome);
    while (OPAL_CRYPT_OK == rc && again) {
        rc = resize_once(file, bytes, &again, outcome);
    }
    if (OPAL_CRYPT_ERR_STORAGE == rc && 0 == outcome->error) {
        outcome->error = errno;
    }
    outcome->bytes = bytes;
    return outcome->rc = rc;
}

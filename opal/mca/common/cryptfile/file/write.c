/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Writing.  A block that is written in full is sealed straight from the
 * caller's memory; for any other the old text is opened first.  The caller's
 * memory is never changed: it may be constant.
 */
#include "file_object.h"

#include <errno.h>
#include <string.h>

typedef struct writer {
    opal_cryptfile_t *file;
    const opal_cryptfile_plan_t *plan;
    opal_cryptfile_work_t *work;
    bool held;                          /* the call holds the locks */
    opal_cryptfile_outcome_t *outcome;
} writer_t;

/* What the pieces say about one block. */
typedef struct shape {
    size_t piece;                       /* the first that reaches into it */
    uint64_t used;
    uint32_t end;                       /* of the last byte written */
    bool prefix;                        /* every byte before `end` is written */
    const uint8_t *direct;              /* all of it is here; or NULL */
} shape_t;

/* The part of a piece that lies in [from, to), as offsets from `from`. */
static bool overlap(const opal_cryptfile_piece_t *piece, uint64_t from, uint64_t to, uint32_t *start, uint32_t *end)
{
    uint64_t a = piece->plain > from ? piece->plain : from, b = piece->plain + piece->bytes;

    b = b < to ? b : to;
    if (a >= b) {
        return false;
    }
    *start = (uint32_t) (a - from);
    *end = (uint32_t) (b - from);
    return true;
}

/* Look at block `from / B`, from piece *next on; *next moves to where the
 * following block starts. */
static shape_t shape_of(const writer_t *w, uint32_t region, uint64_t from, uint64_t to, size_t *next)
{
    shape_t shape = {.piece = *next, .prefix = true};
    uint32_t start, end;
    unsigned parts = 0;

    for (size_t i = *next; i < w->plan->piece_count && w->plan->pieces[i].region == region &&
                           w->plan->pieces[i].plain < to; ++i) {
        const opal_cryptfile_piece_t *piece = &w->plan->pieces[i];
        if (overlap(piece, from, to, &start, &end)) {
            shape.prefix = shape.prefix && start <= shape.end;
            shape.end = end > shape.end ? end : shape.end;
            shape.direct = 0 == start && 0 == parts++ ? piece->memory + (from - piece->plain) : NULL;
        }
        if (piece->plain + piece->bytes <= to) {
            *next = i + 1;
        }
    }
    return shape;
}

static void copy_in(const writer_t *w, uint32_t region, const shape_t *shape, uint64_t from, uint64_t to, uint8_t *plain)
{
    uint32_t start, end;

    for (size_t i = shape->piece; i < w->plan->piece_count && w->plan->pieces[i].region == region &&
                                  w->plan->pieces[i].plain < to; ++i) {
        const opal_cryptfile_piece_t *piece = &w->plan->pieces[i];
        if (overlap(piece, from, to, &start, &end)) {
            memcpy(plain + start, piece->memory + (from + start - piece->plain), end - start);
        }
    }
}

/* Overwrites that were cut short are finished before this run puts its own marks in the place of
 * theirs.  One that cannot be finished stays behind: make_text decides what becomes of it. */
static int finish_others(const writer_t *w, const opal_cryptfile_blockrun_t *run)
{
    int rc = OPAL_CRYPT_OK;

    for (uint64_t i = 0; i < run->count && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_found_t found;
        if (!w->work->slots[i].behind) {
            continue;
        }
        rc = opal_cryptfile_finish(w->file, w->work, run->region, run->first + i, w->work->plain, &found, &w->work->slots[i]);
        rc = OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
        if (OPAL_CRYPT_OK != rc) {
            return opal_cryptfile_outcome_set(w->file, w->outcome, rc, run->region, run->first + i);
        }
    }
    return rc;
}

/* Are all bytes of the block written, up to the end of the file?  For a watched file, storage
 * alone is not trusted with where that is. */
static bool nothing_stays(const writer_t *w, uint32_t region, uint64_t block, const shape_t *shape)
{
    const opal_cryptfile_region_t *of = &w->file->map->regions[region];
    uint64_t data_bytes;

    if (!shape->prefix || opal_cryptfile_capacity(w->file, region, block) == shape->end) {
        return shape->prefix;
    }
    if (OPAL_CRYPT_OK != opal_cryptfile_size(w->file, &data_bytes)) {
        return false;
    }
    data_bytes = data_bytes > w->file->before_bytes ? data_bytes : w->file->before_bytes;
    return opal_cryptfile_stand(w->file, region, data_bytes) <= block * of->block_bytes + shape->end;
}

/* The first write of this block was never reported as done, so nothing of it is kept; no
 * key has confirmed its bytes.  Reported once for each open file. */
static void report_torn(const writer_t *w, uint32_t region, uint64_t block)
{
    if (!__atomic_exchange_n(&w->file->torn_told, true, __ATOMIC_RELAXED)) {
        w->outcome->torn = true;
        w->outcome->torn_region = region;
        w->outcome->torn_block = block;
    }
}

/* The text that block i of the run gets, in the caller's memory or in `text`:
 * *plain, *plain_bytes. */
static int make_text(const writer_t *w, const opal_cryptfile_blockrun_t *run, uint64_t i, const shape_t *shape,
                     uint8_t *text, const uint8_t **plain, uint32_t *plain_bytes)
{
    uint32_t block_bytes = w->file->map->regions[run->region].block_bytes;
    uint64_t block = run->first + i;
    opal_cryptfile_slots_t *slots = &w->work->slots[i];
    int newer = opal_cryptfile_entry_newer(slots->slot);
    uint32_t old_bytes = newer < 0 ? 0 : slots->slot[newer].plain_bytes;
    bool whole = shape->prefix && shape->end >= old_bytes;

    /* The length of the old text comes from an entry that nobody has checked: unless
     * nothing of it can remain, it is opened. */
    if (!whole || slots->behind || slots->bad[0] || slots->bad[1] || !nothing_stays(w, run->region, block, shape)) {
        opal_cryptfile_found_t found;
        int rc = opal_cryptfile_finish(w->file, w->work, run->region, block, text, &found, slots);
        if (OPAL_CRYPT_OK == rc) {
            old_bytes = found.slot.plain_bytes;
            whole = shape->prefix && shape->end >= old_bytes;
            if (w->file->watched && !(whole && nothing_stays(w, run->region, block, shape))) {
                rc = opal_cryptfile_seal_based(w->file, run->region, block, &found.slot);
            }
        } else if ((OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc) && nothing_stays(w, run->region, block, shape)) {
            rc = OPAL_CRYPT_OK;
            whole = true;
        } else if (OPAL_CRYPT_ERR_TORN == rc) {
            const opal_cryptfile_slot_t none = {.used = false};
            memset(text, 0, block_bytes);
            rc = opal_cryptfile_seal_based(w->file, run->region, block, &none);
            old_bytes = 0;
            whole = shape->prefix;
            report_torn(w, run->region, block);
        }
        if (OPAL_CRYPT_OK != rc) {
            return opal_cryptfile_outcome_set(w->file, w->outcome, rc, run->region, block);
        }
    }
    *plain_bytes = shape->end > old_bytes || whole ? shape->end : old_bytes;
    *plain = shape->direct;
    if (!whole || NULL == shape->direct) {
        uint64_t from = block * block_bytes;
        copy_in(w, run->region, shape, from, from + block_bytes, text);
        *plain = text;
    }
    return OPAL_CRYPT_OK;
}

/* Blocks [from, from + count) of the run; *piece: where to look for the first. */
static int seal_part(const writer_t *w, const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count, size_t *piece)
{
    uint32_t block_bytes = w->file->map->regions[run->region].block_bytes;

    for (uint64_t i = 0; i < count; ++i) {
        uint64_t block = run->first + from + i, at = block * block_bytes;
        shape_t shape = shape_of(w, run->region, at, at + block_bytes, piece);
        opal_cryptfile_slot_t *fresh = &w->work->fresh[from + i];
        const uint8_t *plain = NULL;
        uint32_t plain_bytes = 0;
        int rc = make_text(w, run, from + i, &shape, w->work->plain + i * block_bytes, &plain, &plain_bytes);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        rc = opal_cryptfile_block_seal(w->file->regions[run->region]->blocks, block, plain, plain_bytes,
                                       w->work->cipher + i * block_bytes, fresh);
        if (OPAL_CRYPT_OK != rc) {
            return opal_cryptfile_outcome_set(w->file, w->outcome, rc, run->region, block);
        }
        (void) opal_cryptfile_entry_next(w->work->slots[from + i].slot, &fresh->generation);
    }
    return OPAL_CRYPT_OK;
}

/* Where a part fails, the ones before it stay written. */
static int write_locked(writer_t *w, const opal_cryptfile_blockrun_t *run)
{
    uint32_t block_bytes = w->file->map->regions[run->region].block_bytes;
    uint64_t at, entered = 0, done = 0, round;
    size_t piece = run->piece;
    int rc = opal_cryptfile_entries_read(w->file, w->work, run->region, run->first, run->count, &at);

    if (OPAL_CRYPT_OK == rc) {
        rc = finish_others(w, run);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_commit_begin(w->file, w->work, run) : rc;
    while (OPAL_CRYPT_OK == rc && done < run->count) {
        rc = opal_cryptfile_commit_round(w->file, w->work, run, entered, done, at, &round);
        entered = done;
        for (uint64_t end = done + round; OPAL_CRYPT_OK == rc && done < end;) {
            uint64_t count = opal_cryptfile_run_part(w->file, block_bytes, end - done);
            rc = seal_part(w, run, done, count, &piece);
            if (OPAL_CRYPT_OK == rc) {
                rc = opal_cryptfile_commit_part(w->file, w->work, run, done, count);
            }
            done += OPAL_CRYPT_OK == rc ? count : 0;
        }
    }
    return opal_cryptfile_commit_end(w->file, w->work, entered, done, at, rc);
}

/* Where the last block of a run ends: the write may reach that far. */
static uint64_t end_of_run(const opal_cryptfile_t *file, const opal_cryptfile_blockrun_t *run)
{
    uint64_t last = run->first + run->count - 1, offset, together;
    uint64_t plain = last * file->map->regions[run->region].block_bytes + opal_cryptfile_capacity(file, run->region, last) - 1;

    return opal_cryptfile_locate(file, run->region, plain, &offset, &together) ? offset + 1 : 0;
}

static int write_run(writer_t *w, const opal_cryptfile_blockrun_t *run)
{
    opal_cryptfile_range_t range;
    int rc = opal_cryptfile_work_reserve(w->file, w->work, run->count, w->file->map->regions[run->region].block_bytes);

    if (OPAL_CRYPT_OK != rc) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (w->held) {
        return write_locked(w, run);
    }
    rc = opal_cryptfile_lengthen_lock(w->file, w->work, &range, opal_cryptfile_lock_at(w->file, run->region, run->first), run->count,
                                      end_of_run(w->file, run));
    w->work->held = &range;
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_range_unlock(w->file, &range, write_locked(w, run)) : rc;
}

/* Nobody may cut the file between reading its size and the write: a process that cuts holds the lock
 * of the last entry of each group. */
static int write_plain(writer_t *w, const opal_cryptfile_blockrun_t *run)
{
    const opal_cryptfile_geometry_t *geometry = opal_cryptfile_geometry_of(w->file);
    const opal_cryptfile_piece_t *piece = &w->plan->pieces[run->piece];
    const opal_cryptfile_extent_t extent = {piece->plain, piece->memory, piece->bytes};
    opal_cryptfile_storage_t *storage = w->file->storage;
    opal_cryptfile_range_t range;

    if (w->held) {
        return storage->write(storage, &extent, 1);
    }
    uint64_t last_at = opal_cryptfile_geometry_entry_at(geometry, (piece->plain - geometry->header_bytes) / geometry->group_bytes, geometry->entries - 1);
    int rc = opal_cryptfile_lengthen_lock(w->file, w->work, &range, opal_cryptfile_geometry_entry_lock(last_at), 1,
                                          opal_cryptfile_geometry_size(geometry, piece->plain + piece->bytes));
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_range_unlock(w->file, &range, storage->write(storage, &extent, 1)) : rc;
}

static int write_pieces(writer_t *w)
{
    opal_cryptfile_blockrun_t run;
    size_t piece = 0;
    uint64_t used = 0;
    int rc = OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && opal_cryptfile_plan_run(w->file, w->plan, &piece, &used, &run)) {
        rc = 0 == run.count ? write_plain(w, &run) : write_run(w, &run);
        if (OPAL_CRYPT_OK != rc) {
            (void) opal_cryptfile_outcome_set(w->file, w->outcome, rc, run.region, run.first);
        }
    }
    return rc;
}

int opal_cryptfile_write(opal_cryptfile_t *file, const opal_cryptfile_request_t *requests,
                         size_t request_count, bool atomic, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_plan_t plan = {.requests = requests, .request_count = request_count,
                                  .end = NULL == file->map ? 0 : opal_cryptfile_geometry_most(opal_cryptfile_geometry_of(file))};
    writer_t w = {.file = file, .plan = &plan, .held = atomic, .outcome = outcome};
    opal_cryptfile_held_t held = {.is_held = false};
    int rc;

    opal_cryptfile_outcome_init(outcome);
    rc = NULL == file->map ? OPAL_CRYPT_ERR_ACCESS : opal_cryptfile_work_take(file, &w.work);
    if (OPAL_CRYPT_OK != rc) {
        return outcome->rc = rc;
    }
    do {
        rc = opal_cryptfile_plan_next(file, &plan, atomic ? SIZE_MAX : OPAL_CRYPTFILE_PLAN_PIECES,
                                      OPAL_CRYPTFILE_GRANT_SEAL, outcome);
        if (OPAL_CRYPT_OK == rc && atomic) {
            rc = opal_cryptfile_hold(file, w.work, &plan, true, &held);
            w.work->held = held.is_held ? &held.range : NULL;
            outcome->error = OPAL_CRYPT_ERR_STORAGE == rc ? errno : outcome->error;
        }
        if (OPAL_CRYPT_OK == rc) {
            rc = write_pieces(&w);
        }
        if (atomic) {
            int done = rc;
            rc = opal_cryptfile_hold_end(file, &held, done);
            outcome->error = rc != done ? errno : outcome->error;
        }
        if (OPAL_CRYPT_OK == rc) {
            outcome->bytes = plan.planned;
        }
    } while (OPAL_CRYPT_OK == rc && plan.piece_count > 0);
    opal_cryptfile_plan_free(&plan);
    opal_cryptfile_work_give(file, w.work);
    return outcome->rc = rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading.  Entries and data are read without a lock, and a block that is
 * wanted in full is opened where the caller wants it.  A writer may be between
 * data and entry just then: so what does not open is looked at again under the
 * block's lock, and only then is it called torn or forged.
 */
#include "file_object.h"

#include <errno.h>
#include <string.h>

typedef struct reader {
    opal_cryptfile_t *file;
    const opal_cryptfile_plan_t *plan;
    opal_cryptfile_work_t *work;
    bool held;
    opal_cryptfile_outcome_t *outcome;
} reader_t;

/* If one piece takes all of the block, its place in the caller's memory. */
static uint8_t *direct_of(const reader_t *r, uint32_t region, uint64_t from, uint64_t to, size_t *next)
{
    const opal_cryptfile_piece_t *pieces = r->plan->pieces;

    while (*next < r->plan->piece_count && pieces[*next].region == region && pieces[*next].plain + pieces[*next].bytes <= from) {
        ++*next;
    }
    const opal_cryptfile_piece_t *piece = &pieces[*next];
    bool all = *next < r->plan->piece_count && piece->region == region && piece->plain <= from &&
               piece->plain + piece->bytes >= to;
    return all ? piece->memory + (from - piece->plain) : NULL;
}

/* Copy what is wanted of a block that was opened elsewhere. */
static void copy_out(const reader_t *r, uint32_t region, size_t piece, uint64_t from, uint64_t to, const uint8_t *text)
{
    for (size_t i = piece; i < r->plan->piece_count && r->plan->pieces[i].region == region &&
                           r->plan->pieces[i].plain < to; ++i) {
        const opal_cryptfile_piece_t *p = &r->plan->pieces[i];
        uint64_t a = p->plain > from ? p->plain : from, b = p->plain + p->bytes < to ? p->plain + p->bytes : to;
        if (a < b) {
            memcpy(p->memory + (a - p->plain), text + (a - from), b - a);
        }
    }
}

/* Read ciphertext of blocks [from, from + count) of the run to where each will be opened. */
static int fetch_part(const reader_t *r, const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count, size_t piece)
{
    const opal_cryptfile_region_t *of = &r->file->map->regions[run->region];
    int rc = OPAL_CRYPT_OK;

    r->work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        uint64_t at = (run->first + from + i) * of->block_bytes;
        uint8_t *target = direct_of(r, run->region, at, at + of->block_bytes, &piece);
        const opal_cryptfile_slots_t *slots = &r->work->slots[from + i];
        int newer = opal_cryptfile_entry_newer(slots->slot);
        target = NULL == target ? r->work->plain + i * of->block_bytes : target;
        rc = opal_cryptfile_extent_packed(r->file, r->work, run->region, at, target,
                                          newer < 0 ? of->block_bytes : slots->slot[newer].plain_bytes);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = r->file->storage->read(r->file->storage, r->work->extents, r->work->extent_count);
    }
    return rc;
}

static int read_recovered(const reader_t *r, uint32_t region, uint64_t block, uint8_t *text)
{
    opal_cryptfile_found_t found;

    return r->held ? opal_cryptfile_recover(r->file, r->work, region, block, text, &found)
                   : opal_cryptfile_recover_alone(r->file, r->work, region, block, text, &found);
}

/* Open block i of the run in `text`, where its ciphertext is. */
static int open_block(const reader_t *r, const opal_cryptfile_blockrun_t *run, uint64_t i, uint8_t *text)
{
    uint32_t block_bytes = r->file->map->regions[run->region].block_bytes;
    const opal_cryptfile_slots_t *slots = &r->work->slots[i];
    int newer = opal_cryptfile_entry_newer(slots->slot), rc = OPAL_CRYPT_ERR_AUTH;

    if (newer >= 0) {
        const opal_cryptfile_slot_t *slot = &slots->slot[newer];
        rc = opal_cryptfile_block_open(r->file->regions[run->region]->blocks, run->first + i, slot, text, text);
        if (OPAL_CRYPT_OK == rc) {
            memset(text + slot->plain_bytes, 0, block_bytes - slot->plain_bytes);
        }
    } else if (!slots->bad[0] && !slots->bad[1] && opal_crypt_all_zero(text, block_bytes)) {
        rc = OPAL_CRYPT_OK;             /* a hole */
    }
    return OPAL_CRYPT_ERR_AUTH == rc ? read_recovered(r, run->region, run->first + i, text) : rc;
}

static int open_part(const reader_t *r, const opal_cryptfile_blockrun_t *run, uint64_t from, uint64_t count, size_t *piece)
{
    uint32_t block_bytes = r->file->map->regions[run->region].block_bytes;

    for (uint64_t i = 0; i < count; ++i) {
        uint64_t at = (run->first + from + i) * block_bytes;
        uint8_t *direct = direct_of(r, run->region, at, at + block_bytes, piece);
        uint8_t *text = NULL == direct ? r->work->plain + i * block_bytes : direct;
        int rc = open_block(r, run, from + i, text);
        if (OPAL_CRYPT_OK != rc) {
            return opal_cryptfile_outcome_set(r->file, r->outcome, rc, run->region, run->first + from + i);
        }
        if (NULL == direct) {
            copy_out(r, run->region, *piece, at, at + block_bytes, text);
        }
    }
    return OPAL_CRYPT_OK;
}

static int read_run(reader_t *r, const opal_cryptfile_blockrun_t *run)
{
    uint32_t block_bytes = r->file->map->regions[run->region].block_bytes;
    uint64_t entry_at;
    size_t piece = run->piece;
    int rc = opal_cryptfile_work_reserve(r->file, r->work, run->count, block_bytes);

    if (OPAL_CRYPT_OK != rc) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    rc = opal_cryptfile_entries_read(r->file, r->work, run->region, run->first, run->count, &entry_at);
    for (uint64_t done = 0, count; OPAL_CRYPT_OK == rc && done < run->count; done += count) {
        count = opal_cryptfile_run_part(r->file, block_bytes, run->count - done);
        rc = fetch_part(r, run, done, count, piece);
        if (OPAL_CRYPT_OK == rc) {
            rc = open_part(r, run, done, count, &piece);
        }
    }
    return rc;
}

static int read_plain(reader_t *r, const opal_cryptfile_blockrun_t *run)
{
    const opal_cryptfile_piece_t *piece = &r->plan->pieces[run->piece];
    const opal_cryptfile_extent_t extent = {piece->plain, piece->memory, piece->bytes};

    return r->file->storage->read(r->file->storage, &extent, 1);
}

static int read_pieces(reader_t *r)
{
    opal_cryptfile_blockrun_t run;
    size_t piece = 0;
    uint64_t used = 0;
    int rc = OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && opal_cryptfile_plan_run(r->file, r->plan, &piece, &used, &run)) {
        rc = 0 == run.count ? read_plain(r, &run) : read_run(r, &run);
        if (OPAL_CRYPT_OK != rc) {
            (void) opal_cryptfile_outcome_set(r->file, r->outcome, rc, run.region, run.first);
        }
    }
    for (size_t i = 0; i < r->plan->copy_count && OPAL_CRYPT_OK == rc; ++i) {
        memcpy(r->plan->copies[i].to, r->plan->copies[i].from, r->plan->copies[i].bytes);
    }
    return rc;
}

/* Lock what is planned.  A process that held it may have moved the end of the file:
 * then there is something else to read, and to lock. */
static int hold_to_the_end(reader_t *r, opal_cryptfile_plan_t *plan, opal_cryptfile_held_t *held)
{
    uint64_t end;
    int rc = opal_cryptfile_hold(r->file, r->work, plan, false, held);

    while (OPAL_CRYPT_OK == rc && plan->piece_count > 0) {
        rc = opal_cryptfile_size(r->file, &end);
        if (OPAL_CRYPT_OK != rc || opal_cryptfile_plan_ends(plan, end)) {
            break;
        }
        if (r->file->sealed) {
            return OPAL_CRYPT_ERR_AUTH;
        }
        (void) opal_cryptfile_hold_end(r->file, held, rc);
        opal_cryptfile_plan_again(plan, end);
        rc = opal_cryptfile_plan_next(r->file, plan, SIZE_MAX, OPAL_CRYPTFILE_GRANT_OPEN, r->outcome);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_hold(r->file, r->work, plan, false, held);
        }
    }
    return rc;
}

static int read_requests(reader_t *r, opal_cryptfile_plan_t *plan, bool atomic)
{
    opal_cryptfile_held_t held = {.is_held = false};
    int rc;

    do {
        rc = opal_cryptfile_plan_next(r->file, plan, atomic ? SIZE_MAX : OPAL_CRYPTFILE_PLAN_PIECES,
                                      OPAL_CRYPTFILE_GRANT_OPEN, r->outcome);
        if (OPAL_CRYPT_OK == rc && atomic) {
            rc = hold_to_the_end(r, plan, &held);
        }
        if (OPAL_CRYPT_OK == rc) {
            rc = read_pieces(r);
        }
        if (atomic) {
            (void) opal_cryptfile_hold_end(r->file, &held, rc);
        }
    } while (OPAL_CRYPT_OK == rc && plan->piece_count > 0);
    return rc;
}

int opal_cryptfile_read(opal_cryptfile_t *file, const opal_cryptfile_request_t *requests,
                        size_t request_count, bool atomic, opal_cryptfile_outcome_t *outcome)
{
    opal_cryptfile_plan_t plan = {.requests = requests, .request_count = request_count};
    reader_t r = {.file = file, .plan = &plan, .held = atomic, .outcome = outcome};
    int rc;

    opal_cryptfile_outcome_init(outcome);
    rc = NULL == file->map ? OPAL_CRYPT_ERR_ACCESS : opal_cryptfile_size(file, &plan.end);
    outcome->error = OPAL_CRYPT_ERR_STORAGE == rc ? errno : 0;
    if (OPAL_CRYPT_OK == rc && file->sealed && plan.end != file->sealed_bytes) {
        rc = OPAL_CRYPT_ERR_AUTH;
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_work_take(file, &r.work);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = read_requests(&r, &plan, atomic);
        opal_cryptfile_plan_free(&plan);
        opal_cryptfile_work_give(file, r.work);
    }
    outcome->bytes = plan.planned;
    if (OPAL_CRYPT_OK != rc) {
        outcome->bytes = 0;
        for (size_t i = 0; i < request_count; ++i) {
            memset(requests[i].memory, 0, requests[i].bytes);
        }
    }
    return outcome->rc = rc;
}

/* Is the file as long as the seal says, if it was demanded? */
static int is_as_sealed(opal_cryptfile_t *file)
{
    uint64_t end = file->sealed_bytes;
    int rc = file->sealed ? opal_cryptfile_size(file, &end) : OPAL_CRYPT_OK;

    return OPAL_CRYPT_OK == rc && file->sealed && end != file->sealed_bytes ? OPAL_CRYPT_ERR_AUTH : rc;
}

int opal_cryptfile_read_block(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint8_t *text,
                              opal_cryptfile_outcome_t *outcome)
{
    const uint32_t block_bytes = file->map->regions[region].block_bytes;
    const opal_cryptfile_region_state_t *state = file->regions[region];
    opal_cryptfile_piece_t piece = {.memory = text, .plain = block * block_bytes, .bytes = block_bytes, .region = region};
    const opal_cryptfile_plan_t plan = {.pieces = &piece, .piece_count = 1};
    const opal_cryptfile_blockrun_t run = {.region = region, .first = block, .count = 1};
    reader_t r = {.file = file, .plan = &plan, .outcome = outcome};

    opal_cryptfile_outcome_init(outcome);
    int rc = NULL == state->blocks || state->grant < OPAL_CRYPTFILE_GRANT_OPEN || state->limit < OPAL_CRYPTFILE_GRANT_OPEN
                 ? OPAL_CRYPT_ERR_ACCESS : is_as_sealed(file);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_work_take(file, &r.work) : rc;
    if (OPAL_CRYPT_OK == rc) {
        rc = read_run(&r, &run);
        int error = errno;
        opal_cryptfile_work_give(file, r.work);
        errno = error;
    }
    if (OPAL_CRYPT_OK != rc) {
        (void) opal_cryptfile_outcome_set(file, outcome, rc, region, block);
        memset(text, 0, block_bytes);
    }
    return rc;
}

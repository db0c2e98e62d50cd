/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From requests to runs of blocks: which region each byte belongs to, and
 * which bytes fall into one block, whatever the order of the requests.  A view
 * may name a block in hundreds of requests; it is still sealed once.
 */
#include "file_object.h"

#include <errno.h>
#include <stdlib.h>

static int add_piece(opal_cryptfile_plan_t *plan, const opal_cryptfile_piece_t *piece)
{
    opal_cryptfile_piece_t *last = 0 == plan->piece_count ? NULL : &plan->pieces[plan->piece_count - 1];

    if (NULL != last && last->region == piece->region && last->plain + last->bytes == piece->plain &&
        last->memory + last->bytes == piece->memory) {
        last->bytes += piece->bytes;
        return OPAL_CRYPT_OK;
    }
    if (plan->piece_count == plan->piece_capacity) {
        size_t larger_capacity = 0 == plan->piece_capacity ? 64 : 2 * plan->piece_capacity;
        opal_cryptfile_piece_t *larger = realloc(plan->pieces, larger_capacity * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        plan->pieces = larger;
        plan->piece_capacity = larger_capacity;
    }
    plan->pieces[plan->piece_count++] = *piece;
    return OPAL_CRYPT_OK;
}

static int refuse_byte(opal_cryptfile_outcome_t *outcome, int rc, uint32_t region, uint64_t offset)
{
    outcome->rc = rc;
    outcome->region = region;
    outcome->file_offset = offset;
    outcome->error = OPAL_CRYPT_ERR_STORAGE == rc ? EFBIG : 0;
    errno = outcome->error;
    return rc;
}

/* The bytes at `offset` that belong together, at most `bytes` of them. */
static int next_piece(const opal_cryptfile_t *file, opal_cryptfile_plan_t *plan, uint64_t offset,
                      uint64_t bytes, opal_cryptfile_grant_t grant, opal_cryptfile_piece_t *piece,
                      opal_cryptfile_outcome_t *outcome)
{
    uint64_t together;

    if (!opal_cryptfile_map_find(file->map, &plan->hint, offset, &piece->region, &piece->plain, &together)) {
        return refuse_byte(outcome, OPAL_CRYPT_ERR_ACCESS, UINT32_MAX, offset);
    }
    const opal_cryptfile_region_t *of = &file->map->regions[piece->region];
    uint64_t left = opal_cryptfile_group_left(file, offset);
    together = together < left ? together : left;
    piece->bytes = together < bytes ? together : bytes;
    if (file->regions[piece->region]->limit < grant) {
        return refuse_byte(outcome, OPAL_CRYPT_ERR_ACCESS, piece->region, offset);
    }
    if (!of->encrypted) {
        piece->plain = opal_cryptfile_geometry_place(opal_cryptfile_geometry_of(file), offset);
        return OPAL_CRYPT_OK;
    }
    if (file->regions[piece->region]->grant < grant) {
        return refuse_byte(outcome, OPAL_CRYPT_ERR_ACCESS, piece->region, offset);
    }
    piece->plain = opal_cryptfile_stand(file, piece->region, offset);
    if ((piece->plain + piece->bytes - 1) / of->block_bytes >= opal_cryptfile_blocks_most(file, piece->region)) {
        return refuse_byte(outcome, OPAL_CRYPT_ERR_STORAGE, piece->region, offset);
    }
    return OPAL_CRYPT_OK;
}

static int by_place(const void *a, const void *b)
{
    const opal_cryptfile_piece_t *left = a, *right = b;

    if (left->region != right->region) {
        return left->region < right->region ? -1 : 1;
    }
    return left->plain < right->plain ? -1 : left->plain > right->plain;
}

static void sort_pieces(opal_cryptfile_plan_t *plan)
{
    size_t i = 1;

    while (i < plan->piece_count && by_place(&plan->pieces[i - 1], &plan->pieces[i]) <= 0) {
        ++i;
    }
    if (i < plan->piece_count) {
        qsort(plan->pieces, plan->piece_count, sizeof(*plan->pieces), by_place);
    }
}

static int add_copy(opal_cryptfile_plan_t *plan, const opal_cryptfile_piece_t *piece,
                    const opal_cryptfile_piece_t *of, uint64_t bytes)
{
    if (plan->copy_count == plan->copy_capacity) {
        size_t larger_capacity = 0 == plan->copy_capacity ? 64 : 2 * plan->copy_capacity;
        opal_cryptfile_copied_t *larger = realloc(plan->copies, larger_capacity * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        plan->copies = larger;
        plan->copy_capacity = larger_capacity;
    }
    plan->copies[plan->copy_count++] = (opal_cryptfile_copied_t){piece->memory, of->memory + (piece->plain - of->plain), bytes};
    return OPAL_CRYPT_OK;
}

static void shorten(opal_cryptfile_piece_t *piece, uint64_t bytes)
{
    piece->memory += bytes;
    piece->plain += bytes;
    piece->bytes -= bytes;
}

/* Keep of each sorted piece the bytes that no earlier one has. */
static int part_pieces(opal_cryptfile_plan_t *plan)
{
    size_t kept = 0;
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; i < plan->piece_count && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_piece_t piece = plan->pieces[i];
        for (size_t k = kept; k > 0 && piece.bytes > 0 && OPAL_CRYPT_OK == rc;) {
            const opal_cryptfile_piece_t *last = &plan->pieces[kept - 1], *earlier = &plan->pieces[k - 1];
            if (last->region != piece.region || last->plain + last->bytes <= piece.plain) {
                break;                  /* beyond all of them */
            }
            if (earlier->plain > piece.plain) {
                --k;
                continue;
            }
            uint64_t bytes = earlier->plain + earlier->bytes - piece.plain;
            bytes = bytes < piece.bytes ? bytes : piece.bytes;
            rc = add_copy(plan, &piece, earlier, bytes);
            shorten(&piece, bytes);
            k = kept;
        }
        if (piece.bytes > 0) {
            plan->pieces[kept++] = piece;
        }
    }
    plan->piece_count = kept;
    return rc;
}

int opal_cryptfile_plan_next(const opal_cryptfile_t *file, opal_cryptfile_plan_t *plan, size_t limit,
                             opal_cryptfile_grant_t grant, opal_cryptfile_outcome_t *outcome)
{
    plan->piece_count = plan->copy_count = 0;
    while (plan->request < plan->request_count && plan->piece_count < limit) {
        const opal_cryptfile_request_t *request = &plan->requests[plan->request];
        uint64_t offset = request->offset + plan->within, left = request->bytes - plan->within;
        if (OPAL_CRYPTFILE_GRANT_SEAL == grant && left > 0 && (offset > plan->end || left > plan->end - offset)) {
            return refuse_byte(outcome, OPAL_CRYPT_ERR_STORAGE, UINT32_MAX, offset);         /* no file is that long */
        }
        if (offset >= plan->end || 0 == left) {
            ++plan->request;
            plan->within = 0;
            continue;
        }
        left = left < plan->end - offset ? left : plan->end - offset;
        opal_cryptfile_piece_t piece = {.memory = (uint8_t *) request->memory + plan->within};
        int rc = next_piece(file, plan, offset, left, grant, &piece, outcome);
        if (OPAL_CRYPT_OK == rc) {
            rc = add_piece(plan, &piece);
        }
        if (OPAL_CRYPT_OK != rc) {
            outcome->rc = rc;
            return rc;
        }
        plan->within += piece.bytes;
        plan->planned += piece.bytes;
    }
    if (plan->piece_count < 2) {
        return OPAL_CRYPT_OK;
    }
    sort_pieces(plan);
    return part_pieces(plan);
}

bool opal_cryptfile_plan_ends(const opal_cryptfile_plan_t *plan, uint64_t end)
{
    uint64_t lower = end < plan->end ? end : plan->end;
    bool same = end == plan->end;

    for (size_t i = 0; !same && i < plan->request_count; ++i) {
        const opal_cryptfile_request_t *request = &plan->requests[i];
        if (0 != request->bytes && (request->offset > lower || request->bytes > lower - request->offset)) {
            return false;
        }
    }
    return true;
}

void opal_cryptfile_plan_again(opal_cryptfile_plan_t *plan, uint64_t end)
{
    plan->request = plan->piece_count = plan->copy_count = 0;
    plan->within = plan->planned = 0;
    plan->end = end;
}

void opal_cryptfile_plan_free(opal_cryptfile_plan_t *plan)
{
    free(plan->pieces);
    free(plan->copies);
    plan->pieces = NULL;
    plan->copies = NULL;
    plan->piece_count = plan->piece_capacity = plan->copy_count = plan->copy_capacity = 0;
}

bool opal_cryptfile_plan_run(const opal_cryptfile_t *file, const opal_cryptfile_plan_t *plan,
                             size_t *piece, uint64_t *used, opal_cryptfile_blockrun_t *run)
{
    if (*piece == plan->piece_count) {
        return false;
    }
    const opal_cryptfile_piece_t *p = &plan->pieces[*piece];
    const opal_cryptfile_region_t *of = &file->map->regions[p->region];
    *run = (opal_cryptfile_blockrun_t){.region = p->region, .piece = *piece, .used = *used};
    if (!of->encrypted) {
        ++*piece;
        return true;
    }
    uint64_t block_bytes = of->block_bytes;
    run->first = (p->plain + *used) / block_bytes;
    uint64_t together = opal_cryptfile_together(file, run->region, run->first);
    uint64_t most = OPAL_CRYPTFILE_RUN_BYTES / block_bytes;
    most = most < 1 ? 1 : most > OPAL_CRYPTFILE_RUN_BLOCKS ? OPAL_CRYPTFILE_RUN_BLOCKS : most;
    uint64_t limit = run->first + (most < together ? most : together), end = run->first;
    while (*piece < plan->piece_count) {
        p = &plan->pieces[*piece];
        uint64_t from = (p->plain + *used) / block_bytes, to = (p->plain + p->bytes - 1) / block_bytes + 1;
        if (p->region != run->region || from > end || from >= limit) {
            break;
        }
        if (to > limit) {
            end = limit;
            *used = limit * block_bytes - p->plain;
            break;
        }
        end = to > end ? to : end;
        ++*piece;
        *used = 0;
    }
    run->count = end - run->first;
    return true;
}

bool opal_cryptfile_spot(const opal_cryptfile_t *file, uint32_t *hint, uint64_t offset, opal_cryptfile_spot_t *spot)
{
    uint64_t plain, left = opal_cryptfile_group_left(file, offset);

    *spot = (opal_cryptfile_spot_t){.region = UINT32_MAX};
    if (!opal_cryptfile_map_find(file->map, hint, offset, &spot->region, &plain, &spot->together)) {
        return false;
    }
    const opal_cryptfile_region_t *of = &file->map->regions[spot->region];
    spot->together = spot->together < left ? spot->together : left;
    spot->encrypted = of->encrypted;
    if (of->encrypted) {
        plain = opal_cryptfile_stand(file, spot->region, offset);
        spot->block = plain / of->block_bytes;
        spot->within = (uint32_t) (plain % of->block_bytes);
        left = of->block_bytes - spot->within;
        spot->together = spot->together < left ? spot->together : left;
    }
    return true;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which version of a block is there, when the short way did not open it, and
 * finishing what a killed process began.  Always under the block's lock.
 *
 *     killed while it wrote     data opens with       found
 *     the redo                  the newer slot        current
 *     the data                  nothing: use redo     redo
 *     the entry                 the redo's slot       ahead
 *
 * An overwrite may use the redo again only when nothing depends on it any
 * more; settle sees to that.
 */
#include "crypt_file_object.h"

#include <string.h>

typedef struct candidate {
    const opal_common_crypt_slot_t *slot;
    const uint8_t *cipher;
    opal_common_crypt_found_t found;
} candidate_t;

static bool all_zero(const uint8_t *bytes, size_t count)
{
    return 0 == count || (0 == bytes[0] && 0 == memcmp(bytes, bytes + 1, count - 1));
}

/* Data of the block to work->old, the redo's ciphertext behind it. */
static int read_block(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region, uint64_t block,
                      opal_common_crypt_slot_t *redo)
{
    const opal_common_crypt_region_t *of = &file->map->regions[region];
    opal_common_crypt_storage_t *storage = file->storage;
    opal_common_crypt_sidecar_index_t index;
    uint64_t redo_at;
    uint8_t bytes[OPAL_CRYPT_SLOT_BYTES];

    work->extent_count = 0;
    int rc = opal_common_crypt_extent_packed(work, &of->tiling, block * of->block_bytes, work->old, of->block_bytes);
    if (OPAL_CRYPT_OK == rc) {
        rc = storage->read(storage, OPAL_CRYPT_FILE_DATA, work->extents, work->extent_count);
    }
    memset(redo, 0, sizeof(*redo));
    (void) opal_common_crypt_sidecar_index(block, &index);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_segment(file, region, true, index.segment, false, &redo_at);
    }
    if (OPAL_CRYPT_OK != rc || 0 == redo_at) {
        return rc;
    }
    uint64_t at = opal_common_crypt_sidecar_redo_at(redo_at, index.within, of->block_bytes);
    const opal_common_crypt_extent_t extents[2] = {
        {at, bytes, sizeof(bytes)}, {at + sizeof(bytes), work->old + of->block_bytes, of->block_bytes}};
    rc = storage->read(storage, OPAL_CRYPT_FILE_SIDECAR, extents, 2);
    if (OPAL_CRYPT_OK == rc && OPAL_CRYPT_OK != opal_common_crypt_slot_parse(bytes, of->block_bytes, redo)) {
        memset(redo, 0, sizeof(*redo));
    }
    return rc;
}

static int try_all(opal_common_crypt_file_t *file, uint32_t region, uint64_t block, const candidate_t *tries,
                   int try_count, uint8_t *plain, opal_common_crypt_slot_t *slot, opal_common_crypt_found_t *found)
{
    opal_common_crypt_file_region_t *of = file->regions[region];
    opal_common_crypt_thread_t *thread = opal_common_crypt_thread();
    opal_aead_context_t *context = NULL == thread ? NULL : opal_common_crypt_thread_context(thread, of->aead);
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    int rc = NULL == context ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_ERR_AUTH;

    for (int i = 0; i < try_count && OPAL_CRYPT_ERR_AUTH == rc; ++i) {
        rc = opal_common_crypt_block_open(of->blocks, context, block, tries[i].slot, tries[i].cipher, plain);
        if (OPAL_CRYPT_OK == rc) {
            opal_common_crypt_count_opened(thread, tries[i].slot->plain_bytes);
            memset(plain + tries[i].slot->plain_bytes, 0, block_bytes - tries[i].slot->plain_bytes);
            *slot = *tries[i].slot;
            *found = tries[i].found;
        }
    }
    return rc;
}

int opal_common_crypt_recover(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region,
                              uint64_t block, uint8_t *plain, opal_common_crypt_slot_t *slot,
                              opal_common_crypt_found_t *found)
{
    const opal_common_crypt_region_t *of = &file->map->regions[region];
    opal_common_crypt_slots_t *slots = &work->slots[0], kept = work->slots[0];
    opal_common_crypt_slot_t redo;
    candidate_t tries[4];
    uint64_t segment_at;
    int try_count = 0;
    int rc = opal_common_crypt_entries_read(file, work, region, block, 1, false, &segment_at);
    opal_common_crypt_slots_t now = *slots;

    *slots = kept;                      /* the caller's run keeps what it read */
    if (OPAL_CRYPT_OK == rc) {
        rc = read_block(file, work, region, block, &redo);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    int newer = opal_common_crypt_entry_newer(now.slot);
    if (newer < 0) {
        memset(plain, 0, of->block_bytes);
        memset(slot, 0, sizeof(*slot));
        *found = OPAL_CRYPT_FOUND_HOLE;
        return now.bad[0] || now.bad[1] ? OPAL_CRYPT_ERR_AUTH
               : all_zero(work->old, of->block_bytes) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_TORN;
    }
    tries[try_count++] = (candidate_t){&now.slot[newer], work->old, OPAL_CRYPT_FOUND_CURRENT};
    /* A sealed file has no versions but those of its entries. */
    if (redo.used && !file->sealed) {
        tries[try_count++] = (candidate_t){&redo, work->old, OPAL_CRYPT_FOUND_AHEAD};
    }
    if (redo.used && (!file->sealed || opal_common_crypt_slot_same(&redo, &now.slot[newer]))) {
        tries[try_count++] = (candidate_t){&redo, work->old + of->block_bytes, OPAL_CRYPT_FOUND_REDO};
    }
    if (now.slot[!newer].used && !file->sealed) {
        tries[try_count++] = (candidate_t){&now.slot[!newer], work->old, OPAL_CRYPT_FOUND_OLDER};
    }
    rc = try_all(file, region, block, tries, try_count, plain, slot, found);
    if (OPAL_CRYPT_ERR_AUTH == rc && 1 == try_count && all_zero(tries[0].slot->tag, OPAL_AEAD_TAG_BYTES)) {
        rc = OPAL_CRYPT_ERR_TORN;       /* its first entry was cut at a page */
    }
    return rc;
}

int opal_common_crypt_settle(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region,
                             uint64_t block, const opal_common_crypt_slot_t *slot, opal_common_crypt_found_t found,
                             opal_common_crypt_slots_t *slots)
{
    const opal_common_crypt_region_t *of = &file->map->regions[region];
    opal_common_crypt_storage_t *storage = file->storage;
    opal_common_crypt_sidecar_index_t index;
    uint64_t segment_at;
    uint8_t bytes[OPAL_CRYPT_SLOT_BYTES];
    int rc = OPAL_CRYPT_OK;

    if (OPAL_CRYPT_FOUND_HOLE == found || OPAL_CRYPT_FOUND_CURRENT == found) {
        return OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_FOUND_REDO == found) {
        work->extent_count = 0;
        rc = opal_common_crypt_extent_packed(work, &of->tiling, block * of->block_bytes, work->old + of->block_bytes,
                                             slot->plain_bytes);
        if (OPAL_CRYPT_OK == rc) {
            rc = storage->write(storage, OPAL_CRYPT_FILE_DATA, work->extents, work->extent_count);
        }
    }
    (void) opal_common_crypt_sidecar_index(block, &index);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_segment(file, region, false, index.segment, true, &segment_at);
    }
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    bool generation;
    int which = opal_common_crypt_entry_next(slots->slot, &generation);
    if (OPAL_CRYPT_FOUND_OLDER == found) {      /* the newer slot fits nothing: it becomes a copy of the older */
        which = !which;
        generation = slots->slot[which].generation;
    }
    slots->slot[which] = *slot;
    slots->slot[which].generation = generation;
    slots->bad[which] = false;
    opal_common_crypt_slot_write(&slots->slot[which], bytes);
    const opal_common_crypt_extent_t extent = {opal_common_crypt_sidecar_entry_at(segment_at, index.within) +
                                                   (unsigned) which * OPAL_CRYPT_SLOT_BYTES, bytes, sizeof(bytes)};
    return storage->write(storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
}

int opal_common_crypt_file_check(opal_common_crypt_file_t *file, uint32_t region, uint64_t block,
                                 opal_common_crypt_block_condition_t *condition, uint32_t *plain_bytes)
{
    opal_common_crypt_work_t *work;
    opal_common_crypt_range_t range;
    opal_common_crypt_slot_t slot = {.plain_bytes = 0};
    opal_common_crypt_found_t found;

    if (NULL == file->regions[region]->blocks) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    int rc = opal_common_crypt_work_take(file, &work);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_common_crypt_work_room(file, work, 1, file->map->regions[region].block_bytes);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_range_lock(file, &range, opal_common_crypt_sidecar_lock_at(region, block), 1, false);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_recover(file, work, region, block, work->plain, &slot, &found);
        (void) opal_common_crypt_range_unlock(file, &range);
        *condition = OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPT_BLOCK_BAD
                     : OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_BLOCK_TORN
                     : OPAL_CRYPT_FOUND_HOLE == found ? OPAL_CRYPT_BLOCK_HOLE
                     : OPAL_CRYPT_FOUND_CURRENT == found ? OPAL_CRYPT_BLOCK_GOOD : OPAL_CRYPT_BLOCK_BEHIND;
        *plain_bytes = slot.plain_bytes;
        rc = OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
    }
    opal_common_crypt_work_give(file, work);
    return rc;
}

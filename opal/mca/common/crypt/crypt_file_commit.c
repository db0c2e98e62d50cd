/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A sealed run goes to storage: redo, data, entries, in this order for each
 * block, so that a process that is killed anywhere leaves the old blocks or the
 * new ones.  A block that had no entry has no redo: its first write, cut short,
 * is torn.  Redo and data are written part by part; the entries at the end.
 *
 * Against a loss of power the storage has to keep that order, too.  With barriers (|):
 *
 *     first write           data | entries
 *     overwrite   | redo  | data | entries
 *
 * The one before the redo is of both parts.  What it replaces is the way back to the
 * version that is there now: whoever wrote that one, and however it ended, data and
 * entry of it are on the storage first.  So behind the entries there need be none.
 */
#include "crypt_file_object.h"

#include <string.h>

static int redo_write(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work,
                      const opal_common_crypt_blockrun_t *run, uint64_t from, uint64_t count)
{
    uint32_t block_bytes = file->map->regions[run->region].block_bytes;
    uint8_t *slot_bytes = work->slot_bytes + run->count * OPAL_CRYPT_ENTRY_BYTES;
    opal_common_crypt_sidecar_index_t index;
    uint64_t redo_at = 0;
    int rc = OPAL_CRYPT_OK;

    (void) opal_common_crypt_sidecar_index(run->first + from, &index);
    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        const opal_common_crypt_slot_t *fresh = &work->fresh[from + i];
        if (opal_common_crypt_entry_newer(work->slots[from + i].slot) < 0) {
            continue;
        }
        if (0 == redo_at) {
            rc = opal_common_crypt_segment(file, run->region, true, index.segment, true, &redo_at);
        }
        uint64_t at = opal_common_crypt_sidecar_redo_at(redo_at, index.within + i, block_bytes);
        uint8_t *slot = slot_bytes + (from + i) * OPAL_CRYPT_SLOT_BYTES;
        opal_common_crypt_slot_write(fresh, slot);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_extent_add(work, at, slot, OPAL_CRYPT_SLOT_BYTES);
        }
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_extent_add(work, at + OPAL_CRYPT_SLOT_BYTES, work->cipher + i * block_bytes,
                                              fresh->plain_bytes);
        }
    }
    if (OPAL_CRYPT_OK != rc || 0 == work->extent_count) {
        return rc;
    }
    rc = opal_common_crypt_barrier(file, OPAL_CRYPT_FILE_DATA);
    rc = OPAL_CRYPT_OK == rc ? opal_common_crypt_barrier(file, OPAL_CRYPT_FILE_SIDECAR) : rc;
    if (OPAL_CRYPT_OK == rc) {
        rc = file->storage->write(file->storage, OPAL_CRYPT_FILE_SIDECAR, work->extents, work->extent_count);
    }
    return OPAL_CRYPT_OK == rc ? opal_common_crypt_barrier(file, OPAL_CRYPT_FILE_SIDECAR) : rc;
}

static int data_write(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work,
                      const opal_common_crypt_blockrun_t *run, uint64_t from, uint64_t count)
{
    const opal_common_crypt_region_t *of = &file->map->regions[run->region];
    int rc = OPAL_CRYPT_OK;

    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_common_crypt_extent_packed(work, &of->tiling, (run->first + from + i) * of->block_bytes,
                                             work->cipher + i * of->block_bytes, work->fresh[from + i].plain_bytes);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = file->storage->write(file->storage, OPAL_CRYPT_FILE_DATA, work->extents, work->extent_count);
    }
    return OPAL_CRYPT_OK == rc ? opal_common_crypt_barrier(file, OPAL_CRYPT_FILE_DATA) : rc;
}

int opal_common_crypt_commit_part(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work,
                                  const opal_common_crypt_blockrun_t *run, uint64_t from, uint64_t count)
{
    int rc = redo_write(file, work, run, from, count);

    return OPAL_CRYPT_OK == rc ? data_write(file, work, run, from, count) : rc;
}

int opal_common_crypt_commit_entries(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint64_t first,
                                     uint64_t count, uint64_t segment_at)
{
    opal_common_crypt_sidecar_index_t index;

    (void) opal_common_crypt_sidecar_index(first, &index);
    for (uint64_t i = 0; i < count; ++i) {
        opal_common_crypt_slots_t *slots = &work->slots[i];
        bool generation;
        slots->slot[opal_common_crypt_entry_next(slots->slot, &generation)] = work->fresh[i];
        for (int k = 0; k < 2; ++k) {
            opal_common_crypt_slot_write(&slots->slot[k], work->slot_bytes + i * OPAL_CRYPT_ENTRY_BYTES +
                                                              (unsigned) k * OPAL_CRYPT_SLOT_BYTES);
        }
    }
    const opal_common_crypt_extent_t extent = {opal_common_crypt_sidecar_entry_at(segment_at, index.within),
                                               work->slot_bytes, count * OPAL_CRYPT_ENTRY_BYTES};
    return file->storage->write(file->storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A sealed run goes to storage: redo, data, entries, in this order, so that a
 * process that is killed anywhere leaves the old blocks or the new ones.  A
 * block that had no entry has no redo: its first write, cut short, is torn.
 */
#include "crypt_file_object.h"

#include <string.h>

static int redo_write(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region,
                      uint64_t first, uint64_t count)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    uint8_t *slot_bytes = work->slot_bytes + count * OPAL_CRYPT_ENTRY_BYTES;
    opal_common_crypt_sidecar_index_t index;
    uint64_t redo_at = 0;
    int rc = OPAL_CRYPT_OK;

    (void) opal_common_crypt_sidecar_index(first, &index);
    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        if (opal_common_crypt_entry_newer(work->slots[i].slot) < 0) {
            continue;
        }
        if (0 == redo_at) {
            rc = opal_common_crypt_segment(file, region, true, index.segment, true, &redo_at);
        }
        uint64_t at = opal_common_crypt_sidecar_redo_at(redo_at, index.within + i, block_bytes);
        uint8_t *slot = slot_bytes + i * OPAL_CRYPT_SLOT_BYTES;
        opal_common_crypt_slot_write(&work->fresh[i], slot);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_extent_add(work, at, slot, OPAL_CRYPT_SLOT_BYTES);
        }
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_extent_add(work, at + OPAL_CRYPT_SLOT_BYTES, work->cipher + i * block_bytes,
                                              work->fresh[i].plain_bytes);
        }
    }
    if (OPAL_CRYPT_OK == rc && work->extent_count > 0) {
        rc = file->storage->write(file->storage, OPAL_CRYPT_FILE_SIDECAR, work->extents, work->extent_count);
    }
    return rc;
}

static int data_write(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region,
                      uint64_t first, uint64_t count)
{
    const opal_common_crypt_region_t *of = &file->map->regions[region];
    int rc = OPAL_CRYPT_OK;

    work->extent_count = 0;
    for (uint64_t i = 0; i < count && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_common_crypt_extent_packed(work, &of->tiling, (first + i) * of->block_bytes,
                                             work->cipher + i * of->block_bytes, work->fresh[i].plain_bytes);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = file->storage->write(file->storage, OPAL_CRYPT_FILE_DATA, work->extents, work->extent_count);
    }
    return rc;
}

static int entries_write(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint64_t first,
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

int opal_common_crypt_commit(opal_common_crypt_file_t *file, opal_common_crypt_work_t *work, uint32_t region,
                             uint64_t first, uint64_t count, uint64_t segment_at)
{
    int rc = redo_write(file, work, region, first, count);

    if (OPAL_CRYPT_OK == rc) {
        rc = data_write(file, work, region, first, count);
    }
    return OPAL_CRYPT_OK == rc ? entries_write(file, work, first, count, segment_at) : rc;
}

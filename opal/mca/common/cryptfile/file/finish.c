/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Finishing overwrites that were cut short, where nobody overwrites the block
 * anew: what is sealed, or leaves its rooms, must need none, and rooms are used again.
 */
#include "file_object.h"

int opal_cryptfile_finish(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region, uint64_t block)
{
    opal_cryptfile_slot_t slot;
    opal_cryptfile_found_t found;
    uint64_t segment_at;
    int rc = opal_cryptfile_entries_read(file, work, region, block, 1, false, &segment_at);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_recover(file, work, region, block, work->plain, &slot, &found);
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_settle(file, work, region, block, &slot, found, &work->slots[0]) : rc;
}

int opal_cryptfile_finish_block(opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    opal_cryptfile_work_t *work;
    opal_cryptfile_range_t range;
    int rc = opal_cryptfile_work_take(file, &work);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_work_room(file, work, 1, file->map->regions[region].block_bytes);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_range_lock(file, &range, opal_cryptfile_sidecar_lock_at(region, block), 1, true);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_finish(file, work, region, block);
        opal_cryptfile_range_unlock(file, &range);
    }
    opal_cryptfile_work_give(file, work);
    return rc;
}

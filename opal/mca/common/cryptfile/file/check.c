/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Checking single blocks, for tools: a block's condition, and finishing one whose overwrite
 * was cut short.
 */
#include "file_object.h"

/* Work memory for a call that looks at one block. */
static int take_work(opal_cryptfile_t *file, uint32_t region, opal_cryptfile_work_t **work)
{
    int rc = opal_cryptfile_work_take(file, work);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_work_reserve(file, *work, 1, file->map->regions[region].block_bytes);
        if (OPAL_CRYPT_OK != rc) {
            opal_cryptfile_work_give(file, *work);
        }
    }
    return rc;
}

int opal_cryptfile_check(opal_cryptfile_t *file, uint32_t region, uint64_t block,
                         opal_cryptfile_block_condition_t *condition, uint32_t *plain_bytes)
{
    opal_cryptfile_work_t *work;
    opal_cryptfile_found_t found = {.entry_at = 0};
    int rc = NULL == file->regions[region]->blocks ? OPAL_CRYPT_ERR_ACCESS : take_work(file, region, &work);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_recover_alone(file, work, region, block, work->plain, &found);
    *condition = OPAL_CRYPT_ERR_AUTH == rc ? OPAL_CRYPTFILE_BLOCK_BAD
                 : OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPTFILE_BLOCK_TORN
                 : OPAL_CRYPTFILE_FOUND_HOLE == found.how ? OPAL_CRYPTFILE_BLOCK_HOLE
                 : OPAL_CRYPTFILE_FOUND_CURRENT == found.how ? OPAL_CRYPTFILE_BLOCK_GOOD : OPAL_CRYPTFILE_BLOCK_BEHIND;
    *plain_bytes = found.slot.plain_bytes;
    opal_cryptfile_work_give(file, work);
    return OPAL_CRYPT_ERR_AUTH == rc || OPAL_CRYPT_ERR_TORN == rc ? OPAL_CRYPT_OK : rc;
}

/* A block must need no room before it is sealed, or copied without its rooms. */
int opal_cryptfile_finish_block(opal_cryptfile_t *file, uint32_t region, uint64_t block)
{
    opal_cryptfile_work_t *work;
    opal_cryptfile_found_t found;
    opal_cryptfile_range_t range;
    uint64_t entry_at;
    int rc = take_work(file, region, &work);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_cryptfile_range_lock(file, &range, opal_cryptfile_lock_at(file, region, block), 1, true);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_entries_read(file, work, region, block, 1, &entry_at);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_finish(file, work, region, block, work->plain, &found, &work->slots[0]);
        }
        rc = opal_cryptfile_range_unlock(file, &range, rc);
    }
    opal_cryptfile_work_give(file, work);
    return rc;
}

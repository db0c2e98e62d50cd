/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Checking single blocks, for tools: a block's condition, finishing one whose overwrite was
 * cut short, and entries beyond the end of the data.
 */
#include "file_object.h"

#include <string.h>

/* Work memory for a call that looks at one block. */
static int take_work(opal_cryptfile_t *file, uint32_t region, opal_cryptfile_work_t **work)
{
    int rc = opal_cryptfile_work_take(file, work);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_work_room(file, *work, 1, file->map->regions[region].block_bytes);
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
        rc = opal_cryptfile_entries_read(file, work, region, block, 1, false, &entry_at);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_finish(file, work, region, block, work->plain, &found, &work->slots[0]);
        }
        rc = opal_cryptfile_range_unlock(file, &range, rc);
    }
    opal_cryptfile_work_give(file, work);
    return rc;
}

/* Count the used ones of the contiguous entries from `at` on. */
static int count_used(opal_cryptfile_t *file, uint64_t at, uint64_t blocks, uint64_t *count)
{
    uint8_t bytes[256 * OPAL_CRYPTFILE_GROUP_ENTRY_BYTES];
    static const uint8_t none[OPAL_CRYPTFILE_ENTRY_BYTES];
    uint32_t entry_bytes = opal_cryptfile_entry_bytes(file);
    int rc = OPAL_CRYPT_OK;

    for (uint64_t done = 0, here; done < blocks && OPAL_CRYPT_OK == rc; done += here) {
        here = blocks - done < 256 ? blocks - done : 256;
        const opal_cryptfile_extent_t extent = {at + done * entry_bytes, bytes, here * entry_bytes};
        rc = file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
        for (uint64_t i = 0; i < here && OPAL_CRYPT_OK == rc; ++i) {
            *count += 0 != memcmp(bytes + i * entry_bytes, none, sizeof(none));
        }
    }
    return rc;
}

int opal_cryptfile_beyond(opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes, uint64_t *count)
{
    uint64_t block = opal_cryptfile_block_count(file, region, data_bytes);
    int rc = OPAL_CRYPT_OK;

    *count = 0;                         /* in one file, a cut leaves them there */
    for (uint64_t blocks; NULL == opal_cryptfile_one(file) && block < OPAL_CRYPTFILE_SIDECAR_BLOCKS_MAX && OPAL_CRYPT_OK == rc; block += blocks) {
        uint64_t at;
        blocks = opal_cryptfile_together(file, region, block);
        rc = opal_cryptfile_entry_at(file, region, block, false, &at);
        rc = OPAL_CRYPT_OK == rc && 0 != at ? count_used(file, at, blocks, count) : rc;
    }
    return rc;
}

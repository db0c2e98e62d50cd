/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Entries of blocks, as they are stored and in memory.
 */
#include "file_object.h"

#include <errno.h>
#include <string.h>

/* A slot that was cleared before the file became longer: a mark that leads nowhere. */
static const uint8_t void_slot[OPAL_CRYPTFILE_SLOT_BYTES] = {4};

void opal_cryptfile_entry_void(uint8_t entry[OPAL_CRYPTFILE_SLOTS_BYTES])
{
    memset(entry, 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    memcpy(entry, void_slot, sizeof(void_slot));
}

/* No entry straddles two sectors: nothing of a bad slot counts. */
void opal_cryptfile_entry_parse(const opal_cryptfile_t *file, const uint8_t *bytes, uint32_t capacity, opal_cryptfile_slots_t *slots)
{
    for (unsigned i = 0; i < 2; ++i) {
        const uint8_t *slot = bytes + i * OPAL_CRYPTFILE_SLOT_BYTES;
        bool bad = OPAL_CRYPT_OK != opal_cryptfile_slot_parse(slot, capacity, &slots->slot[i]);
        slots->bad[i] = (bad && 0 != memcmp(slot, void_slot, sizeof(void_slot))) ||
                        slots->slot[i].redo > opal_cryptfile_geometry_of(file)->redo_rooms;
        slots->slot[i] = slots->bad[i] ? (opal_cryptfile_slot_t){.used = false} : slots->slot[i];
    }
    int newer = opal_cryptfile_entry_newer(slots->slot);
    for (int i = 0; i < 2; ++i) {
        slots->slot[i].pending = slots->slot[i].pending && newer >= 0 && i != newer;
        slots->slot[i].redo = slots->slot[i].used || slots->slot[i].pending ? slots->slot[i].redo : 0;
    }
    slots->behind = newer >= 0 && slots->slot[!newer].pending;
    slots->redo = 0;
    memcpy(slots->sealed, bytes + OPAL_CRYPTFILE_SLOTS_BYTES, sizeof(slots->sealed));
}

void opal_cryptfile_entry_put(const opal_cryptfile_slots_t *slots, uint8_t bytes[OPAL_CRYPTFILE_ENTRY_BYTES])
{
    opal_cryptfile_entry_write(slots->slot, bytes);
    memcpy(bytes + OPAL_CRYPTFILE_SLOTS_BYTES, slots->sealed, sizeof(slots->sealed));
}

int opal_cryptfile_entries_read(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                uint64_t first, uint64_t count, uint64_t *at)
{
    enum { ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };
    int rc = OPAL_CRYPT_OK;

    if (0 == opal_cryptfile_capacity(file, region, first)) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    *at = opal_cryptfile_entry_at(file, region, first);
    const opal_cryptfile_extent_t extent = {*at, work->slot_bytes, count * ENTRY};
    rc = file->sealed ? opal_cryptfile_tree_entries(file, region, first, count, work->slot_bytes)
                      : file->storage->read(file->storage, &extent, 1);
    for (uint64_t i = 0; OPAL_CRYPT_OK == rc && i < count; ++i) {
        opal_cryptfile_entry_parse(file, work->slot_bytes + i * ENTRY, opal_cryptfile_capacity(file, region, first + i), &work->slots[i]);
    }
    return rc;
}

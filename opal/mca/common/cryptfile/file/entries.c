/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Finding, making and reading entries.  A segment is made once, by the
 * process that first needs it, under the header's lock; it never moves after
 * that, so its place is cached.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/le.h"

#include <errno.h>
#include <string.h>

static uint64_t *place_of(opal_cryptfile_sidecar_directory_t *directory, bool rooms, unsigned segment)
{
    return rooms ? &directory->rooms[segment] : &directory->entries[segment];
}

int opal_cryptfile_directory_read(opal_cryptfile_t *file, uint32_t region)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES];
    const opal_cryptfile_extent_t extent = {opal_cryptfile_sidecar_directory_at(region), bytes, sizeof(bytes)};
    int rc = file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);

    opal_cryptfile_sidecar_directory_t found;

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_sidecar_directory_parse(bytes, sizeof(bytes), file->map->regions[region].block_bytes, &found);
    }
    if (OPAL_CRYPT_OK == rc) {          /* else nothing of it is used */
        of->directory = found;
    }
    return rc;
}

/* Under the header's lock: allocate at the end, then record the place.  If the record survived a loss
 * of power and the allocation did not, the next segment would get the same place: hence the barrier. */
static int segment_make(opal_cryptfile_t *file, uint32_t region, bool rooms, unsigned segment)
{
    opal_cryptfile_storage_t *storage = file->storage;
    uint64_t *place = place_of(&file->regions[region]->directory, rooms, segment), size;
    int rc = opal_cryptfile_directory_read(file, region);

    if (OPAL_CRYPT_OK != rc || 0 != *place) {
        return rc;
    }
    rc = storage->size(storage, OPAL_CRYPTFILE_SIDECAR, &size);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    uint64_t at = opal_cryptfile_sidecar_end(size), directory_at = opal_cryptfile_sidecar_directory_at(region);
    uint64_t bytes = rooms ? opal_cryptfile_sidecar_sets_bytes(segment, file->map->regions[region].block_bytes)
                           : opal_cryptfile_sidecar_entries_bytes(segment);
    if (bytes > OPAL_CRYPTFILE_OFFSET_MAX - at) {
        errno = EFBIG;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    rc = storage->resize(storage, OPAL_CRYPTFILE_SIDECAR, at + bytes);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_barrier(file, OPAL_CRYPTFILE_SIDECAR) : rc;
    if (OPAL_CRYPT_OK == rc) {
        uint8_t pointer[8];
        const opal_cryptfile_extent_t extent = {directory_at + (rooms ? 8 * OPAL_CRYPTFILE_SIDECAR_SEGMENTS : 0) + 8 * segment,
                                                   pointer, sizeof(pointer)};
        opal_crypt_le_put64(pointer, at);
        rc = storage->write(storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    }
    if (OPAL_CRYPT_OK == rc) {
        *place = at;
    }
    return rc;
}

int opal_cryptfile_segment(opal_cryptfile_t *file, uint32_t region, bool rooms, unsigned segment,
                           bool make, uint64_t *at)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    int rc = OPAL_CRYPT_OK;

    pthread_mutex_lock(&of->lock);
    uint64_t *place = place_of(&of->directory, rooms, segment);
    if (0 == *place) {
        rc = opal_cryptfile_directory_read(file, region);
    }
    if (OPAL_CRYPT_OK == rc && 0 == *place && make) {
        opal_cryptfile_range_t header;
        rc = opal_cryptfile_range_lock(file, &header, 0, 1, true);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_cryptfile_range_unlock(file, &header, segment_make(file, region, rooms, segment));
        }
    }
    *at = *place;
    pthread_mutex_unlock(&of->lock);
    return rc;
}

/* An entry may straddle two pages or sectors, of which only the second reached the storage
 * before power was lost: the end of a slot, without its flags, is an unused slot.  The flags
 * may already name the room through which it was to be written. */
static bool only_the_end(const uint8_t *bytes, const opal_cryptfile_slot_t *slot)
{
    const opal_cryptfile_slot_t mark = {.pending = slot->pending, .room = slot->pending ? slot->room : 0};
    uint8_t begin[OPAL_CRYPTFILE_SLOT_BYTES];

    opal_cryptfile_slot_write(&mark, begin);
    return 0 == memcmp(bytes, begin, OPAL_CRYPTFILE_SLOT_BYTES - OPAL_CRYPTFILE_SALT_BYTES - OPAL_AEAD_TAG_BYTES);
}

/* A slot that was cleared before the file became longer: a mark that leads nowhere. */
static const uint8_t void_slot[OPAL_CRYPTFILE_SLOT_BYTES] = {4};

void opal_cryptfile_entry_void(uint8_t entry[OPAL_CRYPTFILE_ENTRY_BYTES])
{
    memset(entry, 0, OPAL_CRYPTFILE_ENTRY_BYTES);
    memcpy(entry, void_slot, sizeof(void_slot));
}

void opal_cryptfile_entry_parse(const opal_cryptfile_t *file, const uint8_t *bytes, uint32_t capacity, opal_cryptfile_slots_t *slots)
{
    const opal_cryptfile_geometry_t *one = opal_cryptfile_one(file);

    for (unsigned i = 0; i < 2; ++i) {
        const uint8_t *slot = bytes + i * OPAL_CRYPTFILE_SLOT_BYTES;
        slots->bad[i] = OPAL_CRYPT_OK != opal_cryptfile_slot_parse(slot, capacity, &slots->slot[i]);
        if (NULL != one) {              /* no entry straddles two sectors: nothing of a bad slot counts */
            slots->bad[i] = (slots->bad[i] && 0 != memcmp(slot, void_slot, sizeof(void_slot))) || slots->slot[i].room > one->rooms;
            slots->slot[i] = slots->bad[i] ? (opal_cryptfile_slot_t){.used = false} : slots->slot[i];
            continue;
        }
        slots->bad[i] = slots->bad[i] && !only_the_end(slot, &slots->slot[i]);
        /* Its write was cut within the first bytes: the room still counts. */
        slots->slot[i].pending = slots->slot[i].pending || (slots->bad[i] && slots->slot[i].room > 0);
    }
    int newer = opal_cryptfile_entry_newer(slots->slot);
    for (int i = 0; i < 2; ++i) {
        slots->slot[i].pending = slots->slot[i].pending && newer >= 0 && i != newer;
        slots->slot[i].room = slots->slot[i].used || slots->slot[i].pending ? slots->slot[i].room : 0;
    }
    slots->behind = newer >= 0 && slots->slot[!newer].pending;
    slots->room = 0;
    if (NULL != one) {
        memcpy(slots->sealed, bytes + OPAL_CRYPTFILE_ENTRY_BYTES, sizeof(slots->sealed));
    }
}

void opal_cryptfile_entry_put(const opal_cryptfile_t *file, const opal_cryptfile_slots_t *slots, uint8_t *bytes)
{
    opal_cryptfile_entry_write(slots->slot, bytes);
    if (NULL != opal_cryptfile_one(file)) {
        memcpy(bytes + OPAL_CRYPTFILE_ENTRY_BYTES, slots->sealed, sizeof(slots->sealed));
    }
}

int opal_cryptfile_entries_read(opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint32_t region,
                                uint64_t first, uint64_t count, bool make, uint64_t *at)
{
    int rc = opal_cryptfile_entry_at(file, region, first, make, at);

    if (OPAL_CRYPT_OK != rc || (0 == *at && !file->sealed)) {
        memset(work->slots, 0, count * sizeof(*work->slots));
        return rc;
    }
    uint32_t entry_bytes = opal_cryptfile_entry_bytes(file);
    const opal_cryptfile_extent_t extent = {*at, work->slot_bytes, count * entry_bytes};
    rc = file->sealed ? (NULL == opal_cryptfile_one(file) ? opal_cryptfile_seal_entries : opal_cryptfile_tree_entries)(file, region, first, count, work->slot_bytes)
                      : file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    for (uint64_t i = 0; OPAL_CRYPT_OK == rc && i < count; ++i) {
        opal_cryptfile_entry_parse(file, work->slot_bytes + i * entry_bytes, opal_cryptfile_capacity(file, region, first + i), &work->slots[i]);
    }
    return rc;
}

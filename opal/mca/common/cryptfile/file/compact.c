/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Copying only what counts in a sidecar: header, one map, and the entries and seal of each
 * region.  Rooms of overwrites are left out, and so is what nothing refers to any more.
 * Places are not authenticated, so things may be moved; their contents are copied
 * unchanged.
 */
#include "opal/mca/common/crypt/base/le.h"
#include "seal.h"
#include "store.h"

#include <stdlib.h>
#include <string.h>

enum { PART_BYTES = 65536, GRAIN = OPAL_CRYPTFILE_SIDECAR_GRAIN };

typedef struct mover {
    opal_cryptfile_storage_t *from, *to;
    uint64_t end;                       /* end of what was written, rounded up to the grain */
    uint8_t *part;
} mover_t;

/* Pages of zeros stay holes. */
static int write_pages(const mover_t *m, uint64_t at, size_t count)
{
    static const uint8_t zeros[GRAIN];
    int rc = OPAL_CRYPT_OK;

    for (size_t done = 0; done < count && OPAL_CRYPT_OK == rc; done += GRAIN) {
        size_t here = count - done < GRAIN ? count - done : GRAIN;
        const opal_cryptfile_extent_t extent = {at + done, m->part + done, here};
        if (0 != memcmp(m->part + done, zeros, here)) {
            rc = m->to->write(m->to, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
        }
    }
    return rc;
}

/* *at: where it was, then where it is; 0: nothing was there. */
static int move(mover_t *m, uint64_t *at, uint64_t bytes)
{
    int rc = OPAL_CRYPT_OK;

    if (0 == *at || 0 == bytes) {
        *at = 0;
        return OPAL_CRYPT_OK;
    }
    for (uint64_t done = 0; done < bytes && OPAL_CRYPT_OK == rc; done += PART_BYTES) {
        size_t here = bytes - done < PART_BYTES ? (size_t) (bytes - done) : PART_BYTES;
        const opal_cryptfile_extent_t extent = {*at + done, m->part, here};
        rc = m->from->read(m->from, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
        rc = OPAL_CRYPT_OK == rc ? write_pages(m, m->end + done, here) : rc;
    }
    *at = m->end;
    m->end = opal_cryptfile_sidecar_end(m->end + bytes);
    return rc;
}

static int move_region(mover_t *m, uint32_t region, uint32_t block_bytes)
{
    opal_cryptfile_sidecar_directory_t directory;
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES];
    const opal_cryptfile_extent_t extent = {opal_cryptfile_sidecar_directory_at(region), bytes, sizeof(bytes)};
    int rc = m->from->read(m->from, OPAL_CRYPTFILE_SIDECAR, &extent, 1);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_sidecar_directory_parse(bytes, sizeof(bytes), block_bytes, &directory) : rc;
    memset(directory.rooms, 0, sizeof(directory.rooms));
    for (unsigned k = 0; k < OPAL_CRYPTFILE_SIDECAR_SEGMENTS && OPAL_CRYPT_OK == rc; ++k) {
        rc = move(m, &directory.entries[k], opal_cryptfile_sidecar_entries_bytes(k));
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = move(m, &directory.seal_list, (directory.sealed_blocks + OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS - 1) / OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS *
                                               OPAL_CRYPT_HASH_BYTES);
    }
    rc = OPAL_CRYPT_OK == rc ? move(m, &directory.sealed_slots, directory.sealed_blocks * OPAL_CRYPTFILE_SLOT_BYTES) : rc;
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_sidecar_directory_write(&directory, bytes);
        rc = m->to->write(m->to, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    }
    return rc;
}

int opal_cryptfile_sidecar_compact(opal_cryptfile_storage_t *from, opal_cryptfile_storage_t *to,
                                   const opal_cryptfile_map_t *map)
{
    opal_cryptfile_sidecar_header_t header;
    mover_t m = {.from = from, .to = to, .part = malloc(PART_BYTES)};
    int rc = NULL == m.part ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_sidecar_read(from, &header);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_sidecar_create(to, map->uuid) : rc;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_sidecar_map_write(to, map, -1) : rc;
    rc = OPAL_CRYPT_OK == rc ? to->size(to, OPAL_CRYPTFILE_SIDECAR, &m.end) : rc;
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = map->regions[i].encrypted ? move_region(&m, i, map->regions[i].block_bytes) : OPAL_CRYPT_OK;
    }
    rc = OPAL_CRYPT_OK == rc ? to->resize(to, OPAL_CRYPTFILE_SIDECAR, m.end) : rc;
    if (OPAL_CRYPT_OK == rc && header.sealed) {
        rc = opal_cryptfile_seal_finish(to, header.sealed_size, header.seal_id);
    }
    free(m.part);
    return rc;
}

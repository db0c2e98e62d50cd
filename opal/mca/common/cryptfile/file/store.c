/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The map in the sidecar.  A new one is written to fresh space, then the header
 * slot that does not count is pointed at it: a process that is killed leaves
 * the old map or the new one.
 */
#include "store.h"
#include "seal.h"
#include "opal/mca/common/crypt/base/le.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int put_at(opal_cryptfile_storage_t *storage, uint64_t at, void *bytes, size_t count)
{
    const opal_cryptfile_extent_t extent = {at, bytes, count};

    return storage->write(storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
}

int opal_cryptfile_sidecar_create(opal_cryptfile_storage_t *storage, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES];
    opal_cryptfile_sidecar_header_t header = {.sealed = false};
    int rc = storage->resize(storage, OPAL_CRYPTFILE_SIDECAR, 0);

    if (OPAL_CRYPT_OK == rc) {
        rc = storage->resize(storage, OPAL_CRYPTFILE_SIDECAR, OPAL_CRYPTFILE_SIDECAR_FREE);
    }
    memcpy(header.uuid, uuid, sizeof(header.uuid));
    opal_cryptfile_sidecar_header_write(&header, bytes);
    return OPAL_CRYPT_OK == rc ? put_at(storage, 0, bytes, sizeof(bytes)) : rc;
}

int opal_cryptfile_sidecar_read(opal_cryptfile_storage_t *storage, opal_cryptfile_sidecar_header_t *header)
{
    uint8_t bytes[OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES];
    const opal_cryptfile_extent_t extent = {0, bytes, sizeof(bytes)};
    int rc = storage->read(storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);

    return OPAL_CRYPT_OK == rc ? opal_cryptfile_sidecar_header_parse(bytes, sizeof(bytes), header) : rc;
}

/* The end of what all directories name.  Ask for the size afterwards: another process may add a segment meanwhile. */
static int named_end(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map, uint64_t *end)
{
    size_t count = (size_t) map->region_count * OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES;
    uint8_t *bytes = malloc(count);
    const opal_cryptfile_extent_t extent = {OPAL_CRYPTFILE_SIDECAR_HEADER_BYTES, bytes, count};
    int rc = NULL == bytes ? OPAL_CRYPT_ERR_MEMORY : storage->read(storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);

    *end = OPAL_CRYPTFILE_SIDECAR_FREE;
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        opal_cryptfile_sidecar_directory_t directory;
        if (map->regions[i].encrypted) {
            rc = opal_cryptfile_sidecar_directory_parse(bytes + i * OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES,
                                                        OPAL_CRYPTFILE_SIDECAR_DIRECTORY_BYTES, map->regions[i].block_bytes, &directory);
        }
        if (map->regions[i].encrypted && OPAL_CRYPT_OK == rc) {
            uint64_t one = opal_cryptfile_sidecar_directory_end(&directory, map->regions[i].block_bytes);
            *end = one > *end ? one : *end;
        }
    }
    free(bytes);
    return rc;
}

int opal_cryptfile_sidecar_whole(opal_cryptfile_storage_t *storage, const opal_cryptfile_sidecar_header_t *header,
                                 const opal_cryptfile_map_t *map, opal_crypt_why_t *why)
{
    uint64_t end, size = 0;
    int rc = named_end(storage, map, &end);

    for (int i = 0; i < 2; ++i) {
        uint64_t one = header->maps[i].offset + header->maps[i].bytes;
        end = one > end ? one : end;
    }
    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, OPAL_CRYPTFILE_SIDECAR, &size) : rc;
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        return opal_crypt_refuse(why, rc, "file-sidecar-damaged", "a directory is not one");
    }
    return OPAL_CRYPT_OK == rc && size < end
               ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-sidecar-short", "it has %llu bytes, and names %llu",
                                   (unsigned long long) size, (unsigned long long) end)
               : rc;
}

int opal_cryptfile_sidecar_map_read(opal_cryptfile_storage_t *storage,
                                    const opal_cryptfile_sidecar_header_t *header, int slot,
                                    uint8_t **bytes, size_t *count)
{
    uint64_t size;
    int rc = storage->size(storage, OPAL_CRYPTFILE_SIDECAR, &size);

    *bytes = NULL;
    *count = 0;
    if (OPAL_CRYPT_OK != rc || 0 == header->maps[slot].bytes || header->maps[slot].offset > size ||
        header->maps[slot].bytes > size - header->maps[slot].offset) {
        return rc;
    }
    *bytes = malloc(header->maps[slot].bytes);
    if (NULL == *bytes) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    *count = header->maps[slot].bytes;
    const opal_cryptfile_extent_t extent = {header->maps[slot].offset, *bytes, *count};
    rc = storage->read(storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    if (OPAL_CRYPT_OK != rc) {
        free(*bytes);
        *bytes = NULL;
        *count = 0;
    }
    return rc;
}

/* Under the header's lock.  The slot's old map is overwritten: its keys may be
 * wrapped under a key that somebody must not use any more. */
static int map_write(opal_cryptfile_storage_t *storage, uint8_t *bytes, size_t count, int slot)
{
    uint8_t place[OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES];
    opal_cryptfile_sidecar_header_t header;
    uint64_t size;
    bool had = OPAL_CRYPT_OK == opal_cryptfile_sidecar_read(storage, &header) && header.maps[slot].bytes > 0;
    int rc = storage->size(storage, OPAL_CRYPTFILE_SIDECAR, &size);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    uint64_t at = opal_cryptfile_sidecar_end(size), end = opal_cryptfile_sidecar_end(at + count);
    opal_crypt_le_put64(place, at);
    opal_crypt_le_put64(place + 8, count);
    rc = storage->resize(storage, OPAL_CRYPTFILE_SIDECAR, end);
    if (OPAL_CRYPT_OK == rc) {
        rc = put_at(storage, at, bytes, count);
    }
    /* Before it is named; else the sidecar could be shorter than what it names, after a loss of power. */
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_storage_sync(storage, OPAL_CRYPTFILE_SIDECAR) : rc;
    if (OPAL_CRYPT_OK == rc) {
        rc = put_at(storage, OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_AT + (unsigned) slot * OPAL_CRYPTFILE_SIDECAR_MAP_SLOT_BYTES, place,
                    sizeof(place));
    }
    had = had && header.maps[slot].offset <= size && header.maps[slot].bytes <= size - header.maps[slot].offset;
    return OPAL_CRYPT_OK == rc && had
               ? storage->zero(storage, OPAL_CRYPTFILE_SIDECAR, header.maps[slot].offset, header.maps[slot].bytes) : rc;
}

int opal_cryptfile_sidecar_map_write(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map,
                                     int keep)
{
    size_t count = opal_cryptfile_map_bytes(map);
    uint8_t *bytes = malloc(count);
    int rc = NULL == bytes ? OPAL_CRYPT_ERR_MEMORY : storage->lock(storage, 0, 1, true);

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_map_write(map, bytes);
        rc = map_write(storage, bytes, count, 0 == keep);
        (void) storage->unlock(storage, 0, 1);
    }
    free(bytes);
    return rc;
}

int opal_cryptfile_seal_finish(opal_cryptfile_storage_t *storage, uint64_t data_bytes,
                               const uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES])
{
    uint8_t seal[8 + OPAL_CRYPTFILE_SEAL_ID_BYTES], sealed[4];
    int rc;

    opal_crypt_le_put64(seal, data_bytes);
    memcpy(seal + 8, id, OPAL_CRYPTFILE_SEAL_ID_BYTES);
    opal_crypt_le_put32(sealed, 1);
    rc = put_at(storage, OPAL_CRYPTFILE_SIDECAR_SEALED_SIZE_AT, seal, sizeof(seal));
    return OPAL_CRYPT_OK == rc ? put_at(storage, OPAL_CRYPTFILE_SIDECAR_STATE_AT, sealed, sizeof(sealed)) : rc;
}

int opal_cryptfile_sidecar_unseal(opal_cryptfile_storage_t *storage)
{
    opal_cryptfile_sidecar_header_t header;
    uint8_t open[4] = {0};
    int rc = opal_cryptfile_sidecar_read(storage, &header);

    return OPAL_CRYPT_OK == rc && header.sealed ? put_at(storage, OPAL_CRYPTFILE_SIDECAR_STATE_AT, open, sizeof(open)) : rc;
}

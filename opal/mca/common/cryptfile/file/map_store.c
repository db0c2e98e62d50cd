/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading the start of an encrypted file; making one, and changing its map, in an order in which no loss of
 * power leaves it without a valid map.  docs/design/012-one-file.rst, "Order of writes".  Syncs happen whether asked
 * for or not.
 */
#include "header.h"
#include "opal/mca/common/crypt/base/le.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int get_bytes_at(opal_cryptfile_storage_t *storage, uint64_t at, void *bytes, size_t count, int rc)
{
    const opal_cryptfile_extent_t extent = {at, bytes, count};

    return OPAL_CRYPT_OK == rc ? storage->read(storage, &extent, 1) : rc;
}

int opal_cryptfile_header_read(opal_cryptfile_storage_t *storage, bool *magic, opal_cryptfile_header_t *header)
{
    uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES];
    int rc = get_bytes_at(storage, 0, bytes, sizeof(bytes), OPAL_CRYPT_OK);

    *magic = OPAL_CRYPT_OK == rc && opal_cryptfile_header_magic(bytes, sizeof(bytes));
    if (!*magic) {
        return OPAL_CRYPT_OK == rc && opal_cryptfile_header_old(bytes, sizeof(bytes)) ? OPAL_CRYPT_ERR_CONFIG : rc;
    }
    return opal_cryptfile_header_parse(bytes, sizeof(bytes), header);
}

int opal_cryptfile_beginning_read(opal_cryptfile_storage_t *storage, bool *magic, opal_cryptfile_header_t *header,
                                  opal_cryptfile_state_t *state)
{
    uint8_t said[4];
    uint64_t end = 0;
    int rc = opal_cryptfile_header_read(storage, magic, header);

    if (!*magic) {
        return rc;
    }
    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, &end) : rc;
    rc = OPAL_CRYPT_OK == rc ? get_bytes_at(storage, opal_cryptfile_geometry_seal_at(&header->geometry), said, sizeof(said), rc) : rc;
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_state_parse(said, &header->geometry, end, state) : rc;
}

int opal_cryptfile_place_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_header_t *header, unsigned place,
                              uint8_t **bytes, size_t *count)
{
    uint64_t at = opal_cryptfile_geometry_map_at(&header->geometry, place);
    uint8_t head[OPAL_CRYPTFILE_MAP_HEAD_BYTES];
    int rc = get_bytes_at(storage, at, head, sizeof(head), OPAL_CRYPT_OK);
    size_t map_bytes = OPAL_CRYPT_OK == rc ? opal_cryptfile_place_peek(head, &header->geometry) : 0;

    *count = 0 == map_bytes ? 0 : map_bytes + 4;
    *bytes = 0 == map_bytes ? NULL : malloc(*count);
    if (0 == map_bytes || NULL == *bytes) {
        return 0 == map_bytes ? rc : OPAL_CRYPT_ERR_MEMORY;
    }
    rc = get_bytes_at(storage, at, *bytes, *count, OPAL_CRYPT_OK);
    if (OPAL_CRYPT_OK != rc) {
        free(*bytes);
        *bytes = NULL;
    }
    return rc;
}

static int sync_all(opal_cryptfile_storage_t *storage, int rc)
{
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_storage_sync(storage) : rc;
}

static int put_bytes_at(opal_cryptfile_storage_t *storage, uint64_t at, void *bytes, size_t count, int rc)
{
    const opal_cryptfile_extent_t extent = {at, bytes, count};

    return OPAL_CRYPT_OK == rc ? storage->write(storage, &extent, 1) : rc;
}

static int put_map(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map, unsigned place, int rc)
{
    size_t count = opal_cryptfile_place_bytes(map);
    uint8_t *bytes = OPAL_CRYPT_OK == rc ? malloc(count) : NULL;

    if (NULL == bytes || count > map->geometry.map_bytes) {
        free(bytes);
        errno = ENOSPC;
        return OPAL_CRYPT_OK != rc ? rc : count > map->geometry.map_bytes ? OPAL_CRYPT_ERR_STORAGE : OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_place_write(map, bytes);
    rc = put_bytes_at(storage, opal_cryptfile_geometry_map_at(&map->geometry, place), bytes, count, rc);
    free(bytes);
    return rc;
}

int opal_cryptfile_state_put(opal_cryptfile_storage_t *storage, const opal_cryptfile_geometry_t *geometry, opal_cryptfile_state_t state)
{
    uint8_t bytes[4];

    opal_crypt_le_put32(bytes, state);
    return sync_all(storage, put_bytes_at(storage, opal_cryptfile_geometry_seal_at(geometry), bytes, sizeof(bytes), OPAL_CRYPT_OK));
}

/* Leave nothing behind the header of an earlier file: with the next header, it may be too long for state 0, or have
 * another state there. */
static int cut_earlier(opal_cryptfile_storage_t *storage)
{
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    uint64_t end = 0;
    bool magic;
    int rc = opal_cryptfile_beginning_read(storage, &magic, &header, &state);

    if (OPAL_CRYPT_OK == rc && magic && OPAL_CRYPTFILE_STATE_MAKING != state) {
        rc = opal_cryptfile_state_put(storage, &header.geometry, OPAL_CRYPTFILE_STATE_MAKING);
    }
    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, &end) : rc;
    if (OPAL_CRYPT_OK == rc && end > OPAL_CRYPTFILE_HEADER_BYTES) {
        rc = storage->resize(storage, OPAL_CRYPTFILE_HEADER_BYTES);
    }
    return end > 0 ? sync_all(storage, rc) : rc;
}

int opal_cryptfile_make_begin(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map)
{
    uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES];
    opal_cryptfile_header_t header = {.geometry = map->geometry};
    int rc = cut_earlier(storage);

    memcpy(header.uuid, map->uuid, sizeof(header.uuid));
    opal_cryptfile_header_write(&header, bytes);
    rc = sync_all(storage, put_bytes_at(storage, 0, bytes, sizeof(bytes), rc));
    rc = put_map(storage, map, 0, rc);
    rc = put_map(storage, map, 1, rc);
    return OPAL_CRYPT_OK == rc ? storage->resize(storage, opal_cryptfile_geometry_end(&map->geometry, 0)) : rc;
}

int opal_cryptfile_make_end(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map)
{
    int rc = sync_all(storage, OPAL_CRYPT_OK);

    return OPAL_CRYPT_OK == rc ? opal_cryptfile_state_put(storage, &map->geometry, OPAL_CRYPTFILE_STATE_OPEN) : rc;
}

int opal_cryptfile_place_holds(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map, unsigned place,
                              opal_cryptfile_place_t *holds)
{
    opal_cryptfile_header_t header = {.geometry = map->geometry};
    uint8_t *bytes, *wanted = malloc(opal_cryptfile_place_bytes(map));
    size_t count;

    memcpy(header.uuid, map->uuid, sizeof(header.uuid));
    int rc = NULL == wanted ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_place_read(storage, &header, place, &bytes, &count);
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_place_write(map, wanted);
        *holds = !opal_cryptfile_place_whole(bytes, count, &header) ? OPAL_CRYPTFILE_PLACE_DAMAGED
                 : count == opal_cryptfile_place_bytes(map) && 0 == memcmp(bytes, wanted, count) ? OPAL_CRYPTFILE_PLACE_HAS
                                                                                                 : OPAL_CRYPTFILE_PLACE_OTHER;
        free(bytes);
    }
    free(wanted);
    return rc;
}

int opal_cryptfile_map_replace(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *next)
{
    opal_cryptfile_place_t holds;
    int rc = sync_all(storage, OPAL_CRYPT_OK);

    for (unsigned i = 0; i < 2 && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_place_holds(storage, now, i, &holds);
        if (OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_PLACE_HAS != holds) {
            rc = sync_all(storage, put_map(storage, now, i, rc));
        }
    }
    rc = sync_all(storage, put_map(storage, next, 1, rc));
    return sync_all(storage, put_map(storage, next, 0, rc));
}

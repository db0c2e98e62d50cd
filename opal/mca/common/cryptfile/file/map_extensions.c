/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The extensions of a map, behind its regions:
 *
 *     | type 2 | critical 2 | n 4 | value n |     types rise
 *
 * A critical extension that is not known here may change what the file's bytes
 * mean: such a file is neither read nor written.  Others are kept unchanged in
 * every later map.  No type is known yet.
 */
#include "map.h"
#include "opal/mca/common/crypt/base/le.h"

#include <stdlib.h>
#include <string.h>

enum { CRITICAL = 1, HEAD_BYTES = 8 };

static bool valid(const uint8_t *bytes, size_t count)
{
    int last = -1;

    while (count >= HEAD_BYTES) {
        int type = opal_crypt_le_get16(bytes);
        uint32_t value_bytes = opal_crypt_le_get32(bytes + 4);
        if (type <= last || opal_crypt_le_get16(bytes + 2) > CRITICAL || value_bytes > count - HEAD_BYTES) {
            return false;
        }
        last = type;
        bytes += HEAD_BYTES + value_bytes;
        count -= HEAD_BYTES + value_bytes;
    }
    return 0 == count;
}

int opal_cryptfile_map_extensions_set(opal_cryptfile_map_t *map, const uint8_t *bytes, size_t count)
{
    if (count > OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES || !valid(bytes, count)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    if (0 == count) {
        return OPAL_CRYPT_OK;
    }
    map->extensions = malloc(count);
    if (NULL == map->extensions) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    memcpy(map->extensions, bytes, count);
    map->extension_bytes = count;
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_map_unknown(const opal_cryptfile_map_t *map)
{
    for (size_t at = 0; at < map->extension_bytes;) {
        const uint8_t *extension = map->extensions + at;
        if (CRITICAL == opal_crypt_le_get16(extension + 2)) {
            return opal_crypt_le_get16(extension);
        }
        at += HEAD_BYTES + opal_crypt_le_get32(extension + 4);
    }
    return -1;
}

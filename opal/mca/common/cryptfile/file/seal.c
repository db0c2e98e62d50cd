/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a user sees of a seal: the roots of all regions, and their hash.
 */
#include "seal_page.h"
#include "opal/mca/common/crypt/base/hex.h"
#include "opal/mca/common/crypt/base/kdf.h"

#include <stdlib.h>
#include <string.h>

enum { HASH_BYTES = OPAL_CRYPT_HASH_BYTES };

bool opal_cryptfile_seal_root_of(const opal_cryptfile_t *file, uint32_t region, uint8_t root[HASH_BYTES])
{
    memcpy(root, file->regions[region]->root, HASH_BYTES);
    return file->regions[region]->has_root;
}

void opal_cryptfile_seal_root_take(opal_cryptfile_t *file, uint32_t region, const uint8_t root[HASH_BYTES])
{
    memcpy(file->regions[region]->root, root, HASH_BYTES);
    file->regions[region]->has_root = true;
}

/* Prefer the root that we know: storage, asked again, may return another version's. */
static int known_root(opal_cryptfile_t *file, uint32_t region, uint8_t root[HASH_BYTES])
{
    return opal_cryptfile_seal_root_of(file, region, root) ? OPAL_CRYPT_OK : opal_cryptfile_tree_root_stored(file, region, root);
}

int opal_cryptfile_seal_hash(opal_cryptfile_t *file, uint8_t hash[HASH_BYTES])
{
    uint32_t count = 0;
    uint8_t *roots = calloc(file->map->region_count, HASH_BYTES);
    int rc = NULL == roots ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (file->map->regions[i].encrypted) {
            rc = known_root(file, i, roots + HASH_BYTES * count++);
        }
    }
    const opal_crypt_input_t piece = {roots, (size_t) count * HASH_BYTES};
    rc = OPAL_CRYPT_OK == rc ? opal_crypt_sha256(&piece, 1, hash) : rc;
    free(roots);
    return rc;
}

void opal_cryptfile_seal_text(const uint8_t hash[HASH_BYTES], char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES])
{
    opal_crypt_hex_write(hash, HASH_BYTES, text);
}

bool opal_cryptfile_seal_parse(const char *text, uint8_t hash[HASH_BYTES])
{
    return strlen(text) == 2 * HASH_BYTES && opal_crypt_hex_read(text, hash, HASH_BYTES);
}

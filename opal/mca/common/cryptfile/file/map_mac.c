/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Telling a map that a key holder made from any other: MAC_i over the whole
 * body, under a key that only holders of region i's label can derive.
 */
#include "map.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

int opal_cryptfile_map_body(const opal_cryptfile_map_t *map, opal_crypt_input_t *body)
{
    uint8_t *bytes = malloc(opal_cryptfile_map_body_bytes(map));

    if (NULL == bytes) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_map_body_write(map, bytes);
    *body = (opal_crypt_input_t){bytes, opal_cryptfile_map_body_bytes(map)};
    return OPAL_CRYPT_OK;
}

static void body_free(const opal_crypt_input_t *body)
{
    free((void *) (uintptr_t) body->base);
}

int opal_cryptfile_map_body_mac(const opal_cryptfile_map_t *map, const opal_crypt_input_t *body,
                                uint32_t region, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES])
{
    uint8_t *map_key = opal_crypt_secmem_alloc(OPAL_CRYPT_SECRET_BYTES);
    uint8_t number[4];
    const opal_crypt_input_t pieces[2] = {{number, sizeof(number)}, *body};
    int rc = NULL == map_key ? OPAL_CRYPT_ERR_MEMORY
                             : opal_crypt_kdf_expand(data_key, OPAL_CRYPT_LABEL_FILE_MAP, map->uuid, sizeof(map->uuid),
                                                     map_key, OPAL_CRYPT_SECRET_BYTES);

    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_le_put32(number, region);
        rc = opal_crypt_hmac(map_key, pieces, 2, mac);
    }
    opal_crypt_secmem_free(map_key);
    return rc;
}

int opal_cryptfile_map_body_check(const opal_cryptfile_map_t *map, const opal_crypt_input_t *body,
                                  uint32_t region, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES])
{
    uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES];
    int rc = opal_cryptfile_map_body_mac(map, body, region, data_key, mac);

    if (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(mac, map->regions[region].mac, sizeof(mac))) {
        rc = OPAL_CRYPT_ERR_AUTH;
    }
    opal_crypt_wipe(mac, sizeof(mac));
    return rc;
}

int opal_cryptfile_map_mac(const opal_cryptfile_map_t *map, uint32_t region,
                           const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                           uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES])
{
    opal_crypt_input_t body = {NULL, 0};
    int rc = opal_cryptfile_map_body(map, &body);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_map_body_mac(map, &body, region, data_key, mac);
    }
    body_free(&body);
    return rc;
}

int opal_cryptfile_map_check(const opal_cryptfile_map_t *map, uint32_t region,
                             const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES])
{
    opal_crypt_input_t body = {NULL, 0};
    int rc = opal_cryptfile_map_body(map, &body);

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_map_body_check(map, &body, region, data_key);
    }
    body_free(&body);
    return rc;
}

int opal_cryptfile_map_digest(const opal_cryptfile_map_t *map, opal_cryptfile_map_digest_t *digest)
{
    opal_crypt_input_t body = {NULL, 0};
    int rc = opal_cryptfile_map_body(map, &body);

    if (OPAL_CRYPT_OK == rc) {
        memcpy(digest->uuid, map->uuid, sizeof(digest->uuid));
        digest->generation = map->generation;
        rc = opal_crypt_sha256(&body, 1, digest->hash);
    }
    body_free(&body);
    return rc;
}

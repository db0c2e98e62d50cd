/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An open file from its creation to its end: its map and the state of its regions.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

int opal_cryptfile_create(const opal_cryptfile_of_t *of, opal_cryptfile_t **file)
{
    opal_cryptfile_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    made->of = *of;
    made->of.part_bytes = 0 == of->part_bytes ? OPAL_CRYPTFILE_PART_BYTES : of->part_bytes;
    made->storage = of->storage;
    pthread_mutex_init(&made->range_lock, NULL);
    pthread_cond_init(&made->range_free, NULL);
    pthread_mutex_init(&made->work_lock, NULL);
    *file = made;
    return OPAL_CRYPT_OK;
}

static void region_free(opal_cryptfile_region_state_t *region)
{
    if (NULL != region) {
        opal_cryptfile_blocks_destroy(region->blocks);
        opal_crypt_secmem_free(region->seal_key);
        free(region->pages);
        free(region->bases);
        free(region->ours);
        free(region->accepted);
        pthread_mutex_destroy(&region->lock);
        free(region);
    }
}

static void map_free(opal_cryptfile_t *file)
{
    for (uint32_t i = 0; NULL != file->map && i < file->map->region_count; ++i) {
        region_free(file->regions[i]);
    }
    free(file->regions);
    free(file->sealed_entries);
    opal_cryptfile_map_destroy(file->map);
    file->sealed_entries = NULL;
    file->regions = NULL;
    file->map = NULL;
}

void opal_cryptfile_destroy(opal_cryptfile_t *file)
{
    if (NULL == file) {
        return;
    }
    map_free(file);
    opal_cryptfile_work_end(file);
    pthread_mutex_destroy(&file->range_lock);
    pthread_cond_destroy(&file->range_free);
    pthread_mutex_destroy(&file->work_lock);
    free(file);
}

/* ---- the map ---- */

static int region_make(opal_cryptfile_t *file, const opal_cryptfile_map_t *map, uint32_t number,
                       const opal_cryptfile_key_t *key, opal_cryptfile_region_state_t **region)
{
    const opal_cryptfile_region_t *of = &map->regions[number];
    opal_cryptfile_region_state_t *made = calloc(1, sizeof(*made));
    int rc = OPAL_CRYPT_OK;

    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    pthread_mutex_init(&made->lock, NULL);
    made->limit = OPAL_CRYPTFILE_GRANT_SEAL;
    if (of->encrypted && NULL != key->data_key && OPAL_CRYPTFILE_GRANT_NONE != key->grant) {
        made->grant = key->grant;
        made->aead = file->of.provider(file->of.arg, of->cipher);
        const opal_cryptfile_blocks_of_t blocks_of = {made->aead, of->cipher, of->block_bytes, number,
                                                         map->uuid, key->data_key, 0};
        rc = NULL == made->aead ? OPAL_CRYPT_ERR_CONFIG
                                : opal_cryptfile_blocks_create(&blocks_of, &made->blocks);
    }
    if (OPAL_CRYPT_OK != rc) {
        region_free(made);
        return rc;
    }
    *region = made;
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_use(opal_cryptfile_t *file, opal_cryptfile_map_t *map,
                       const opal_cryptfile_key_t *keys)
{
    bool goes_on = NULL != file->map && 0 == memcmp(file->map->uuid, map->uuid, sizeof(map->uuid)) &&
                   map->region_count >= file->map->region_count;
    uint32_t kept = goes_on ? file->map->region_count : 0, i = kept;
    opal_cryptfile_region_state_t **regions = calloc(map->region_count + 1, sizeof(*regions));
    int rc = NULL == regions ? OPAL_CRYPT_ERR_MEMORY : 0 == map->geometry.group_bytes ? OPAL_CRYPT_ERR_CONFIG : OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && i < map->region_count) {
        rc = region_make(file, map, i, &keys[i], &regions[i]);
        i += OPAL_CRYPT_OK == rc;
    }
    if (OPAL_CRYPT_OK != rc) {
        while (i > kept) {
            region_free(regions[--i]);
        }
        free(regions);
        return rc;
    }
    if (goes_on) {                      /* the sealers of the old regions keep their counters */
        memcpy(regions, file->regions, kept * sizeof(*regions));
        opal_cryptfile_map_destroy(file->map);
        free(file->regions);
    } else {
        map_free(file);
    }
    file->map = map;
    file->regions = regions;
    return OPAL_CRYPT_OK;
}

const opal_cryptfile_map_t *opal_cryptfile_map_of(const opal_cryptfile_t *file)
{
    return file->map;
}

void opal_cryptfile_limit(opal_cryptfile_t *file, uint32_t region, opal_cryptfile_grant_t most)
{
    file->regions[region]->limit = most;
}

opal_cryptfile_grant_t opal_cryptfile_limited(const opal_cryptfile_t *file, uint32_t region)
{
    return file->regions[region]->limit;
}

uint64_t opal_cryptfile_block_count(const opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    uint64_t plain = of->encrypted ? opal_cryptfile_stand(file, region, data_bytes) : 0;

    return 0 == plain ? 0 : 1 + (plain - 1) / of->block_bytes;
}

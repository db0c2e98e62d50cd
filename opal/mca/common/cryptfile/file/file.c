/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The life of an open file, and what its calls work with.
 */
#include "file_object.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

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
        free(region->sets);
        free(region->pages);
        free(region->bases);
        free(region->ours);
        pthread_mutex_destroy(&region->set_lock);
        pthread_mutex_destroy(&region->lock);
        free(region);
    }
}

static void map_free(opal_cryptfile_t *file)
{
    for (uint32_t i = 0; NULL != file->map && i < file->map->region_count; ++i) {
        opal_cryptfile_rooms_end(file, i);
        region_free(file->regions[i]);
    }
    free(file->regions);
    opal_cryptfile_map_destroy(file->map);
    file->regions = NULL;
    file->map = NULL;
}

static void work_free(opal_cryptfile_work_t *work)
{
    free(work->cipher);
    free(work->plain);
    free(work->old);
    free(work->slot_bytes);
    free(work->slots);
    free(work->fresh);
    free(work->sets);
    free(work->extents);
    free(work);
}

void opal_cryptfile_destroy(opal_cryptfile_t *file)
{
    if (NULL == file) {
        return;
    }
    map_free(file);
    while (NULL != file->idle) {
        opal_cryptfile_work_t *work = file->idle;
        file->idle = work->next;
        work_free(work);
    }
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
    pthread_mutex_init(&made->set_lock, NULL);
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
    int rc = NULL == regions ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

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

uint32_t opal_cryptfile_block_bytes(const opal_cryptfile_t *file)
{
    uint32_t largest = 0;

    for (uint32_t i = 0; NULL != file->map && i < file->map->region_count; ++i) {
        if (file->map->regions[i].block_bytes > largest) {
            largest = file->map->regions[i].block_bytes;
        }
    }
    return largest;
}

uint64_t opal_cryptfile_block_count(const opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes)
{
    const opal_cryptfile_region_t *of = &file->map->regions[region];
    uint64_t plain = of->encrypted ? opal_cryptfile_tiling_before(&of->tiling, data_bytes) : 0;

    return 0 == plain ? 0 : 1 + (plain - 1) / of->block_bytes;
}

int opal_cryptfile_outcome_set(const opal_cryptfile_t *file, opal_cryptfile_outcome_t *outcome, int rc,
                               uint32_t region, uint64_t block)
{
    int error = errno;

    if (OPAL_CRYPT_OK == outcome->rc) {
        const opal_cryptfile_region_t *of = &file->map->regions[region];
        uint64_t together;
        outcome->rc = rc;
        outcome->region = region;
        outcome->block = block;
        outcome->error = OPAL_CRYPT_ERR_STORAGE == rc ? error : 0;
        if (!of->encrypted || !opal_cryptfile_tiling_locate(&of->tiling, block * of->block_bytes,
                                                            &outcome->file_offset, &together)) {
            outcome->file_offset = 0;
        }
    }
    return rc;
}

/* ---- work ---- */

int opal_cryptfile_work_take(opal_cryptfile_t *file, opal_cryptfile_work_t **work)
{
    pthread_mutex_lock(&file->work_lock);
    opal_cryptfile_work_t *found = file->idle;
    if (NULL != found) {
        file->idle = found->next;
    }
    pthread_mutex_unlock(&file->work_lock);
    if (NULL == found) {
        found = calloc(1, sizeof(*found));
    }
    *work = found;
    return NULL == found ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
}

void opal_cryptfile_work_give(opal_cryptfile_t *file, opal_cryptfile_work_t *work)
{
    pthread_mutex_lock(&file->work_lock);
    work->next = file->idle;
    file->idle = work;
    pthread_mutex_unlock(&file->work_lock);
}

static int enlarge(uint8_t **memory, size_t *have, size_t want)
{
    if (*have < want) {
        void *larger;
        if (0 != posix_memalign(&larger, PAGE, want)) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        free(*memory);
        *memory = larger;
        *have = want;
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_work_room(const opal_cryptfile_t *file, opal_cryptfile_work_t *work, uint64_t blocks,
                             uint32_t block_bytes)
{
    size_t part = opal_cryptfile_run_part(file, block_bytes, blocks) * block_bytes;
    int rc = enlarge(&work->cipher, &work->cipher_room, part);

    if (OPAL_CRYPT_OK == rc) {
        rc = enlarge(&work->plain, &work->plain_room, part);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = enlarge(&work->old, &work->old_room, 2 * (size_t) block_bytes);
    }
    if (OPAL_CRYPT_OK == rc && work->block_room < blocks) {
        free(work->slot_bytes);
        free(work->slots);
        free(work->fresh);
        work->slot_bytes = malloc(blocks * (OPAL_CRYPTFILE_ENTRY_BYTES + OPAL_CRYPTFILE_ROOM_HEAD_BYTES));
        work->slots = malloc(blocks * sizeof(*work->slots));
        work->fresh = malloc(blocks * sizeof(*work->fresh));
        work->block_room = blocks;
        if (NULL == work->slot_bytes || NULL == work->slots || NULL == work->fresh) {
            work->block_room = 0;
            rc = OPAL_CRYPT_ERR_MEMORY;
        }
    }
    return rc;
}

int opal_cryptfile_extent_add(opal_cryptfile_work_t *work, uint64_t at, void *bytes, size_t count)
{
    opal_cryptfile_extent_t *last = 0 == work->extent_count ? NULL : &work->extents[work->extent_count - 1];

    if (NULL != last && last->at + last->count == at && (uint8_t *) last->bytes + last->count == bytes) {
        last->count += count;
        return OPAL_CRYPT_OK;
    }
    if (work->extent_count == work->extent_room) {
        size_t larger_room = 0 == work->extent_room ? 64 : 2 * work->extent_room;
        opal_cryptfile_extent_t *larger = realloc(work->extents, larger_room * sizeof(*larger));
        if (NULL == larger) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        work->extents = larger;
        work->extent_room = larger_room;
    }
    work->extents[work->extent_count++] = (opal_cryptfile_extent_t){at, bytes, count};
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_extent_packed(opal_cryptfile_work_t *work, const opal_cryptfile_tiling_t *tiling,
                                 uint64_t plain, void *bytes, size_t count)
{
    uint8_t *memory = bytes;
    int rc = OPAL_CRYPT_OK;

    while (count > 0 && OPAL_CRYPT_OK == rc) {
        uint64_t at, together;
        if (!opal_cryptfile_tiling_locate(tiling, plain, &at, &together)) {
            memset(memory, 0, count);   /* a region of one tile ends in this block */
            break;
        }
        size_t part = together < count ? (size_t) together : count;
        rc = opal_cryptfile_extent_add(work, at, memory, part);
        plain += part;
        memory += part;
        count -= part;
    }
    return rc;
}

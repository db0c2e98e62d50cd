/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Adding regions to the map of an open file.
 *
 *     1. everybody hands in what it asks for; all build the same map, of a file
 *        that is theirs to make or that others have made meanwhile
 *     2. of each region, the lowest rank that holds its label draws and wraps
 *        the data key, and makes the MAC; no key travels
 *     3. all fill in wrapped keys and MACs, and verify with their own labels
 *     4. all see that they have the ciphers; rank 0 writes the map; all use it
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/crypt_secmem.h"

typedef struct sealed {
    uint32_t region;
    uint8_t mac[OPAL_CRYPT_MAP_MAC_BYTES];
    opal_common_crypt_wrapped_t wrapped;
} sealed_t;

static int show(const ompi_common_cryptmpio_file_t *state, int rc, const opal_common_crypt_why_t *why)
{
    if (OPAL_CRYPT_OK != rc && NULL != why->topic) {
        ompi_common_cryptmpio_show(state, why);
    }
    return ompi_common_cryptmpio_error(rc, errno);
}

/* ---- 1. ---- */

/* The file's map, from the lowest rank that could verify it: a process that
 * holds none of its labels may still hold one of those that come. */
static int copy_map(const ompi_common_cryptmpio_file_t *state, opal_common_crypt_map_t **map)
{
    const ompio_file_t *fh = state->fh;
    int root = ompi_common_cryptmpio_lowest(fh, NULL != state->file), rc = OPAL_CRYPT_ERR_LIBRARY;
    bool here = root == fh->f_rank && NULL != state->file;
    uint64_t count = here ? opal_common_crypt_map_bytes(opal_common_crypt_file_map(state->file)) : 0;

    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(fh, root, &count, sizeof(count)) || 0 == count) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    uint8_t *bytes = malloc(count);
    if (here && NULL != bytes) {
        opal_common_crypt_map_write(opal_common_crypt_file_map(state->file), bytes);
    }
    if (MPI_SUCCESS == ompi_common_cryptmpio_agree(fh, NULL == bytes ? MPI_ERR_NO_MEM : MPI_SUCCESS)
        && OMPI_SUCCESS == ompi_common_cryptmpio_bcast(fh, root, bytes, count)) {
        rc = opal_common_crypt_map_parse(bytes, count, map);
    }
    free(bytes);
    return rc;
}

/* The map to start from: the file's, or an empty one with rank 0's UUID. */
static int base_map(const ompi_common_cryptmpio_file_t *state, bool anew, opal_common_crypt_map_t **map)
{
    int rc = anew ? opal_common_crypt_map_create(map) : copy_map(state, map);

    if (anew && OPAL_CRYPT_OK == rc && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, (*map)->uuid, OPAL_CRYPT_UUID_BYTES)) {
        rc = OPAL_CRYPT_ERR_LIBRARY;
    }
    return rc;
}

/* The next ask, and how long it is. */
static int add_ask(opal_common_crypt_map_t *map, const uint8_t *bytes, size_t *used, bool *added, opal_common_crypt_why_t *why)
{
    ompi_common_cryptmpio_ask_t ask;
    opal_common_crypt_tiling_t tiling;
    uint32_t region;

    memcpy(&ask, bytes, sizeof(ask));
    opal_common_crypt_run_t *runs = calloc((size_t) ask.run_count + 1, sizeof(*runs));
    if (NULL == runs) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    memcpy(runs, bytes + sizeof(ask), ask.run_count * sizeof(*runs));
    *used = sizeof(ask) + ask.run_count * sizeof(*runs);
    int rc = ask.rest ? OPAL_CRYPT_OK
                      : opal_common_crypt_tiling_make(&tiling, ask.displacement, ask.extent, 0 != ask.once, runs, ask.run_count, why);
    free(runs);
    if (OPAL_CRYPT_OK == rc) {
        const opal_common_crypt_region_ask_t region_ask = {0 != ask.encrypted, (opal_aead_cipher_t) ask.cipher, ask.block_bytes,
                                                           ask.label, ask.rest ? NULL : &tiling};
        rc = opal_common_crypt_map_add(map, &region_ask, &region, added, why);
        if (!ask.rest) {
            opal_common_crypt_tiling_free(&tiling);
        }
    }
    return rc;
}

static int add_all(opal_common_crypt_map_t *map, const uint8_t *asks, size_t count, bool *changed, opal_common_crypt_why_t *why)
{
    int rc = OPAL_CRYPT_OK;

    *changed = false;
    while (count > 0 && OPAL_CRYPT_OK == rc) {
        size_t used = 0;
        bool added = false;
        rc = add_ask(map, asks, &used, &added, why);
        *changed = *changed || added;
        asks += used;
        count -= used;
    }
    return rc;
}

/* ---- 2. ---- */

/* May this process make the MAC of region i?  Regions that come together mostly share a label;
 * `before`: of region i - 1 it may. */
static bool can_seal(const ompi_common_cryptmpio_file_t *state, const opal_common_crypt_map_t *map, uint32_t old, uint32_t i,
                     bool before)
{
    opal_common_crypt_keystore_t *keystore = ompi_common_cryptmpio_keystore();
    const opal_common_crypt_region_t *regions = map->regions;

    if (!regions[i].encrypted) {
        return false;
    }
    if (i < old) {
        return NULL != state->keys && NULL != state->keys[i].data_key;
    }
    if (i > old && regions[i - 1].encrypted && 0 == strcmp(regions[i - 1].label, regions[i].label)) {
        return before;
    }
    return NULL != keystore && OPAL_CRYPT_GRANT_SEAL == opal_common_crypt_keystore_grant(keystore, regions[i].label);
}

/* The lowest rank that can make each region's MAC. */
static int find_owners(const ompi_common_cryptmpio_file_t *state, const opal_common_crypt_map_t *map, uint32_t old, int *owners,
                       opal_common_crypt_why_t *why)
{
    const int self = state->fh->f_rank, nobody = state->fh->f_size;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        owners[i] = can_seal(state, map, old, i, i > 0 && self == owners[i - 1]) ? self : nobody;
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_lowest_of_each(state->fh, owners, map->region_count)) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (map->regions[i].encrypted && nobody == owners[i]) {
            rc = opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "file-no-holder", "%s", map->regions[i].label);
        }
    }
    return rc;
}

/* The keys of the old regions, which this process verified when it got them. */
static int inherit(const ompi_common_cryptmpio_file_t *state, uint32_t old, uint32_t count, opal_common_crypt_file_key_t **keys)
{
    *keys = calloc(count, sizeof(**keys));
    for (uint32_t i = 0; NULL != *keys && NULL != state->keys && i < old; ++i) {
        const opal_common_crypt_file_key_t *of = &state->keys[i];
        if (NULL == of->data_key) {
            continue;
        }
        (*keys)[i] = (opal_common_crypt_file_key_t){opal_common_crypt_secmem_alloc(OPAL_CRYPT_DATA_KEY_BYTES), of->grant};
        if (NULL == (*keys)[i].data_key) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        memcpy((*keys)[i].data_key, of->data_key, OPAL_CRYPT_DATA_KEY_BYTES);
    }
    return NULL == *keys ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
}

static int seal_mine(const ompi_common_cryptmpio_file_t *state, opal_common_crypt_map_t *map, uint32_t old, const int *owners,
                     opal_common_crypt_file_key_t *keys, sealed_t *sealed, size_t *count, opal_common_crypt_why_t *why)
{
    opal_common_crypt_input_t body = {NULL, 0};
    int rc = opal_common_crypt_map_body(map, &body);

    *count = 0;
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (!map->regions[i].encrypted || owners[i] != state->fh->f_rank) {
            continue;
        }
        if (i >= old) {
            rc = opal_common_crypt_map_lock(map, i, ompi_common_cryptmpio_keystore(), &keys[i], why);
        }
        if (OPAL_CRYPT_OK == rc) {
            sealed_t *one = &sealed[(*count)++];
            one->region = i;
            one->wrapped = *map->regions[i].wrapped;
            rc = opal_common_crypt_map_body_mac(map, &body, i, keys[i].data_key, one->mac);
        }
    }
    free((void *) (uintptr_t) body.base);
    return rc;
}

/* ---- 2. and 3. ---- */

/* The only process that seals regions; -1: there are several. */
static int only_owner(const opal_common_crypt_map_t *map, const int *owners, size_t *regions)
{
    int only = -1;
    bool same = true;

    *regions = 0;
    for (uint32_t i = 0; i < map->region_count; ++i) {
        if (map->regions[i].encrypted) {
            same = same && (0 == *regions || only == owners[i]);
            only = owners[i];
            ++*regions;
        }
    }
    return same ? only : -1;
}

/* Everybody's `count` regions into all maps.  `mine` has room for those of a whole map. */
static int exchange(const ompi_common_cryptmpio_file_t *state, opal_common_crypt_map_t *map, const int *owners, sealed_t *mine,
                    size_t count)
{
    size_t regions, bytes;
    int only = only_owner(map, owners, &regions), *counts = NULL;
    const sealed_t *all = mine;
    uint8_t *gathered = NULL;
    int rc;

    if (only >= 0) {
        bytes = regions * sizeof(*all);
        rc = ompi_common_cryptmpio_bcast(state->fh, only, mine, bytes);
    } else {
        rc = ompi_common_cryptmpio_gather(state->fh, mine, count * sizeof(*mine), &gathered, &counts);
        all = (const sealed_t *) (const void *) gathered;
        bytes = 0;
        for (int r = 0; OMPI_SUCCESS == rc && r < state->fh->f_size; ++r) {
            bytes += (size_t) counts[r];
        }
    }
    for (size_t i = 0; OMPI_SUCCESS == rc && i < bytes / sizeof(*all); ++i) {
        opal_common_crypt_region_t *region = &map->regions[all[i].region];
        memcpy(region->mac, all[i].mac, sizeof(region->mac));
        *region->wrapped = all[i].wrapped;
    }
    free(counts);
    free(gathered);
    return OMPI_SUCCESS == rc ? MPI_SUCCESS : MPI_ERR_INTERN;
}

static int seal_map(const ompi_common_cryptmpio_file_t *state, opal_common_crypt_map_t *map, uint32_t old,
                    opal_common_crypt_file_key_t **keys)
{
    int *owners = calloc(map->region_count, sizeof(*owners));
    sealed_t *mine = calloc(map->region_count, sizeof(*mine));
    size_t count = 0;
    opal_common_crypt_why_t why = {.topic = NULL};
    int error = ompi_common_cryptmpio_agree(state->fh, NULL == owners || NULL == mine ? MPI_ERR_NO_MEM : MPI_SUCCESS);

    if (MPI_SUCCESS == error) {
        error = show(state, find_owners(state, map, old, owners, &why), &why);
        error = MPI_SUCCESS == error ? show(state, inherit(state, old, map->region_count, keys), &why) : error;
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (MPI_SUCCESS == error) {
        error = show(state, seal_mine(state, map, old, owners, *keys, mine, &count, &why), &why);
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (MPI_SUCCESS == error) {
        error = exchange(state, map, owners, mine, count);
    }
    if (MPI_SUCCESS == error) {
        int rc = opal_common_crypt_map_unlock(map, ompi_common_cryptmpio_keystore(), *keys, &why);
        if (OPAL_CRYPT_ERR_ACCESS == rc) {      /* none of them is ours */
            opal_common_crypt_keys_free(*keys, map->region_count);
            *keys = NULL;
            rc = OPAL_CRYPT_OK;
        }
        error = ompi_common_cryptmpio_agree(state->fh, show(state, rc, &why));
    }
    free(owners);
    free(mine);
    return error;
}

/* ---- 4. ---- */

/* What a process can not use is not stored.  Who gets no key of a region needs no cipher. */
static int check_ciphers(const ompi_common_cryptmpio_file_t *state, const opal_common_crypt_map_t *map, uint32_t old,
                         const opal_common_crypt_file_key_t *keys)
{
    bool there = true;
    unsigned seen = 0;

    for (uint32_t i = old; NULL != keys && i < map->region_count && there; ++i) {
        const opal_common_crypt_region_t *region = &map->regions[i];
        bool mine = region->encrypted && NULL != keys[i].data_key;
        if (mine && 0 == (seen & OPAL_AEAD_BIT(region->cipher))) {
            seen |= OPAL_AEAD_BIT(region->cipher);
            there = NULL != ompi_common_cryptmpio_provider(NULL, region->cipher);
        }
    }
    return ompi_common_cryptmpio_agree(state->fh, there ? MPI_SUCCESS : MPI_ERR_ARG);
}

/* ---- all of it ---- */

/* What was written as the rest of the file would become bytes of a new region,
 * which has no entry for them. */
static int keep_the_rest(const opal_common_crypt_map_t *map, uint32_t old, opal_common_crypt_why_t *why)
{
    uint32_t rest = 0;

    while (rest < old && map->regions[rest].tiling.run_count > 0) {
        ++rest;
    }
    for (uint32_t i = old; rest < old && i < map->region_count; ++i) {
        if (map->regions[i].tiling.run_count > 0) {
            return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-overlap",
                                            "region %u, the rest of a file that is not empty", (unsigned) rest);
        }
    }
    return OPAL_CRYPT_OK;
}

/* A map is verified by the keys of its regions: without one, nobody could use the file again. */
static int has_encrypted(const opal_common_crypt_map_t *map, opal_common_crypt_why_t *why)
{
    uint32_t i = 0;

    while (i < map->region_count && !map->regions[i].encrypted) {
        ++i;
    }
    return i < map->region_count ? OPAL_CRYPT_OK
           : opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-plain",
                                      "all regions that were asked for are plain");
}

static int add_and_seal(ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t count, bool anew, bool filled)
{
    opal_common_crypt_map_t *map = NULL;
    opal_common_crypt_file_key_t *keys = NULL;
    opal_common_crypt_why_t why = {.topic = NULL};
    bool changed = false;
    int error = ompi_common_cryptmpio_agree(state->fh, show(state, base_map(state, anew, &map), &why));
    uint32_t old = MPI_SUCCESS == error ? map->region_count : 0;

    if (MPI_SUCCESS == error) {
        int rc = add_all(map, asks, count, &changed, &why);
        rc = OPAL_CRYPT_OK == rc && filled ? keep_the_rest(map, old, &why) : rc;
        rc = OPAL_CRYPT_OK == rc && changed ? has_encrypted(map, &why) : rc;
        if (OPAL_CRYPT_OK == rc && changed && state->joined) {  /* those who made it use the map that they know */
            rc = opal_common_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-late", "others made the file since it was opened");
        }
        error = ompi_common_cryptmpio_agree(state->fh, show(state, rc, &why));
    }
    if (MPI_SUCCESS != error || !changed) {
        opal_common_crypt_map_destroy(map);
        return error;
    }
    ++map->generation;
    error = state->posix.may_write ? seal_map(state, map, old, &keys) : MPI_ERR_READ_ONLY;
    if (MPI_SUCCESS == error) {
        error = check_ciphers(state, map, old, keys);
    }
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_store(state, map, anew);
    }
    if (MPI_SUCCESS != error) {
        opal_common_crypt_keys_free(keys, map->region_count);
        opal_common_crypt_map_destroy(map);
        return error;
    }
    state->encrypted = true;            /* whether it can be used here or not: nothing plain goes into it */
    return ompi_common_cryptmpio_use(state, map, keys);
}

/* The bytes that the file has, for everybody. */
static int size_of(const ompi_common_cryptmpio_file_t *state, uint64_t *bytes)
{
    opal_common_crypt_storage_t *storage = (opal_common_crypt_storage_t *) &state->posix.super;
    int error = 0 == state->fh->f_rank ? ompi_common_cryptmpio_error(storage->size(storage, OPAL_CRYPT_FILE_DATA, bytes), errno)
                                       : MPI_SUCCESS;

    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, bytes, sizeof(*bytes))) {
        error = MPI_ERR_INTERN;
    }
    return error;
}

int ompi_common_cryptmpio_add_regions(ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t ask_bytes, int error)
{
    opal_common_crypt_why_t why = {.topic = NULL};
    uint64_t bytes = 0;
    uint8_t *all = NULL;
    int *counts = NULL;
    size_t total = 0;

    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_usable(state);
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error && OMPI_SUCCESS != ompi_common_cryptmpio_gather(state->fh, asks, ask_bytes, &all, &counts)) {
        error = MPI_ERR_INTERN;
    }
    for (int r = 0; MPI_SUCCESS == error && r < state->fh->f_size; ++r) {
        total += (size_t) counts[r];
    }
    if (MPI_SUCCESS == error && total > 0 && !state->encrypted && !state->making && state->posix.may_write) {
        error = ompi_common_cryptmpio_look_again(state);
    }
    if (MPI_SUCCESS == error) {
        error = size_of(state, &bytes);
    }
    if (MPI_SUCCESS == error && !state->encrypted && bytes > 0) {
        error = show(state, opal_common_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-plain", "%s", "set_encryption_map"), &why);
    }
    if (MPI_SUCCESS == error && total > 0) {
        /* What the defaults made of a new file gives way to what the program says. */
        error = add_and_seal(state, all, total, !state->encrypted || (state->fresh && 0 == bytes), bytes > 0);
        state->fresh = state->fresh && MPI_SUCCESS != error;
    }
    ompi_common_cryptmpio_abandon(state);
    free(all);
    free(counts);
    return error;
}

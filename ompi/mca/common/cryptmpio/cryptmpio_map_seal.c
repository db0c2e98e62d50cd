/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys and MACs of a map's new regions.
 *
 *     1. for each region, the lowest rank that holds its label draws and wraps
 *        the data key, and makes the MAC; no key is sent unwrapped
 *     2. all fill in wrapped keys and MACs, and verify with their own labels
 */
#include "cryptmpio_internal.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"

typedef struct sealed {
    uint32_t region;
    uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES];
    opal_cryptfile_wrapped_t wrapped;
} sealed_t;

/* ---- 1. ---- */

bool ompi_common_cryptmpio_holds(const char *label)
{
    opal_cryptfile_keystore_t *keystore = ompi_common_cryptmpio_keystore();

    return NULL != keystore && OPAL_CRYPTFILE_GRANT_SEAL == opal_cryptfile_keystore_grant(keystore, label);
}

/* May this process make the MAC of region i?  Regions added together mostly share a label;
 * `before`: it may for region i - 1. */
static bool can_seal(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, uint32_t old, uint32_t i,
                     bool before)
{
    const opal_cryptfile_region_t *regions = map->regions;

    if (!regions[i].encrypted) {
        return false;
    }
    if (i < old) {
        return NULL != state->keys && NULL != state->keys[i].data_key;
    }
    if (i > old && regions[i - 1].encrypted && 0 == strcmp(regions[i - 1].label, regions[i].label)) {
        return before;
    }
    return ompi_common_cryptmpio_holds(regions[i].label);
}

/* Is there no key, one that cannot be read, or one that may encrypt nothing? */
int ompi_common_cryptmpio_no_holder(const char *label, opal_crypt_why_t *why)
{
    opal_cryptfile_keystore_t *keystore = ompi_common_cryptmpio_keystore();
    opal_cryptfile_keystore_record_t record;
    char name[OPAL_CRYPTFILE_RECORD_TEXT_BYTES];
    opal_crypt_why_t unread = {.topic = NULL};
    const char *refusal = NULL == keystore ? NULL : opal_cryptfile_keystore_refusal(keystore, label, &record);

    if (NULL == refusal && NULL != keystore && OPAL_CRYPT_OK != opal_cryptfile_keystore_find(keystore, label, 0, &record, &unread)
        && NULL != unread.topic && 0 != strcmp("keystore-no-label", unread.topic)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, unread.topic, "%s", unread.detail);
    }
    return NULL == refusal ? opal_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "file-no-holder", "%s", label)
                           : opal_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "keystore-refused",
                                               "%s: %s.  \"mpicrypt key rotate %s\" makes a version that can be used",
                                               opal_cryptfile_record_text(&record, name), refusal, label);
}

/* The lowest rank that can make each region's MAC. */
static int find_owners(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, uint32_t old, int *owners,
                       opal_crypt_why_t *why)
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
            rc = ompi_common_cryptmpio_no_holder(map->regions[i].label, why);
        }
    }
    return rc;
}

/* The keys of the old regions, which this process verified when it got them. */
static int inherit(const ompi_common_cryptmpio_file_t *state, uint32_t old, uint32_t count, opal_cryptfile_key_t **keys)
{
    *keys = calloc(count, sizeof(**keys));
    for (uint32_t i = 0; NULL != *keys && NULL != state->keys && i < old; ++i) {
        const opal_cryptfile_key_t *of = &state->keys[i];
        if (NULL == of->data_key) {
            continue;
        }
        (*keys)[i] = (opal_cryptfile_key_t){opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES), of->grant};
        if (NULL == (*keys)[i].data_key) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        memcpy((*keys)[i].data_key, of->data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
    return NULL == *keys ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
}

static int seal_mine(const ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t *map, uint32_t old, const int *owners,
                     opal_cryptfile_key_t *keys, sealed_t *sealed, size_t *count, opal_crypt_why_t *why)
{
    opal_crypt_input_t body = {NULL, 0};
    int rc = opal_cryptfile_map_body(map, &body);

    *count = 0;
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (!map->regions[i].encrypted || owners[i] != state->fh->f_rank) {
            continue;
        }
        if (i >= old) {
            rc = opal_cryptfile_map_lock(map, i, ompi_common_cryptmpio_keystore(), &keys[i], why);
        }
        if (OPAL_CRYPT_OK == rc) {
            sealed_t *one = &sealed[(*count)++];
            one->region = i;
            one->wrapped = *map->regions[i].wrapped;
            rc = opal_cryptfile_map_body_mac(map, &body, i, keys[i].data_key, one->mac);
        }
    }
    free((void *) (uintptr_t) body.base);
    return rc;
}

/* ---- 1. and 2. ---- */

/* The only process that seals regions; -1: there are several. */
static int only_owner(const opal_cryptfile_map_t *map, const int *owners, size_t *regions)
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

/* Merge the `count` regions of every process into all maps.  `mine` has room for those of a whole map. */
static int exchange(const ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t *map, const int *owners, sealed_t *mine,
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
        if (all[i].region >= map->region_count || !map->regions[all[i].region].encrypted
            || all[i].wrapped.bytes > OPAL_CRYPTFILE_WRAPPED_MAX) {
            rc = OMPI_ERROR;            /* no process of this version sends that */
            break;
        }
        opal_cryptfile_region_t *region = &map->regions[all[i].region];
        memcpy(region->mac, all[i].mac, sizeof(region->mac));
        *region->wrapped = all[i].wrapped;
    }
    free(counts);
    free(gathered);
    return OMPI_SUCCESS == rc ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int ompi_common_cryptmpio_seal_map(const ompi_common_cryptmpio_file_t *state, int error, opal_cryptfile_map_t *map, uint32_t old,
                                   opal_cryptfile_key_t **keys)
{
    int owners[OPAL_CRYPTFILE_REGIONS_MAX];     /* not malloc'd: the others would wait for one without memory */
    sealed_t *mine = calloc(map->region_count, sizeof(*mine));
    size_t count = 0;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = find_owners(state, map, old, owners, &why);

    rc = OPAL_CRYPT_OK == rc ? NULL == mine ? OPAL_CRYPT_ERR_MEMORY : inherit(state, old, map->region_count, keys) : rc;
    rc = OPAL_CRYPT_OK == rc && MPI_SUCCESS == error ? seal_mine(state, map, old, owners, *keys, mine, &count, &why) : rc;
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_told(state, rc, &why) : error;
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        error = exchange(state, map, owners, mine, count);
        rc = MPI_SUCCESS != error ? OPAL_CRYPT_OK : opal_cryptfile_map_unlock(map, ompi_common_cryptmpio_keystore(), *keys, &why);
        if (OPAL_CRYPT_ERR_ACCESS == rc) {      /* we hold none of them */
            opal_cryptfile_keys_free(*keys, map->region_count);
            *keys = NULL;
            rc = OPAL_CRYPT_OK;
        }
        error = MPI_SUCCESS == error ? ompi_common_cryptmpio_told(state, rc, &why) : error;
    }
    free(mine);
    return error;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a map and asking it where a byte belongs.  Regions are only ever
 * added: a region's number is its place, and goes into keys and AAD.
 */
#include "map.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const struct {
    const char *name;
    opal_aead_cipher_t cipher;
} algorithms[] = {
    {"aes-128-gcm", OPAL_AEAD_AES_128_GCM},
    {"aes-192-gcm", OPAL_AEAD_AES_192_GCM},
    {"aes-256-gcm", OPAL_AEAD_AES_256_GCM},
    {"chacha20-poly1305", OPAL_AEAD_CHACHA20_POLY1305},
};

/* Ciphers that papers and other systems use, and why they are refused here. */
static const struct {
    const char *part, *reason;
} refused[] = {
    {"ecb", "ECB shows which blocks of a file are equal, and authenticates nothing"},
    {"cbc", "CBC authenticates nothing: ciphertext can be changed unnoticed"},
    {"ctr", "CTR authenticates nothing: every bit can be flipped unnoticed"},
    {"xts", "XTS authenticates nothing, and shows which blocks did not change"},
    {"des", "DES and 3DES have keys or blocks that are too short"},
};

int opal_cryptfile_algorithm_parse(const char *text, opal_aead_cipher_t *cipher,
                                   opal_crypt_why_t *why)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); ++i) {
        if (0 == strcasecmp(text, algorithms[i].name)) {
            *cipher = algorithms[i].cipher;
            return OPAL_CRYPT_OK;
        }
    }
    for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); ++i) {
        if (NULL != strcasestr(text, refused[i].part)) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-algorithm-refused",
                                     "%.64s: %s", text, refused[i].reason);
        }
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-algorithm-unknown", "%.64s", text);
}

const char *opal_cryptfile_algorithm_name(opal_aead_cipher_t cipher)
{
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(*algorithms); ++i) {
        if (cipher == algorithms[i].cipher) {
            return algorithms[i].name;
        }
    }
    return "unknown";
}

int opal_cryptfile_map_create(opal_cryptfile_map_t **map)
{
    opal_cryptfile_map_t *made = calloc(1, sizeof(*made));

    if (NULL == made) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_crypt_random(made->uuid, sizeof(made->uuid));
    *map = made;
    return OPAL_CRYPT_OK;
}

void opal_cryptfile_map_destroy(opal_cryptfile_map_t *map)
{
    if (NULL == map) {
        return;
    }
    for (uint32_t i = 0; i < map->region_count; ++i) {
        opal_cryptfile_tiling_free(&map->regions[i].tiling);
        free(map->regions[i].wrapped);
    }
    free(map->regions);
    free(map->extensions);
    free(map);
}

/* ---- adding ---- */

static bool same_ask(const opal_cryptfile_region_t *region, const opal_cryptfile_region_ask_t *ask)
{
    return region->encrypted == ask->encrypted &&
           (!ask->encrypted || (region->cipher == ask->cipher && region->block_bytes == ask->block_bytes &&
                                0 == strcmp(region->label, ask->label)));
}

static bool same_bytes(const opal_cryptfile_region_t *region, const opal_cryptfile_tiling_t *tiling)
{
    if (NULL == tiling || 0 == region->tiling.run_count) {
        return NULL == tiling && 0 == region->tiling.run_count;
    }
    return opal_cryptfile_tiling_same(&region->tiling, tiling);
}

static int check_ask(const opal_cryptfile_region_ask_t *ask, opal_crypt_why_t *why)
{
    if (!ask->encrypted) {
        return OPAL_CRYPT_OK;
    }
    if (NULL == ask->tiling) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                 "only a plain region can be the rest of a file");
    }
    if (NULL == ask->label || !opal_cryptfile_key_label_valid(ask->label)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-label",
                                 "%.80s", NULL == ask->label ? "(none)" : ask->label);
    }
    if (ask->block_bytes < OPAL_CRYPTFILE_BLOCK_MIN || ask->block_bytes > OPAL_CRYPTFILE_BLOCK_MAX ||
        0 != (ask->block_bytes & (ask->block_bytes - 1))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-block-size",
                                 "%u", (unsigned) ask->block_bytes);
    }
    return OPAL_CRYPT_OK;
}

static int compare_with(const opal_cryptfile_map_t *map, const opal_cryptfile_region_ask_t *ask,
                        uint32_t *found, uint64_t *runs, opal_crypt_why_t *why)
{
    *found = UINT32_MAX;
    *runs = NULL == ask->tiling ? 0 : ask->tiling->run_count;
    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        *runs += region->tiling.run_count;
        if (same_bytes(region, ask->tiling)) {
            if (!same_ask(region, ask)) {
                return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-contradicts",
                                         "region %u has another label, algorithm or block size",
                                         (unsigned) i);
            }
            *found = i;
            return OPAL_CRYPT_OK;
        }
        if (NULL == ask->tiling || 0 == region->tiling.run_count) {
            continue;
        }
        int shared = opal_cryptfile_tiling_overlap(&region->tiling, ask->tiling);
        if (shared < 0) {
            return shared;
        }
        if (shared) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-overlap",
                                     "region %u", (unsigned) i);
        }
    }
    return OPAL_CRYPT_OK;
}

static int copy_ask(opal_cryptfile_region_t *region, const opal_cryptfile_region_ask_t *ask)
{
    memset(region, 0, sizeof(*region));
    region->encrypted = ask->encrypted;
    if (NULL != ask->tiling) {
        region->tiling = *ask->tiling;
        region->tiling.runs = calloc(ask->tiling->run_count, sizeof(*ask->tiling->runs));
        if (NULL == region->tiling.runs) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        memcpy(region->tiling.runs, ask->tiling->runs, ask->tiling->run_count * sizeof(*ask->tiling->runs));
    }
    if (ask->encrypted) {
        region->cipher = ask->cipher;
        region->block_bytes = ask->block_bytes;
        memcpy(region->label, ask->label, strlen(ask->label) + 1);
        region->wrapped = calloc(1, sizeof(*region->wrapped));
        if (NULL == region->wrapped) {
            opal_cryptfile_tiling_free(&region->tiling);
            return OPAL_CRYPT_ERR_MEMORY;
        }
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_map_add(opal_cryptfile_map_t *map, const opal_cryptfile_region_ask_t *ask,
                           uint32_t *region, bool *added, opal_crypt_why_t *why)
{
    uint64_t runs;
    int rc = check_ask(ask, why);

    if (OPAL_CRYPT_OK == rc) {
        rc = compare_with(map, ask, region, &runs, why);
    }
    if (OPAL_CRYPT_OK != rc || UINT32_MAX != *region) {
        *added = false;
        return rc;
    }
    if (map->region_count == OPAL_CRYPTFILE_REGIONS_MAX || runs > OPAL_CRYPTFILE_RUNS_MAX) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-size", "%u regions, %llu runs",
                                 (unsigned) map->region_count + 1, (unsigned long long) runs);
    }
    opal_cryptfile_region_t *larger = realloc(map->regions, (map->region_count + 1) * sizeof(*larger));
    if (NULL == larger) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    map->regions = larger;
    rc = copy_ask(&larger[map->region_count], ask);
    if (OPAL_CRYPT_OK == rc) {
        *region = map->region_count++;
        *added = true;
    }
    return rc;
}

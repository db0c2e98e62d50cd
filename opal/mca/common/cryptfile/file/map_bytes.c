/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A map as bytes, written and read in the same order.
 *
 *   head    | 'MPICRYPT' 8 | version 2 | kind 2 | regions 4 | UUID 16 | generation 8 | body 4 | total 4 |
 *           | geometry 40 |
 *   region  | kind 1 | algorithm 1 | label n 2 | block 4 | displacement 8 | extent 8 | runs 4 | once 4 |
 *           | runs x ( offset 8 | length 8 ) | label n |
 *   extensions, which cryptfile/file/map_extensions.c reads
 *   trailer | wrapped w 2 | wrapped key w | MAC 32 |
 *
 * Reading trusts nothing: every length is checked against what is left before
 * it is used, and anything but the one way to write a map is refused.
 */
#include "map.h"
#include "opal/mca/common/crypt/base/le.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define put16 opal_crypt_le_put16
#define put32 opal_crypt_le_put32
#define put64 opal_crypt_le_put64
#define get16 opal_crypt_le_get16
#define get32 opal_crypt_le_get32
#define get64 opal_crypt_le_get64

enum { PLAIN = 0, ENCRYPTED = 1 };

static_assert(8 + 2 + 2 + 4 + 16 + 8 + 4 + 4 == OPAL_CRYPTFILE_MAP_HEAD_BYTES, "head");
static_assert(1 + 1 + 2 + 4 + 8 + 8 + 4 + 4 == OPAL_CRYPTFILE_MAP_REGION_BYTES, "region");
static_assert(8 + 2 + 2 + 4 + 16 + 8 + 4 + 4 + 32 == OPAL_CRYPTFILE_MAP_DIGEST_BYTES, "digest");
static_assert(OPAL_CRYPTFILE_MAP_MAX_BYTES - 4 >
                  OPAL_CRYPTFILE_MAP_REGIONS_AT + OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES + OPAL_CRYPTFILE_RUNS_MAX * OPAL_CRYPTFILE_MAP_RUN_BYTES +
                      OPAL_CRYPTFILE_REGIONS_MAX * (OPAL_CRYPTFILE_MAP_REGION_BYTES + OPAL_CRYPTFILE_KEY_LABEL_MAX + 2 +
                                                    OPAL_CRYPTFILE_WRAPPED_MAX + OPAL_CRYPTFILE_MAP_MAC_BYTES),
              "the largest map");

/* ---- writing ---- */

static size_t region_bytes(const opal_cryptfile_region_t *region)
{
    return OPAL_CRYPTFILE_MAP_REGION_BYTES + (size_t) region->tiling.run_count * OPAL_CRYPTFILE_MAP_RUN_BYTES +
           strlen(region->label);
}

size_t opal_cryptfile_map_body_bytes(const opal_cryptfile_map_t *map)
{
    size_t bytes = OPAL_CRYPTFILE_MAP_REGIONS_AT + map->extension_bytes;

    for (uint32_t i = 0; i < map->region_count; ++i) {
        bytes += region_bytes(&map->regions[i]);
    }
    return bytes;
}

size_t opal_cryptfile_map_bytes(const opal_cryptfile_map_t *map)
{
    size_t bytes = opal_cryptfile_map_body_bytes(map);

    for (uint32_t i = 0; i < map->region_count; ++i) {
        if (map->regions[i].encrypted) {
            bytes += 2 + (size_t) map->regions[i].wrapped->bytes + OPAL_CRYPTFILE_MAP_MAC_BYTES;
        }
    }
    return bytes;
}

static void write_head(uint8_t *p, opal_cryptfile_kind_t kind, uint32_t regions,
                       const uint8_t *uuid, uint64_t generation)
{
    memcpy(p, OPAL_CRYPTFILE_MAGIC, OPAL_CRYPTFILE_MAGIC_BYTES);
    put16(p + 8, OPAL_CRYPTFILE_VERSION);
    put16(p + 10, (uint16_t) kind);
    put32(p + 12, regions);
    memcpy(p + 16, uuid, OPAL_CRYPTFILE_UUID_BYTES);
    put64(p + 32, generation);
}

static uint8_t *write_region(const opal_cryptfile_region_t *region, uint8_t *p)
{
    const opal_cryptfile_tiling_t *tiling = &region->tiling;
    size_t label_bytes = strlen(region->label);

    p[0] = region->encrypted ? ENCRYPTED : PLAIN;
    p[1] = region->encrypted ? (uint8_t) (1 + region->cipher) : 0;
    put16(p + 2, (uint16_t) label_bytes);
    put32(p + 4, region->block_bytes);
    put64(p + 8, tiling->displacement);
    put64(p + 16, tiling->extent);
    put32(p + 24, tiling->run_count);
    put32(p + 28, tiling->once);
    p += OPAL_CRYPTFILE_MAP_REGION_BYTES;
    for (uint32_t i = 0; i < tiling->run_count; ++i, p += OPAL_CRYPTFILE_MAP_RUN_BYTES) {
        put64(p, tiling->runs[i].offset);
        put64(p + 8, tiling->runs[i].bytes);
    }
    memcpy(p, region->label, label_bytes);
    return p + label_bytes;
}

void opal_cryptfile_map_body_write(const opal_cryptfile_map_t *map, uint8_t *bytes)
{
    uint8_t *p = bytes + OPAL_CRYPTFILE_MAP_REGIONS_AT;

    /* `total` follows from the wrapped keys, which may change without the
     * body: it is in the head, but not among what is authenticated. */
    write_head(bytes, OPAL_CRYPTFILE_KIND_MAP, map->region_count, map->uuid, map->generation);
    put32(bytes + 40, (uint32_t) opal_cryptfile_map_body_bytes(map));
    put32(bytes + 44, 0);
    opal_cryptfile_geometry_write(&map->geometry, bytes + OPAL_CRYPTFILE_MAP_HEAD_BYTES);
    for (uint32_t i = 0; i < map->region_count; ++i) {
        p = write_region(&map->regions[i], p);
    }
    if (map->extension_bytes > 0) {
        memcpy(p, map->extensions, map->extension_bytes);
    }
}

void opal_cryptfile_map_write(const opal_cryptfile_map_t *map, uint8_t *bytes)
{
    uint8_t *p = bytes + opal_cryptfile_map_body_bytes(map);

    opal_cryptfile_map_body_write(map, bytes);
    put32(bytes + 44, (uint32_t) opal_cryptfile_map_bytes(map));
    for (uint32_t i = 0; i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        if (region->encrypted) {
            put16(p, region->wrapped->bytes);
            memcpy(p + 2, region->wrapped->blob, region->wrapped->bytes);
            p += 2 + region->wrapped->bytes;
            memcpy(p, region->mac, OPAL_CRYPTFILE_MAP_MAC_BYTES);
            p += OPAL_CRYPTFILE_MAP_MAC_BYTES;
        }
    }
}

/* ---- reading ---- */

/* What is left to read. */
typedef struct cursor {
    const uint8_t *at;
    size_t left;
} cursor_t;

static const uint8_t *take_bytes(cursor_t *cursor, size_t bytes)
{
    const uint8_t *at = cursor->at;

    if (bytes > cursor->left) {
        return NULL;
    }
    cursor->at += bytes;
    cursor->left -= bytes;
    return at;
}

int opal_cryptfile_kind(const uint8_t *bytes, size_t count, opal_cryptfile_kind_t *kind)
{
    if (count < 12 || 0 != memcmp(bytes, OPAL_CRYPTFILE_MAGIC, OPAL_CRYPTFILE_MAGIC_BYTES) ||
        OPAL_CRYPTFILE_VERSION != get16(bytes + 8)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    uint16_t value = get16(bytes + 10);
    if (value < OPAL_CRYPTFILE_KIND_MAP || value > OPAL_CRYPTFILE_KIND_DIGEST) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    *kind = (opal_cryptfile_kind_t) value;
    return OPAL_CRYPT_OK;
}

static int read_runs(cursor_t *body, opal_cryptfile_tiling_t *tiling)
{
    const uint8_t *p = take_bytes(body, (size_t) tiling->run_count * OPAL_CRYPTFILE_MAP_RUN_BYTES);

    if (NULL == p) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    tiling->runs = calloc(tiling->run_count, sizeof(*tiling->runs));
    if (NULL == tiling->runs) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < tiling->run_count; ++i, p += OPAL_CRYPTFILE_MAP_RUN_BYTES) {
        tiling->runs[i].offset = get64(p);
        tiling->runs[i].bytes = get64(p + 8);
    }
    return opal_cryptfile_tiling_check(tiling) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

static int read_label(cursor_t *body, opal_cryptfile_region_t *region, uint16_t label_bytes)
{
    const uint8_t *text = label_bytes > OPAL_CRYPTFILE_KEY_LABEL_MAX ? NULL : take_bytes(body, label_bytes);

    if (NULL == text || NULL != memchr(text, '\0', label_bytes)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    memcpy(region->label, text, label_bytes);
    if (!region->encrypted) {
        return 0 == label_bytes ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
    }
    return opal_cryptfile_key_label_valid(region->label) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH;
}

/* Fields that stand alone; those of an encrypted region are zero in a plain one. */
static int read_fields(const uint8_t *p, opal_cryptfile_region_t *region)
{
    if (p[0] > ENCRYPTED || get32(p + 28) > 1) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    region->encrypted = ENCRYPTED == p[0];
    region->block_bytes = get32(p + 4);
    region->tiling.displacement = get64(p + 8);
    region->tiling.extent = get64(p + 16);
    region->tiling.run_count = get32(p + 24);
    region->tiling.once = get32(p + 28);
    if (!region->encrypted) {
        bool rest = 0 == region->tiling.run_count;
        return 0 == p[1] && 0 == region->block_bytes &&
                       !(rest && (region->tiling.displacement || region->tiling.extent || region->tiling.once))
                   ? OPAL_CRYPT_OK
                   : OPAL_CRYPT_ERR_AUTH;
    }
    if (p[1] < 1 || p[1] > OPAL_AEAD_CIPHERS || 0 == region->tiling.run_count ||
        region->block_bytes < OPAL_CRYPTFILE_BLOCK_MIN || region->block_bytes > OPAL_CRYPTFILE_BLOCK_MAX ||
        0 != (region->block_bytes & (region->block_bytes - 1))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    region->cipher = (opal_aead_cipher_t) (p[1] - 1);
    region->wrapped = calloc(1, sizeof(*region->wrapped));
    return NULL == region->wrapped ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
}

static int read_region(cursor_t *body, opal_cryptfile_region_t *region, uint64_t *runs)
{
    const uint8_t *p = take_bytes(body, OPAL_CRYPTFILE_MAP_REGION_BYTES);
    int rc = NULL == p ? OPAL_CRYPT_ERR_AUTH : read_fields(p, region);

    *runs += region->tiling.run_count;
    if (*runs > OPAL_CRYPTFILE_RUNS_MAX) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    if (OPAL_CRYPT_OK == rc && region->tiling.run_count > 0) {
        rc = read_runs(body, &region->tiling);
    }
    return OPAL_CRYPT_OK == rc ? read_label(body, region, get16(p + 2)) : rc;
}

static int read_trailer(cursor_t *rest, opal_cryptfile_region_t *region)
{
    const uint8_t *p = take_bytes(rest, 2);
    uint16_t bytes = NULL == p ? 0 : get16(p);

    if (0 == bytes || bytes > OPAL_CRYPTFILE_WRAPPED_MAX) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    p = take_bytes(rest, (size_t) bytes + OPAL_CRYPTFILE_MAP_MAC_BYTES);
    if (NULL == p) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    region->wrapped->bytes = bytes;
    memcpy(region->wrapped->blob, p, bytes);
    memcpy(region->mac, p + bytes, OPAL_CRYPTFILE_MAP_MAC_BYTES);
    return OPAL_CRYPT_OK;
}

static int read_regions(opal_cryptfile_map_t *map, cursor_t *body, cursor_t *rest)
{
    uint32_t encrypted = 0, rests = 0;
    uint64_t runs = 0;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = read_region(body, &map->regions[i], &runs);
        encrypted += map->regions[i].encrypted;
        rests += 0 == map->regions[i].tiling.run_count;
    }
    if (OPAL_CRYPT_OK == rc) {          /* the rest of the body, after the regions */
        rc = opal_cryptfile_map_extensions_set(map, body->at, body->left);
        (void) take_bytes(body, body->left);
    }
    for (uint32_t i = 0; i < map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (map->regions[i].encrypted) {
            rc = read_trailer(rest, &map->regions[i]);
        }
    }
    if (OPAL_CRYPT_OK == rc && (0 != body->left || 0 != rest->left || 0 == encrypted || rests > 1)) {
        rc = OPAL_CRYPT_ERR_AUTH;
    }
    return rc;
}

/* Everything before the regions. */
static int read_head(const uint8_t *bytes, size_t count, opal_cryptfile_map_t *map)
{
    opal_cryptfile_kind_t kind;

    if (count < OPAL_CRYPTFILE_MAP_REGIONS_AT || count > OPAL_CRYPTFILE_MAP_MAX_BYTES ||
        OPAL_CRYPT_OK != opal_cryptfile_kind(bytes, count, &kind) || OPAL_CRYPTFILE_KIND_MAP != kind) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    map->region_count = get32(bytes + 12);
    memcpy(map->uuid, bytes + 16, OPAL_CRYPTFILE_UUID_BYTES);
    map->generation = get64(bytes + 32);
    if (0 == map->region_count || map->region_count > OPAL_CRYPTFILE_REGIONS_MAX || get32(bytes + 44) != count ||
        get32(bytes + 40) < OPAL_CRYPTFILE_MAP_REGIONS_AT || get32(bytes + 40) > count || 0 == map->generation) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    return opal_cryptfile_geometry_parse(bytes + OPAL_CRYPTFILE_MAP_HEAD_BYTES, &map->geometry);
}

int opal_cryptfile_map_parse(const uint8_t *bytes, size_t count, opal_cryptfile_map_t **map)
{
    opal_cryptfile_map_t head = {.geometry = {.group_bytes = 0}}, *read;
    int rc = read_head(bytes, count, &head);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    read = malloc(sizeof(*read));
    head.regions = calloc(head.region_count, sizeof(*head.regions));
    if (NULL == read || NULL == head.regions) {
        free(read);
        free(head.regions);
        return OPAL_CRYPT_ERR_MEMORY;
    }
    *read = head;
    size_t body_bytes = get32(bytes + 40);
    cursor_t body = {bytes + OPAL_CRYPTFILE_MAP_REGIONS_AT, body_bytes - OPAL_CRYPTFILE_MAP_REGIONS_AT};
    cursor_t rest = {bytes + body_bytes, count - body_bytes};
    rc = read_regions(read, &body, &rest);
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_geometry_fits(read, count) : rc;
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_map_destroy(read);
        return rc;
    }
    *map = read;
    return OPAL_CRYPT_OK;
}

/* ---- the digest ---- */

void opal_cryptfile_map_digest_write(const opal_cryptfile_map_digest_t *digest, uint8_t bytes[OPAL_CRYPTFILE_MAP_DIGEST_BYTES])
{
    write_head(bytes, OPAL_CRYPTFILE_KIND_DIGEST, 0, digest->uuid, digest->generation);
    put64(bytes + 40, 0);
    memcpy(bytes + 48, digest->hash, sizeof(digest->hash));
}

int opal_cryptfile_map_digest_parse(const uint8_t *bytes, size_t count, opal_cryptfile_map_digest_t *digest)
{
    opal_cryptfile_kind_t kind;

    if (OPAL_CRYPTFILE_MAP_DIGEST_BYTES != count || OPAL_CRYPT_OK != opal_cryptfile_kind(bytes, count, &kind) ||
        OPAL_CRYPTFILE_KIND_DIGEST != kind || 0 != get32(bytes + 12) || 0 != get64(bytes + 40)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    memcpy(digest->uuid, bytes + 16, sizeof(digest->uuid));
    digest->generation = get64(bytes + 32);
    memcpy(digest->hash, bytes + 48, sizeof(digest->hash));
    return OPAL_CRYPT_OK;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The seal of a file: its record and the roots in it, made and compared with the file.
 */
#include "seal_page.h"
#include "seal_tree.h"
#include "header.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

enum { HASH = OPAL_CRYPT_HASH_BYTES, RECORD = 80, SIZE_AT = 8, ID_AT = 16, TOP_AT = 32, ZEROS_AT = 64 };

int opal_cryptfile_tree_make(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, bool write)
{
    uint8_t *pages = calloc(opal_cryptfile_tree_groups(file, tree->size) + 1, HASH);
    int rc = NULL == pages ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_tree_pages(file, tree->size, OPAL_CRYPTFILE_PAGE_ACCEPTED, pages);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_climb(file, pages, opal_cryptfile_tree_groups(file, tree->size),
                                                         write ? OPAL_CRYPTFILE_TABLES_WRITE : OPAL_CRYPTFILE_TABLES_LEAVE) : rc;
    if (OPAL_CRYPT_OK == rc) {
        memcpy(tree->top, pages, HASH);
    }
    free(pages);
    return rc;
}

static int need_key(opal_cryptfile_region_state_t *of)
{
    if (NULL == of->blocks) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    if (NULL != of->seal_key) {
        return OPAL_CRYPT_OK;
    }
    of->seal_key = opal_crypt_secmem_alloc(OPAL_CRYPT_SECRET_BYTES);
    return NULL == of->seal_key ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_blocks_seal_key(of->blocks, of->seal_key);
}

static int root_of(opal_cryptfile_t *file, uint32_t region, const opal_cryptfile_tree_t *tree, uint8_t root[HASH])
{
    uint8_t head[32] = {'r', 'o', 'o', 't'};
    opal_cryptfile_map_digest_t digest;
    int rc = need_key(file->regions[region]);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_digest(file->map, &digest) : rc;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    const opal_crypt_input_t pieces[4] = {{head, sizeof(head)}, {tree->id, sizeof(tree->id)}, {digest.hash, HASH}, {tree->top, HASH}};
    opal_crypt_le_put32(head + 4, region);
    opal_crypt_le_put64(head + 8, file->map->generation);
    opal_crypt_le_put64(head + 16, tree->size);
    opal_crypt_le_put64(head + 24, opal_cryptfile_tree_groups(file, tree->size));
    return opal_crypt_hmac(file->regions[region]->seal_key, pieces, 4, root);
}

int opal_cryptfile_tree_root(opal_cryptfile_t *file, uint32_t region, const opal_cryptfile_tree_t *tree)
{
    uint8_t root[HASH];
    int rc = root_of(file, region, tree, root);

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_seal_root_take(file, region, root);
    }
    return rc;
}

/* ---- the record ---- */

static uint32_t encrypted_of(const opal_cryptfile_t *file)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < file->map->region_count; ++i) {
        count += file->map->regions[i].encrypted;
    }
    return count;
}

int opal_cryptfile_tree_root_stored(opal_cryptfile_t *file, uint32_t region, uint8_t root[HASH])
{
    uint64_t at = opal_cryptfile_geometry_seal_at(opal_cryptfile_geometry_of(file)) + RECORD;

    for (uint32_t i = 0; i < region; ++i) {
        at += file->map->regions[i].encrypted ? HASH : 0;
    }
    return opal_cryptfile_bytes_read(file, at, root, HASH);
}

int opal_cryptfile_tree_unseal(opal_cryptfile_t *file)
{
    return opal_cryptfile_state_put(file->storage, opal_cryptfile_geometry_of(file), OPAL_CRYPTFILE_STATE_OPEN);
}

int opal_cryptfile_tree_finish(opal_cryptfile_t *file, const opal_cryptfile_tree_t *tree)
{
    size_t count = RECORD + (size_t) encrypted_of(file) * HASH, at = RECORD;
    uint8_t *record = calloc(1, count);
    int rc = NULL == record ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (file->map->regions[i].encrypted) {
            rc = opal_cryptfile_seal_root_of(file, i, record + at) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_ACCESS;
            at += HASH;
        }
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_le_put32(record, OPAL_CRYPTFILE_STATE_OPEN);
        opal_crypt_le_put64(record + SIZE_AT, tree->size);
        memcpy(record + ID_AT, tree->id, sizeof(tree->id));
        memcpy(record + TOP_AT, tree->top, HASH);
        rc = opal_cryptfile_bytes_write(file, opal_cryptfile_geometry_seal_at(opal_cryptfile_geometry_of(file)), record, count);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_storage_sync(file->storage) : rc;
    free(record);
    return OPAL_CRYPT_OK == rc
               ? opal_cryptfile_state_put(file->storage, opal_cryptfile_geometry_of(file), OPAL_CRYPTFILE_STATE_SEALED) : rc;
}

/* ---- checking the file against it ---- */

static int refuse_tree(opal_crypt_why_t *why, const char *reason)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal", "%s", reason);
}

/* The record, if the roots of all regions match whose keys this process has; `hash`: of all roots. */
static int record_check(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, const uint8_t *record, uint8_t hash[HASH], opal_crypt_why_t *why)
{
    const uint8_t *stored = record + RECORD;
    const opal_crypt_input_t piece = {stored, (size_t) encrypted_of(file) * HASH};
    uint8_t root[HASH];
    uint64_t size;
    int rc = opal_cryptfile_size(file, &size);

    *tree = (opal_cryptfile_tree_t){.size = opal_crypt_le_get64(record + SIZE_AT)};
    memcpy(tree->id, record + ID_AT, sizeof(tree->id));
    memcpy(tree->top, record + TOP_AT, HASH);
    bool zeros = 0 == opal_crypt_le_get32(record + 4) && opal_crypt_all_zero(record + ZEROS_AT, RECORD - ZEROS_AT);
    if (OPAL_CRYPT_OK == rc && (OPAL_CRYPTFILE_STATE_SEALED != opal_crypt_le_get32(record) || !zeros)) {
        rc = refuse_tree(why, "there is none: the file was opened for writing since, or never sealed");
    }
    if (OPAL_CRYPT_OK == rc && size != tree->size) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal", "the size of the file is %llu, and was %llu",
                               (unsigned long long) size, (unsigned long long) tree->size);
    }
    for (uint32_t i = 0; i < file->map->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (NULL != file->regions[i]->blocks) {
            rc = root_of(file, i, tree, root);
            rc = OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(root, stored, HASH) ? refuse_tree(why, "it does not authenticate") : rc;
        }
        stored += file->map->regions[i].encrypted ? HASH : 0;
    }
    return OPAL_CRYPT_OK == rc ? opal_crypt_sha256(&piece, 1, hash) : rc;
}

/* Pages of a file whose record matches, malloc'd: from entries, if each is as sealed, or from the tables alone. */
static int tree_open(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, bool entries, uint8_t hash[HASH], uint8_t **pages, opal_crypt_why_t *why)
{
    size_t bytes = RECORD + (size_t) encrypted_of(file) * HASH;
    uint8_t *record = malloc(bytes), *top = NULL;
    int rc = NULL == record ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_bytes_read(file, opal_cryptfile_geometry_seal_at(opal_cryptfile_geometry_of(file)), record, bytes);

    *pages = NULL;
    rc = OPAL_CRYPT_OK == rc ? record_check(file, tree, record, hash, why) : rc;
    free(record);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    uint64_t groups = opal_cryptfile_tree_groups(file, tree->size);
    *pages = calloc(groups + 1, HASH);
    top = calloc(groups + 1, HASH);
    rc = NULL == *pages || NULL == top ? OPAL_CRYPT_ERR_MEMORY
         : entries ? opal_cryptfile_tree_pages(file, tree->size, OPAL_CRYPTFILE_PAGE_MATCHES, *pages) : opal_cryptfile_tree_pages_stored(file, tree->size, *pages);
    if (OPAL_CRYPT_OK == rc) {
        memcpy(top, *pages, groups * HASH);
        rc = opal_cryptfile_tree_climb(file, top, groups, OPAL_CRYPTFILE_TABLES_COMPARE);
    }
    rc = OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(top, tree->top, HASH) ? OPAL_CRYPT_ERR_AUTH : rc;
    free(top);
    return OPAL_CRYPT_ERR_AUTH == rc ? refuse_tree(why, entries ? "some blocks are not those that were sealed" : "its tables do not fit") : rc;
}

/* Keep the pages, for reading or for watching. */
static void pages_keep(opal_cryptfile_t *file, const opal_cryptfile_tree_t *tree, int rc, uint8_t *pages)
{
    free(file->regions[0]->pages);
    free(file->sealed_entries);
    file->sealed_entries = NULL;
    file->regions[0]->pages = OPAL_CRYPT_OK == rc ? pages : NULL;
    if (OPAL_CRYPT_OK != rc) {
        free(pages);
    }
    file->sealed_bytes = OPAL_CRYPT_OK == rc ? tree->size : 0;
    file->sealed_regions = file->map->region_count;
}

int opal_cryptfile_tree_check(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, uint8_t hash[HASH], opal_crypt_why_t *why)
{
    uint8_t *pages;
    int rc = tree_open(file, tree, true, hash, &pages, why);

    pages_keep(file, tree, rc, pages);
    return rc;
}

int opal_cryptfile_seal_demand(opal_cryptfile_t *file, const uint8_t *wanted, opal_crypt_why_t *why)
{
    opal_cryptfile_tree_t tree;
    uint8_t hash[HASH], *pages;
    int rc = tree_open(file, &tree, false, hash, &pages, why);

    if (OPAL_CRYPT_OK == rc && NULL != wanted && 0 != opal_crypt_differ(hash, wanted, HASH)) {
        rc = refuse_tree(why, "it is of another version of the file than the hash that was given");
    }
    file->sealed = OPAL_CRYPT_OK == rc;
    if (file->sealed) {
        memcpy(file->sealed_hash, hash, HASH);
    }
    pages_keep(file, &tree, rc, pages);
    return OPAL_CRYPT_ERR_AUTH == rc && NULL == why->topic ? refuse_tree(why, "it cannot be read") : rc;
}

bool opal_cryptfile_sealed_bytes(const opal_cryptfile_t *file, uint64_t *bytes)
{
    *bytes = file->sealed ? file->sealed_bytes : *bytes;
    return file->sealed;
}

bool opal_cryptfile_sealed_hash(const opal_cryptfile_t *file, uint8_t hash[HASH])
{
    memcpy(hash, file->sealed_hash, HASH);
    return file->sealed;
}

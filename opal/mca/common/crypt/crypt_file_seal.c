/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making and checking seals.  A page is read as it is stored, and what is hashed
 * is made from it: of each entry the newer slot without its generation bit, or
 * zeros.
 */
#include "crypt_file_seal.h"
#include "crypt_file_le.h"
#include "crypt_file_object.h"
#include "crypt_file_store.h"
#include "crypt_kdf.h"
#include "crypt_keystore_object.h"
#include "crypt_secmem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BLOCKS = OPAL_CRYPT_SEAL_PAGE_BLOCKS, HASH_BYTES = OPAL_CRYPT_HASH_BYTES };

/* | seal list 8 | sealed blocks 8 | root 32 |, in a directory */
enum { SEAL_AT = 16 * OPAL_CRYPT_SIDECAR_SEGMENTS, SEAL_BYTES = 16 + HASH_BYTES };

typedef struct page {
    uint8_t entries[PAGE_BLOCKS * OPAL_CRYPT_ENTRY_BYTES];      /* as stored */
    opal_common_crypt_slot_t newer[PAGE_BLOCKS];                /* unused: a hole */
    uint64_t first;
    uint32_t count;
} page_t;

static uint64_t pages_of(uint64_t blocks) { return (blocks + PAGE_BLOCKS - 1) / PAGE_BLOCKS; }

/* ---- pages ---- */

/* Pages begin at multiples of 128 blocks, segments at others of 64. */
static int page_read(opal_common_crypt_file_t *file, uint32_t region, uint64_t number, uint64_t blocks, page_t *page)
{
    opal_common_crypt_sidecar_index_t index;
    int rc = OPAL_CRYPT_OK;

    page->first = number * PAGE_BLOCKS;
    page->count = (uint32_t) (blocks - page->first < PAGE_BLOCKS ? blocks - page->first : PAGE_BLOCKS);
    memset(page->entries, 0, sizeof(page->entries));
    for (uint32_t i = 0; i < page->count && OPAL_CRYPT_OK == rc;) {
        uint64_t at;
        if (!opal_common_crypt_sidecar_index(page->first + i, &index)) {
            errno = EFBIG;
            return OPAL_CRYPT_ERR_STORAGE;
        }
        uint32_t here = (uint32_t) (index.blocks < page->count - i ? index.blocks : page->count - i);
        rc = opal_common_crypt_segment(file, region, false, index.segment, false, &at);
        if (OPAL_CRYPT_OK == rc && 0 != at) {
            const opal_common_crypt_extent_t extent = {opal_common_crypt_sidecar_entry_at(at, index.within),
                                                       page->entries + i * OPAL_CRYPT_ENTRY_BYTES, here * OPAL_CRYPT_ENTRY_BYTES};
            rc = file->storage->read(file->storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
        }
        i += here;
    }
    return rc;
}

static int page_parse(uint32_t block_bytes, page_t *page)
{
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < page->count && OPAL_CRYPT_OK == rc; ++i) {
        const uint8_t *entry = page->entries + i * OPAL_CRYPT_ENTRY_BYTES;
        opal_common_crypt_slot_t slots[2];
        rc = opal_common_crypt_slot_parse(entry, block_bytes, &slots[0]);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_slot_parse(entry + OPAL_CRYPT_SLOT_BYTES, block_bytes, &slots[1]);
        }
        int newer = OPAL_CRYPT_OK == rc ? opal_common_crypt_entry_newer(slots) : -1;
        page->newer[i] = newer < 0 ? (opal_common_crypt_slot_t){.used = false} : slots[newer];
        page->newer[i].generation = false;
    }
    return rc;
}

static int page_hash(const opal_common_crypt_file_region_t *of, uint32_t region, uint64_t number, const page_t *page,
                     uint8_t hash[HASH_BYTES])
{
    uint8_t head[16] = {'p', 'a', 'g', 'e'}, slots[PAGE_BLOCKS * OPAL_CRYPT_SLOT_BYTES];
    const opal_common_crypt_input_t pieces[2] = {{head, sizeof(head)}, {slots, page->count * OPAL_CRYPT_SLOT_BYTES}};

    opal_common_crypt_le_put32(head + 4, region);
    opal_common_crypt_le_put64(head + 8, number);
    for (uint32_t i = 0; i < page->count; ++i) {
        opal_common_crypt_slot_write(&page->newer[i], slots + i * OPAL_CRYPT_SLOT_BYTES);
    }
    return opal_common_crypt_hmac(of->seal_key, pieces, 2, hash);
}

static int root_of(const opal_common_crypt_file_t *file, uint32_t region, uint64_t data_bytes, uint64_t blocks,
                   const uint8_t *pages, uint8_t root[HASH_BYTES])
{
    uint8_t head[32] = {'r', 'o', 'o', 't'};
    opal_common_crypt_map_digest_t digest;
    int rc = opal_common_crypt_map_digest(file->map, &digest);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    const opal_common_crypt_input_t pieces[3] = {{head, sizeof(head)}, {digest.hash, HASH_BYTES},
                                                 {pages, pages_of(blocks) * HASH_BYTES}};
    opal_common_crypt_le_put32(head + 4, region);
    opal_common_crypt_le_put64(head + 8, file->map->generation);
    opal_common_crypt_le_put64(head + 16, data_bytes);
    opal_common_crypt_le_put64(head + 24, blocks);
    return opal_common_crypt_hmac(file->regions[region]->seal_key, pieces, 3, root);
}

static int need_key(opal_common_crypt_file_region_t *of)
{
    if (NULL == of->blocks) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    if (NULL != of->seal_key) {
        return OPAL_CRYPT_OK;
    }
    of->seal_key = opal_common_crypt_secmem_alloc(OPAL_CRYPT_SECRET_BYTES);
    return NULL == of->seal_key ? OPAL_CRYPT_ERR_MEMORY : opal_common_crypt_blocks_seal_key(of->blocks, of->seal_key);
}

/* ---- sealing ---- */

static int settle(opal_common_crypt_file_t *file, uint32_t region, uint64_t block)
{
    opal_common_crypt_work_t *work;
    opal_common_crypt_range_t range;
    opal_common_crypt_slot_t slot;
    opal_common_crypt_found_t found;
    uint64_t segment_at;
    int rc = opal_common_crypt_work_take(file, &work);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = opal_common_crypt_work_room(file, work, 1, file->map->regions[region].block_bytes);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_range_lock(file, &range, opal_common_crypt_sidecar_lock_at(region, block), 1, true);
    }
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_entries_read(file, work, region, block, 1, false, &segment_at);
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_recover(file, work, region, block, work->plain, &slot, &found);
        }
        if (OPAL_CRYPT_OK == rc) {
            rc = opal_common_crypt_settle(file, work, region, block, &slot, found, &work->slots[0]);
        }
        opal_common_crypt_range_unlock(file, &range);
    }
    opal_common_crypt_work_give(file, work);
    return rc;
}

/* Does the redo of this block hold anything but the entry's version? */
static int is_behind(opal_common_crypt_file_t *file, uint32_t region, uint64_t block, const opal_common_crypt_slot_t *newer, bool *behind)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    opal_common_crypt_sidecar_index_t index;
    opal_common_crypt_slot_t redo;
    uint8_t bytes[OPAL_CRYPT_SLOT_BYTES];
    uint64_t at = 0;

    *behind = false;
    (void) opal_common_crypt_sidecar_index(block, &index);
    int rc = newer->used ? opal_common_crypt_segment(file, region, true, index.segment, false, &at) : OPAL_CRYPT_OK;
    if (OPAL_CRYPT_OK == rc && 0 != at) {
        const opal_common_crypt_extent_t extent = {opal_common_crypt_sidecar_redo_at(at, index.within, block_bytes), bytes, sizeof(bytes)};
        rc = file->storage->read(file->storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
        *behind = OPAL_CRYPT_OK == rc && OPAL_CRYPT_OK == opal_common_crypt_slot_parse(bytes, block_bytes, &redo) && redo.used &&
                  !opal_common_crypt_slot_same(&redo, newer);
    }
    return rc;
}

/* Hash of a page whose blocks need no redo any more. */
static int seal_page(opal_common_crypt_file_t *file, uint32_t region, uint64_t number, uint64_t blocks, page_t *page,
                     uint8_t hash[HASH_BYTES], opal_common_crypt_outcome_t *outcome)
{
    uint32_t block_bytes = file->map->regions[region].block_bytes;
    bool settled = false;
    int rc = page_read(file, region, number, blocks, page);

    rc = OPAL_CRYPT_OK == rc ? page_parse(block_bytes, page) : rc;
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < page->count; ++i) {
        bool behind;
        rc = is_behind(file, region, page->first + i, &page->newer[i], &behind);
        if (OPAL_CRYPT_OK == rc && behind) {
            rc = settle(file, region, page->first + i);
            settled = true;
        }
        if (OPAL_CRYPT_OK != rc) {
            return opal_common_crypt_outcome_set(file, outcome, rc, region, page->first + i);
        }
    }
    if (OPAL_CRYPT_OK == rc && settled) {
        rc = page_read(file, region, number, blocks, page);
        rc = OPAL_CRYPT_OK == rc ? page_parse(block_bytes, page) : rc;
    }
    rc = OPAL_CRYPT_OK == rc ? page_hash(file->regions[region], region, number, page, hash) : rc;
    return OPAL_CRYPT_OK == rc ? rc : opal_common_crypt_outcome_set(file, outcome, rc, region, number * PAGE_BLOCKS);
}

/* Under the header's lock: the list, where there is room, then what points to it. */
static int list_write(opal_common_crypt_file_t *file, uint32_t region, uint64_t blocks, uint8_t *pages, const uint8_t root[HASH_BYTES])
{
    opal_common_crypt_storage_t *storage = file->storage;
    opal_common_crypt_sidecar_directory_t *directory = &file->regions[region]->directory;
    uint8_t bytes[SEAL_BYTES];
    uint64_t count = pages_of(blocks) * HASH_BYTES, size;
    int rc = opal_common_crypt_directory_read(file, region);
    uint64_t at = directory->seal_list;

    if (OPAL_CRYPT_OK == rc && count > 0 && (0 == at || count > pages_of(directory->sealed_blocks) * HASH_BYTES)) {
        rc = storage->size(storage, OPAL_CRYPT_FILE_SIDECAR, &size);
        at = OPAL_CRYPT_OK == rc ? opal_common_crypt_sidecar_end(size) : 0;
        rc = OPAL_CRYPT_OK == rc ? storage->resize(storage, OPAL_CRYPT_FILE_SIDECAR, opal_common_crypt_sidecar_end(at + count)) : rc;
    }
    if (OPAL_CRYPT_OK == rc && count > 0) {
        const opal_common_crypt_extent_t extent = {at, pages, count};
        rc = storage->write(storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
    }
    opal_common_crypt_le_put64(bytes, 0 == count ? 0 : at);
    opal_common_crypt_le_put64(bytes + 8, blocks);
    memcpy(bytes + 16, root, HASH_BYTES);
    const opal_common_crypt_extent_t extent = {opal_common_crypt_sidecar_directory_at(region) + SEAL_AT, bytes, sizeof(bytes)};
    return OPAL_CRYPT_OK == rc ? storage->write(storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1) : rc;
}

int opal_common_crypt_seal_region(opal_common_crypt_file_t *file, uint32_t region, uint64_t data_bytes,
                                  opal_common_crypt_outcome_t *outcome)
{
    uint64_t blocks = opal_common_crypt_file_blocks(file, region, data_bytes);
    uint8_t *pages = calloc(pages_of(blocks) + 1, HASH_BYTES), root[HASH_BYTES];
    page_t *page = malloc(sizeof(*page));
    opal_common_crypt_range_t header;
    int rc = NULL == pages || NULL == page ? OPAL_CRYPT_ERR_MEMORY : need_key(file->regions[region]);

    memset(outcome, 0, sizeof(*outcome));
    for (uint64_t p = 0; OPAL_CRYPT_OK == rc && p < pages_of(blocks); ++p) {
        rc = seal_page(file, region, p, blocks, page, pages + p * HASH_BYTES, outcome);
    }
    rc = OPAL_CRYPT_OK == rc ? root_of(file, region, data_bytes, blocks, pages, root) : rc;
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_range_lock(file, &header, 0, 1, true);
    }
    if (OPAL_CRYPT_OK == rc) {
        pthread_mutex_lock(&file->regions[region]->lock);
        rc = list_write(file, region, blocks, pages, root);
        pthread_mutex_unlock(&file->regions[region]->lock);
        opal_common_crypt_range_unlock(file, &header);
    }
    free(page);
    free(pages);
    return OPAL_CRYPT_OK == rc ? rc : opal_common_crypt_outcome_set(file, outcome, rc, region, 0);
}

int opal_common_crypt_seal_hash(opal_common_crypt_file_t *file, uint8_t hash[HASH_BYTES])
{
    uint32_t count = 0;
    uint8_t *roots = calloc(file->map->region_count, HASH_BYTES);
    int rc = NULL == roots ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (file->map->regions[i].encrypted) {
            pthread_mutex_lock(&file->regions[i]->lock);
            rc = opal_common_crypt_directory_read(file, i);
            memcpy(roots + HASH_BYTES * count++, file->regions[i]->directory.root, HASH_BYTES);
            pthread_mutex_unlock(&file->regions[i]->lock);
        }
    }
    const opal_common_crypt_input_t piece = {roots, (size_t) count * HASH_BYTES};
    rc = OPAL_CRYPT_OK == rc ? opal_common_crypt_sha256(&piece, 1, hash) : rc;
    free(roots);
    return rc;
}

void opal_common_crypt_seal_text(const uint8_t hash[HASH_BYTES], char text[OPAL_CRYPT_SEAL_TEXT_BYTES])
{
    opal_common_crypt_hex_write(hash, HASH_BYTES, text);
}

bool opal_common_crypt_seal_parse(const char *text, uint8_t hash[HASH_BYTES])
{
    return strlen(text) == 2 * HASH_BYTES && opal_common_crypt_hex_read(text, hash, HASH_BYTES);
}

/* ---- demanding ---- */

static int refuse(opal_common_crypt_why_t *why, const char *reason)
{
    return opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal", "%s", reason);
}

/* The list of a region, if its root is right. */
static int demand_region(opal_common_crypt_file_t *file, uint32_t region, opal_common_crypt_why_t *why)
{
    opal_common_crypt_file_region_t *of = file->regions[region];
    uint64_t blocks = opal_common_crypt_file_blocks(file, region, file->sealed_bytes);
    uint8_t root[HASH_BYTES], *pages = calloc(pages_of(blocks) + 1, HASH_BYTES);
    int rc = NULL == pages ? OPAL_CRYPT_ERR_MEMORY : need_key(of);

    rc = OPAL_CRYPT_OK == rc ? opal_common_crypt_directory_read(file, region) : rc;
    if (OPAL_CRYPT_OK == rc && (blocks != of->directory.sealed_blocks || (blocks > 0 && 0 == of->directory.seal_list))) {
        rc = refuse(why, "its list does not fit the file");
    }
    if (OPAL_CRYPT_OK == rc && blocks > 0) {
        const opal_common_crypt_extent_t extent = {of->directory.seal_list, pages, pages_of(blocks) * HASH_BYTES};
        rc = file->storage->read(file->storage, OPAL_CRYPT_FILE_SIDECAR, &extent, 1);
    }
    rc = OPAL_CRYPT_OK == rc ? root_of(file, region, file->sealed_bytes, blocks, pages, root) : rc;
    if (OPAL_CRYPT_OK == rc && 0 != opal_common_crypt_differ(root, of->directory.root, HASH_BYTES)) {
        rc = refuse(why, "it does not authenticate");
    }
    if (OPAL_CRYPT_OK != rc) {
        free(pages);
        return rc;
    }
    free(of->pages);
    of->pages = pages;
    of->page_blocks = blocks;
    return OPAL_CRYPT_OK;
}

int opal_common_crypt_seal_demand(opal_common_crypt_file_t *file, const uint8_t *wanted, opal_common_crypt_why_t *why)
{
    opal_common_crypt_sidecar_header_t header;
    uint8_t hash[HASH_BYTES];
    uint64_t bytes;
    int rc = opal_common_crypt_sidecar_read(file->storage, &header);

    rc = OPAL_CRYPT_OK == rc ? file->storage->size(file->storage, OPAL_CRYPT_FILE_DATA, &bytes) : rc;
    if (OPAL_CRYPT_OK == rc && !header.sealed) {
        rc = refuse(why, "there is none: the file was opened for writing since, or never sealed");
    }
    if (OPAL_CRYPT_OK == rc && header.sealed_size != bytes) {
        rc = refuse(why, "the size of the file is another");
    }
    file->sealed_bytes = bytes;
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (NULL != file->regions[i]->blocks) {
            rc = demand_region(file, i, why);
        }
    }
    if (OPAL_CRYPT_OK == rc && NULL != wanted) {
        rc = opal_common_crypt_seal_hash(file, hash);
        if (OPAL_CRYPT_OK == rc && 0 != opal_common_crypt_differ(hash, wanted, HASH_BYTES)) {
            rc = refuse(why, "it is of another version of the file than the hash that was given");
        }
    }
    file->sealed = OPAL_CRYPT_OK == rc;
    return OPAL_CRYPT_ERR_AUTH == rc && NULL == why->topic ? refuse(why, "it cannot be read") : rc;
}

int opal_common_crypt_seal_entries(opal_common_crypt_file_t *file, uint32_t region, uint64_t first, uint64_t count, uint8_t *entries)
{
    const opal_common_crypt_file_region_t *of = file->regions[region];
    uint8_t hash[HASH_BYTES];
    page_t *page = malloc(sizeof(*page));
    int rc = NULL == page ? OPAL_CRYPT_ERR_MEMORY : first + count > of->page_blocks ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK;

    for (uint64_t p = first / PAGE_BLOCKS; OPAL_CRYPT_OK == rc && p * PAGE_BLOCKS < first + count; ++p) {
        rc = page_read(file, region, p, of->page_blocks, page);
        rc = OPAL_CRYPT_OK == rc ? page_parse(file->map->regions[region].block_bytes, page) : rc;
        rc = OPAL_CRYPT_OK == rc ? page_hash(of, region, p, page, hash) : rc;
        if (OPAL_CRYPT_OK == rc && 0 != opal_common_crypt_differ(hash, of->pages + p * HASH_BYTES, HASH_BYTES)) {
            rc = OPAL_CRYPT_ERR_AUTH;
        }
        uint64_t from = page->first > first ? page->first : first, to = page->first + page->count;
        to = to < first + count ? to : first + count;
        if (OPAL_CRYPT_OK == rc) {
            memcpy(entries + (from - first) * OPAL_CRYPT_ENTRY_BYTES, page->entries + (from - page->first) * OPAL_CRYPT_ENTRY_BYTES,
                   (to - from) * OPAL_CRYPT_ENTRY_BYTES);
        }
    }
    free(page);
    return rc;
}

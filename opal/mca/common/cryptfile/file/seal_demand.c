/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Checking a file against its seal: for a reader that demands it, page by page
 * as entries are read; for a writer, all of it before the seal is removed.
 */
#include "seal_page.h"
#include "seal_tree.h"
#include "store.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE_BLOCKS = OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS, HASH_BYTES = OPAL_CRYPT_HASH_BYTES };

typedef opal_cryptfile_seal_page_t page_t;

static int refuse_seal(opal_crypt_why_t *why, const char *reason)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal", "%s", reason);
}

/* What the header says about the seal, and how large the file is. */
static int header_of(opal_cryptfile_t *file, opal_cryptfile_sidecar_header_t *header, opal_crypt_why_t *why)
{
    uint64_t bytes;
    int rc = opal_cryptfile_sidecar_read(file->storage, header);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_size(file, &bytes) : rc;
    if (OPAL_CRYPT_OK == rc && !header->sealed) {
        rc = refuse_seal(why, "there is none: the file was opened for writing since, or never sealed");
    }
    if (OPAL_CRYPT_OK == rc && header->sealed_size != bytes) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-seal", "the size of the file is %llu, and was %llu",
                               (unsigned long long) bytes, (unsigned long long) header->sealed_size);
    }
    return rc;
}

/* The list of a region, if its root is right. */
static int demand_region(opal_cryptfile_t *file, const opal_cryptfile_sidecar_header_t *header, uint32_t region,
                         opal_crypt_why_t *why)
{
    opal_cryptfile_region_state_t *of = file->regions[region];
    uint64_t blocks = opal_cryptfile_block_count(file, region, header->sealed_size), pages = opal_cryptfile_seal_pages(blocks);
    uint8_t root[HASH_BYTES], *hashes = calloc(pages + 1, HASH_BYTES);
    int rc = NULL == hashes ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_seal_need_key(of);

    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_directory_read(file, region) : rc;
    if (OPAL_CRYPT_OK == rc && (blocks != of->directory.sealed_blocks || (blocks > 0 && 0 == of->directory.seal_list))) {
        rc = refuse_seal(why, "its list does not fit the file");
    }
    if (OPAL_CRYPT_OK == rc && blocks > 0) {
        const opal_cryptfile_extent_t extent = {of->directory.seal_list, hashes, pages * HASH_BYTES};
        rc = file->storage->read(file->storage, OPAL_CRYPTFILE_SIDECAR, &extent, 1);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_seal_root(file, region, header->sealed_size, blocks, header->seal_id, hashes, pages, root) : rc;
    if (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(root, of->directory.root, HASH_BYTES)) {
        rc = refuse_seal(why, "it does not authenticate");
    }
    if (OPAL_CRYPT_OK != rc) {
        free(hashes);
        return rc;
    }
    free(of->pages);
    of->pages = hashes;
    of->page_blocks = blocks;
    opal_cryptfile_seal_root_take(file, region, root);
    return OPAL_CRYPT_OK;
}

/* Give ERR_AUTH a reason, if it has none yet. */
static int told(opal_crypt_why_t *why, int rc)
{
    return OPAL_CRYPT_ERR_AUTH == rc && NULL == why->topic ? refuse_seal(why, "it cannot be read") : rc;
}

int opal_cryptfile_seal_demand(opal_cryptfile_t *file, const uint8_t *wanted, opal_crypt_why_t *why)
{
    opal_cryptfile_sidecar_header_t header;
    uint8_t hash[HASH_BYTES];

    if (NULL != opal_cryptfile_one(file)) {
        return told(why, opal_cryptfile_tree_demand(file, wanted, why));
    }
    int rc = header_of(file, &header, why);

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < file->map->region_count; ++i) {
        if (NULL != file->regions[i]->blocks) {
            rc = demand_region(file, &header, i, why);
        }
    }
    if (OPAL_CRYPT_OK == rc && NULL != wanted) {
        rc = opal_cryptfile_seal_hash(file, hash);
        if (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(hash, wanted, HASH_BYTES)) {
            rc = refuse_seal(why, "it is of another version of the file than the hash that was given");
        }
    }
    file->sealed = OPAL_CRYPT_OK == rc;
    file->sealed_bytes = OPAL_CRYPT_OK == rc ? header.sealed_size : 0;
    return told(why, rc);
}

bool opal_cryptfile_sealed_bytes(const opal_cryptfile_t *file, uint64_t *bytes)
{
    *bytes = file->sealed ? file->sealed_bytes : *bytes;
    return file->sealed;
}

/* One page as stored, if it is what was sealed. */
static int page_checked(opal_cryptfile_t *file, uint32_t region, uint64_t number, page_t *page)
{
    const opal_cryptfile_region_state_t *of = file->regions[region];
    uint8_t slots[OPAL_CRYPTFILE_SEAL_PAGE_BYTES], hash[HASH_BYTES];
    int rc = opal_cryptfile_seal_page_read(file, region, number, of->page_blocks, page);

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_seal_page_slots(page, slots);
        rc = opal_cryptfile_seal_page_hash(of, region, number, slots, page->count, hash);
    }
    if (OPAL_CRYPT_OK == rc && 0 != opal_crypt_differ(hash, of->pages + number * HASH_BYTES, HASH_BYTES)) {
        rc = OPAL_CRYPT_ERR_AUTH;
    }
    return rc;
}

int opal_cryptfile_seal_check(opal_cryptfile_t *file, uint32_t region, uint64_t *bytes, opal_crypt_why_t *why)
{
    opal_cryptfile_sidecar_header_t header = {.sealed = false};
    page_t *page = malloc(sizeof(*page));
    int rc = NULL == page ? OPAL_CRYPT_ERR_MEMORY : header_of(file, &header, why);

    rc = OPAL_CRYPT_OK == rc ? demand_region(file, &header, region, why) : rc;
    *bytes = header.sealed_size;
    uint64_t pages = OPAL_CRYPT_OK == rc ? opal_cryptfile_seal_pages(file->regions[region]->page_blocks) : 0;
    for (uint64_t p = 0; OPAL_CRYPT_OK == rc && p < pages; ++p) {
        rc = page_checked(file, region, p, page);
        if (OPAL_CRYPT_ERR_AUTH == rc) {
            rc = opal_crypt_refuse(why, rc, "file-seal", "region %u: of blocks %llu to %llu some are not those that were sealed",
                                   (unsigned) region, (unsigned long long) p * PAGE_BLOCKS,
                                   (unsigned long long) p * PAGE_BLOCKS + page->count - 1);
        }
    }
    free(page);
    return told(why, rc);
}

int opal_cryptfile_seal_entries(opal_cryptfile_t *file, uint32_t region, uint64_t first, uint64_t count, uint8_t *entries)
{
    const opal_cryptfile_region_state_t *of = file->regions[region];
    page_t *page = malloc(sizeof(*page));
    int rc = NULL == page ? OPAL_CRYPT_ERR_MEMORY : first + count > of->page_blocks ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK;

    for (uint64_t p = first / PAGE_BLOCKS; OPAL_CRYPT_OK == rc && p * PAGE_BLOCKS < first + count; ++p) {
        rc = page_checked(file, region, p, page);
        uint64_t from = page->first > first ? page->first : first, to = page->first + page->count;
        to = to < first + count ? to : first + count;
        if (OPAL_CRYPT_OK == rc) {
            memcpy(entries + (from - first) * OPAL_CRYPTFILE_ENTRY_BYTES, page->entries + (from - page->first) * OPAL_CRYPTFILE_ENTRY_BYTES,
                   (to - from) * OPAL_CRYPTFILE_ENTRY_BYTES);
        }
    }
    free(page);
    return rc;
}

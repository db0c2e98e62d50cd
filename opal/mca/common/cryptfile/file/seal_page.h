/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Inside the seal: pages and roots, as sealing, demanding and watching need them.
 * docs/file-format.rst, "Seal".
 */
#ifndef OPAL_CRYPTFILE_FILE_SEAL_PAGE_H
#define OPAL_CRYPTFILE_FILE_SEAL_PAGE_H

#include "file_object.h"
#include "seal.h"

enum {
    OPAL_CRYPTFILE_SEAL_PAGE_BYTES = OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS * OPAL_CRYPTFILE_SLOT_BYTES  /* hashed, at most */
};

typedef struct opal_cryptfile_seal_page {
    uint8_t entries[OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS * OPAL_CRYPTFILE_ENTRY_BYTES];  /* as stored */
    opal_cryptfile_slot_t newer[OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS];       /* unused: a hole; plain */
    uint64_t first;
    uint32_t count;
} opal_cryptfile_seal_page_t;

static inline uint64_t opal_cryptfile_seal_pages(uint64_t blocks)
{
    return (blocks + OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS - 1) / OPAL_CRYPTFILE_SEAL_PAGE_BLOCKS;
}

/* Entries of page `number` of a region that has `blocks` blocks. */
int opal_cryptfile_seal_page_read(opal_cryptfile_t *file, uint32_t region, uint64_t number, uint64_t blocks,
                                  opal_cryptfile_seal_page_t *page);
/* What of a page is hashed and kept; count x 48 bytes. */
void opal_cryptfile_seal_page_slots(const opal_cryptfile_seal_page_t *page, uint8_t slots[OPAL_CRYPTFILE_SEAL_PAGE_BYTES]);

/* Under the region's seal key, which need_key derives. */
int opal_cryptfile_seal_need_key(opal_cryptfile_region_state_t *of);
int opal_cryptfile_seal_page_hash(const opal_cryptfile_region_state_t *of, uint32_t region, uint64_t number,
                                  const uint8_t *slots, uint32_t count, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);
/* `parts`: the region's blocks, or, of one file, the groups; `count` hashes follow. */
int opal_cryptfile_seal_root(const opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes, uint64_t parts,
                             const uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES], const uint8_t *hashes, uint64_t count,
                             uint8_t root[OPAL_CRYPT_HASH_BYTES]);

/* A file that is watched: is it as long as it has to be?  ERR_AUTH with `why`. */
int opal_cryptfile_seal_watched_size(const opal_cryptfile_t *file, uint64_t data_bytes, opal_crypt_why_t *why);

/* The same: may this page, which lies in storage now, be sealed?  Before the sealed slots of this
 * page are overwritten.  ERR_AUTH with `why` and, in *block, which one may not. */
int opal_cryptfile_seal_watched_page(opal_cryptfile_t *file, uint32_t region, uint64_t number,
                                     const opal_cryptfile_seal_page_t *page, uint64_t *block, opal_crypt_why_t *why);

/* ---- of one file ---- */

static inline int opal_cryptfile_bytes_read(opal_cryptfile_t *file, uint64_t at, void *bytes, size_t count)
{
    const opal_cryptfile_extent_t extent = {at, bytes, count};

    return 0 == count ? OPAL_CRYPT_OK : file->storage->read(file->storage, OPAL_CRYPTFILE_DATA, &extent, 1);
}

static inline int opal_cryptfile_bytes_write(opal_cryptfile_t *file, uint64_t at, const void *bytes, size_t count)
{
    const opal_cryptfile_extent_t extent = {at, (void *) (uintptr_t) bytes, count};

    return 0 == count ? OPAL_CRYPT_OK : file->storage->write(file->storage, OPAL_CRYPTFILE_DATA, &extent, 1);
}

static inline uint64_t opal_cryptfile_tree_groups(const opal_cryptfile_t *file, uint64_t size)
{
    return 0 == size ? 0 : (size - 1) / opal_cryptfile_geometry_data(opal_cryptfile_one(file)) + 1;
}

/* The pages of all groups, from entries, each of which says, with `match`, what it has; or as the tables of the lowest level have
 * them. */
int opal_cryptfile_tree_pages(opal_cryptfile_t *file, uint64_t size, bool match, uint8_t *pages);
int opal_cryptfile_tree_pages_stored(opal_cryptfile_t *file, uint64_t size, uint8_t *pages);
/* What the record says is the root of an encrypted region. */
int opal_cryptfile_tree_root_stored(opal_cryptfile_t *file, uint32_t region, uint8_t root[OPAL_CRYPT_HASH_BYTES]);
/* From pages, in `hashes`, to the top, in the first of them: tables are written, or compared. */
int opal_cryptfile_tree_climb(opal_cryptfile_t *file, uint8_t *hashes, uint64_t count, bool write);

#endif

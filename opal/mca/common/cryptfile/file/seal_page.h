/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Inside the seal: fields, pages and tables, as sealing, demanding and watching need them.
 * docs/file-format.rst, "Seal".
 */
#ifndef OPAL_CRYPTFILE_FILE_SEAL_PAGE_H
#define OPAL_CRYPTFILE_FILE_SEAL_PAGE_H

#include "file_object.h"
#include "seal.h"

/* Is a watched file as long as it must be?  ERR_AUTH with `why`. */
int opal_cryptfile_seal_watched_size(const opal_cryptfile_t *file, uint64_t data_bytes, opal_crypt_why_t *why);

/* May a block be sealed: `newer`, which its entry has, and what that was written on top of?  `before`: the sealed
 * field that the previous seal has for it; NULL: nothing. */
int opal_cryptfile_seal_watched_block(const opal_cryptfile_t *file, uint32_t region, uint64_t block, const opal_cryptfile_slot_t *newer,
                                      const uint8_t *before, opal_crypt_why_t *why);
int opal_cryptfile_seal_foreign(opal_crypt_why_t *why, uint32_t region, uint64_t block);

/* A region's blocks in a group: how many, and how many of them begin below the size; and the number of the first. */
uint64_t opal_cryptfile_tree_blocks(const opal_cryptfile_t *file, uint32_t region, uint64_t group, uint64_t size, uint64_t *below);
uint64_t opal_cryptfile_tree_first(const opal_cryptfile_t *file, uint32_t region, uint64_t group);
/* The sealed field of a version: its hash, or zeros for a hole. */
int opal_cryptfile_tree_field(const opal_cryptfile_slot_t *slot, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);
/* A group's entries as stored, *bytes, malloc'd. */
int opal_cryptfile_tree_group(opal_cryptfile_t *file, uint64_t group, uint64_t size, uint8_t **bytes);

/* What must be true of a group's entries. */
typedef enum opal_cryptfile_page_demand {
    OPAL_CRYPTFILE_PAGE_ANY,
    OPAL_CRYPTFILE_PAGE_MATCHES,                /* each has the version that its field says */
    OPAL_CRYPTFILE_PAGE_ACCEPTED                /* fields are those that this process accepted (region state, `accepted`) */
} opal_cryptfile_page_demand_t;

/* The page of a group from its entries, those of the first `regions` regions; ERR_AUTH.  `entries` is overwritten. */
int opal_cryptfile_tree_page(const opal_cryptfile_t *file, uint32_t regions, uint64_t group, uint64_t size, uint8_t *entries,
                             opal_cryptfile_page_demand_t demand, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);

static inline int opal_cryptfile_bytes_read(opal_cryptfile_t *file, uint64_t at, void *bytes, size_t count)
{
    const opal_cryptfile_extent_t extent = {at, bytes, count};

    return 0 == count ? OPAL_CRYPT_OK : file->storage->read(file->storage, &extent, 1);
}

static inline int opal_cryptfile_bytes_write(opal_cryptfile_t *file, uint64_t at, const void *bytes, size_t count)
{
    const opal_cryptfile_extent_t extent = {at, (void *) (uintptr_t) bytes, count};

    return 0 == count ? OPAL_CRYPT_OK : file->storage->write(file->storage, &extent, 1);
}

static inline uint64_t opal_cryptfile_tree_groups(const opal_cryptfile_t *file, uint64_t size)
{
    return 0 == size ? 0 : (size - 1) / opal_cryptfile_geometry_data(opal_cryptfile_geometry_of(file)) + 1;
}

/* The pages of all groups, from entries; or as the tables of the lowest level have them. */
int opal_cryptfile_tree_pages(opal_cryptfile_t *file, uint64_t size, opal_cryptfile_page_demand_t demand, uint8_t *pages);
int opal_cryptfile_tree_pages_stored(opal_cryptfile_t *file, uint64_t size, uint8_t *pages);
/* The root of an encrypted region, as the record has it. */
int opal_cryptfile_tree_root_stored(opal_cryptfile_t *file, uint32_t region, uint8_t root[OPAL_CRYPT_HASH_BYTES]);
typedef enum opal_cryptfile_tables {
    OPAL_CRYPTFILE_TABLES_COMPARE,
    OPAL_CRYPTFILE_TABLES_WRITE,
    OPAL_CRYPTFILE_TABLES_LEAVE
} opal_cryptfile_tables_t;

/* From the pages in `hashes` up to the top, which replaces the first of them. */
int opal_cryptfile_tree_climb(opal_cryptfile_t *file, uint8_t *hashes, uint64_t count, opal_cryptfile_tables_t tables);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making and checking the seal of a file: docs/file-format.rst, "Seal".
 *
 *     sealed fields of a group --> page --128 at a time--> tables of levels 1 to 4 --> top --> root of each region
 *     roots of all regions --> one hash for the user to keep
 *
 *     record | state 4 | 0 4 | size 8 | seal id 16 | top 32 | 0 16 | root 32 for each encrypted region |
 *
 * Made in this order, while nobody writes: in a watched file, accept what may be sealed; the fields of each region, by
 * a process that has its key; the tree, by any process; the roots, by those that have the keys; then the record.
 */
#ifndef OPAL_CRYPTFILE_FILE_SEAL_TREE_H
#define OPAL_CRYPTFILE_FILE_SEAL_TREE_H

#include "seal.h"

#pragma GCC visibility push(default)

typedef struct opal_cryptfile_tree {
    uint64_t size;                      /* of the file */
    uint8_t id[OPAL_CRYPTFILE_SEAL_ID_BYTES], top[OPAL_CRYPT_HASH_BYTES];
} opal_cryptfile_tree_t;

/* Finish the region's overwrites that were cut short, and write the sealed field of each of its entries. */
int opal_cryptfile_tree_fields(opal_cryptfile_t *file, uint32_t region, uint64_t size, opal_cryptfile_outcome_t *outcome);
/* Before that, in a watched file: may the region's blocks be sealed?  ERR_AUTH with `why`.  A tree that this process
 * makes afterwards takes no other fields of this region. */
int opal_cryptfile_tree_accept(opal_cryptfile_t *file, uint32_t region, uint64_t size, opal_cryptfile_outcome_t *outcome, opal_crypt_why_t *why);
/* The top, for tree->size, and tables, unless another process writes them.  ERR_AUTH: fields are not those that were accepted. */
int opal_cryptfile_tree_make(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, bool write);
/* The root of a region whose key this process has: for seal_root_of. */
int opal_cryptfile_tree_root(opal_cryptfile_t *file, uint32_t region, const opal_cryptfile_tree_t *tree);
/* Write the record, with the roots of all regions, which this process made or took: now the file is sealed. */
int opal_cryptfile_tree_finish(opal_cryptfile_t *file, const opal_cryptfile_tree_t *tree);

/* Is the file what was sealed, as far as this process has keys?  `hash`: for the user.  Pages are kept, for watching.
 * ERR_AUTH with `why`. */
int opal_cryptfile_tree_check(opal_cryptfile_t *file, opal_cryptfile_tree_t *tree, uint8_t hash[OPAL_CRYPT_HASH_BYTES], opal_crypt_why_t *why);
/* After that: mark the file as open. */
int opal_cryptfile_tree_unseal(opal_cryptfile_t *file);

#pragma GCC visibility pop

#endif

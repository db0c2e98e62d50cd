/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Plaintext of blocks that were opened, in secret memory (crypt/base/secmem.h).  A block is used only while the file is
 * as it was when the block was read: its size and times.
 *
 * Threads: any.
 */
#ifndef MPICRYPT_FILE_CACHE_H
#define MPICRYPT_FILE_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the file was like; zeros for a sealed one, which has only one state. */
typedef struct mpicrypt_stamp {
    int64_t changed, modified;          /* nanoseconds since 1970 */
    uint64_t bytes;
} mpicrypt_stamp_t;

typedef struct mpicrypt_block_name {
    uint64_t block;
    uint32_t region, block_bytes;
} mpicrypt_block_name_t;

typedef struct mpicrypt_cache mpicrypt_cache_t;

/* Of at most this many bytes.  NULL: no memory. */
mpicrypt_cache_t *mpicrypt_cache_new(uint64_t most);
void mpicrypt_cache_free(mpicrypt_cache_t *cache);              /* wipes; NULL allowed */

bool mpicrypt_cache_fits(const mpicrypt_cache_t *cache, uint32_t block_bytes);

/* Copy a part of a block; false: it is not there. */
bool mpicrypt_cache_copy(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name, const mpicrypt_stamp_t *stamp,
                         uint32_t within, void *to, size_t bytes);

/* Secret memory for a block that fits, which is put in once it has its text, or freed with secmem_free. */
uint8_t *mpicrypt_cache_room(mpicrypt_cache_t *cache, uint32_t block_bytes);
void mpicrypt_cache_put(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name, const mpicrypt_stamp_t *stamp, uint8_t *text);

#endif

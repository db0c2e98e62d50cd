/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An open encrypted file: reading and writing any bytes of it by sealing and
 * opening whole blocks.  docs/file-format.rst has the layout.
 *
 *     requests --plan--> pieces by region and place --> runs of blocks
 *     write  lock | entries | old blocks | marks | seal | rooms | data | entries | unlock
 *     read   entries | data | open;  what does not open: lock, and again
 *
 * Nothing here knows a file system: bytes come and go through a table that the
 * caller fills, so the same code serves MPI jobs, tools and tests.
 *
 * Threads: any thread may call read, write, resize and check at any time; everything
 * else is for one thread, while no other call runs.
 */
#ifndef OPAL_CRYPTFILE_FILE_FILE_H
#define OPAL_CRYPTFILE_FILE_FILE_H

#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/patience.h"
#include "map.h"
#include "slot.h"
#include "opal/mca/common/cryptfile/keystore/keystore.h"

#pragma GCC visibility push(default)

/* ---- the table ---- */

typedef struct opal_cryptfile_extent {
    uint64_t at;
    void *bytes;
    size_t count;
} opal_cryptfile_extent_t;

/* How long a caller has waited; zeroed at first. */
typedef struct opal_cryptfile_wait {
    uint64_t since;                     /* nanoseconds */
    opal_crypt_patience_t silent, patient;
    bool said;
} opal_cryptfile_wait_t;

/* All functions return OPAL_CRYPT_OK, or ERR_STORAGE with errno set.  Extents
 * are disjoint and in ascending order. */
typedef struct opal_cryptfile_storage opal_cryptfile_storage_t;
struct opal_cryptfile_storage {
    /* Bytes beyond the end read as zeros. */
    int (*read)(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t extent_count);
    int (*write)(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t extent_count);
    int (*size)(opal_cryptfile_storage_t *storage, uint64_t *bytes);
    int (*resize)(opal_cryptfile_storage_t *storage, uint64_t bytes);
    /* Write zeros, and release the storage where possible. */
    int (*zero)(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes);
    /* Wait for a lock on these bytes, which lie far beyond any end, against other processes,
     * on any node; the engine itself keeps the threads of this process apart. */
    int (*lock)(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive);
    int (*unlock)(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes);
    /* The same as lock without waiting.  *got: the bytes are locked now. */
    int (*try_lock)(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got);
    /* Return once everything that any process wrote survives a loss of power.
     * NULL: not asked for: processes may die, but nodes may not. */
    int (*barrier)(opal_cryptfile_storage_t *storage);
    /* The same for rare writes, which are ordered whether that was asked for or not; NULL: storage is memory. */
    int (*sync)(opal_cryptfile_storage_t *storage);
    /* Wait a moment: another process has locked the byte, and blocking on the lock could deadlock.  The storage
     * reports a long wait, and ends it with ETIMEDOUT.  NULL: it does neither. */
    int (*wait_once)(opal_cryptfile_storage_t *storage, uint64_t at, opal_cryptfile_wait_t *wait);
};

static inline int opal_cryptfile_storage_sync(opal_cryptfile_storage_t *storage)
{
    return NULL == storage->sync ? OPAL_CRYPT_OK : storage->sync(storage);
}

/* ---- from creation to the end ---- */

typedef struct opal_cryptfile opal_cryptfile_t;

typedef struct opal_cryptfile_of {
    opal_cryptfile_storage_t *storage;
    /* The provider for a cipher, or NULL. */
    const opal_aead_module_t *(*provider)(void *arg, opal_aead_cipher_t cipher);
    void *arg;
    uint32_t part_bytes;                /* sealed and written at a time; 0: the default */
} opal_cryptfile_of_t;

int opal_cryptfile_create(const opal_cryptfile_of_t *of, opal_cryptfile_t **file);
void opal_cryptfile_destroy(opal_cryptfile_t *file);                     /* wipes; NULL allowed */
/* Before the first call: work in secret memory, so that no plaintext is left on the heap. */
void opal_cryptfile_work_secret(opal_cryptfile_t *file);

/* What this process may do in a region: set by unlocking the map. */
typedef struct opal_cryptfile_key {
    uint8_t *data_key;                  /* 32 bytes of secret memory; NULL: none */
    opal_cryptfile_grant_t grant;
} opal_cryptfile_key_t;

/* Use this map from now on.  The file takes it over; the keys remain the
 * caller's.  A map with the same UUID only adds regions to the one in use. */
int opal_cryptfile_use(opal_cryptfile_t *file, opal_cryptfile_map_t *map,
                       const opal_cryptfile_key_t *keys);
const opal_cryptfile_map_t *opal_cryptfile_map_of(const opal_cryptfile_t *file);                  /* NULL: none */

/* From now on allow at most this in the region, plain or encrypted: reading (GRANT_OPEN) or
 * writing (GRANT_SEAL); a map may allow more than a program asked for. */
void opal_cryptfile_limit(opal_cryptfile_t *file, uint32_t region, opal_cryptfile_grant_t most);
opal_cryptfile_grant_t opal_cryptfile_limited(const opal_cryptfile_t *file, uint32_t region);

/* ---- data ---- */

/* The members are in the order of OMPIO's lists: fbtl/crypt passes those in unchanged. */
typedef struct __attribute__((may_alias)) opal_cryptfile_request {
    void *memory;                       /* plaintext */
    uint64_t offset;                    /* of the file */
    size_t bytes;
} opal_cryptfile_request_t;

/* What a call did, or where it failed first. */
typedef struct opal_cryptfile_outcome {
    uint64_t bytes;                     /* read before the end of the file, or written */
    int rc;                             /* what the call returned */
    uint32_t region;                    /* UINT32_MAX: none, or unknown */
    uint64_t block, file_offset;
    int error;                          /* errno, for ERR_STORAGE */
    bool torn;                          /* this block was treated like a hole by a write: its first write was */
    uint32_t torn_region;               /* cut short.  Only the first one of an open file */
    uint64_t torn_block;
} opal_cryptfile_outcome_t;

/* Fill all requests.  Bytes beyond the end of the file are left alone and not
 * counted.  On failure every byte of every request is zero.  `atomic`: no
 * other process writes between two parts of this call. */
int opal_cryptfile_read(opal_cryptfile_t *file, const opal_cryptfile_request_t *requests,
                        size_t request_count, bool atomic, opal_cryptfile_outcome_t *outcome);

/* Where a byte is: `within` its block, and how many bytes of the block follow it in the file, with it. */
typedef struct opal_cryptfile_spot {
    uint32_t region, within;
    uint64_t block, together;
    bool encrypted;                     /* else block and within are 0 */
} opal_cryptfile_spot_t;

/* False: no region has this byte.  *hint, 0 at first: as for map_find. */
bool opal_cryptfile_spot(const opal_cryptfile_t *file, uint32_t *hint, uint64_t offset, opal_cryptfile_spot_t *spot);

/* Open one block of an encrypted region; `text` has its block size, and is filled up with zeros; on failure, all of
 * it is zero. */
int opal_cryptfile_read_block(opal_cryptfile_t *file, uint32_t region, uint64_t block, uint8_t *text,
                              opal_cryptfile_outcome_t *outcome);

/* Write all requests; their memory is not changed.  ERR_ACCESS, and any fault
 * of a block that is only partly overwritten, is returned before that block is
 * touched, but earlier blocks may have been written. */
int opal_cryptfile_write(opal_cryptfile_t *file, const opal_cryptfile_request_t *requests,
                         size_t request_count, bool atomic, opal_cryptfile_outcome_t *outcome);

/* Cut or lengthen the file.  Needs the keys of the blocks that are cut. */
int opal_cryptfile_resize(opal_cryptfile_t *file, uint64_t bytes,
                          opal_cryptfile_outcome_t *outcome);

/* ---- checking ---- */

typedef enum {
    OPAL_CRYPTFILE_BLOCK_HOLE,          /* never written */
    OPAL_CRYPTFILE_BLOCK_GOOD,
    OPAL_CRYPTFILE_BLOCK_BEHIND,        /* an overwrite was cut short; its room has what finishing it takes */
    OPAL_CRYPTFILE_BLOCK_TORN,          /* a first write was cut short */
    OPAL_CRYPTFILE_BLOCK_BAD            /* forged or damaged */
} opal_cryptfile_block_condition_t;

/* The condition of a block; *plain_bytes is its length. */
int opal_cryptfile_check(opal_cryptfile_t *file, uint32_t region, uint64_t block,
                         opal_cryptfile_block_condition_t *condition, uint32_t *plain_bytes);

/* Finish the overwrite of a block that is behind; what a reader finds does not change. */
int opal_cryptfile_finish_block(opal_cryptfile_t *file, uint32_t region, uint64_t block);

/* The file's size. */
int opal_cryptfile_size(opal_cryptfile_t *file, uint64_t *bytes);

/* All blocks of a region that begin below this size have numbers below the result.  Where the region does not fill its
 * groups, some of these numbers are unused. */
uint64_t opal_cryptfile_block_count(const opal_cryptfile_t *file, uint32_t region, uint64_t data_bytes);
/* The first block from this number on, or `end`; and how many are contiguous from this one on (0: no such block). */
uint64_t opal_cryptfile_block_next(const opal_cryptfile_t *file, uint32_t region, uint64_t block, uint64_t end);
uint64_t opal_cryptfile_together(const opal_cryptfile_t *file, uint32_t region, uint64_t block);
/* The offset of a block's first byte. */
uint64_t opal_cryptfile_block_offset(const opal_cryptfile_t *file, uint32_t region, uint64_t block);

#pragma GCC visibility pop

#endif

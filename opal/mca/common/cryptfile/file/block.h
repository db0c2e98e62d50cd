/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing and opening one block of a region.  docs/file-format.rst, "Blocks".
 *
 *     data key --S--> block key;  nonce = 0^4 || counter
 *     AAD = UUID 16 | region 4 | B 4 | block 8 | length 4
 *     ciphertext in place of the plaintext, { S, counter, tag, length } in a slot
 *
 * Threads: everything but create and destroy may be called by any thread.
 */
#ifndef OPAL_CRYPTFILE_FILE_BLOCK_H
#define OPAL_CRYPTFILE_FILE_BLOCK_H

#include "opal/mca/common/crypt/base/base.h"
#include "map.h"
#include "slot.h"
#include "opal/mca/aead/aead_module.h"

#define OPAL_CRYPTFILE_BLOCK_AAD_BYTES  36
#define OPAL_CRYPTFILE_BLOCKS_END       (UINT64_C(1) << 52)  /* block numbers are below: 512 bytes each, file of 2^61 */
#define OPAL_CRYPTFILE_SALT_LIMIT_BYTES (UINT64_C(1) << 42)  /* sealed under one S, at most */

/* One region of one open file. */
typedef struct opal_cryptfile_blocks opal_cryptfile_blocks_t;

typedef struct opal_cryptfile_blocks_of {
    const opal_aead_module_t *aead;
    opal_aead_cipher_t cipher;
    uint32_t block_bytes, region;
    const uint8_t *uuid;                /* 16, copied */
    const uint8_t *data_key;            /* 32, copied; the caller's own copy can be wiped */
    uint64_t salt_limit;                /* 0: OPAL_CRYPTFILE_SALT_LIMIT_BYTES; tests lower it */
} opal_cryptfile_blocks_of_t;

int opal_cryptfile_blocks_create(const opal_cryptfile_blocks_of_t *of,
                                 opal_cryptfile_blocks_t **blocks);
void opal_cryptfile_blocks_destroy(opal_cryptfile_blocks_t *blocks);           /* wipes; NULL allowed */

/* The key of the region's seal; secret. */
int opal_cryptfile_blocks_seal_key(const opal_cryptfile_blocks_t *blocks, uint8_t key[OPAL_CRYPT_SECRET_BYTES]);

/* How many S were drawn here so far; number `which` is copied to `salt`, unless that is NULL. */
size_t opal_cryptfile_blocks_salts(const opal_cryptfile_blocks_t *blocks, uint8_t *salt, size_t which);
bool opal_cryptfile_blocks_drew(const opal_cryptfile_blocks_t *blocks, const uint8_t salt[OPAL_CRYPTFILE_SALT_BYTES]);

/* Seal `plain_bytes` (1 .. B) as block `block`; writes as many bytes to
 * `cipher` (in place allowed), and all of *slot but the generation bit.
 * ERR_FORKED in a child of the process that created `blocks`. */
int opal_cryptfile_block_seal(opal_cryptfile_blocks_t *blocks, uint64_t block,
                              const void *plain, uint32_t plain_bytes,
                              void *cipher, opal_cryptfile_slot_t *slot);

/* Open slot->plain_bytes of `cipher` (in place allowed).  ERR_AUTH, with as
 * many zeros in `plain`: no key holder sealed this as this block. */
int opal_cryptfile_block_open(opal_cryptfile_blocks_t *blocks, uint64_t block,
                              const opal_cryptfile_slot_t *slot,
                              const void *cipher, void *plain);

#endif

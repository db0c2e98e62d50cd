/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The steps by which an encrypted file is opened, for libmpicrypt_file and `mpicrypt file`.  Nothing that they read is
 * trusted before a key has verified a copy of the map.
 *
 *     begin: a regular file, and encrypted | take: the lock of its users | header | judge: copies of the map
 *     | choose: the copy that counts | label, seal: what the caller expects
 */
#ifndef MPICRYPT_FILE_OPENING_H
#define MPICRYPT_FILE_OPENING_H

#include "lib/mpicrypt_file/error.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal.h"

/* A file that is being opened, and what was found. */
typedef struct mpicrypt_opening {
    const char *name;                   /* begins messages; NULL: the caller does that */
    const char *path;                   /* NULL: opened by descriptor */
    ompi_common_cryptmpio_posix_t *posix;
    mpicrypt_file_error_t *error;
    bool busy;                          /* another user has it */
    opal_cryptfile_header_t header;
    bool sealed;                        /* its header says so */
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    opal_cryptfile_copy_t best;         /* counts */
    bool differ;                        /* another copy says something else */
} mpicrypt_opening_t;

/* Each returns a status, and sets the error if that is not OK. */

int mpicrypt_opening_begin(mpicrypt_opening_t *o);

/* Until the file is closed.  `alone`: nobody else may use it; else it is shared with users who do not want that, and a
 * file system without locks is accepted. */
int mpicrypt_opening_take(mpicrypt_opening_t *o, bool alone);

int mpicrypt_opening_header(mpicrypt_opening_t *o);

/* The keystore may be NULL. */
int mpicrypt_opening_judge(mpicrypt_opening_t *o, opal_cryptfile_keystore_t *keystore);
int mpicrypt_opening_choose(mpicrypt_opening_t *o);

/* Every encrypted region must be under this label. */
int mpicrypt_opening_label(const mpicrypt_opening_t *o, const opal_cryptfile_map_t *map, const char *label);

/* From now on only what was sealed can be read.  `wanted`: the root that is expected; NULL: any.  `root`: it is set. */
int mpicrypt_opening_seal(const mpicrypt_opening_t *o, opal_cryptfile_t *engine, const uint8_t *wanted,
                          uint8_t root[OPAL_CRYPT_HASH_BYTES]);

/* Free the copies; what the caller keeps of the best one it has set to NULL there. */
void mpicrypt_opening_end(mpicrypt_opening_t *o);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the parts of libmpicrypt_file share.  An open file is an engine of its own (opal/mca/common/cryptfile/file) on
 * a descriptor that is read only:
 *
 *     api.c     exported calls: arguments, fork, cancellation
 *     start.c   the core, once in a process, and again in a forked child
 *     open.c    from a descriptor to an engine whose map has verified, by the steps of opening.c
 *     read.c    large reads by the engine into the caller's memory, small ones by way of cache.c
 *     about.c   regions, runs and the rest of the map
 *     verify.c  every block
 *     error.c   sentences
 */
#ifndef MPICRYPT_FILE_READER_H
#define MPICRYPT_FILE_READER_H

#include <stdbool.h>

#include "lib/mpicrypt_file/cache.h"
#include "lib/mpicrypt_file/error.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"
#include "opal/mca/common/crypt/base/team.h"

struct mpicrypt_file {
    char *name;                                 /* for messages */
    unsigned born;                              /* mpicrypt_start_generation() at opening */
    bool plain;                                 /* a plain file, and the caller allowed it: no engine */
    ompi_common_cryptmpio_posix_t posix;
    opal_cryptfile_t *engine;
    bool *readable;                             /* of each region: it is plain, or its key is here */
    uint64_t generation;
    bool sealed;
    char seal_root[65];
    mpicrypt_cache_t *cache;                    /* NULL: none */
    opal_crypt_team_t *team;                    /* NULL: no threads of ours */
    unsigned threads;
};

/* The caller's options, checked and copied. */
typedef struct mpicrypt_asked {
    const char *label, *keystore;
    bool sealed, plain;
    uint8_t seal_root[OPAL_CRYPT_HASH_BYTES];   /* if sealed */
    uint64_t cache_bytes;
    unsigned threads;
} mpicrypt_asked_t;

/* ---- start.c ---- */

/* Before the first key of this process, and before any other call of the core. */
int mpicrypt_start(const char *name, mpicrypt_file_error_t *error);
/* Another one in a forked child, once it has called mpicrypt_start. */
unsigned mpicrypt_start_generation(void);
/* Was this opened by a process that forked us?  Then nothing of it but the descriptor can be used. */
bool mpicrypt_start_foreign(const mpicrypt_file_t *file);
/* The provider for the engine. */
const opal_aead_module_t *mpicrypt_start_provider(void *arg, opal_aead_cipher_t cipher);

/* ---- the calls, without checks of arguments ---- */

/* Takes the descriptor over, also on failure.  `path`: NULL, or what was opened. */
int mpicrypt_open(int fd, const char *path, const char *name, const mpicrypt_asked_t *asked, mpicrypt_file_t **file,
                  mpicrypt_file_error_t *error);
void mpicrypt_close(mpicrypt_file_t *file);
int mpicrypt_read(mpicrypt_file_t *file, uint64_t offset, uint8_t *memory, size_t bytes, size_t *got, mpicrypt_file_error_t *error);
int mpicrypt_size(mpicrypt_file_t *file, uint64_t *bytes, mpicrypt_file_error_t *error);
void mpicrypt_info(const mpicrypt_file_t *file, mpicrypt_file_info_t *info);
int mpicrypt_region(const mpicrypt_file_t *file, uint32_t region, mpicrypt_file_region_t *about, mpicrypt_file_error_t *error);
int mpicrypt_runs(const mpicrypt_file_t *file, uint32_t region, uint64_t first, uint64_t *pairs, size_t count,
                  mpicrypt_file_error_t *error);
int mpicrypt_verify(mpicrypt_file_t *file, int (*progress)(void *arg, uint64_t done, uint64_t of), void *arg, int *stopped,
                    mpicrypt_file_error_t *error);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt file`: opening an encrypted file without a job, and
 * the operations on it.
 */
#ifndef MPICRYPT_FILE_FILE_H
#define MPICRYPT_FILE_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "ompi/tools/mpicrypt/key/keystore.h"
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"

/* The values of the command's options. */
typedef struct mpicrypt_file_options {
    mpicrypt_keystore_t keystore;
    const char *recovery;               /* PEM of a recovery key; NULL: none */
    const char *label, *algorithm;      /* of a new file */
    mpicrypt_sizes_t block_size;        /* one value */
    bool sparse;                        /* encrypt: blocks of zeros become holes */
    bool json;
    bool go_on;                         /* go on without a keystore, after a message */
    bool sealed;                        /* demand a seal */
    bool new_key;                       /* cp: with new data keys */
    bool alone;                         /* exclusive: no other process may have the file open; else shared */
    bool anew;                          /* seal: even if the previous seal does not fit */
    const char *root;                   /* demand this hash; NULL: any */
} mpicrypt_file_options_t;

typedef struct mpicrypt_file {
    const char *path;
    char *sidecar;
    ompi_common_cryptmpio_posix_t posix;
    uint64_t bytes;
    opal_cryptfile_keystore_t *keystore;        /* NULL: none could be opened */
    opal_cryptfile_sidecar_header_t header;     /* in one file: only seal and UUID */
    opal_cryptfile_header_t beginning;  /* of a file that is one file; zeros: it has a sidecar */
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    int best;                           /* the copy chosen; -1: none, `why` says why */
    bool differ;                        /* one file: another copy says something else */
    opal_crypt_why_t why;
    opal_cryptfile_t *file;             /* the engine, which owns its map; NULL without a key */
    opal_cryptfile_map_t *map;          /* the engine's */
    opal_cryptfile_key_t *keys; /* of its regions */
    bool recovered;                     /* one of them is from the escrow only */
} mpicrypt_file_t;

/* ---- file/open.c ---- */

/* Open both parts, judge the copies of the map, and create the engine if one of
 * them verifies; `best` says whether.  On failure, prints a message and returns its exit code. */
int mpicrypt_file_open(const mpicrypt_file_options_t *options, const char *path, bool may_write, mpicrypt_file_t *file);

/* Judge a copy; and choose the one that counts: -1 with file->why. */
int mpicrypt_file_judge_copy(mpicrypt_file_t *file, opal_cryptfile_copy_t copy);
int mpicrypt_file_choose(mpicrypt_file_t *file);

/* Read the header of a file that is one file, when it is in use. */
int mpicrypt_file_beginning(mpicrypt_file_t *file);
/* Make one from an empty file and the map, which has a geometry; and seal it; return codes of the core. */
int mpicrypt_file_make_one(mpicrypt_file_t *file);
int mpicrypt_file_seal_one(mpicrypt_file_t *file, opal_cryptfile_outcome_t *outcome);
/* Is it what was sealed, and by which seal?  An exit code. */
int mpicrypt_file_root_one(mpicrypt_file_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);
/* Its map replaces `now`: write it to both places, then to the attribute; return codes of the core. */
int mpicrypt_file_change_one(mpicrypt_file_t *file, const opal_cryptfile_map_t *now);
/* A deep copy of the map; return codes of the core. */
int mpicrypt_file_map_copy(const opal_cryptfile_map_t *map, opal_cryptfile_map_t **copy);

/* Print the message for a sidecar that was found, but must not be renamed; returns its exit code. */
int mpicrypt_file_elsewhere(const char *path, const char *found, const char *sidecar);

/* Copy owner, group, mode and access control list of `of` to a file that replaces it; false: errno. */
bool mpicrypt_file_own_as(int fd, int of);

/* The mode for a new file of one's own made from `of`: without group rights if `of` has an access control list. */
unsigned mpicrypt_file_mode(int of, const struct stat *status);

/* After the last write to a file made with this mode: take the owner's rights that the mode does not grant; false:
 * errno. */
bool mpicrypt_file_protect(const mpicrypt_file_t *file, unsigned mode);

/* With both parts open: mark them as in use until they are closed.  Prints a message if that fails. */
int mpicrypt_file_take(const mpicrypt_file_t *file, bool alone);

/* As mpicrypt_file_open, and refuse a file whose map does not verify, or which lacks
 * the seal that the options demand. */
int mpicrypt_file_open_verified(const mpicrypt_file_options_t *options, const char *path, bool may_write,
                                mpicrypt_file_t *file);

/* Refuse, with a message, if a key is from the escrow only: anybody may have made the file; no label vouches for it. */
int mpicrypt_file_proved(const mpicrypt_file_t *file);

/* As opal_cryptfile_seal_demand; then file->bytes is the sealed size. */
int mpicrypt_file_demand(mpicrypt_file_t *file, const uint8_t *wanted, opal_crypt_why_t *why);

/* Create an empty encrypted file with one region for all bytes, of this mode, but writable for its owner until
 * mpicrypt_file_protect.  A failure leaves nothing behind. */
int mpicrypt_file_make(const mpicrypt_file_options_t *options, const char *path, unsigned mode, mpicrypt_file_t *file);

/* The same with the regions of another file: same labels, new data keys, and a UUID that begins with `number`. */
int mpicrypt_file_make_like(const mpicrypt_file_options_t *options, const mpicrypt_file_t *like, const char *path, unsigned mode,
                            uint64_t number, mpicrypt_file_t *file);

void mpicrypt_file_close(mpicrypt_file_t *file);

/* Print the error of an engine transfer; returns MPICRYPT_FAILED. */
int mpicrypt_file_failed(const mpicrypt_file_t *file, const opal_cryptfile_outcome_t *outcome);

/* Seal a file whose blocks can all be read, and print the root. */
int mpicrypt_file_make_seal(mpicrypt_file_t *file);

/* Check all regions that we have keys for against the file's seal, if any; prints a message if they do not match. */
int mpicrypt_file_check_seal(mpicrypt_file_t *file);

/* Results besides the blocks: the seal is valid, or absent; the copies of the map are as they should be. */
typedef struct mpicrypt_file_around {
    bool seal, copies;
} mpicrypt_file_around_t;

/* Open every block and print the result: as JSON, with `around`, or (NULL) as tables. */
int mpicrypt_file_check(const mpicrypt_file_t *file, const mpicrypt_file_around_t *around);

/* ---- file/part.c: one file at a time is being created ---- */

/* Sync the name to storage, too. */
int mpicrypt_file_name_stays(const char *path);

/* The name to work under, for `to`, which does not exist.  Until finish, drop and signals
 * delete the file of that name and its sidecar. */
int mpicrypt_file_begin(const char *to, bool with_sidecar, const char **name, uint64_t *number);
int mpicrypt_file_finish(const char *to, bool with_sidecar);    /* drops it on failure */
void mpicrypt_file_drop(void);

/* To replace the existing `to` and its sidecar: the sidecar first, then the data. */
int mpicrypt_file_begin_over(const char *to, const char **name, uint64_t *number);
int mpicrypt_file_finish_over(const char *to);
/* Only the part, and only over the file that was copied, of which this was the status before. */
int mpicrypt_file_finish_one(const char *to, const struct stat *was);

/* The part's name for a number; false: too long. */
bool mpicrypt_file_part_name(const char *to, uint64_t number, char name[PATH_MAX]);

/* Never over an existing file (file/mv.c). */
int mpicrypt_file_rename(const char *from, const char *to);

/* ---- the commands, mostly in a file each; they return exit codes ---- */

int mpicrypt_file_info(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_verify(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_seal(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_encrypt(const mpicrypt_file_options_t *options, const char *from, const char *to);
int mpicrypt_file_decrypt(const mpicrypt_file_options_t *options, const char *from, const char *to);
int mpicrypt_file_rekey(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_cp(const mpicrypt_file_options_t *options, const char *from, const char *to);
int mpicrypt_file_reencrypt(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_compact(const mpicrypt_file_options_t *options, const char *path);
int mpicrypt_file_mv(const char *from, const char *to);

#endif

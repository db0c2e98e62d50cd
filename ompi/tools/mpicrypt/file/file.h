/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The pieces of `mpicrypt file`: an encrypted file that no job needs to have
 * open, and what is done with it.
 */
#ifndef MPICRYPT_FILE_FILE_H
#define MPICRYPT_FILE_FILE_H

#include <limits.h>
#include <sys/stat.h>

#include "ompi/tools/mpicrypt/mpicrypt.h"
#include "ompi/tools/mpicrypt/key/keystore.h"
#include "opal/mca/common/cryptfile/file/seal.h"
#include "opal/mca/common/cryptfile/file/store.h"
#include "ompi/mca/common/cryptmpio/cryptmpio_posix.h"

/* What the options say. */
typedef struct mpicrypt_file_options {
    mpicrypt_keystore_t keystore;
    const char *recovery;               /* PEM of a recovery key; NULL: none */
    const char *label, *algorithm;      /* of a file that is made */
    mpicrypt_sizes_t block_size;        /* one */
    bool sparse;                        /* encrypt: blocks of zeros become holes */
    bool json;
    bool go_on;                         /* without a keystore, after a message */
    bool sealed;                        /* demand a seal */
    bool new_key;                       /* cp: with keys of its own */
    bool alone;                         /* nobody else may have it open; others have it shared */
    bool anew;                          /* seal: whatever the seal before says */
    const char *root;                   /* and this hash; NULL: any */
} mpicrypt_file_options_t;

typedef struct mpicrypt_file {
    const char *path;
    char *sidecar;
    ompi_common_cryptmpio_posix_t posix;
    uint64_t bytes;
    opal_cryptfile_keystore_t *keystore;        /* NULL: none could be opened */
    opal_cryptfile_sidecar_header_t header;
    opal_cryptfile_copy_state_t copies[OPAL_CRYPTFILE_COPIES];
    int best;                           /* the copy that counts; -1: none, `why` says why */
    opal_crypt_why_t why;
    opal_cryptfile_t *file;             /* the engine, which owns its map; NULL without a key */
    opal_cryptfile_map_t *map;          /* of the engine */
    opal_cryptfile_key_t *keys; /* of its regions */
    bool recovered;                     /* one of them is from the escrow alone */
} mpicrypt_file_t;

/* ---- file/open.c ---- */

/* Open both parts, judge the copies of the map, and make the engine if one of
 * them verifies; `best` says whether.  Another code after a message. */
int mpicrypt_file_open(const mpicrypt_file_options_t *options, const char *path, bool may_write, mpicrypt_file_t *file);

/* The message for a sidecar that was found, but must not be renamed; its exit code. */
int mpicrypt_file_elsewhere(const char *path, const char *found, const char *sidecar);

/* The owner, the group, the mode and the access control list of `of`, for a file that takes its place; errno. */
bool mpicrypt_file_own_as(int fd, int of);

/* The mode for a file of one's own that is made from `of`: without rights of the group where a list has them. */
unsigned mpicrypt_file_mode(int of, const struct stat *status);

/* What was made from a file of this mode, when nothing is written to it any more: not even its owner may then, where the mode
 * says so; errno. */
bool mpicrypt_file_protect(const mpicrypt_file_t *file, unsigned mode);

/* With both parts open: they are in use until they are closed.  A message if they cannot be. */
int mpicrypt_file_take(const mpicrypt_file_t *file, bool alone);

/* The same, and refuse a file whose map does not verify, or which has not the
 * seal that the options demand. */
int mpicrypt_file_open_verified(const mpicrypt_file_options_t *options, const char *path, bool may_write,
                                mpicrypt_file_t *file);

/* A message if a key is from the escrow alone: then the file may be anybody's, and is not for a label to vouch for. */
int mpicrypt_file_proved(const mpicrypt_file_t *file);

/* As opal_cryptfile_seal_demand; then file->bytes is the size that was sealed. */
int mpicrypt_file_demand(mpicrypt_file_t *file, const uint8_t *wanted, opal_crypt_why_t *why);

/* Make an empty encrypted file with one region for all bytes, of this mode, and for its owner to write to until
 * mpicrypt_file_protect.  Nothing of it is left after a failure. */
int mpicrypt_file_make(const mpicrypt_file_options_t *options, const char *path, unsigned mode, mpicrypt_file_t *file);

/* The same with the regions of another file: same labels, new data keys, and a UUID that begins with `number`. */
int mpicrypt_file_make_like(const mpicrypt_file_options_t *options, const mpicrypt_file_t *like, const char *path, unsigned mode,
                            uint64_t number, mpicrypt_file_t *file);

void mpicrypt_file_close(mpicrypt_file_t *file);

/* What a transfer of the engine met, as a message; returns MPICRYPT_FAILED. */
int mpicrypt_file_failed(const mpicrypt_file_t *file, const opal_cryptfile_outcome_t *outcome);

/* Make a seal of a file whose blocks can all be read, and print its root. */
int mpicrypt_file_make_seal(mpicrypt_file_t *file);

/* Hold everything that there is a key of against the seal, if the file has one; a message if it is another. */
int mpicrypt_file_check_seal(const mpicrypt_file_t *file);

/* What was found besides the blocks: the seal holds, or there is none; the copies of the map are as they should be. */
typedef struct mpicrypt_file_around {
    bool seal, copies;
} mpicrypt_file_around_t;

/* Open every block and print what was found: as JSON, with what is `around`, or (NULL) as tables. */
int mpicrypt_file_check(const mpicrypt_file_t *file, const mpicrypt_file_around_t *around);

/* ---- file/part.c: one file at a time is being made ---- */

/* The name is on the storage, too. */
int mpicrypt_file_name_stays(const char *path);

/* The name to work under, for `to`, which does not exist.  What is there, and at the
 * name of its sidecar, is deleted by drop and by signals until finish. */
int mpicrypt_file_begin(const char *to, bool with_sidecar, const char **name, uint64_t *number);
int mpicrypt_file_finish(const char *to, bool with_sidecar);    /* drops it when it fails */
void mpicrypt_file_drop(void);

/* To take the place of `to` and its sidecar, which exist: the sidecar first, then the data. */
int mpicrypt_file_begin_over(const char *to, const char **name, uint64_t *number);
int mpicrypt_file_finish_over(const char *to);
int mpicrypt_file_finish_one(const char *to);   /* the part alone */

/* The name that a number gives; false: it is too long. */
bool mpicrypt_file_part_name(const char *to, uint64_t number, char name[PATH_MAX]);

/* Never over something that exists (file/mv.c). */
int mpicrypt_file_rename(const char *from, const char *to);

/* ---- what is done, each in a file of its own; exit codes ---- */

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

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
#include "lib/mpicrypt_file/opening.h"

/* ---- file/subject.c: one of the files that the command works on ---- */

/* What was found.  Of two findings about a file the later in this list counts. */
typedef enum {
    MPICRYPT_FILE_IS_WHOLE,             /* and the verb has done its work */
    MPICRYPT_FILE_IS_THERE,             /* an interrupted run did it */
    MPICRYPT_FILE_IS_PLAIN,
    MPICRYPT_FILE_IS_ENCRYPTED,         /* and is not to be encrypted again */
    MPICRYPT_FILE_IS_LINK,
    MPICRYPT_FILE_IS_SPECIAL,           /* a pipe, a device ... */
    MPICRYPT_FILE_IS_LEFT,              /* a part, or a file to try locks with, of a process that was killed */
    MPICRYPT_FILE_IS_BUSY,
    MPICRYPT_FILE_IS_OTHER,             /* of another version */
    MPICRYPT_FILE_IS_BEGUN,             /* its maker was killed */
    MPICRYPT_FILE_IS_HALF,              /* a verb that changes it was killed */
    MPICRYPT_FILE_HAS_NO_KEY,
    MPICRYPT_FILE_IS_TORN,
    MPICRYPT_FILE_IS_FORGED,
    MPICRYPT_FILE_HAS_ERROR,            /* of the operating system, mostly */
    MPICRYPT_FILE_STATES
} mpicrypt_file_state_t;

typedef struct mpicrypt_file_subject {
    const char *shown;                  /* its name for people */
    bool found;                         /* by --recursive: files that the verb is not for are no errors */
    bool again;                         /* one of many: what is done already is no error */
    FILE *out;                          /* what the verb prints; a JSON object without its end */
    FILE *errors;                       /* for JSON: messages */
    char *error_text;
    size_t error_bytes;
    mpicrypt_file_state_t state;
    const char *done;                   /* what the state of a file is called that the verb is done with */
    bool sized;                         /* `bytes` is known */
    uint64_t bytes;
    char root[2 * OPAL_CRYPT_HASH_BYTES + 1];   /* of its seal; empty: unknown */
} mpicrypt_file_subject_t;

void mpicrypt_file_finds(mpicrypt_file_subject_t *subject, mpicrypt_file_state_t state);

/* For people and programs: what the state is called, and what to do about it (NULL: nothing). */
const char *mpicrypt_file_state_name(mpicrypt_file_state_t state);
const char *mpicrypt_file_state_of(const mpicrypt_file_subject_t *subject);
const char *mpicrypt_file_state_advice(mpicrypt_file_state_t state);

/* Print the error, which does not name the file, and note what it says about it; returns MPICRYPT_FAILED. */
int mpicrypt_file_says(mpicrypt_file_subject_t *subject, const char *path, const mpicrypt_file_error_t *error);
/* The same for a refusal of the core: `status` is what it means of libmpicrypt_file's. */
int mpicrypt_file_refused(mpicrypt_file_subject_t *subject, const char *path, int status, int rc, const opal_crypt_why_t *why);

/* What processes of ours leave beside files when they are killed, by its name. */
bool mpicrypt_file_is_left(const char *path);

/* Does it begin as an encrypted file does?  `bytes`: then the size of its plaintext, by what nobody has verified. */
bool mpicrypt_file_seems_encrypted(int fd, uint64_t *bytes);

/* The values of the command's options. */
typedef struct mpicrypt_file_choices {
    mpicrypt_file_subject_t *subject;
    mpicrypt_keystore_t keystore;
    const char *recovery;               /* PEM of a recovery key; NULL: none */
    const char *label, *algorithm;      /* of a new file */
    mpicrypt_sizes_t block_size;        /* one value */
    bool sparse;                        /* encrypt: blocks of zeros become holes */
    bool json;
    bool go_on;                         /* go on without a keystore, after a message */
    bool sealed;                        /* demand a seal; with a root, too */
    bool new_key;                       /* cp: with new data keys */
    bool alone;                         /* exclusive: no other process may have the file open; else shared */
    bool anew;                          /* seal: even if the previous seal does not fit */
    const char *root;                   /* of the seal that is demanded; NULL: any */
    uint8_t wanted[OPAL_CRYPT_HASH_BYTES];      /* the same */
    const char *to;                     /* encrypt, decrypt: the directory of the new files */
    bool in_place;                      /* encrypt, decrypt: the new file replaces the old one */
    bool recursive, quiet;
    bool verdict;                       /* check: no tables */
    size_t threads;
    const char *range;                  /* cat: which bytes; NULL: all */
    bool secret;                        /* cat: no plaintext outside of secret memory; label and seal count */
} mpicrypt_file_choices_t;

typedef struct mpicrypt_opened {
    const char *path;
    mpicrypt_file_subject_t *subject;
    ompi_common_cryptmpio_posix_t posix;
    uint64_t bytes;
    opal_cryptfile_keystore_t *keystore;        /* NULL: none could be opened */
    mpicrypt_opening_t found;           /* header and maps: not of a file that is being made */
    mpicrypt_file_error_t error;        /* why there is no engine */
    opal_cryptfile_t *file;             /* the engine, which owns its map; NULL without a key */
    opal_cryptfile_map_t *map;          /* the engine's */
    opal_cryptfile_key_t *keys; /* of its regions */
    bool recovered;                     /* one of them is from the escrow only */
} mpicrypt_opened_t;

/* ---- file/open.c ---- */

/* Open the file, judge the copies of its map, and create the engine if one of
 * them verifies.  On failure, prints a message and returns its exit code. */
int mpicrypt_file_open_engine(const mpicrypt_file_choices_t *options, const char *path, bool may_write, mpicrypt_opened_t *file);

/* As mpicrypt_file_open_engine, and refuse a file whose map does not verify, or which lacks
 * the seal that the options demand; for cat also one under another label, or that differs from its seal. */
int mpicrypt_file_open_verified(const mpicrypt_file_choices_t *options, const char *path, bool may_write,
                                mpicrypt_opened_t *file);

/* keystores.c: a keystore for an open file, until it is given back (NULL allowed).  An exit code, after a message the first
 * time. */
int mpicrypt_file_keystore(const mpicrypt_file_choices_t *options, opal_cryptfile_keystore_t **keystore);
void mpicrypt_file_keystore_give(opal_cryptfile_keystore_t *keystore);
void mpicrypt_file_keystores_close(void);

/* Mark the open file as in use until it is closed.  Prints a message if that fails. */
int mpicrypt_file_take(mpicrypt_opened_t *file, bool alone);

/* Refuse, with a message, if a key is from the escrow only: anybody may have made the file; no label vouches for it. */
int mpicrypt_file_proved(const mpicrypt_opened_t *file);

/* From now on only what was sealed can be read, and file->bytes is the sealed size.  `wanted`: the root; NULL: any. */
int mpicrypt_file_demand(mpicrypt_opened_t *file, const uint8_t *wanted);

void mpicrypt_file_close_engine(mpicrypt_opened_t *file);

/* Print the error of an engine transfer; returns MPICRYPT_FAILED. */
int mpicrypt_file_failed(const mpicrypt_opened_t *file, const opal_cryptfile_outcome_t *outcome);

/* For open and make: open(2), and create the engine, which takes map and keys. */
int mpicrypt_file_open_data(mpicrypt_opened_t *file, int flags, unsigned mode);
int mpicrypt_file_engine(const mpicrypt_file_choices_t *options, mpicrypt_opened_t *file, opal_cryptfile_map_t *map,
                         opal_cryptfile_key_t *keys);

/* ---- file/make.c ---- */

/* Create an empty encrypted file with one region for all bytes, of this mode, but writable for its owner until
 * mpicrypt_file_protect.  A failure leaves nothing behind. */
int mpicrypt_file_make(const mpicrypt_file_choices_t *options, const char *path, unsigned mode, mpicrypt_opened_t *file);

/* The same with the regions of another file: same labels, new data keys. */
int mpicrypt_file_make_like(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *like, const char *path, unsigned mode,
                            mpicrypt_opened_t *file);

/* A deep copy of the map; return codes of the core. */
int mpicrypt_file_map_copy(const opal_cryptfile_map_t *map, opal_cryptfile_map_t **copy);

/* Copy owner, group, mode and access control list of `of` to a file that replaces it; false: errno. */
bool mpicrypt_file_own_as(int fd, int of);

/* The mode for a new file of one's own made from `of`: without group rights if `of` has an access control list. */
unsigned mpicrypt_file_mode(int of, const struct stat *status);

/* After the last write to a file made with this mode: take the owner's rights that the mode does not grant; false:
 * errno. */
bool mpicrypt_file_protect(const mpicrypt_opened_t *file, unsigned mode);

/* ---- file/seal.c, file/verify.c ---- */

/* Seal a file whose blocks can all be read, and print the root. */
int mpicrypt_file_make_seal(mpicrypt_opened_t *file);

/* Is a sealed file what was sealed, as far as we have keys?  `hash`: the root.  Prints a message if not. */
int mpicrypt_file_root(mpicrypt_opened_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);

/* Results besides the blocks: the seal is valid, or absent; the copies of the map are as they should be. */
typedef struct mpicrypt_file_around {
    bool seal, copies;
} mpicrypt_file_around_t;

/* Open every block and print the result as the options say; as JSON only with `around`. */
int mpicrypt_file_check(const mpicrypt_file_choices_t *options, const mpicrypt_opened_t *file, const mpicrypt_file_around_t *around);

/* ---- file/part.c: files that are being created, one at a time by each thread ---- */

/* Once, before the first: what to write to standard error when a signal ends the command. */
void mpicrypt_file_signals(const char *words);

/* The part has the name to work under, for `to`.  `was`: `to` is replaced, but only if it is still the file that was copied,
 * of which this was the status before; NULL: `to` does not exist.  When the part's file has been created, `created` is called
 * at once; then finish, drop and signals delete it. */
typedef struct mpicrypt_file_part mpicrypt_file_part_t;
int mpicrypt_file_begin(const char *to, const struct stat *was, mpicrypt_file_part_t **part);
const char *mpicrypt_file_part_name(const mpicrypt_file_part_t *part);
void mpicrypt_file_created(mpicrypt_file_part_t *part);
int mpicrypt_file_finish(mpicrypt_file_part_t *part, const char *to, const struct stat *was);  /* drops it on failure */
void mpicrypt_file_drop(mpicrypt_file_part_t *part);

/* ---- file/progress.c: one line on a terminal ---- */

void mpicrypt_file_progress_begin(bool quiet);
void mpicrypt_file_progress_files(uint64_t files);      /* that were worked on */
void mpicrypt_file_progress(uint64_t bytes);            /* more */

/* ---- the commands, mostly in a file each; they return exit codes ---- */

int mpicrypt_file_show(const mpicrypt_file_choices_t *options, const char *path);
int mpicrypt_file_examine(const mpicrypt_file_choices_t *options, const char *path);     /* check, too */
int mpicrypt_file_seal(const mpicrypt_file_choices_t *options, const char *path);
int mpicrypt_file_cat(const mpicrypt_file_choices_t *options, const char *path);
int mpicrypt_file_encrypt(const mpicrypt_file_choices_t *options, const char *from, const char *to);
int mpicrypt_file_decrypt(const mpicrypt_file_choices_t *options, const char *from, const char *to);
int mpicrypt_file_rekey(const mpicrypt_file_choices_t *options, const char *path);
int mpicrypt_file_cp(const mpicrypt_file_choices_t *options, const char *from, const char *to);
int mpicrypt_file_reencrypt(const mpicrypt_file_choices_t *options, const char *path);

#endif

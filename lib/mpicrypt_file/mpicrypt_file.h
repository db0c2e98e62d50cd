/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * libmpicrypt_file: reading encrypted files without MPI.
 *
 *     mpicrypt_file_error_t error;
 *     mpicrypt_file_t *file;
 *     if (MPICRYPT_FILE_OK != mpicrypt_file_open("result", NULL, &file, &error)) {
 *         fprintf(stderr, "%s\n", error.text);
 *     }
 *
 * Every byte that a call returns was authenticated first.  A call that fails returns no byte, but zeros.
 *
 * Threads: any number may read, ask and verify at a time; closing is for one, when no other call runs.
 * fork: the keys of an open file are wiped in the child, where every call but closing returns ERR_FORKED.
 * The child may open the file again.
 */
#ifndef MPICRYPT_FILE_H
#define MPICRYPT_FILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MPICRYPT_FILE_API 1                 /* grows when something is added */

typedef struct mpicrypt_file mpicrypt_file_t;

/* Numbers are never given a second meaning.  A caller treats one that it does not know as an error. */
enum {
    MPICRYPT_FILE_OK = 0,
    MPICRYPT_FILE_ERR_PLAIN = 1,            /* the file is not encrypted */
    MPICRYPT_FILE_ERR_FORGED = 2,           /* bytes were changed, moved or cut: by an attacker or a broken disk */
    MPICRYPT_FILE_ERR_TORN = 3,             /* a first write was cut short: these bytes were never complete */
    MPICRYPT_FILE_ERR_KEY = 4,              /* the keystore has no key for these bytes, or refuses its use */
    MPICRYPT_FILE_ERR_UNEXPECTED = 5,       /* another label or seal than the caller expects */
    MPICRYPT_FILE_ERR_UNFINISHED = 6,       /* it is being made, or its maker was killed */
    MPICRYPT_FILE_ERR_FORMAT = 7,           /* a later version, or one of ours before the first release */
    MPICRYPT_FILE_ERR_SETUP = 8,            /* keystore, parameters or cryptographic library cannot be used */
    MPICRYPT_FILE_ERR_IO = 9,               /* the operating system refused: os_error says why */
    MPICRYPT_FILE_ERR_MEMORY = 10,
    MPICRYPT_FILE_ERR_FORKED = 11,          /* opened before fork() */
    MPICRYPT_FILE_ERR_ARGUMENT = 12
};

#define MPICRYPT_FILE_NOWHERE UINT64_MAX

/* What went wrong.  Each call that is given one sets it, also to OK. */
typedef struct mpicrypt_file_error {
    int status;
    int os_error;                           /* errno, or 0 */
    uint64_t offset;                        /* of the first byte that could not be read, or MPICRYPT_FILE_NOWHERE */
    char text[1008];                        /* one sentence for people, UTF-8, no control characters */
} mpicrypt_file_error_t;

/* All zeros: any label, no seal, the user's keystore, the default cache. */
typedef struct mpicrypt_file_options {
    size_t bytes;                           /* sizeof(mpicrypt_file_options_t) of the caller */
    const char *label;                      /* every encrypted region must be under this label */
    const char *seal_root;                  /* the file must be sealed with this root, 64 hexadecimal digits */
    const char *keystore;                   /* a directory instead of the one that parameters name */
    uint64_t cache_bytes;                   /* plaintext of opened blocks to keep; 0: 16 MiB */
    uint32_t flags;
    uint32_t threads;                       /* that open the blocks of a large read; 0: 1 */
} mpicrypt_file_options_t;

#define MPICRYPT_FILE_PLAIN 1u              /* a plain file is no error: its bytes are read unverified */

int mpicrypt_file_open(const char *path, const mpicrypt_file_options_t *options, mpicrypt_file_t **file,
                       mpicrypt_file_error_t *error);
/* The descriptor is duplicated, and its position is not used.  `name` is for messages. */
int mpicrypt_file_open_fd(int fd, const char *name, const mpicrypt_file_options_t *options, mpicrypt_file_t **file,
                          mpicrypt_file_error_t *error);
void mpicrypt_file_close(mpicrypt_file_t *file);                            /* NULL allowed; wipes keys and cache */

/* Read `bytes` bytes at an offset.  *got is less only where the file ends. */
int mpicrypt_file_read(mpicrypt_file_t *file, uint64_t offset, void *memory, size_t bytes, size_t *got,
                       mpicrypt_file_error_t *error);

/* The size of the plaintext.  A job that writes at the same time may change it. */
int mpicrypt_file_size(mpicrypt_file_t *file, uint64_t *bytes, mpicrypt_file_error_t *error);

typedef struct mpicrypt_file_info {
    size_t bytes;                           /* set by the caller: sizeof(mpicrypt_file_info_t) */
    uint8_t uuid[16];
    uint64_t generation;                    /* of the map */
    uint32_t regions;                       /* 0: a plain file */
    uint32_t sealed;                        /* 1: and the seal verified at opening */
    char seal_root[65];                     /* empty: not sealed */
    uint8_t reserved[7];
} mpicrypt_file_info_t;
int mpicrypt_file_info(mpicrypt_file_t *file, mpicrypt_file_info_t *info, mpicrypt_file_error_t *error);

typedef struct mpicrypt_file_region {
    size_t bytes;                           /* set by the caller */
    uint32_t encrypted, readable;           /* readable: this process has its key, or it is plain */
    char cipher[24], label[65];
    uint8_t reserved[3];
    uint32_t block_bytes, key_version;
    uint32_t reserved_2;
    uint64_t displacement, extent, run_count;   /* no run: what no other region has */
    uint32_t once;                          /* 0: the tile of runs repeats without end */
    uint32_t reserved_3;
} mpicrypt_file_region_t;
int mpicrypt_file_region(mpicrypt_file_t *file, uint32_t region, mpicrypt_file_region_t *about,
                         mpicrypt_file_error_t *error);
/* A region's runs from number `first` on: `count` pairs (offset, length) within the tile. */
int mpicrypt_file_runs(mpicrypt_file_t *file, uint32_t region, uint64_t first, uint64_t *pairs, size_t count,
                       mpicrypt_file_error_t *error);

/* Open every block.  `progress`, if given, is called now and then; what it returns other than 0 ends the call with OK
 * and is left in *stopped. */
int mpicrypt_file_verify(mpicrypt_file_t *file, int (*progress)(void *arg, uint64_t done, uint64_t of), void *arg,
                         int *stopped, mpicrypt_file_error_t *error);

const char *mpicrypt_file_version(void);

#ifdef __cplusplus
}
#endif

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * To standard output: what can be read of a file, up to the first block that cannot.
 */
#ifndef MPICRYPT_FILE_STREAM_H
#define MPICRYPT_FILE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ompi/tools/mpicrypt/key/keystore.h"

/* Reads verified bytes, or none: then *good is the offset of the first block that failed, if that is known. */
typedef bool (*mpicrypt_stream_read_t)(void *of, uint64_t at, void *bytes, size_t count, size_t *got, uint64_t *good);

/* Bytes [from, to), or up to the end of the file.  False: a read failed, and `*failed`; or writing did, and errno. */
bool mpicrypt_stream_pour(mpicrypt_stream_read_t read, void *of, uint64_t from, uint64_t to, bool *failed);

typedef struct mpicrypt_stream {
    const mpicrypt_keystore_t *keystore;
    const char *label, *root;           /* NULL: any */
    bool sealed;
    const char *range;                  /* NULL: all */
} mpicrypt_stream_t;

/* By libmpicrypt_file; returns an exit code, after a message. */
int mpicrypt_stream_out(const mpicrypt_stream_t *what, const char *path);

#endif

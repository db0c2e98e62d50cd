/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What others need to know by name without the library: how an encrypted file is
 * recognized, and how a program asks for one.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_NAMES_H
#define OMPI_COMMON_CRYPTMPIO_NAMES_H

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#define OMPI_CRYPTMPIO_ATTRIBUTE "user.mpicrypt.map"

/* Is it in what listxattr(2) returned?  An error counts as "yes", except that there are no attributes. */
static inline bool ompi_common_cryptmpio_lists(const char *names, ssize_t bytes)
{
    ssize_t at = 0;

    while (at < bytes && 0 != strcmp(names + at, OMPI_CRYPTMPIO_ATTRIBUTE)) {
        at += (ssize_t) strlen(names + at) + 1;
    }
    return bytes < 0 ? ENOTSUP != errno : at < bytes;
}

/* The keys by which a program asks; others with this prefix are misspelt. */
#define OMPI_CRYPTMPIO_INFO_PREFIX "crypt_"
#define OMPI_CRYPTMPIO_INFO_KEYS \
    "crypt_key_label", "crypt_algorithm", "crypt_block_size", "crypt_seal_root", "crypt_repeat", "crypt_rest"

#endif

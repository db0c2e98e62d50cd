/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What others need to know by name without the library: how an encrypted file is
 * recognized, and how a program asks for one.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_NAMES_H
#define OMPI_COMMON_CRYPTMPIO_NAMES_H

#define OMPI_CRYPTMPIO_ATTRIBUTE "user.mpicrypt.map"

/* The keys by which a program asks; others with this prefix are misspelt. */
#define OMPI_CRYPTMPIO_INFO_PREFIX "crypt_"
#define OMPI_CRYPTMPIO_INFO_KEYS \
    "crypt_key_label", "crypt_algorithm", "crypt_block_size", "crypt_seal_root", "crypt_repeat", "crypt_rest"

#endif

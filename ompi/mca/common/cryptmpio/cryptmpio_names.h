/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What others need to know by name without the library: how an encrypted file is
 * recognized, and the parameters that say that new files become such.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_NAMES_H
#define OMPI_COMMON_CRYPTMPIO_NAMES_H

#define OMPI_CRYPTMPIO_ATTRIBUTE "user.mpicrypt.map"

/* The keys by which a program asks; others with this prefix are misspelt. */
#define OMPI_CRYPTMPIO_INFO_PREFIX "crypt_"
#define OMPI_CRYPTMPIO_INFO_KEYS \
    "crypt_key_label", "crypt_algorithm", "crypt_block_size", "crypt_seal_root", "crypt_repeat", "crypt_rest"

/* Whoever registers a variable first gives it its text. */
#define OMPI_COMMON_CRYPTMPIO_KEY_LABEL_HELP \
    "Label of the key that encrypts every new file, unless the program names one. Files that hold plain data are then " \
    "refused, also for reading, except those of fs_crypt_plain_paths. Default: none, new files stay plain"
#define OMPI_COMMON_CRYPTMPIO_REQUIRE_HELP \
    "Refuse plain files that contain data, except those of fs_crypt_plain_paths, and refuse plain writes (default: off)"

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What others need to know by name without the library: how an encrypted file is
 * recognised, and the parameters that say that new files become such.
 */
#ifndef OMPI_COMMON_CRYPTMPIO_NAMES_H
#define OMPI_COMMON_CRYPTMPIO_NAMES_H

#define OMPI_CRYPTMPIO_ATTRIBUTE "user.mpicrypt.map"

/* Whoever registers a variable first gives it its text. */
#define OMPI_COMMON_CRYPTMPIO_KEY_LABEL_HELP \
    "Label of the key under which every new file is encrypted that does not name one itself. Files that hold plain data " \
    "are refused then, also for reading, but for those of fs_crypt_plain_paths. Default: none, new files stay plain"
#define OMPI_COMMON_CRYPTMPIO_REQUIRE_HELP "Refuse plain files that have data, but for those of fs_crypt_plain_paths, and plain writes (default: off)"

#endif

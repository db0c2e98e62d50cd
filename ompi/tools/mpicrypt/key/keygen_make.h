/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Making a pre-shared key: 32 random bytes as 64 hexadecimal digits and a
 * line's end, in a new file of mode 0600.
 *
 * Threads: any, on different files.
 */
#ifndef MPICRYPT_KEY_KEYGEN_MAKE_H
#define MPICRYPT_KEY_KEYGEN_MAKE_H

#include "opal/mca/common/crypt/base/base.h"

#pragma GCC visibility push(default)

#define MPICRYPT_KEYGEN_FORCE     0x1       /* replace a key that exists */
#define MPICRYPT_KEYGEN_NETFS     0x2       /* on a network file system too */

/* The file's directory is made, 0700, if it is missing (its parent is not).
 * Without FORCE an existing file, of whatever kind, is left alone: ERR_CONFIG,
 * topic "keygen-exists".  With it the new key takes the old one's place in one
 * step, or not at all. */
int mpicrypt_psk_make(const char *path, int flags, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Passphrases, from a terminal or a file that is kept like a secret, and the key that scrypt derives from one.
 */
#ifndef MPICRYPT_KEY_PASSPHRASE_H
#define MPICRYPT_KEY_PASSPHRASE_H

#include "envelope.h"

enum { MPICRYPT_PASSPHRASE_MIN = 12, MPICRYPT_PASSPHRASE_MAX = 1024 };

/* In secret memory that the caller frees. */
typedef struct mpicrypt_passphrase {
    char *text;
    size_t bytes;
} mpicrypt_passphrase_t;

/* From `file`, or (NULL) the terminal; `fresh`: for a new message, typed twice and not too short.  MPICRYPT_OK, or another exit
 * code after a message. */
int mpicrypt_passphrase_read(const char *file, bool netfs, bool fresh, mpicrypt_passphrase_t *passphrase);

/* MPICRYPT_KEK_BYTES of secret memory that the caller frees. */
int mpicrypt_passphrase_key(const mpicrypt_passphrase_t *passphrase, const mpicrypt_scrypt_t *scrypt, uint8_t **kek,
                            opal_crypt_why_t *why);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that is not secret but says whom to trust: certificates, revocation lists, a recovery key.  Anybody
 * who can change it, or what its name leads to, can choose the peers of a job, or read its files.
 *
 * Unlike with secret files, links are followed, as a system's certificates are usually links.  Instead every step of
 * the path is checked: each directory, each link and the file belong to root or to us, and nobody else may write to
 * them.  A directory that others may write to but not rename in (mode 1777, like /tmp) may contain the next directory
 * of the path, but not a link or the file.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_TRUST_FILE_H
#define OPAL_CRYPT_BASE_TRUST_FILE_H

#include "base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_TRUST_FILE_MAX (64 * 1024 * 1024)    /* bytes; enough for any CA's revocation list */

typedef struct opal_crypt_trust_file {
    char *bytes;                        /* from malloc, the caller's to free; followed by a zero */
    size_t count;
    opal_crypt_why_t warning;           /* topic NULL: none */
} opal_crypt_trust_file_t;

/* `what` names the file in messages, `topic` is the reason if it cannot be opened or read.  It must be on a file
 * system of this node unless allow_network (then `warning` says so).  ERR_CONFIG with `why` filled. */
int opal_crypt_trust_file_read(const char *path, const char *what, const char *topic, bool allow_network,
                               opal_crypt_trust_file_t *file, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

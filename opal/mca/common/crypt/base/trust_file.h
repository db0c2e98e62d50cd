/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that is no secret but says whom to trust: certificates, revocation
 * lists, a recovery key.  Whoever can change it, or what its name leads to, chooses the
 * peers of a job, or reads its files.
 *
 * Links are followed, unlike those to secret files, as certificates of a system are
 * usually links.  Every step of the way is looked at instead: each directory, each
 * link and the file belong to root or to us, and nobody else may write to them.
 * Through a directory that others may write to but not rename in (mode 1777, as
 * /tmp) the way may lead to a directory, not to a link or the file.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_TRUST_FILE_H
#define OPAL_CRYPT_BASE_TRUST_FILE_H

#include "base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_TRUST_FILE_MAX (64 * 1024 * 1024)    /* bytes; large enough for any CA's revocation list */

typedef struct opal_crypt_trust_file {
    char *bytes;                        /* from malloc, the caller's to free; a zero follows */
    size_t count;
    opal_crypt_why_t warning;           /* topic NULL: none */
} opal_crypt_trust_file_t;

/* `what` names the file for messages, `topic` is the reason when it cannot be opened or
 * read.  It must lie on a file system of this node unless allow_network (then `warning`
 * says so).  ERR_CONFIG with `why` filled. */
int opal_crypt_trust_file_read(const char *path, const char *what, const char *topic, bool allow_network,
                               opal_crypt_trust_file_t *file, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

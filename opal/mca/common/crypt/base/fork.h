/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What happens around fork(): see crypt/base/fork.c.
 */
#ifndef OPAL_CRYPT_BASE_FORK_H
#define OPAL_CRYPT_BASE_FORK_H

#include "base.h"

#pragma GCC visibility push(default)

/* From now on a forked child of this process has no keys.  Call before the first secret; further calls do nothing.
 * False: no memory. */
bool opal_crypt_fork_watch(void);

/* In a forked child: from now on this process may have keys of its own.  What it has of its parent must not be used or
 * freed any more; that memory stays, as zeros.  For one thread at a time. */
void opal_crypt_fork_anew(void);

/* Around calls that leave a secret in libcrypto's memory until they return, so that no fork comes in between.  They
 * nest.  Not for per-message work. */
void opal_crypt_secret_begin(void);
void opal_crypt_secret_end(void);

/* ---- called by crypt/base/fork.c ---- */

typedef enum {
    OPAL_CRYPT_FORK_BEFORE,             /* in the parent: lock what must be consistent in the child */
    OPAL_CRYPT_FORK_PARENT,
    OPAL_CRYPT_FORK_CHILD               /* only writes to memory and unlocks */
} opal_crypt_fork_t;

void opal_crypt_secmem_fork(opal_crypt_fork_t when);
void opal_crypt_thread_fork(opal_crypt_fork_t when);
void opal_crypt_secmem_anew(void);
void opal_crypt_thread_anew(void);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What happens around fork(): see crypt/base/fork.c.
 */
#ifndef OPAL_CRYPT_BASE_FORK_H
#define OPAL_CRYPT_BASE_FORK_H

#include "base.h"

#pragma GCC visibility push(default)

/* From now on a fork'd child of this process has no keys.  Before the first
 * secret; more calls do nothing.  False: the system has no memory for that. */
bool opal_crypt_fork_watch(void);

/* Around calls that leave a secret in libcrypto's memory until they end, so that
 * no fork falls between.  They nest.  Not for what every message does. */
void opal_crypt_secret_begin(void);
void opal_crypt_secret_end(void);

/* ---- what crypt/base/fork.c calls ---- */

typedef enum {
    OPAL_CRYPT_FORK_BEFORE,             /* in the parent: take what must be whole in the child */
    OPAL_CRYPT_FORK_PARENT,
    OPAL_CRYPT_FORK_CHILD               /* nothing but writes to memory, and giving back */
} opal_crypt_fork_t;

void opal_crypt_secmem_fork(opal_crypt_fork_t when);
void opal_crypt_thread_fork(opal_crypt_fork_t when);

#pragma GCC visibility pop

#endif

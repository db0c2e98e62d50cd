/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A variable of the environment, set while other threads may read it.  setenv() frees
 * the array in which a getenv() of another thread is looking: PMIx's thread calls it at
 * any time, and the process crashes.  Here an array that anybody may have seen stays as
 * it is.
 *
 * Threads: any may read meanwhile; one at a time sets.  What another thread's setenv() does to the array that is
 * copied is its own fault, here as with getenv().
 */
#ifndef OPAL_CRYPT_BASE_ENVIRONMENT_H
#define OPAL_CRYPT_BASE_ENVIRONMENT_H

#include "base.h"

#pragma GCC visibility push(default)

/* NULL: it is not there afterwards.  False: no memory, and nothing has changed. */
bool opal_crypt_environment_set(const char *name, const char *value);

#pragma GCC visibility pop

#endif

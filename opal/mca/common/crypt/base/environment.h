/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sets an environment variable while other threads may read it.  setenv() frees the array that another thread's
 * getenv() is reading: PMIx's thread calls it at any time, and the process crashes.  Here an array that another thread
 * may have seen is left alone.
 *
 * Threads: any may read meanwhile; one at a time sets.  A concurrent setenv() of another thread is unsafe here, as it
 * is with getenv().
 */
#ifndef OPAL_CRYPT_BASE_ENVIRONMENT_H
#define OPAL_CRYPT_BASE_ENVIRONMENT_H

#include "base.h"

#pragma GCC visibility push(default)

/* NULL: unset it.  False: no memory, and nothing has changed. */
bool opal_crypt_environment_set(const char *name, const char *value);

#pragma GCC visibility pop

#endif

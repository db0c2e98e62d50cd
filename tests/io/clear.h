/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Is something in a file in clear?
 */
#ifndef TESTS_IO_CLEAR_H
#define TESTS_IO_CLEAR_H

#include "mt.h"

/* Are these bytes anywhere in the file?  Data does not lie where it would in a plain file, so all of it is searched. */
bool clear_in(const char *path, const void *bytes, size_t count);
/* Are they in a file of this directory? */
bool clear_below(const char *directory, const void *bytes, size_t count);

#endif

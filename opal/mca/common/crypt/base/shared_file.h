/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory that processes of a node share, as a file or a System V segment: nobody else may read it or write to it.
 * A file is regular, ours, without rights for others, and has one name; the way to it is that of base/walk.  So nobody
 * else can have it open, nor put another one in its place.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_SHARED_FILE_H
#define OPAL_CRYPT_BASE_SHARED_FILE_H

#include "base.h"

#pragma GCC visibility push(default)

/* All: OPAL_CRYPT_OK, or ERR_CONFIG with `why` filled, topic "shared-memory". */

/* Before somebody makes this file, by a call that would take any that is there: make it, empty (*made), or find that what
 * is there is good.  OK, too, where it cannot be made. */
int opal_crypt_shared_file_make(const char *path, bool *made, opal_crypt_why_t *why);

/* Open the file, of at least `bytes` bytes, to be mapped over a mapping that Open MPI made by name. */
int opal_crypt_shared_file_open(const char *path, size_t bytes, int *fd, opal_crypt_why_t *why);

/* A directory for such files.  OK if it is not there yet, and could be made. */
int opal_crypt_shared_file_directory(const char *path, opal_crypt_why_t *why);

/* A System V segment, by its number. */
int opal_crypt_shared_segment(int id, opal_crypt_why_t *why);

/* All memory in this list (/proc/self/maps) that is shared and can be written to, but PMIx's and that of devices. */
int opal_crypt_shared_mappings(const char *list, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

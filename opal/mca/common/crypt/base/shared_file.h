/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory shared by the processes of a node, as a file or a System V segment: no other user may read or write it.  A
 * file is regular, ours, without rights for others, with a single name, and reached by base/walk.  So no other user
 * can have it open, nor replace it.
 *
 * Threads: any.
 */
#ifndef OPAL_CRYPT_BASE_SHARED_FILE_H
#define OPAL_CRYPT_BASE_SHARED_FILE_H

#include "base.h"

#pragma GCC visibility push(default)

/* All return OPAL_CRYPT_OK, or ERR_CONFIG with `why` filled, topic "shared-memory". */

/* Before this file is made by a call that would accept an existing one: make it, empty (*made), or check the existing
 * one.  Also OK if it cannot be made. */
int opal_crypt_shared_file_make(const char *path, bool *made, opal_crypt_why_t *why);

/* Open the file, of at least `bytes` bytes, to map it over a mapping that Open MPI made by name. */
int opal_crypt_shared_file_open(const char *path, size_t bytes, int *fd, opal_crypt_why_t *why);

/* A directory for such files.  OK if it does not exist yet, but can be made. */
int opal_crypt_shared_file_directory(const char *path, opal_crypt_why_t *why);

/* A System V segment, by its number. */
int opal_crypt_shared_segment(int id, opal_crypt_why_t *why);

/* All shared writable memory in this list (/proc/self/maps), except PMIx's and that of devices. */
int opal_crypt_shared_mappings(const char *list, opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

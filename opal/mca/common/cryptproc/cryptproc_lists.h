/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Lists of components, in the form of Open MPI's parameters: "a,b,c".
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_LISTS_H
#define OPAL_MCA_COMMON_CRYPTPROC_LISTS_H

#include <stdbool.h>
#include <stddef.h>

#pragma GCC visibility push(default)

/* Is this word, of `bytes` bytes, in the list? */
bool opal_cryptproc_listed(const char *list, const char *word, size_t bytes);

/* Does Open MPI open that component, of a framework with this list?  Not if it is listed behind "^"; all, if nothing is. */
bool opal_cryptproc_keeps(const char *list, const char *name);

/* Is each element of the list one of these? */
bool opal_cryptproc_only_of(const char *list, const char *these);

/* The list without those elements: to be freed; NULL: no memory. */
char *opal_cryptproc_without(const char *list, const char *those);

#pragma GCC visibility pop

#endif

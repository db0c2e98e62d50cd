/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Lists of components, in the form of Open MPI's parameters.  No OPAL.
 */
#include "cryptproc_lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool opal_cryptproc_listed(const char *list, const char *word, size_t bytes)
{
    for (const char *at = list; '\0' != *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");

        if (length == bytes && 0 == strncmp(at, word, bytes)) {
            return true;
        }
        at += length;
    }
    return false;
}

bool opal_cryptproc_keeps(const char *list, const char *name)
{
    const bool excludes = '^' == *list;

    return '\0' == *list || excludes != opal_cryptproc_listed(list + excludes, name, strlen(name));
}

bool opal_cryptproc_only_of(const char *list, const char *these)
{
    for (const char *at = list; '\0' != *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");

        if (!opal_cryptproc_listed(these, at, length)) {
            return false;
        }
        at += length;
    }
    return true;
}

char *opal_cryptproc_without(const char *list, const char *those)
{
    char *rest = calloc(1, strlen(list) + 1);

    for (const char *at = list; NULL != rest && '\0' != *at; at += strspn(at, ",")) {
        const size_t length = strcspn(at, ",");

        if (!opal_cryptproc_listed(those, at, length)) {
            sprintf(rest + strlen(rest), "%s%.*s", '\0' == *rest ? "" : ",", (int) length, at);
        }
        at += length;
    }
    return rest;
}

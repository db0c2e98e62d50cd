/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * See crypt/base/environment.h.  Each change makes a new array, and costs its memory:
 *
 *     the array before, for leak checkers | NAME=VALUE | ... | NULL
 */
#include "environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static bool names(const char *entry, const char *name, size_t bytes)
{
    return 0 == strncmp(entry, name, bytes) && '=' == entry[bytes];
}

/* `seen` without this variable, and with the entry, if there is one.  NULL: no memory. */
static char **with(char **seen, const char *name, size_t bytes, char *entry)
{
    size_t count = 0, kept = 0;
    char **array;

    while (NULL != seen && NULL != seen[count]) {
        count++;
    }
    array = malloc((count + 3) * sizeof(*array));
    if (NULL == array) {
        return NULL;
    }
    *array++ = (char *) seen;
    for (size_t i = 0; i < count && NULL != seen[i]; i++) {
        if (!names(seen[i], name, bytes)) {
            array[kept++] = seen[i];
        }
    }
    if (NULL != entry) {
        array[kept++] = entry;
    }
    array[kept] = NULL;
    return array;
}

bool opal_crypt_environment_set(const char *name, const char *value)
{
    char **seen = __atomic_load_n(&environ, __ATOMIC_ACQUIRE), **array = NULL, *entry = NULL;
    const size_t bytes = strlen(name);

    if (NULL != value) {
        entry = malloc(bytes + strlen(value) + 2);
        if (NULL == entry) {
            return false;
        }
        sprintf(entry, "%s=%s", name, value);
    }
    do {
        free(NULL == array ? NULL : array - 1);
        array = with(seen, name, bytes, entry);
        if (NULL == array) {
            free(entry);
            return false;
        }
    } while (!__atomic_compare_exchange_n(&environ, &seen, array, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    return true;
}

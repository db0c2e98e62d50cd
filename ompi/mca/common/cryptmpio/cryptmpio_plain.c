/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * fs_crypt_plain_paths: files that the user declares to be plain, although the job asks for
 * encryption.  They are only read.
 *
 * The name that the program gave decides, never the target of a link: the storage server
 * may put a link anywhere, but cannot choose which names the program opens.
 */
#include "cryptmpio_internal.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The absolute name, for the caller to free.  A name with ".." could leave the directory
 * that a pattern names. */
static char *absolute(const char *filename)
{
    char *directory = '/' == *filename ? strdup("") : getcwd(NULL, 0), *name = NULL;
    size_t bytes = strlen(filename);

    if (0 == strncmp(filename, "../", 3) || NULL != strstr(filename, "/../")
        || (bytes >= 3 && 0 == strcmp(filename + bytes - 3, "/.."))) {
        free(directory);
        return NULL;
    }
    if (NULL != directory && asprintf(&name, "%s%s%s", directory, '/' == *filename ? "" : "/", filename) < 0) {
        name = NULL;
    }
    free(directory);
    return name;
}

bool ompi_common_cryptmpio_meant_plain(const char *filename)
{
    char *patterns = strdup(NULL == ompi_common_cryptmpio_params.plain_paths ? ""
                                                                             : ompi_common_cryptmpio_params.plain_paths);
    char *name = absolute(filename), *rest = patterns, *pattern;
    bool meant = false;

    while (NULL != name && NULL != (pattern = strsep(&rest, ":"))) {
        meant = meant || ('/' == *pattern && 0 == fnmatch(pattern, name, FNM_PATHNAME | FNM_NOESCAPE));
    }
    free(name);
    free(patterns);
    return meant;
}

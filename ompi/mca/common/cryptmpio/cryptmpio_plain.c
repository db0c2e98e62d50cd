/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Parameters that list files: fs_crypt_plain_paths, those that the user declares to be plain, although the job asks for
 * encryption, and which are only read; and fs_crypt_one_node_paths, directories in which several nodes must not write one.
 *
 * What is plain: the name that the program gave decides, never the target of a link: the storage server
 * may put a link anywhere, but cannot choose which names the program opens.
 */
#include "cryptmpio_internal.h"

#include <fnmatch.h>
#include <limits.h>
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

static bool is_listed(const char *list, const char *filename, int flags)
{
    char *patterns = strdup(NULL == list ? "" : list);
    char *name = absolute(filename), *rest = patterns, *pattern;
    bool listed = false;

    while (NULL != name && NULL != (pattern = strsep(&rest, ":"))) {
        listed = listed || ('/' == *pattern && 0 == fnmatch(pattern, name, FNM_PATHNAME | FNM_NOESCAPE | flags));
    }
    free(name);
    free(patterns);
    return listed;
}

bool ompi_common_cryptmpio_meant_plain(const char *filename)
{
    return is_listed(ompi_common_cryptmpio_params.plain_paths, filename, 0);
}

/* Under whatever name. */
bool ompi_common_cryptmpio_one_node(const char *filename)
{
    const char *list = ompi_common_cryptmpio_params.one_node_paths;
    char real[PATH_MAX];

    return NULL != list && (is_listed(list, filename, FNM_LEADING_DIR)
                            || (NULL != realpath(filename, real) && is_listed(list, real, FNM_LEADING_DIR)));
}

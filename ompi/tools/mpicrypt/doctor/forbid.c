/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * --forbid: what --path found not safe, as a parameter that forbids it to jobs.  Nothing is ever permitted that way.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "doctor.h"

#define PARAMETER "fs_crypt_one_node_paths"

/* Of several lines with this parameter the last one counts, so that adding one is enough. */
int mpicrypt_forbid(const char *name, const char *directory)
{
    char line[16384], value[8192] = "", list[8200], entry[PATH_MAX + 8];
    bool ends = true;

    if ('/' != *directory || '\0' != directory[strcspn(directory, ":*?[\\#\"' \t\r\n")]) {     /* there it would mean something else */
        return mpicrypt_error(MPICRYPT_FAILED, "%s cannot be named by %s", directory, PARAMETER);
    }
    FILE *file = fopen(name, "a+e");
    while (NULL != file && NULL != fgets(line, sizeof(line), file)) {
        (void) sscanf(line, " " PARAMETER " = %8191[^ \t\r\n]", value);
        ends = NULL != strchr(line, '\n');
    }
    snprintf(list, sizeof(list), ":%s:", value);
    snprintf(entry, sizeof(entry), ":%s:", directory);
    if (NULL != file && NULL == strstr(list, entry)) {
        fprintf(file, "%s%s = %s%s%s\n", ends ? "" : "\n", PARAMETER, value, '\0' == *value ? "" : ":", directory);
    }
    return NULL != file && 0 == fclose(file) ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_FAILED, "%s: %s", name, strerror(errno));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD) that opens an encrypted file: one of its processes sees
 * file names as they were before the file was made.
 *
 *   LATE_RANK   that process
 *   LATE_FILE   the file
 *   LATE_LOG    gets a line for each look that found nothing because of this
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

static int was_earlier(void)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *late = getenv("LATE_RANK");

    if (NULL == rank || NULL == late || 0 != strcmp(rank, late)) {
        return 0;
    }
    FILE *log = fopen(getenv("LATE_LOG"), "a");
    if (NULL == log) {
        abort();
    }
    fputs("saw nothing\n", log);
    fclose(log);
    return 1;
}

int stat(const char *path, struct stat *status)
{
    const char *file = getenv("LATE_FILE"), *rest = path + (NULL == file ? 0 : strlen(file));

    if (NULL != file && 0 == strncmp(path, file, strlen(file)) && '\0' == *rest && was_earlier()) {
        errno = ENOENT;
        return -1;
    }
    return REAL("stat", int (*)(const char *, struct stat *))(path, status);
}

int stat64(const char *path, struct stat64 *status) __attribute__((alias("stat")));

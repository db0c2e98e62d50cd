/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD) that opens an encrypted file: one of its processes looks for the file before
 * it was made, and sees it from its first open on.
 *
 *   LATE_RANK   that process
 *   LATE_FILE   the file
 *   LATE_LOG    gets a line for each look that found nothing because of this
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

static bool there;                      /* from now on */

static bool is_file(const char *path)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *late = getenv("LATE_RANK"), *file = getenv("LATE_FILE");

    return NULL != rank && NULL != late && NULL != file && 0 == strcmp(rank, late) && 0 == strcmp(path, file);
}

int stat(const char *path, struct stat *status)
{
    if (!there && is_file(path)) {
        FILE *log = fopen(getenv("LATE_LOG"), "a");
        if (NULL == log || fputs("saw nothing\n", log) < 0 || 0 != fclose(log)) {
            abort();
        }
        errno = ENOENT;
        return -1;
    }
    return REAL("stat", int (*)(const char *, struct stat *))(path, status);
}

int stat64(const char *path, struct stat64 *status) __attribute__((alias("stat")));

int open(const char *path, int flags, ...)
{
    va_list rest;

    va_start(rest, flags);
    mode_t mode = 0 != (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    there = there || is_file(path);
    return REAL("open", int (*)(const char *, int, ...))(path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

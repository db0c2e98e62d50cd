/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files of development versions, which had a second file FILE.mpicrypt with map and tags: they are recognized, to be
 * refused.  Their maps and second files began as today's maps do, with other kinds:
 *
 *     | 'MPICRYPT' 8 | version 2 = 1 | kind 2: 1 map, 2 digest, 3 second file |
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_names.h"

#include "opal/mca/common/cryptfile/file/header.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { HEAD_BYTES = 12, OLD_MAP = 1, OLD_DIGEST = 2 };

/* 0: it is no head of ours. */
static int kind_of(const char head[HEAD_BYTES])
{
    return 0 == memcmp(head, "MPICRYPT\1\0", 10) && 0 == head[11] ? head[10] : 0;
}

static bool is_absent(int error) { return ENOENT == error || ENOTDIR == error || ENAMETOOLONG == error; }

/* The first bytes of a regular file, or as many as there are; -1: errno, 0 if it is of another kind.  Such a one is not opened:
 * a pipe's writer would go on. */
static ssize_t beginning(const char *path, char *bytes, size_t count)
{
    struct stat status;

    if (0 == stat(path, &status) && !S_ISREG(status.st_mode)) {
        errno = 0;
        return -1;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t got = fd < 0 ? -1 : pread(fd, bytes, count, 0);
    int error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return got;
}

/* One that was cut short, or whose first bytes a loss of power left zero, counts, too. */
static bool is_second_file(const char *path, int *error)
{
    static const char zeros[HEAD_BYTES];
    char head[HEAD_BYTES];
    struct stat status;

    if (0 != lstat(path, &status)) {
        *error = is_absent(errno) ? 0 : errno;
        return 0 != *error;
    }
    ssize_t bytes = beginning(path, head, sizeof(head));
    *error = bytes < 0 ? errno : 0;             /* also if it is a link that leads nowhere */
    if (bytes < 0) {
        return 0 != *error;
    }
    return 0 == memcmp(head, "MPICRYPT", bytes < 8 ? (size_t) bytes : 8) || 0 == memcmp(head, zeros, (size_t) bytes);
}

static bool has_second_file(const char *path, int *error)
{
    char *real = realpath(path, NULL), *second = NULL;
    bool has = true;

    *error = NULL == real && !is_absent(errno) ? errno : 0;
    if (0 == *error && asprintf(&second, "%s.mpicrypt", NULL == real ? path : real) < 0) {
        second = NULL;
        *error = ENOMEM;
    }
    if (0 == *error) {
        has = is_second_file(second, error);
    }
    free(second);
    free(real);
    return has;
}

/* The kind of the map in the attribute; 0: there is none.  Without the right to read, a process sees only the attributes' names. */
static int kind_of_attribute(const char *path, int *error)
{
    char map[XATTR_SIZE_MAX], names[XATTR_LIST_MAX];
    ssize_t bytes = getxattr(path, OMPI_CRYPTMPIO_ATTRIBUTE, map, sizeof(map));

    *error = bytes >= 0 || ENODATA == errno || ENOTSUP == errno || EPERM == errno || is_absent(errno) ? 0 : errno;
    if (EACCES == *error && !ompi_common_cryptmpio_lists(names, listxattr(path, names, sizeof(names)))) {
        *error = 0;
    }
    return bytes >= HEAD_BYTES ? kind_of(map) : 0;
}

const char *ompi_common_cryptmpio_is_old(const char *path, int *error)
{
    char magic[OPAL_CRYPTFILE_FILE_MAGIC_BYTES];
    int kind = kind_of_attribute(path, error);

    if ((ssize_t) sizeof(magic) == beginning(path, magic, sizeof(magic)) && 0 == memcmp(magic, OPAL_CRYPTFILE_FILE_MAGIC, sizeof(magic))) {
        *error = 0;
        return NULL;
    }
    if (0 != *error || OLD_MAP == kind || OLD_DIGEST == kind) {
        return "its attribute " OMPI_CRYPTMPIO_ATTRIBUTE;
    }
    return 0 == kind && has_second_file(path, error) ? "FILE.mpicrypt beside it" : NULL;
}

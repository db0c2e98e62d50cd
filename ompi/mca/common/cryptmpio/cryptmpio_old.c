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

enum { HEAD_BYTES = 12, OLD_MAP = 1, OLD_DIGEST = 2, OLD_SECOND = 3 };

/* 0: it is no head of ours. */
static int kind_of(const char head[HEAD_BYTES])
{
    return 0 == memcmp(head, "MPICRYPT\1\0", 10) && 0 == head[11] ? head[10] : 0;
}

/* How a regular file begins; false: it does not, or nobody knows.  Another kind is not opened: a pipe's writer would go on. */
static bool begins(const char *path, int how, char *bytes, size_t count)
{
    struct stat status;
    int fd = 0 == stat(path, &status) && S_ISREG(status.st_mode) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | how) : -1;
    bool got = fd >= 0 && (ssize_t) count == pread(fd, bytes, count, 0);

    if (fd >= 0) {
        close(fd);
    }
    return got;
}

static bool has_second_file(const char *path)
{
    char head[HEAD_BYTES], *real = realpath(path, NULL), *second = NULL;
    bool has = 0 < asprintf(&second, "%s.mpicrypt", NULL == real ? path : real) && begins(second, O_NOFOLLOW, head, sizeof(head))
               && OLD_SECOND == kind_of(head);

    free(second);
    free(real);
    return has;
}

const char *ompi_common_cryptmpio_is_old(const char *path)
{
    char magic[OPAL_CRYPTFILE_FILE_MAGIC_BYTES], map[XATTR_SIZE_MAX];
    ssize_t bytes = getxattr(path, OMPI_CRYPTMPIO_ATTRIBUTE, map, sizeof(map));
    int kind = bytes >= HEAD_BYTES ? kind_of(map) : 0;

    if (begins(path, 0, magic, sizeof(magic)) && 0 == memcmp(magic, OPAL_CRYPTFILE_FILE_MAGIC, sizeof(magic))) {
        return NULL;
    }
    if (OLD_MAP == kind || OLD_DIGEST == kind) {
        return "its attribute " OMPI_CRYPTMPIO_ATTRIBUTE;
    }
    return 0 == kind && has_second_file(path) ? "FILE.mpicrypt beside it" : NULL;
}

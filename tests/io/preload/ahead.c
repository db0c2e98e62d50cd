/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD) that makes encrypted files: attributes have room for a
 * digest only, and each of them is noted.  One that is written while bytes of the file still wait to be brought to the
 * storage may be ahead of the map in it after a power cut.
 *
 *   AHEAD_LOG      gets a line for each digest: "behind", or "ahead", which is wrong
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { DIGEST_BYTES = 80 };

static int waiting;                     /* writes to such a file since it was brought to the storage */

static int has_map(int fd)
{
    char magic[9];

    return sizeof(magic) == pread(fd, magic, sizeof(magic), 0) && 0 == memcmp(magic, "\x89MPICRYPT", sizeof(magic));
}

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

typedef ssize_t (*pwritev_t)(int fd, const struct iovec *vector, int count, off_t at);

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    waiting += has_map(fd);
    return REAL("pwritev", pwritev_t)(fd, vector, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *vector, int count, off_t at)
{
    waiting += has_map(fd);
    return REAL("pwritev64", pwritev_t)(fd, vector, count, at);
}

int fsync(int fd)
{
    int rc = REAL("fsync", int (*)(int))(fd);

    waiting = has_map(fd) ? 0 : waiting;
    return rc;
}

int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    if (DIGEST_BYTES != size) {
        errno = ENOSPC;
        return -1;
    }
    FILE *log = fopen(getenv("AHEAD_LOG"), "a");
    if (NULL == log) {
        abort();
    }
    fprintf(log, "%s\n", waiting > 0 ? "ahead" : "behind");
    fclose(log);
    return REAL("fsetxattr", int (*)(int, const char *, const void *, size_t, int))(fd, name, value, size, flags);
}

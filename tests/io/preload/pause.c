/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD): it stops before one of its renames, syncs, reads or locks,
 * until it may go on.
 *
 *   PAUSE_IN      rename, renameat2, fsync, preadv or lock
 *   PAUSE_AT      before which of them, from 1
 *   PAUSE_READY   a file that is made then
 *   PAUSE_END     it goes on when this is there
 *   PAUSE_WAITS   a file that is made when it waits for a lock that another process has
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static void make(const char *path)
{
    int fd = NULL == path ? -1 : open(path, O_CREAT | O_WRONLY, 0600);

    if (fd < 0) {
        abort();
    }
    close(fd);
}

static void come_by(const char *where)
{
    static int times;

    if (NULL != getenv("PAUSE_IN") && 0 == strcmp(where, getenv("PAUSE_IN")) && ++times == atoi(getenv("PAUSE_AT"))) {
        make(getenv("PAUSE_READY"));
        while (0 != access(getenv("PAUSE_END"), F_OK)) {
            usleep(10000);
        }
    }
}

int rename(const char *from, const char *to)
{
    come_by("rename");
    return ((int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename"))(from, to);
}

int renameat2(int from_directory, const char *from, int to_directory, const char *to, unsigned flags)
{
    come_by("renameat2");
    return ((int (*)(int, const char *, int, const char *, unsigned)) dlsym(RTLD_NEXT, "renameat2"))(from_directory, from, to_directory,
                                                                                                     to, flags);
}

int fsync(int fd)
{
    come_by("fsync");
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(fd);
}

int fdatasync(int fd)
{
    come_by("fsync");
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(fd);
}

ssize_t preadv(int fd, const struct iovec *vector, int count, off_t at)
{
    come_by("preadv");
    return ((ssize_t (*)(int, const struct iovec *, int, off_t)) dlsym(RTLD_NEXT, "preadv"))(fd, vector, count, at);
}

ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t at)
{
    come_by("preadv");
    return ((ssize_t (*)(int, const struct iovec *, int, off64_t)) dlsym(RTLD_NEXT, "preadv64"))(fd, vector, count, at);
}

static int lock(const char *name, int fd, int command, void *argument)
{
    if (F_OFD_SETLK == command) {
        come_by("lock");
    }
    int rc = ((int (*)(int, int, ...)) dlsym(RTLD_NEXT, name))(fd, command, argument);
    int error = errno;

    if (rc < 0 && F_OFD_SETLK == command && (EAGAIN == error || EACCES == error) && NULL != getenv("PAUSE_WAITS")) {
        make(getenv("PAUSE_WAITS"));
    }
    errno = error;
    return rc;
}

int fcntl(int fd, int command, ...)
{
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return lock("fcntl", fd, command, argument);
}

int fcntl64(int fd, int command, ...)
{
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    return lock("fcntl64", fd, command, argument);
}

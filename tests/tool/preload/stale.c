/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before mpicrypt-mpi (LD_PRELOAD): on the node FAULTY_NODE files are as on a file system with a fault, FAULT:
 *
 *   size     while a process has a file open, its size is what this node has seen or written last
 *   lock     a lock is never granted
 *   hang     nor does the call return
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <unistd.h>

static ino_t known;
static off_t size;

static int fault(const char *name)
{
    const char *node = getenv("FAULTY_NODE"), *is = getenv("FAULT");
    struct utsname here;

    return NULL != node && NULL != is && 0 == strcmp(is, name) && 0 == uname(&here) && 0 == strcmp(here.nodename, node);
}

int fstat(int fd, struct stat *status)
{
    int rc = ((int (*)(int, struct stat *)) dlsym(RTLD_NEXT, "fstat"))(fd, status);

    if (0 == rc && S_ISREG(status->st_mode) && fault("size")) {
        size = known == status->st_ino ? size : status->st_size;
        known = status->st_ino;
        status->st_size = size;
    }
    return rc;
}

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    known = 0;
    return ((ssize_t (*)(int, const struct iovec *, int, off_t)) dlsym(RTLD_NEXT, "pwritev"))(fd, vector, count, at);
}

int close(int fd)
{
    known = 0;
    return ((int (*)(int)) dlsym(RTLD_NEXT, "close"))(fd);
}

int fcntl(int fd, int command, ...)
{
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    if (F_OFD_SETLK == command && F_UNLCK != ((struct flock *) argument)->l_type) {
        while (fault("hang")) {
            (void) pause();
        }
        if (fault("lock")) {
            errno = EAGAIN;
            return -1;
        }
    }
    return ((int (*)(int, int, ...)) dlsym(RTLD_NEXT, "fcntl"))(fd, command, argument);
}

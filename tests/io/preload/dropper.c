/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file system without locks of open file descriptions: a process that closes a file loses all its locks on it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int close(int fd)
{
    static int (*real)(int);
    struct flock all = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    struct stat closed, other;
    const int known = fstat(fd, &closed);
    int rc;

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "close");
    }
    rc = real(fd);
    for (int i = 0; 0 == known && S_ISREG(closed.st_mode) && i < 256; i++) {
        if (0 == fstat(i, &other) && closed.st_dev == other.st_dev && closed.st_ino == other.st_ino) {
            (void) fcntl(i, F_OFD_SETLK, &all);
        }
    }
    return rc;
}

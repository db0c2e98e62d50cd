/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * If a program is started with a standard stream closed, the first file that it opens gets
 * that descriptor, and what is printed goes into this file.  And writing to a descriptor.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpicrypt.h"

/* Opened in the wrong mode: reading and writing fail as they do with the stream closed. */
void mpicrypt_streams_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fcntl(fd, F_GETFD) < 0 && fd != open("/dev/null", STDIN_FILENO == fd ? O_WRONLY : O_RDONLY)) {
            _exit(MPICRYPT_FAILED);
        }
    }
}

bool mpicrypt_write_all(int fd, const void *bytes, size_t count)
{
    ssize_t done;

    for (const char *at = bytes; count > 0; at += done, count -= (size_t) done) {
        done = write(fd, at, count);
        if (done < 0 && EINTR != errno) {
            return false;
        }
        done = done < 0 ? 0 : done;
    }
    return true;
}

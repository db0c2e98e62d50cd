/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Who starts a program with a standard stream closed gives its descriptor to the first file
 * that the program opens, and what is printed goes into that file.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "mpicrypt.h"

/* Opened the wrong way round: reading, and writing, fails as it does with the stream closed. */
void mpicrypt_streams_open(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        if (fcntl(fd, F_GETFD) < 0 && fd != open("/dev/null", STDIN_FILENO == fd ? O_WRONLY : O_RDONLY)) {
            _exit(MPICRYPT_FAILED);
        }
    }
}

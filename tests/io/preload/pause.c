/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before mpicrypt (LD_PRELOAD): it stops before one of its renames, until it may go on.
 *
 *   PAUSE_AT      before which, from 1
 *   PAUSE_READY   a file that is made then
 *   PAUSE_END     it goes on when this is there
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

int rename(const char *from, const char *to)
{
    static int renames;

    if (++renames == atoi(getenv("PAUSE_AT"))) {
        int fd = open(getenv("PAUSE_READY"), O_CREAT | O_WRONLY, 0600);
        if (fd < 0) {
            abort();
        }
        close(fd);
        while (0 != access(getenv("PAUSE_END"), F_OK)) {
            usleep(10000);
        }
    }
    return ((int (*)(const char *, const char *)) dlsym(RTLD_NEXT, "rename"))(from, to);
}

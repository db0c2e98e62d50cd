/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file system whose server computes in 32 bits where two locks of a process end that it joins, as CephFS's does: if the
 * process locks bytes again that it has locked the same way, only the first byte of the range stays locked.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

enum { LOCKS = 256 };

static struct held {
    int fd;
    short type;
    off_t first, last;
} held[LOCKS];                          /* type F_UNLCK: unused */
static int (*real_fcntl)(int, int, ...);

__attribute__((constructor)) static void begin(void)
{
    for (int i = 0; i < LOCKS; i++) {
        held[i].type = F_UNLCK;
    }
    *(void **) &real_fcntl = dlsym(RTLD_NEXT, "fcntl");
}

static void keep(struct held lock)
{
    for (int i = 0; lock.first <= lock.last && i < LOCKS; i++) {
        if (F_UNLCK == held[i].type) {
            held[i] = lock;
            return;
        }
    }
}

/* Locks of this type that it touches become one with it, and of others it takes its part.  True: it had some of its bytes. */
static bool joined(struct held *lock)
{
    const struct held asked = *lock;
    bool again = false;

    for (int i = 0; i < LOCKS; i++) {
        const struct held old = held[i];
        const bool meets = old.first <= asked.last && asked.first <= old.last;
        const bool touches = meets || old.last + 1 == asked.first || old.first - 1 == asked.last;
        if (F_UNLCK == old.type || old.fd != lock->fd || !(old.type == lock->type ? touches : meets)) {
            continue;
        }
        held[i].type = F_UNLCK;
        if (old.type == lock->type) {
            lock->first = old.first < lock->first ? old.first : lock->first;
            lock->last = old.last > lock->last ? old.last : lock->last;
            again = again || meets;
        } else {
            keep((struct held){old.fd, old.type, old.first, asked.first - 1});
            keep((struct held){old.fd, old.type, asked.last + 1, old.last});
        }
    }
    return again;
}

int fcntl(int fd, int command, ...)
{
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    int rc = real_fcntl(fd, command, argument);
    if (0 != rc || F_OFD_SETLK != command) {
        return rc;
    }
    const struct flock *asked = argument;
    struct held lock = {fd, asked->l_type, asked->l_start, 0 == asked->l_len ? LONG_MAX : asked->l_start + asked->l_len - 1};
    if (joined(&lock) && lock.last > INT_MAX) {
        struct flock lost = {.l_type = F_UNLCK, .l_whence = SEEK_SET, .l_start = lock.first + 1, .l_len = lock.last - lock.first};
        if (lost.l_len > 0) {
            (void) real_fcntl(fd, F_OFD_SETLK, &lost);
            lock.last = lock.first;
        }
        fprintf(stderr, "merger: locked again, as %d, from 2^62 %+ld on\n", lock.type, (long) (asked->l_start - (1L << 62)));
    }
    if (F_UNLCK != lock.type) {
        keep(lock);
    }
    return rc;
}

int fcntl64(int, int, ...) __attribute__((alias("fcntl")));

int close(int fd)
{
    for (int i = 0; i < LOCKS; i++) {
        held[i].type = fd == held[i].fd ? F_UNLCK : held[i].type;
    }
    return ((int (*)(int)) dlsym(RTLD_NEXT, "close"))(fd);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Data keys that the first process of a node gives to others: GIVEN_FORGES names what is wrong in each answer.  With GIVEN_TRUSTS,
 * a process believes that all others could read what it can.  With GIVEN_FORKS, a process that accepts a connection forks one that keeps
 * it; so the program may do in a thread.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { KEY_BYTES = 33, REGIONS = 2 };

bool opal_crypt_reads_alike(int connection, uint64_t before);

bool opal_crypt_reads_alike(int connection, uint64_t before)
{
    static bool (*real)(int, uint64_t);

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "opal_crypt_reads_alike");
    }
    return NULL != getenv("GIVEN_TRUSTS") || real(connection, before);
}

int accept4(int listener, struct sockaddr *address, socklen_t *bytes, int flags)
{
    static int (*real)(int, struct sockaddr *, socklen_t *, int);
    const pid_t parent = getpid();
    socklen_t type_bytes = sizeof(int);
    int fd, type = 0;

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "accept4");
    }
    fd = real(listener, address, bytes, flags);
    if (fd >= 0 && NULL != getenv("GIVEN_FORKS") && 0 == getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes) && SOCK_SEQPACKET == type
        && 0 == fork()) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        while (parent == getppid()) {
            pause();
        }
        _exit(0);
    }
    return fd;
}

ssize_t send(int fd, const void *bytes, size_t count, int flags)
{
    static ssize_t (*real)(int, const void *, size_t, int);
    const char *forges = getenv("GIVEN_FORGES");
    uint8_t forged[REGIONS * KEY_BYTES + 1] = {0};
    socklen_t type_bytes = sizeof(int);
    int type = 0;

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "send");
    }
    if (NULL == forges || '\0' == *forges || REGIONS * KEY_BYTES != count || 0 != getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &type_bytes)
        || SOCK_SEQPACKET != type) {
        return real(fd, bytes, count, flags);
    }
    memcpy(forged, bytes, count);
    if (0 == strcmp(forges, "key")) {
        forged[count - 1] ^= 1;
    } else if (0 == strcmp(forges, "grant")) {
        forged[KEY_BYTES] = 3;
    } else if (0 == strcmp(forges, "none")) {
        forged[0] = 0;
    } else if (0 == strcmp(forges, "other")) {          /* the keys change places */
        memcpy(forged, (const uint8_t *) bytes + KEY_BYTES, KEY_BYTES);
        memcpy(forged + KEY_BYTES, bytes, KEY_BYTES);
    } else {
        count += 0 == strcmp(forges, "long") ? 1 : (size_t) -1;
    }
    return real(fd, forged, count, flags);
}

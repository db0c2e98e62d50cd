/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Data keys that the first process of a node gives to others: GIVEN_FORGES names what is wrong in each answer.  With GIVEN_TRUSTS,
 * processes believe that all others could read what they can; with GIVEN_MOUNTS, one says that it has this mount namespace.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
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

ssize_t readlink(const char *path, char *text, size_t room)
{
    static ssize_t (*real)(const char *, char *, size_t);
    const char *mounts = getenv("GIVEN_MOUNTS");

    if (NULL == real) {
        *(void **) &real = dlsym(RTLD_NEXT, "readlink");
    }
    if (NULL == mounts || 0 != strcmp(path, "/proc/self/ns/mnt") || strlen(mounts) > room) {
        return real(path, text, room);
    }
    memcpy(text, mounts, strlen(mounts));
    return (ssize_t) strlen(mounts);
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

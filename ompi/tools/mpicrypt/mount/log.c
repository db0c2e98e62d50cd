/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The log of a mount.  A program that reads a damaged file again and again must not flood it.
 */
#include <stdio.h>

#include "mount.h"

enum { REMEMBERED = 4096 };

static pthread_mutex_t log_mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t logged[REMEMBERED];     /* by its lowest bits; two that meet there make a line too many, never too few */

/* FNV-1a of path and kind; never 0. */
static uint64_t log_key(const char *path, int kind)
{
    uint64_t key = 0xcbf29ce484222325u ^ (uint64_t) kind;

    for (; '\0' != *path; ++path) {
        key = (key ^ (uint8_t) *path) * 0x100000001b3u;
    }
    return key | (uint64_t) 1 << 63;
}

void mpicrypt_mount_log(const char *path, int kind, const char *text)
{
    const uint64_t key = log_key(path, kind);
    char line[1200];

    snprintf(line, sizeof(line), "mpicrypt mount: %s", text);
    for (char *p = line; '\0' != *p; ++p) {
        if ((unsigned char) *p < ' ' || 0x7f == *p) {       /* a name of a file may have any */
            *p = '?';
        }
    }
    pthread_mutex_lock(&log_mutex);
    if (key != logged[key % REMEMBERED]) {
        logged[key % REMEMBERED] = key;
        fprintf(stderr, "%s\n", line);
    }
    pthread_mutex_unlock(&log_mutex);
}

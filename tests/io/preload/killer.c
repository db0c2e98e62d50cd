/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD) that writes an encrypted file: one of
 * its processes dies at a chosen write to its data, or to its header or a control area.
 *
 *   KILL_RANK     the process that dies
 *   KILL_AT       at which of its writes, from 1, which is its first to the data
 *   KILL_HOW      before   before the write
 *                 cut      after a part of it (KILL_CUT thousandths)
 *                 between  data is written, its entry is not: before the first
 *                          other write behind the KILL_AT-th to the data
 *   KILL_LOG      where it writes what it did, a line at a time
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NEITHER, DATA, CONTROL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long writes, data_writes;

static long number(const char *name)
{
    const char *text = getenv(name);

    return NULL == text ? 0 : strtol(text, NULL, 10);
}

static uint64_t little(const unsigned char *bytes)
{
    uint64_t value = 0;

    for (int i = 7; i >= 0; --i) {
        value = value << 8 | bytes[i];
    }
    return value;
}

/* The part at this place, by the header; or the header itself, which is not there yet. */
static int part_at(const unsigned char *header, off_t at)
{
    uint64_t group = little(header + 40), control = little(header + 48), before = little(header + 56);

    return 0 == at || 0 == group || (uint64_t) at < before || ((uint64_t) at - before) % group < control ? CONTROL : DATA;
}

static int part_of(int fd, const struct iovec *vector, off_t at)
{
    static const char magic[] = "\x89MPICRYPT";
    unsigned char header[80];
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);

    if (n <= 0 || NULL == memmem(path, (size_t) n, "/storm", 6)) {
        return NEITHER;
    }
    if (0 == at && vector->iov_len >= sizeof(header) && 0 == memcmp(vector->iov_base, magic, sizeof(magic) - 1)) {
        return CONTROL;
    }
    return sizeof(header) == pread(fd, header, sizeof(header), 0) && 0 == memcmp(header, magic, sizeof(magic) - 1)
               ? part_at(header, at) : NEITHER;
}

static void die(const char *what, int part, off_t at, size_t bytes)
{
    char line[128];
    int fd = open(getenv("KILL_LOG"), O_WRONLY | O_CREAT | O_APPEND, 0600);
    int n = snprintf(line, sizeof(line), "%s %s %lld %zu\n", what, DATA == part ? "data" : "control", (long long) at, bytes);

    if (fd < 0 || n != write(fd, line, (size_t) n)) {
        abort();
    }
    raise(SIGKILL);
}

typedef ssize_t (*pwritev_t)(int fd, const struct iovec *vector, int count, off_t at);

/* The first `bytes` of a vector. */
static void write_part(pwritev_t real, int fd, const struct iovec *vector, off_t at, size_t bytes)
{
    for (size_t left = bytes; left > 0; ++vector) {
        struct iovec one = *vector;
        one.iov_len = one.iov_len < left ? one.iov_len : left;
        if (one.iov_len > 0 && (ssize_t) one.iov_len != real(fd, &one, 1, at)) {
            abort();
        }
        at += (off_t) one.iov_len;
        left -= one.iov_len;
    }
}

static ssize_t watched(pwritev_t real, int fd, const struct iovec *vector, int count, off_t at)
{
    int part = part_of(fd, vector, at);
    const char *how = getenv("KILL_HOW"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    size_t bytes = 0;

    if (NEITHER == part || NULL == how || NULL == rank || strtol(rank, NULL, 10) != number("KILL_RANK")) {
        return real(fd, vector, count, at);
    }
    for (int i = 0; i < count; ++i) {
        bytes += vector[i].iov_len;
    }
    pthread_mutex_lock(&lock);
    writes += writes > 0 || DATA == part;
    if (0 == strcmp(how, "between")) {
        if (CONTROL == part && data_writes >= number("KILL_AT")) {
            die(how, part, at, bytes);
        }
    } else if (writes == number("KILL_AT")) {
        if (0 == strcmp(how, "cut")) {
            write_part(real, fd, vector, at, bytes * (size_t) number("KILL_CUT") / 1000);
        }
        die(how, part, at, bytes);
    }
    ssize_t done = real(fd, vector, count, at);
    data_writes += DATA == part;
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    return watched((pwritev_t) dlsym(RTLD_NEXT, "pwritev"), fd, vector, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t at)
{
    return watched((pwritev_t) dlsym(RTLD_NEXT, "pwritev64"), fd, vector, count, at);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Loaded before a program (LD_PRELOAD): something happens at one of the calls by which its rank 0, or mpicrypt,
 * changes the file STEP_FILE, or what is made beside it to become that file; or, if STEP_FILE ends in a slash, any file below it.
 *
 *   STEP_HOW   kill      the process dies before call STEP_AT, from 1
 *              cut       the same; but if that is a write, nine tenths of its first piece are done: for a map, more
 *                        than a new one shares with the old one
 *              full      that call and all later ones find no space
 *              unread    the first bytes of the file cannot be read; or those from STEP_FROM on, for the reason STEP_ERRNO
 *              do        before each of the calls a shell runs STEP_DO, with its name in STEP
 *   STEP_LOG   gets a line when it has happened
 *   STEP_NO_EXCHANGE   the file system cannot exchange two names
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

#define REAL(name, type) ((type) dlsym(RTLD_NEXT, name))

static int is_meant(const char *path)
{
    const char *file = getenv("STEP_FILE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    size_t n = NULL == file ? 0 : strlen(file);
    char link[64], real[4096];
    int fd, end_of_link = 0;

    /* A file that mpicrypt found below a directory. */
    if (1 == sscanf(path, "/proc/self/fd/%d/%n", &fd, &end_of_link) && end_of_link > 0) {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t bytes = readlink(link, real, sizeof(real) - 1);
        real[bytes < 0 ? 0 : bytes] = '\0';
        snprintf(real + strlen(real), sizeof(real) - strlen(real), "/%s", path + end_of_link);
        path = real;
    }
    if (0 == n || (NULL != rank && 0 != strcmp(rank, "0")) || 0 != strncmp(path, file, n)) {
        return 0;
    }
    if ('/' == file[n - 1]) {           /* all files below a directory */
        return 1;
    }
    const char *rest = path + n, *end = strrchr(rest, '.');
    return '\0' == *rest || (NULL != end && 0 == strcmp(end, ".part"));
}

static int is_meant_fd(int fd)
{
    char link[64], path[4096];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof(path) - 1);
    path[n < 0 ? 0 : n] = '\0';
    return is_meant(path);
}

static int is_so(const char *how)
{
    const char *wanted = getenv("STEP_HOW");

    return NULL != wanted && 0 == strcmp(wanted, how);
}

static void say(const char *call)
{
    FILE *log = fopen(getenv("STEP_LOG"), "a");

    if (NULL == log || fprintf(log, "%s\n", call) < 0 || 0 != fclose(log)) {
        abort();
    }
}

/* mpicrypt has nobody to hand LD_PRELOAD down to but this shell. */
static void run(const char *call)
{
    unsetenv("LD_PRELOAD");
    if (0 != setenv("STEP", call, 1) || 0 != system(getenv("STEP_DO"))) {
        abort();
    }
}

/* 0: go on. */
static int step(int meant, const char *call)
{
    static atomic_int steps;

    if (meant && is_so("do")) {
        run(call);
    }
    if (!meant || (!is_so("kill") && !is_so("cut") && !is_so("full")) || atomic_fetch_add(&steps, 1) + 1 < atoi(getenv("STEP_AT"))) {
        return 0;
    }
    if (is_so("cut") && 0 == strcmp(call, "pwritev")) {
        return 1;
    }
    say(call);
    if (!is_so("full")) {
        raise(SIGKILL);
    }
    errno = ENOSPC;
    return -1;
}

ssize_t pwritev(int fd, const struct iovec *vector, int count, off_t at)
{
    int what = step(is_meant_fd(fd), "pwritev");

    if (what > 0) {
        const struct iovec most = {vector[0].iov_base, vector[0].iov_len - (vector[0].iov_len + 9) / 10};
        (void) REAL("pwritev", ssize_t (*)(int, const struct iovec *, int, off_t))(fd, &most, 1, at);
        say("a part of a pwritev");
        raise(SIGKILL);
    }
    return 0 != what ? -1 : REAL("pwritev", ssize_t (*)(int, const struct iovec *, int, off_t))(fd, vector, count, at);
}

ssize_t pwritev64(int fd, const struct iovec *vector, int count, off64_t at) __attribute__((alias("pwritev")));

ssize_t preadv(int fd, const struct iovec *vector, int count, off_t at)
{
    const char *from = getenv("STEP_FROM"), *reason = getenv("STEP_ERRNO");

    if (is_so("unread") && (NULL == from ? 0 == at : at >= atoll(from)) && is_meant_fd(fd)) {
        say("preadv");
        errno = NULL == reason ? EIO : atoi(reason);
        return -1;
    }
    return REAL("preadv", ssize_t (*)(int, const struct iovec *, int, off_t))(fd, vector, count, at);
}

ssize_t preadv64(int fd, const struct iovec *vector, int count, off64_t at) __attribute__((alias("preadv")));

int ftruncate(int fd, off_t bytes)
{
    return 0 != step(is_meant_fd(fd), "ftruncate") ? -1 : REAL("ftruncate", int (*)(int, off_t))(fd, bytes);
}

int ftruncate64(int fd, off64_t bytes) __attribute__((alias("ftruncate")));

int fsetxattr(int fd, const char *name, const void *value, size_t bytes, int flags)
{
    return 0 != step(is_meant_fd(fd), "fsetxattr") ? -1
               : REAL("fsetxattr", int (*)(int, const char *, const void *, size_t, int))(fd, name, value, bytes, flags);
}

int fremovexattr(int fd, const char *name)
{
    return 0 != step(is_meant_fd(fd), "fremovexattr") ? -1 : REAL("fremovexattr", int (*)(int, const char *))(fd, name);
}

int rename(const char *from, const char *to)
{
    return 0 != step(is_meant(from), "rename") ? -1 : REAL("rename", int (*)(const char *, const char *))(from, to);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned flags)
{
    int what = step(is_meant(from), "renameat2");

    if (0 != (flags & RENAME_EXCHANGE) && NULL != getenv("STEP_NO_EXCHANGE")) {
        errno = EINVAL;
        return -1;
    }
    return 0 != what ? -1
               : REAL("renameat2", int (*)(int, const char *, int, const char *, unsigned))(from_at, from, to_at, to, flags);
}

int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    return 0 != step(is_meant_fd(fd), "fallocate") ? -1 : REAL("fallocate", int (*)(int, int, off_t, off_t))(fd, mode, at, bytes);
}

int fallocate64(int fd, int mode, off64_t at, off64_t bytes) __attribute__((alias("fallocate")));

int fchmod(int fd, mode_t mode)
{
    return 0 != step(is_meant_fd(fd), "fchmod") ? -1 : REAL("fchmod", int (*)(int, mode_t))(fd, mode);
}

int unlink(const char *path)
{
    return 0 != step(is_meant(path), "unlink") ? -1 : REAL("unlink", int (*)(const char *))(path);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Waiting for a lock.  Any process that may read a file can lock all of it, for as long as it likes; so a process that
 * waits says so after SAY_MS, naming the holder if it can be found, and gives up after the time that the user allows.
 *
 * A blocking call could do neither.  The lock is polled, each time after an eighth of the wait so far, so that this is
 * the longest delay between the lock's release and our getting it.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/crypt/base/patience.h"
#include "opal/mca/common/crypt/base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { SAY_MS = 10000, PAUSE_LEAST_NS = 20000, PAUSE_MOST_NS = 20000000 };

/* ---- the holder of a lock ---- */

/* Does this file in /proc/PID/fdinfo show that the descriptor has a conflicting lock? */
static bool has_lock(const char *path, const struct stat *file, const struct flock *lock)
{
    FILE *info = fopen(path, "re");
    char line[256], end[32];
    unsigned long long inode, first;
    bool has = false;

    while (NULL != info && !has && NULL != fgets(line, sizeof(line), info)) {
        if (3 == sscanf(line, "lock: %*d: OFDLCK %*s %*s %*d %*x:%*x:%llu %llu %31s", &inode, &first, end) && inode == file->st_ino) {
            const unsigned long long last = 0 == strcmp(end, "EOF") ? UINT64_MAX : strtoull(end, NULL, 10);
            const unsigned long long wanted = (unsigned long long) lock->l_start;

            has = first < wanted + (unsigned long long) lock->l_len && last >= wanted;
        }
    }
    if (NULL != info) {
        fclose(info);
    }
    return has;
}

/* 0: on another node, or of a user whose processes we may not inspect.  The kernel names a classic lock's holder. */
static pid_t holder(int fd, const struct flock *wanted)
{
    struct flock lock = *wanted;
    struct stat file;
    glob_t all = {.gl_pathc = 0};
    pid_t pid = 0;

    if (0 != fcntl(fd, F_OFD_GETLK, &lock) || F_UNLCK == lock.l_type || 0 != fstat(fd, &file)) {
        return 0;
    }
    if (lock.l_pid > 0) {
        return lock.l_pid;
    }
    if (0 == glob("/proc/[0-9]*/fdinfo/*", GLOB_NOSORT, NULL, &all)) {
        for (size_t i = 0; i < all.gl_pathc && 0 == pid; ++i) {
            pid = has_lock(all.gl_pathv[i], &file, wanted) ? (pid_t) strtol(all.gl_pathv[i] + strlen("/proc/"), NULL, 10) : 0;
        }
    }
    globfree(&all);
    return pid;
}

/* ---- waiting ---- */

static ompi_common_cryptmpio_waits_t on_wait;
static unsigned limit;                  /* seconds; 0: none */

void ompi_common_cryptmpio_posix_on_wait(ompi_common_cryptmpio_waits_t waits, unsigned timeout)
{
    on_wait = waits;
    limit = timeout;
}

unsigned ompi_common_cryptmpio_posix_wait_limit(void) { return limit; }

static void say(const opal_cryptfile_wait_t *w, int fd, const struct flock *lock, bool last)
{
    char link[64], file[PATH_MAX];
    ssize_t bytes;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    bytes = readlink(link, file, sizeof(file) - 1);
    file[bytes > 0 ? bytes : 0] = '\0';
    if (NULL != on_wait) {
        on_wait(file, holder(fd, lock), (unsigned) ((opal_crypt_now() - w->since) / 1000000000), last);
    }
}

/* False: time is up. */
static bool wait_on(opal_cryptfile_wait_t *w, int fd, const struct flock *lock)
{
    if (0 == w->since) {
        *w = (opal_cryptfile_wait_t){.since = opal_crypt_now(), .silent = opal_crypt_patience(SAY_MS),
                                     .patient = opal_crypt_patience((int64_t) limit * 1000)};
    }
    const uint64_t part = (opal_crypt_now() - w->since) / 8;
    const struct timespec pause = {0, part < PAUSE_LEAST_NS ? PAUSE_LEAST_NS : part < PAUSE_MOST_NS ? (long) part : PAUSE_MOST_NS};

    (void) nanosleep(&pause, NULL);
    if (limit > 0 && 0 == opal_crypt_patience_left(&w->patient)) {
        say(w, fd, lock, true);
        errno = ETIMEDOUT;
        return false;
    }
    if (!w->said && 0 == opal_crypt_patience_left(&w->silent)) {
        w->said = true;
        say(w, fd, lock, false);
    }
    return true;
}

int ompi_common_cryptmpio_posix_take_lock(int fd, short type, uint64_t at, uint64_t bytes)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) bytes};
    opal_cryptfile_wait_t w = {.since = 0};

    while (0 != fcntl(fd, F_OFD_SETLK, &lock)) {
        if (EINTR == errno) {
            continue;
        }
        if (EAGAIN != errno && EACCES != errno) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
        if (!wait_on(&w, fd, &lock)) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
    }
    return OPAL_CRYPT_OK;
}

int ompi_common_cryptmpio_posix_wait_once(int fd, uint64_t at, opal_cryptfile_wait_t *wait)
{
    const struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = 1};

    return wait_on(wait, fd, &lock) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

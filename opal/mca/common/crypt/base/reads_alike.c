/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * SO_PEERCRED has the process that called connect() or listen(), by its number, and /proc/NUMBER says the rest.  By then
 * another process may have that number.  So the process must be older than the socket: then it has had the number ever since.
 * What is open below /proc/NUMBER belongs to one process, and fails once that has ended.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "reads_alike.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

uint64_t opal_crypt_since_boot(void)
{
    struct timespec now = {0};

    return 0 == clock_gettime(CLOCK_BOOTTIME, &now) ? (uint64_t) now.tv_sec * SECOND + (uint64_t) now.tv_nsec : 0;
}

static FILE *open_in(int process, const char *name)
{
    int fd = openat(process, name, O_RDONLY | O_CLOEXEC);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "re");

    if (fd >= 0 && NULL == file) {
        close(fd);
    }
    return file;
}

/* The 22nd field of `stat`, in ticks; the second one, in parentheses, may have blanks and parentheses. */
static bool is_older(int process, uint64_t before)
{
    const long hertz = sysconf(_SC_CLK_TCK);
    char text[4096];
    FILE *file = open_in(process, "stat");
    size_t bytes = NULL == file ? 0 : fread(text, 1, sizeof(text) - 1, file);
    uint64_t ticks = 0;

    if (NULL != file) {
        fclose(file);
    }
    text[bytes] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; NULL != at && field < 22; ++field) {
        at = strchr(at + 1, ' ');
    }
    return NULL != at && hertz > 0 && 1 == sscanf(at, " %" SCNu64, &ticks) && ticks < UINT64_MAX / SECOND
           && (ticks + 1) * SECOND / (uint64_t) hertz <= before;
}

/* With its mount: a bind mount of a directory is the same inode, and other things are mounted below. */
static bool same_object(int process, int self, const char *name)
{
    const unsigned wanted = STATX_INO | STATX_MNT_ID;
    struct statx a, b;

    return 0 == statx(process, name, 0, wanted, &a) && 0 == statx(self, name, 0, wanted, &b)
           && wanted == (a.stx_mask & b.stx_mask & wanted)      /* Linux 5.8 */
           && a.stx_dev_major == b.stx_dev_major && a.stx_dev_minor == b.stx_dev_minor && a.stx_ino == b.stx_ino
           && a.stx_mnt_id == b.stx_mnt_id;
}

/* Read side by side: both have the same lines.  A process that has ended has fewer.  With no_new_privs, either may be in a Landlock
 * domain, which cannot be seen. */
static bool same_rights(FILE *its, FILE *own)
{
    static const char *const names[] = {"Uid:", "Gid:", "Groups:", "CapEff:", "NoNewPrivs:\t0\n", "Seccomp"};
    char *a = NULL, *b = NULL, *end;
    size_t a_size = 0, b_size = 0, name;
    unsigned found = 0;
    bool same = true, counts_here = false;      /* /proc has the numbers by which this process knows others */

    while (same && getline(&b, &b_size, own) > 0) {
        same = getline(&a, &a_size, its) > 0;
        name = strcspn(b, ":") + 1;
        same = same && 0 == strncmp(a, b, name);
        for (size_t i = 0; same && i < sizeof(names) / sizeof(names[0]); ++i) {
            if (0 == strncmp(b, names[i], strlen(names[i]))) {
                same = 0 == strcmp(a, b);
                found |= 1u << i;
            }
        }
        if (0 == strncmp(b, "NSpid:", 6)) {
            counts_here = gettid() == strtol(b + 6, &end, 10) && '\n' == *end;
        }
    }
    free(a);
    free(b);
    return same && counts_here && found == (1u << sizeof(names) / sizeof(names[0])) - 1;
}

static bool same_status(int process, int self)
{
    FILE *its = open_in(process, "status"), *own = open_in(self, "status");
    const bool same = NULL != its && NULL != own && same_rights(its, own);

    if (NULL != its) {
        fclose(its);
    }
    if (NULL != own) {
        fclose(own);
    }
    return same;
}

/* Of AppArmor, SELinux, ...: without one, neither can be read. */
static bool same_label(int process, int self)
{
    char its[4096] = "", own[4096] = "";
    FILE *a = open_in(process, "attr/current"), *b = open_in(self, "attr/current");
    const size_t a_bytes = NULL == a ? 0 : fread(its, 1, sizeof(its), a), b_bytes = NULL == b ? 0 : fread(own, 1, sizeof(own), b);
    const bool same = (NULL == a) == (NULL == b) && a_bytes == b_bytes && a_bytes < sizeof(its) && 0 == memcmp(its, own, a_bytes);

    if (NULL != a) {
        fclose(a);
    }
    if (NULL != b) {
        fclose(b);
    }
    return same;
}

bool opal_crypt_reads_alike(int connection, uint64_t before)
{
    struct ucred peer = {.pid = 0};
    socklen_t bytes = sizeof(peer);
    char name[32];

    if (0 != getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) || peer.pid <= 0 || geteuid() != peer.uid) {
        return false;                   /* 0: it has no number here */
    }
    snprintf(name, sizeof(name), "/proc/%ld", (long) peer.pid);
    const int process = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    const int self = open("/proc/thread-self", O_PATH | O_DIRECTORY | O_CLOEXEC);       /* which opens the files */
    const bool alike = process >= 0 && self >= 0 && is_older(process, before) && same_object(process, self, "ns/mnt")
                       && same_object(process, self, "ns/user") && same_object(process, self, "root")
                       && same_status(process, self) && same_label(process, self);

    if (process >= 0) {
        close(process);
    }
    if (self >= 0) {
        close(self);
    }
    return alike;
}

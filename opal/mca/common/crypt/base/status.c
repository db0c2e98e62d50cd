/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The status page's owner: make it, fill it, remove it.  See crypt/base/status.h.
 *
 * It serves diagnosis only: whatever goes wrong here, the job continues without it.
 */
#include "status.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct opal_crypt_status {
    opal_crypt_status_page_t *page;
    int fd;                             /* holds the lock */
    char path[512];
};

/* The program's name is in parentheses and may contain anything: the last ")" ends it. */
uint64_t opal_crypt_status_ticks(pid_t pid, char *state)
{
    char path[64], text[1024], *at;
    unsigned long long ticks = 0;
    FILE *file;
    size_t bytes;

    *state = '\0';
    snprintf(path, sizeof(path), "/proc/%ld/stat", (long) pid);
    file = fopen(path, "re");
    if (NULL == file) {
        return 0;
    }
    bytes = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[bytes] = '\0';
    at = strrchr(text, ')');
    if (NULL == at || ' ' != at[1]) {
        return 0;
    }
    *state = at[2];
    if (1 != sscanf(at + 2, "%*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &ticks)) {
        *state = '\0';
    }
    return ticks;
}

/* The launcher chooses a job's name freely. */
static void make_path(const char *directory, const opal_crypt_status_who_t *who, char *path, size_t bytes)
{
    char job[128];
    size_t i;

    for (i = 0; i < sizeof(job) - 1 && '\0' != who->job[i]; i++) {
        const char c = who->job[i];
        const bool plain = ('0' <= c && c <= '9') || ('a' <= (c | 0x20) && (c | 0x20) <= 'z') || '@' == c || '-' == c;

        job[i] = plain ? c : '_';
    }
    job[i] = '\0';
    snprintf(path, bytes, "%s/" OPAL_CRYPT_STATUS_PREFIX "%lu.%s.%lu.%lu", directory, (unsigned long) geteuid(), job,
             (unsigned long) who->rank, (unsigned long) getpid());
}

/* An existing file belongs to an earlier process with this pid, or to another user, who can deny us a page, but no
 * more. */
static int open_new(const char *path)
{
    const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    int fd = open(path, flags, 0600);

    if (fd < 0 && EEXIST == errno && 0 == unlink(path)) {
        fd = open(path, flags, 0600);
    }
    return fd;
}

/* Allocate its memory: on a full tmpfs the first write to the mapping would raise SIGBUS. */
static int fill(opal_crypt_status_t *status)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int rc;

    if (0 != fchmod(status->fd, 0600) || 0 != fcntl(status->fd, F_SETLK, &lock)) {
        return errno;
    }
    do {
        rc = posix_fallocate(status->fd, 0, sizeof(*status->page));
    } while (EINTR == rc);
    if (0 != rc) {
        return rc;
    }
    status->page = mmap(NULL, sizeof(*status->page), PROT_READ | PROT_WRITE, MAP_SHARED, status->fd, 0);
    return MAP_FAILED == (void *) status->page ? errno : 0;
}

opal_crypt_status_t *opal_crypt_status_make(const char *directory, const opal_crypt_status_who_t *who,
                                            int *error)
{
    opal_crypt_status_t *status = calloc(1, sizeof(*status));
    opal_crypt_status_who_t *mine;
    char state;

    if (NULL == status) {
        *error = ENOMEM;
        return NULL;
    }
    make_path(directory, who, status->path, sizeof(status->path));
    status->fd = open_new(status->path);
    if (status->fd < 0) {
        *error = errno;
        free(status);
        return NULL;
    }
    *error = fill(status);
    if (0 != *error) {
        unlink(status->path);
        close(status->fd);
        free(status);
        return NULL;
    }
    mine = &status->page->who;
    *mine = *who;
    mine->magic = 0;
    mine->version = OPAL_CRYPT_STATUS_VERSION;
    mine->bytes = sizeof(*status->page);
    mine->uid = (uint32_t) geteuid();
    mine->pid = (uint32_t) getpid();
    mine->ticks = opal_crypt_status_ticks(getpid(), &state);
    opal_crypt_status_next(status)->updated = (int64_t) opal_crypt_now();
    opal_crypt_status_publish(status);
    __atomic_store_n(&mine->magic, OPAL_CRYPT_STATUS_MAGIC, __ATOMIC_RELEASE);
    return status;
}

opal_crypt_status_snapshot_t *opal_crypt_status_next(opal_crypt_status_t *status)
{
    opal_crypt_status_snapshot_t *next = &status->page->snapshots[(status->page->current + 1) & 1];

    memset(next, 0, sizeof(*next));
    return next;
}

void opal_crypt_status_publish(opal_crypt_status_t *status)
{
    __atomic_store_n(&status->page->current, status->page->current + 1, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);    /* before writing to the snapshot filled next */
}

void opal_crypt_status_remove(opal_crypt_status_t *status)
{
    if (NULL == status) {
        return;
    }
    unlink(status->path);
    munmap(status->page, sizeof(*status->page));
    close(status->fd);
    free(status);
}

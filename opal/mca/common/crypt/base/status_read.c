/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading status pages of other processes, which may contain anything: a file is read, never mapped (its owner could
 * truncate it), and nothing in it is trusted before it is checked.
 */
#include "status.h"
#include "thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* A younger file may not have its lock yet; an older one is no longer of interest. */
enum { YOUNG_SECONDS = 2, OLD_SECONDS = 3600 };

static bool bad(char *why, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool bad(char *why, size_t bytes, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vsnprintf(why, bytes, format, list);
    va_end(list);
    return false;
}

/* ---- the contents of a page ---- */

#define ENDS(text) (NULL != memchr((text), '\0', sizeof(text)))

static bool valid_wait(const opal_crypt_status_wait_t *w)
{
    return w->kind > OPAL_CRYPT_STATUS_NOTHING && w->kind < OPAL_CRYPT_STATUS_KINDS && w->protocol >= 0
           && w->protocol < OPAL_CRYPT_STATUS_PROTOCOLS && w->peer >= OPAL_CRYPT_STATUS_ANY
           && w->process >= OPAL_CRYPT_STATUS_FOREIGN && ENDS(w->comm) && ENDS(w->text);
}

bool opal_crypt_status_valid(opal_crypt_status_process_t *process, char *why, size_t why_bytes)
{
    const opal_crypt_status_who_t *who = &process->who;
    const opal_crypt_status_snapshot_t *m = &process->snapshot;

    if (OPAL_CRYPT_STATUS_MAGIC != who->magic) {
        return bad(why, why_bytes, "it is no status page");
    }
    if (OPAL_CRYPT_STATUS_VERSION != who->version || sizeof(opal_crypt_status_page_t) != who->bytes) {
        return bad(why, why_bytes, "its format is of another version of ompi-crypt (%lu, where this one reads %d)",
                   (unsigned long) who->version, OPAL_CRYPT_STATUS_VERSION);
    }
    if (!ENDS(who->job) || !ENDS(who->host) || !ENDS(who->method) || !ENDS(who->pml) || !ENDS(who->protection)
        || who->rank > INT32_MAX || who->over_btl > 1 || 0 == who->pid || who->pid > INT32_MAX) {
        return bad(why, why_bytes, "it names no process");
    }
    if (!ENDS(m->aead) || m->wait_count > OPAL_CRYPT_STATUS_WAITS || m->peer_count > OPAL_CRYPT_STATUS_PEERS || m->phase < 0
        || m->phase >= OPAL_CRYPT_STATUS_PHASES) {
        return bad(why, why_bytes, "its counts are out of range");
    }
    for (uint32_t i = 0; i < m->wait_count; i++) {
        if (!valid_wait(&m->waits[i])) {
            return bad(why, why_bytes, "what it waits for is out of range");
        }
    }
    for (uint32_t i = 0; i < m->peer_count; i++) {
        if (m->peers[i].state < 0 || m->peers[i].state >= OPAL_CRYPT_STATUS_STATES) {
            return bad(why, why_bytes, "the state of a peer is out of range");
        }
    }
    return true;
}

const char *opal_crypt_status_text(const char *text, char *shown, size_t capacity)
{
    size_t i;

    for (i = 0; i + 1 < capacity && '\0' != text[i]; i++) {
        shown[i] = text[i] < ' ' || text[i] > '~' ? '?' : text[i];
    }
    shown[i] = '\0';
    return shown;
}

/* ---- the file ---- */

static opal_crypt_status_rc_t check_file(int fd, const char *name, struct stat *found, char *why,
                                         size_t why_bytes)
{
    unsigned long uid;
    struct stat status = {0};
    const int rc = fstat(fd, &status);

    *found = status;
    if (0 != rc) {
        bad(why, why_bytes, "%s", strerror(errno));
    } else if (!S_ISREG(status.st_mode)) {
        bad(why, why_bytes, "it is not a regular file");
    } else if (0 == status.st_nlink) {
        return OPAL_CRYPT_STATUS_NONE;
    } else if (1 != sscanf(name + sizeof(OPAL_CRYPT_STATUS_PREFIX) - 1, "%lu", &uid) || (uid_t) uid != status.st_uid) {
        bad(why, why_bytes, "it belongs to user id %lu, whom its name does not say", (unsigned long) status.st_uid);
    } else if (0600 != (status.st_mode & 07777)) {
        bad(why, why_bytes, "its mode is %04o, where 0600 is expected", (unsigned) (status.st_mode & 07777));
    } else if (1 != status.st_nlink) {
        bad(why, why_bytes, "it has more names than this one");
    } else if ((off_t) sizeof(opal_crypt_status_page_t) != status.st_size) {
        bad(why, why_bytes, "it has %lld bytes, where %zu are expected", (long long) status.st_size,
            sizeof(opal_crypt_status_page_t));
    } else {
        return OPAL_CRYPT_STATUS_GOOD;
    }
    return OPAL_CRYPT_STATUS_BAD;
}

static bool get(int fd, void *to, size_t bytes, off_t from)
{
    return (ssize_t) bytes == pread(fd, to, bytes, from);
}

/* The owner writes the magic number last, so it is read first. */
static bool get_who(int fd, opal_crypt_status_who_t *who)
{
    uint64_t magic;
    bool there = get(fd, &magic, sizeof(magic), offsetof(opal_crypt_status_who_t, magic));

    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    there = there && get(fd, who, sizeof(*who), 0);
    who->magic = magic;
    return there;
}

/* The owner fills the other snapshot; after its next increment it may overwrite this one. */
static bool get_snapshot(int fd, opal_crypt_status_snapshot_t *snapshot)
{
    const off_t current_at = offsetof(opal_crypt_status_page_t, current);
    uint64_t before, after;

    for (int tries = 0; tries < 1000; tries++) {
        if (!get(fd, &before, sizeof(before), current_at)) {
            return false;
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!get(fd, snapshot, sizeof(*snapshot), (off_t) (offsetof(opal_crypt_status_page_t, snapshots)
                                                           + (before & 1) * sizeof(*snapshot)))) {
            return false;
        }
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        if (!get(fd, &after, sizeof(after), current_at)) {
            return false;
        }
        if (before == after) {
            return true;
        }
    }
    return false;
}

/* Is the process alive?  The holder of the lock is the owner, whatever the page says. */
static void find_process(int fd, const struct stat *status, opal_crypt_status_process_t *process)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const bool locked = 0 != fcntl(fd, F_GETLK, &lock) || F_UNLCK != lock.l_type;

    process->gone = !locked && status->st_ctime + YOUNG_SECONDS <= time(NULL);
    if (locked && lock.l_pid > 0) {
        (void) opal_crypt_status_ticks(lock.l_pid, &process->state);
        process->who.pid = (uint32_t) lock.l_pid;
    }
}

opal_crypt_status_rc_t opal_crypt_status_read(int directory, const char *name,
                                              opal_crypt_status_process_t *process, char *why, size_t why_bytes)
{
    opal_crypt_status_rc_t rc = OPAL_CRYPT_STATUS_BAD;
    struct stat status;
    int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    memset(process, 0, sizeof(*process));
    if (fd < 0) {
        if (ENOENT == errno) {
            return OPAL_CRYPT_STATUS_NONE;
        }
        bad(why, why_bytes, "%s", ELOOP == errno ? "it is a symbolic link" : strerror(errno));
        return OPAL_CRYPT_STATUS_BAD;
    }
    rc = check_file(fd, name, &status, why, why_bytes);
    if (OPAL_CRYPT_STATUS_GOOD == rc) {
        process->now = (int64_t) opal_crypt_now();
        rc = OPAL_CRYPT_STATUS_BAD;
        if (!get_who(fd, &process->who) || !get_snapshot(fd, &process->snapshot)) {
            bad(why, why_bytes, "it cannot be read, or changes without end");
        } else if (opal_crypt_status_valid(process, why, why_bytes)) {
            rc = OPAL_CRYPT_STATUS_GOOD;
        }
        find_process(fd, &status, process);
    } else if (OPAL_CRYPT_STATUS_BAD == rc && S_ISREG(status.st_mode) && 0 == status.st_size) {
        find_process(fd, &status, process);     /* its owner ended before it could write */
    }
    close(fd);
    return rc;
}

void opal_crypt_status_sweep(const char *directory)
{
    opal_crypt_status_process_t process;
    const struct dirent *entry;
    DIR *names = opendir(directory);
    struct stat status;
    char own[64], why[256];

    snprintf(own, sizeof(own), OPAL_CRYPT_STATUS_PREFIX "%lu.", (unsigned long) geteuid());
    while (NULL != names && NULL != (entry = readdir(names))) {
        if (0 == strncmp(entry->d_name, own, strlen(own))
            && 0 == fstatat(dirfd(names), entry->d_name, &status, AT_SYMLINK_NOFOLLOW)
            && status.st_ctime + OLD_SECONDS < time(NULL)
            && OPAL_CRYPT_STATUS_NONE != opal_crypt_status_read(dirfd(names), entry->d_name, &process, why, sizeof(why))
            && process.gone) {
            (void) unlinkat(dirfd(names), entry->d_name, 0);
        }
    }
    if (NULL != names) {
        closedir(names);
    }
}

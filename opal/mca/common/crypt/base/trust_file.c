/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that says whom to trust.  The name is walked here, one descriptor a
 * step, and each check is made on that descriptor: what was checked is what is used,
 * whatever becomes of the names meanwhile.
 */
#include "trust_file.h"
#include "secmem.h"
#include "secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40    /* as many as the kernel follows */

typedef struct walk {
    const char *path, *what, *topic;    /* the caller's */
    opal_crypt_why_t *why;
    int at;                             /* the directory that was reached */
    bool shared;                        /* others may write to it, too */
    int links;
    char rest[PATH_MAX];                /* of the name */
} walk_t;

static int refuse_errno(const walk_t *walk, int error)
{
    return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, walk->topic, "%s %s: %s", walk->what, walk->path,
                             strerror(error));
}

static bool owner_is_good(const struct stat *status)
{
    return 0 == status->st_uid || geteuid() == status->st_uid;
}

static bool others_write(const struct stat *status)
{
    return 0 != (status->st_mode & (S_IWGRP | S_IWOTH));
}

/* A directory, or a link, on the way. */
static int check_step(const walk_t *walk, const char *step, const struct stat *status)
{
    if (!owner_is_good(status)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-directory",
                                 "%s %s: \"%.255s\" on the way to it belongs to user id %lu", walk->what,
                                 walk->path, step, (unsigned long) status->st_uid);
    }
    if (S_ISDIR(status->st_mode) && others_write(status) && 0 == (status->st_mode & S_ISVTX)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-directory",
                                 "%s %s: \"%.255s\" on the way to it has the mode 0%o", walk->what, walk->path,
                                 step, (unsigned) status->st_mode & 07777);
    }
    return OPAL_CRYPT_OK;
}

/* A link or the file where others, too, may make entries: it could be a second name
 * of another file. */
static int check_place(const walk_t *walk, const char *step)
{
    struct stat status;

    if (!walk->shared) {
        return OPAL_CRYPT_OK;
    }
    return 0 != fstat(walk->at, &status) ? refuse_errno(walk, errno)
         : opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-directory",
                             "%s %s: \"%.255s\" lies in a directory of the mode 0%o", walk->what, walk->path,
                             step, (unsigned) status.st_mode & 07777);
}

/* ---- steps ---- */

/* Be in the directory `fd`, which is ours from now on. */
static int enter_directory(walk_t *walk, int fd, const char *step)
{
    struct stat status;
    int rc = fd < 0 || 0 != fstat(fd, &status) ? refuse_errno(walk, errno) : check_step(walk, step, &status);

    if (OPAL_CRYPT_OK != rc) {
        if (fd >= 0) {
            close(fd);
        }
        return rc;
    }
    if (walk->at >= 0) {
        close(walk->at);
    }
    walk->at = fd;
    walk->shared = others_write(&status);
    return OPAL_CRYPT_OK;
}

static int enter_root(walk_t *walk)
{
    return enter_directory(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), "/");
}

/* What the link says comes before what is left of the name. */
static int follow(walk_t *walk, int fd, const char *step, const struct stat *status)
{
    char target[PATH_MAX], rest[PATH_MAX];
    ssize_t bytes;
    int rc = check_step(walk, step, status);

    rc = OPAL_CRYPT_OK == rc ? check_place(walk, step) : rc;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (++walk->links > LINKS_MAX) {
        return refuse_errno(walk, ELOOP);
    }
    bytes = readlinkat(fd, "", target, sizeof(target) - 1);
    if (bytes < 0) {
        return refuse_errno(walk, errno);
    }
    target[bytes] = '\0';
    memcpy(rest, walk->rest, sizeof(rest));
    if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", target, rest) >= (int) sizeof(walk->rest)) {
        return refuse_errno(walk, ENAMETOOLONG);
    }
    return '/' == target[0] ? enter_root(walk) : OPAL_CRYPT_OK;
}

/* Take the next part of the name into `step`; false when there is none. */
static bool next_part(walk_t *walk, char step[NAME_MAX + 1], bool *too_long)
{
    const char *from = walk->rest + strspn(walk->rest, "/");
    size_t bytes = strcspn(from, "/");

    *too_long = bytes > NAME_MAX;
    if (0 == bytes || *too_long) {
        return false;
    }
    memcpy(step, from, bytes);
    step[bytes] = '\0';
    memmove(walk->rest, from + bytes, strlen(from + bytes) + 1);
    return true;
}

/* Open the file: *fd. */
static int walk_to(walk_t *walk, int *fd)
{
    char step[NAME_MAX + 1];
    bool too_long;
    int rc = OPAL_CRYPT_OK;

    while (next_part(walk, step, &too_long)) {
        int seen = openat(walk->at, step, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;

        if (seen < 0 || 0 != fstat(seen, &status)) {
            rc = refuse_errno(walk, errno);
        } else if (S_ISDIR(status.st_mode)) {
            /* O_DIRECTORY has automounted what is not there yet. */
            rc = enter_directory(walk, openat(walk->at, step, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), step);
        } else if (S_ISLNK(status.st_mode)) {
            rc = follow(walk, seen, step, &status);
        } else if ('\0' != walk->rest[strspn(walk->rest, "/")]) {
            rc = refuse_errno(walk, ENOTDIR);
        } else {
            close(seen);
            *fd = openat(walk->at, step, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
            return *fd < 0 ? refuse_errno(walk, errno) : check_place(walk, step);
        }
        if (seen >= 0) {
            close(seen);
        }
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
    return too_long ? refuse_errno(walk, ENAMETOOLONG)
         : opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-not-regular", "%s %s", walk->what,
                             walk->path);
}

/* The whole name, from the root. */
static int begin(walk_t *walk)
{
    char here[PATH_MAX] = "";

    if ('/' != walk->path[0] && NULL == getcwd(here, sizeof(here))) {
        return refuse_errno(walk, errno);
    }
    if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", here, walk->path) >= (int) sizeof(walk->rest)) {
        return refuse_errno(walk, ENAMETOOLONG);
    }
    return enter_root(walk);
}

/* ---- the file ---- */

static int check_trusted(const walk_t *walk, int fd, bool allow_network, opal_crypt_trust_file_t *file)
{
    struct stat status;
    opal_crypt_fs_t kind;
    unsigned long magic;
    const char *name;

    if (0 != fstat(fd, &status)) {
        return refuse_errno(walk, errno);
    }
    if (!S_ISREG(status.st_mode)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-not-regular", "%s %s",
                                 walk->what, walk->path);
    }
    if (!owner_is_good(&status)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-owner",
                                 "%s %s: it belongs to user id %lu, this process runs as %lu", walk->what,
                                 walk->path, (unsigned long) status.st_uid, (unsigned long) geteuid());
    }
    if (others_write(&status)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-mode", "%s %s: its mode is 0%o",
                                 walk->what, walk->path, (unsigned) status.st_mode & 07777);
    }
    kind = opal_crypt_fs_of_open(fd, &name, &magic);
    if (OPAL_CRYPT_FS_LOCAL != kind) {
        opal_crypt_why_t *to = allow_network ? &file->warning : walk->why;
        int rc = opal_crypt_refuse(to, allow_network ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_CONFIG,
                                   allow_network ? "trust-netfs-allowed" : "trust-netfs",
                                   "%s %s: the file system is of type %s (0x%lx)", walk->what, walk->path,
                                   name, magic);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
    if (status.st_size < 0 || status.st_size > OPAL_CRYPT_TRUST_FILE_MAX) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-length",
                                 "%s %s: %lld bytes, where at most %d are expected", walk->what, walk->path,
                                 (long long) status.st_size, OPAL_CRYPT_TRUST_FILE_MAX);
    }
    file->count = (size_t) status.st_size;
    return OPAL_CRYPT_OK;
}

static int read_it(const walk_t *walk, int fd, opal_crypt_trust_file_t *file)
{
    bool whole = false;
    int error;

    file->bytes = malloc(file->count + 1);
    if (NULL == file->bytes) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_MEMORY, "library", "out of memory");
    }
    error = opal_crypt_read_whole(fd, file->bytes, file->count, &whole);
    if (0 == error && whole) {
        file->bytes[file->count] = '\0';
        return OPAL_CRYPT_OK;
    }
    opal_crypt_wipe(file->bytes, file->count);              /* a private key may be in it, too */
    free(file->bytes);
    file->bytes = NULL;
    return 0 != error ? refuse_errno(walk, error)
         : opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-length",
                             "%s %s: it changed while it was read", walk->what, walk->path);
}

int opal_crypt_trust_file_read(const char *path, const char *what, const char *topic, bool allow_network,
                               opal_crypt_trust_file_t *file, opal_crypt_why_t *why)
{
    walk_t walk = { .path = path, .what = what, .topic = topic, .why = why, .at = -1 };
    int fd = -1, rc;

    memset(file, 0, sizeof(*file));
    rc = begin(&walk);
    rc = OPAL_CRYPT_OK == rc ? walk_to(&walk, &fd) : rc;
    rc = OPAL_CRYPT_OK == rc ? check_trusted(&walk, fd, allow_network, file) : rc;
    rc = OPAL_CRYPT_OK == rc ? read_it(&walk, fd, file) : rc;
    if (fd >= 0) {
        close(fd);
    }
    if (walk.at >= 0) {
        close(walk.at);
    }
    return rc;
}

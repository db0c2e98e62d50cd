/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The steps of a walk: examine an entry without opening it, check it, and go on from there.
 */
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LINKS_MAX 40    /* as many as the kernel follows */
#define OVERFLOW_UID 65534u

int opal_crypt_walk_errno(opal_crypt_walk_t *walk, int error)
{
    walk->error = error;
    return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, walk->topic, "%s %s: %s", walk->what, walk->path,
                             strerror(error));
}

/* ---- owners ---- */

/* A number in a file of the kernel, or `otherwise`. */
static unsigned long kernel_number(const char *path, unsigned long otherwise)
{
    FILE *file = fopen(path, "re");
    unsigned long number = otherwise;

    if (NULL != file) {
        if (1 != fscanf(file, "%lu", &number)) {
            number = otherwise;
        }
        fclose(file);
    }
    return number;
}

/* Does this user namespace map every user?  The initial one does. */
static bool all_mapped(void)
{
    FILE *map = fopen("/proc/self/uid_map", "re");
    unsigned long inside, outside, count, sum = 0;

    while (NULL != map && 3 == fscanf(map, "%lu %lu %lu", &inside, &outside, &count)) {
        sum += count;
    }
    if (NULL != map) {
        fclose(map);
    }
    return sum >= UINT32_MAX;
}

bool opal_crypt_unmapped(uid_t uid)
{
    return kernel_number("/proc/sys/kernel/overflowuid", OVERFLOW_UID) == uid && !all_mapped();
}

static bool may_own(const opal_crypt_walk_t *walk, const struct stat *status)
{
    if (walk->containers && opal_crypt_unmapped(status->st_uid)) {
        return !walk->shared_above;
    }
    return 0 == status->st_uid || geteuid() == status->st_uid;
}

/* Check a directory or a link on the way. */
static int check_step(const opal_crypt_walk_t *walk, const char *step, const struct stat *status)
{
    if (!may_own(walk, status)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, walk->unsafe,
                                 "%s %s: \"%.255s\" on the way to it belongs to user id %lu", walk->what,
                                 walk->path, step, (unsigned long) status->st_uid);
    }
    if (S_ISDIR(status->st_mode) && opal_crypt_others_write(status) && 0 == (status->st_mode & S_ISVTX)) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, walk->unsafe,
                                 "%s %s: \"%.255s\" on the way to it has the mode 0%o", walk->what, walk->path,
                                 step, (unsigned) status->st_mode & 07777);
    }
    return OPAL_CRYPT_OK;
}

int opal_crypt_walk_alone(opal_crypt_walk_t *walk, const char *step)
{
    struct stat status;

    if (!walk->shared) {
        return OPAL_CRYPT_OK;
    }
    return 0 != fstat(walk->at, &status) ? opal_crypt_walk_errno(walk, errno)
         : opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, walk->unsafe,
                             "%s %s: \"%.255s\" lies in a directory of the mode 0%o", walk->what, walk->path,
                             step, (unsigned) status.st_mode & 07777);
}

/* ---- steps ---- */

/* Enter the directory `fd`, which is ours from now on. */
static int enter_directory(opal_crypt_walk_t *walk, int fd, const char *step)
{
    struct stat status;
    int rc = fd < 0 || 0 != fstat(fd, &status) ? opal_crypt_walk_errno(walk, errno) : check_step(walk, step, &status);

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
    walk->shared = opal_crypt_others_write(&status);
    walk->shared_above = walk->shared_above || walk->shared;
    return OPAL_CRYPT_OK;
}

static int enter_root(opal_crypt_walk_t *walk)
{
    return enter_directory(walk, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), "/");
}

/* Prepend the link's target to the unresolved rest of the path. */
static int follow(opal_crypt_walk_t *walk, int fd, const char *step, const struct stat *status)
{
    char target[PATH_MAX], rest[PATH_MAX];
    ssize_t bytes;
    int rc = check_step(walk, step, status);

    rc = OPAL_CRYPT_OK == rc ? opal_crypt_walk_alone(walk, step) : rc;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if (++walk->links > LINKS_MAX) {
        return opal_crypt_walk_errno(walk, ELOOP);
    }
    bytes = readlinkat(fd, "", target, sizeof(target) - 1);
    if (bytes < 0) {
        return opal_crypt_walk_errno(walk, errno);
    }
    target[bytes] = '\0';
    memcpy(rest, walk->rest, sizeof(rest));
    if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", target, rest) >= (int) sizeof(walk->rest)) {
        return opal_crypt_walk_errno(walk, ENAMETOOLONG);
    }
    return '/' == target[0] ? enter_root(walk) : OPAL_CRYPT_OK;
}

/* Take the next part of the name into `step`; false if there is none. */
static bool next_part(opal_crypt_walk_t *walk, bool *too_long)
{
    const char *from = walk->rest + strspn(walk->rest, "/");
    size_t bytes = strcspn(from, "/");

    *too_long = bytes > NAME_MAX;
    if (0 == bytes || *too_long) {
        return false;
    }
    memcpy(walk->step, from, bytes);
    walk->step[bytes] = '\0';
    memmove(walk->rest, from + bytes, strlen(from + bytes) + 1);
    return true;
}

/* Take one step: OK with *end if it is neither a directory nor a link. */
static int take_step(opal_crypt_walk_t *walk, bool *end)
{
    int seen = openat(walk->at, walk->step, O_PATH | O_NOFOLLOW | O_CLOEXEC), rc = OPAL_CRYPT_OK;
    struct stat status;

    *end = false;
    if (seen < 0 || 0 != fstat(seen, &status)) {
        rc = opal_crypt_walk_errno(walk, errno);
    } else if (S_ISDIR(status.st_mode)) {
        /* O_DIRECTORY triggers a pending automount. */
        rc = enter_directory(walk, openat(walk->at, walk->step, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), walk->step);
    } else if (S_ISLNK(status.st_mode)) {
        rc = follow(walk, seen, walk->step, &status);
    } else if ('\0' != walk->rest[strspn(walk->rest, "/")]) {
        rc = opal_crypt_walk_errno(walk, ENOTDIR);
    } else {
        *end = true;
    }
    if (seen >= 0) {
        close(seen);
    }
    return rc;
}

int opal_crypt_walk(opal_crypt_walk_t *walk, const char *name)
{
    char here[PATH_MAX] = "";
    bool end = false, too_long = false;
    int rc;

    walk->at = -1;
    walk->links = walk->error = 0;
    walk->shared = walk->shared_above = false;
    walk->step[0] = '\0';
    if ('/' != name[0] && NULL == getcwd(here, sizeof(here))) {
        return opal_crypt_walk_errno(walk, errno);
    }
    if (snprintf(walk->rest, sizeof(walk->rest), "%s/%s", here, name) >= (int) sizeof(walk->rest)) {
        return opal_crypt_walk_errno(walk, ENAMETOOLONG);
    }
    rc = enter_root(walk);
    while (OPAL_CRYPT_OK == rc && !end && next_part(walk, &too_long)) {
        rc = take_step(walk, &end);
    }
    if (OPAL_CRYPT_OK == rc && !end) {
        walk->step[0] = '\0';
        return too_long ? opal_crypt_walk_errno(walk, ENAMETOOLONG) : OPAL_CRYPT_OK;
    }
    return rc;
}

void opal_crypt_walk_end(opal_crypt_walk_t *walk)
{
    if (walk->at >= 0) {
        close(walk->at);
        walk->at = -1;
    }
}

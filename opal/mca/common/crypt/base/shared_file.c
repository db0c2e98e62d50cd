/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Open MPI opens files of shared memory with predictable names, and accepts whatever exists.  Here we check an open
 * descriptor, in a directory reached by a walk.
 */
#include "shared_file.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/shm.h>
#include <unistd.h>

#define TOPIC "shared-memory"
#define OTHERS (S_IRWXG | S_IRWXO)

/* ---- what is acceptable ---- */

static int refuse_owner(const char *what, uid_t owner, opal_crypt_why_t *why)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s belongs to user id %lu%s, this process runs as %lu",
                             what, (unsigned long) owner, opal_crypt_unmapped(owner) ? " (not mapped in this user namespace)" : "",
                             (unsigned long) geteuid());
}

static bool is_ours(uid_t owner) { return geteuid() == owner && !opal_crypt_unmapped(owner); }

static int refuse_mode(const char *what, unsigned mode, opal_crypt_why_t *why)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s has the mode 0%o", what, mode & 07777);
}

static int judge_file(const char *path, int fd, opal_crypt_why_t *why)
{
    struct stat status;

    if (0 != fstat(fd, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s: %s", path, strerror(errno));
    }
    if (!is_ours(status.st_uid)) {
        return refuse_owner(path, status.st_uid, why);
    }
    if (!S_ISREG(status.st_mode)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s is not a regular file", path);
    }
    if (0 != (status.st_mode & OTHERS)) {
        return refuse_mode(path, status.st_mode, why);
    }
    if (status.st_nlink > 1) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s is one of %lu names of a file", path,
                                 (unsigned long) status.st_nlink);
    }
    return OPAL_CRYPT_OK;
}

int opal_crypt_shared_segment(int id, opal_crypt_why_t *why)
{
    char what[64];
    struct shmid_ds status;

    snprintf(what, sizeof(what), "the System V segment %d", id);
    if (0 != shmctl(id, IPC_STAT, &status)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s: %s", what, strerror(errno));
    }
    if (!is_ours(status.shm_perm.uid) || !is_ours(status.shm_perm.cuid)) {
        return refuse_owner(what, is_ours(status.shm_perm.uid) ? status.shm_perm.cuid : status.shm_perm.uid, why);
    }
    return 0 != (status.shm_perm.mode & OTHERS) ? refuse_mode(what, status.shm_perm.mode, why) : OPAL_CRYPT_OK;
}

/* ---- files in their directories ---- */

/* Walk to the file's directory.  Returns the file's name in it. */
static const char *walk_to_directory(opal_crypt_walk_t *walk, int *rc)
{
    const char *slash = strrchr(walk->path, '/');
    char directory[PATH_MAX] = ".";
    const size_t bytes = NULL == slash ? 0 : (size_t) (slash - walk->path) + 1;

    if (bytes >= sizeof(directory)) {
        walk->at = -1;
        *rc = opal_crypt_walk_errno(walk, ENAMETOOLONG);
        return walk->path;
    }
    if (bytes > 0) {
        memcpy(directory, walk->path, bytes);
        directory[bytes] = '\0';
    }
    *rc = opal_crypt_walk(walk, directory);
    if (OPAL_CRYPT_OK == *rc && '\0' != walk->step[0]) {
        *rc = opal_crypt_walk_errno(walk, ENOTDIR);
    }
    return NULL == slash ? walk->path : slash + 1;
}

#define WALK_TO(name, where) \
    {.path = (name), .what = (where), .topic = TOPIC, .unsafe = TOPIC, .containers = true, .why = why, .at = -1}

/* Check it before opening it, as opening alone may have side effects, or be refused. */
static int check_entry(int directory, const char *name, const char *path, opal_crypt_why_t *why)
{
    int fd = openat(directory, name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error = errno, rc;

    if (fd < 0) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s: %s", path, strerror(error));
    }
    rc = judge_file(path, fd, why);
    close(fd);
    return rc;
}

int opal_crypt_shared_file_make(const char *path, bool *made, opal_crypt_why_t *why)
{
    opal_crypt_walk_t walk = WALK_TO(path, "the file");
    int rc, fd;
    const char *name = walk_to_directory(&walk, &rc);

    *made = false;
    if (OPAL_CRYPT_OK == rc) {
        fd = openat(walk.at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        *made = fd >= 0;
        if (fd < 0 && EEXIST == errno) {
            rc = check_entry(walk.at, name, path, why);
        } else if (fd >= 0) {
            close(fd);
        }
    } else if (ENOENT == walk.error) {
        rc = OPAL_CRYPT_OK;
    }
    opal_crypt_walk_end(&walk);
    return rc;
}

int opal_crypt_shared_file_open(const char *path, size_t bytes, int *fd, opal_crypt_why_t *why)
{
    opal_crypt_walk_t walk = WALK_TO(path, "the file");
    int rc;
    const char *name = walk_to_directory(&walk, &rc);
    struct stat status;

    *fd = -1;
    rc = OPAL_CRYPT_OK == rc ? check_entry(walk.at, name, path, why) : rc;
    if (OPAL_CRYPT_OK == rc) {
        *fd = openat(walk.at, name, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        rc = *fd < 0 ? opal_crypt_walk_errno(&walk, errno) : judge_file(path, *fd, why);
    }
    if (OPAL_CRYPT_OK == rc && (0 != fstat(*fd, &status) || (uint64_t) status.st_size < bytes)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s is shorter than %zu bytes", path, bytes);
    }
    if (OPAL_CRYPT_OK != rc && *fd >= 0) {
        close(*fd);
        *fd = -1;
    }
    opal_crypt_walk_end(&walk);
    return rc;
}

int opal_crypt_shared_file_directory(const char *path, opal_crypt_why_t *why)
{
    opal_crypt_walk_t walk = WALK_TO(path, "the directory");
    int rc = opal_crypt_walk(&walk, path);

    if (OPAL_CRYPT_OK == rc && '\0' != walk.step[0]) {
        rc = opal_crypt_walk_errno(&walk, ENOTDIR);
    } else if (OPAL_CRYPT_OK != rc && ENOENT == walk.error) {
        rc = OPAL_CRYPT_OK;
    }
    opal_crypt_walk_end(&walk);
    return rc;
}

/* ---- existing mappings ---- */

static bool begins(const char *path, const char *with) { return 0 == strncmp(path, with, strlen(with)); }

/* Mappings without a file to check: anonymous, of devices, or PMIx's, which hold no payload. */
static bool is_no_file(const char *path)
{
    return '/' != *path || begins(path, "/memfd:") || begins(path, "/anon_hugepage")
           || (begins(path, "/dev/") && !begins(path, "/dev/shm/")) || NULL != strstr(path, "/pmix_dstor");
}

/* "7f00-7f10 rw-s 00000000 00:19 4711       /dev/shm/NAME": 4711 may also be the number of a System V segment.  An
 * unlinked file, "/dev/shm/NAME (deleted)", cannot be checked. */
static int judge_mapping(char *line, opal_crypt_why_t *why)
{
    unsigned long inode;
    char rights[5];
    int at = 0, fd, rc;

    line[strcspn(line, "\n")] = '\0';
    if (2 != sscanf(line, "%*s %4s %*s %*s %lu %n", rights, &inode, &at) || 0 == at) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "\"%.200s\" is not understood", line);
    }
    if ('s' != rights[3] || 'w' != rights[1] || is_no_file(line + at)) {
        return OPAL_CRYPT_OK;
    }
    if (begins(line + at, "/SYSV")) {
        return opal_crypt_shared_segment((int) inode, why);
    }
    rc = opal_crypt_shared_file_open(line + at, 0, &fd, why);
    if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int opal_crypt_shared_mappings(const char *list, opal_crypt_why_t *why)
{
    FILE *file = fopen(list, "re");
    char *line = NULL;
    size_t capacity = 0;
    int rc = OPAL_CRYPT_OK;

    if (NULL == file) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s: %s", list, strerror(errno));
    }
    while (OPAL_CRYPT_OK == rc && getline(&line, &capacity, file) >= 0) {
        rc = judge_mapping(line, why);
    }
    if (OPAL_CRYPT_OK == rc && ferror(file)) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, TOPIC, "%s cannot be read", list);
    }
    free(line);
    fclose(file);
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that says whom to trust: its path is walked (walk.c), and the file is checked on its descriptor.
 */
#include "trust_file.h"
#include "secmem.h"
#include "secret_file.h"
#include "walk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Open the file: *fd. */
static int open_it(opal_crypt_walk_t *walk, int *fd)
{
    int rc = opal_crypt_walk(walk, walk->path);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    if ('\0' == walk->step[0]) {
        return opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-not-regular", "%s %s", walk->what, walk->path);
    }
    *fd = openat(walk->at, walk->step, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    return *fd < 0 ? opal_crypt_walk_errno(walk, errno) : opal_crypt_walk_alone(walk, walk->step);
}

static bool owner_is_good(const struct stat *status)
{
    return 0 == status->st_uid || geteuid() == status->st_uid;
}

static int check_trusted(opal_crypt_walk_t *walk, int fd, bool allow_network, opal_crypt_trust_file_t *file)
{
    struct stat status;
    opal_crypt_fs_t kind;
    unsigned long magic;
    const char *name;

    if (0 != fstat(fd, &status)) {
        return opal_crypt_walk_errno(walk, errno);
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
    if (opal_crypt_others_write(&status)) {
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

static int read_it(opal_crypt_walk_t *walk, int fd, opal_crypt_trust_file_t *file)
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
    opal_crypt_wipe(file->bytes, file->count);              /* it may contain a private key as well */
    free(file->bytes);
    file->bytes = NULL;
    return 0 != error ? opal_crypt_walk_errno(walk, error)
         : opal_crypt_refuse(walk->why, OPAL_CRYPT_ERR_CONFIG, "trust-length",
                             "%s %s: it changed while it was read", walk->what, walk->path);
}

int opal_crypt_trust_file_read(const char *path, const char *what, const char *topic, bool allow_network,
                               opal_crypt_trust_file_t *file, opal_crypt_why_t *why)
{
    opal_crypt_walk_t walk = {.path = path, .what = what, .topic = topic, .unsafe = "trust-directory", .why = why};
    int fd = -1, rc;

    memset(file, 0, sizeof(*file));
    rc = open_it(&walk, &fd);
    rc = OPAL_CRYPT_OK == rc ? check_trusted(&walk, fd, allow_network, file) : rc;
    rc = OPAL_CRYPT_OK == rc ? read_it(&walk, fd, file) : rc;
    if (fd >= 0) {
        close(fd);
    }
    opal_crypt_walk_end(&walk);
    return rc;
}

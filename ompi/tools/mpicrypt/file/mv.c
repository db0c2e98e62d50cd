/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * mpicrypt file mv: both parts of a file, the sidecar first.  If killed in between,
 * it leaves a file that no job opens ("the sidecar is missing"); the same
 * command again finishes the move, if the sidecar that was moved has the UUID in
 * the file's attribute.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

static bool exists(const char *path)
{
    struct stat status;

    return 0 == lstat(path, &status);
}

int mpicrypt_file_rename(const char *from, const char *to)
{
    int rc = ompi_common_cryptmpio_posix_rename(from, to);

    if (0 == rc) {
        return MPICRYPT_OK;
    }
    return mpicrypt_error(MPICRYPT_FAILED, "%s to %s: %s", from, to,
                          EXDEV == errno ? "they are on different file systems: copy both parts with 'cp -a', then delete them"
                                         : strerror(errno));
}

/* TARGET may be a directory. */
static int target_path(const char *from, const char *to, char path[PATH_MAX])
{
    struct stat status;
    const char *slash = strrchr(from, '/');
    bool directory = 0 == stat(to, &status) && S_ISDIR(status.st_mode);
    int count = directory ? snprintf(path, PATH_MAX, "%s/%s", to, NULL == slash ? from : slash + 1) : snprintf(path, PATH_MAX, "%s", to);

    return count > 0 && count < PATH_MAX - (int) sizeof(OPAL_CRYPTFILE_SIDECAR_SUFFIX)
               ? MPICRYPT_OK : mpicrypt_error(MPICRYPT_USAGE, "%s: %s", to, strerror(ENAMETOOLONG));
}

static int open_part(const char *path) { return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY); }

/* Do the file's attribute and the sidecar have the same UUID?  Neither is verified here: this only tells the sidecar
 * of this file from that of another. */
static bool is_sidecar_of(const char *sidecar, const char *path)
{
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    ompi_common_cryptmpio_posix_t posix;
    int fd = open_part(path);

    ompi_common_cryptmpio_posix_init(&posix, fd, false);
    bool same = fd >= 0 && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_open(&posix, sidecar, 0)
                && ompi_common_cryptmpio_posix_uuid(&posix, uuid) && ompi_common_cryptmpio_posix_is_of(&posix, uuid);
    ompi_common_cryptmpio_posix_close(&posix);
    if (fd >= 0) {
        close(fd);
    }
    return same;
}

/* Move the sidecar beside the file, if the file was renamed without it. */
static int bring_sidecar(const char *path, const char *sidecar)
{
    ompi_common_cryptmpio_posix_t posix;
    char found[PATH_MAX];
    int fd = open_part(path);

    ompi_common_cryptmpio_posix_init(&posix, fd, false);
    bool one = false;
    if (fd >= 0) {
        (void) ompi_common_cryptmpio_posix_begins_as_one(&posix, &one);
    }
    bool elsewhere = fd >= 0 && !one && OMPI_CRYPTMPIO_FIND_ELSEWHERE == ompi_common_cryptmpio_posix_find(&posix, sidecar, found);
    if (fd >= 0) {
        close(fd);
    }
    return one ? mpicrypt_error(MPICRYPT_FAILED, "%s: it has no sidecar: rename it as any file", path)
           : elsewhere ? mpicrypt_file_elsewhere(path, found, sidecar) : MPICRYPT_OK;
}

int mpicrypt_file_mv(const char *from, const char *to)
{
    char target[PATH_MAX], target_sidecar[PATH_MAX];
    struct stat status;

    if (0 != lstat(from, &status)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", from, strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: it is no regular file", from);
    }
    if (MPICRYPT_OK != target_path(from, to, target)) {
        return MPICRYPT_USAGE;
    }
    strcat(strcpy(target_sidecar, target), OPAL_CRYPTFILE_SIDECAR_SUFFIX);
    if (exists(target)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", target, strerror(EEXIST));
    }
    char *sidecar = ompi_common_cryptmpio_posix_sidecar(from);
    if (NULL == sidecar) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s: %s", from, strerror(errno));
    }
    bool moved = !exists(sidecar) && exists(target_sidecar);    /* an earlier move was interrupted */
    int code = moved ? MPICRYPT_OK : bring_sidecar(from, sidecar);
    code = moved || MPICRYPT_OK != code ? code : mpicrypt_file_rename(sidecar, target_sidecar);
    free(sidecar);
    if (moved && !is_sidecar_of(target_sidecar, from)) {
        return mpicrypt_error(MPICRYPT_FAILED, "%s is there, and is not the sidecar of %s: the UUIDs of the two differ, or cannot be "
                              "read", target_sidecar, from);
    }
    code = MPICRYPT_OK == code ? mpicrypt_file_rename(from, target) : code;
    code = MPICRYPT_OK == code ? mpicrypt_file_name_stays(target) : code;
    return MPICRYPT_OK == code ? mpicrypt_file_name_stays(from) : code;
}

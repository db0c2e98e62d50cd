/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What belongs to a file besides its bytes: syncing it, its names, its access rights, and the extended attribute.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static int sync_one(int fd)
{
    int rc;

    do {
        rc = fsync(fd);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

int ompi_common_cryptmpio_posix_sync(const ompi_common_cryptmpio_posix_t *posix) { return sync_one(posix->data_fd); }

/* ---- names ---- */

int ompi_common_cryptmpio_posix_sync_names(const char *path)
{
    char *copy = strdup(path);
    int fd = NULL == copy ? -1 : open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? OPAL_CRYPT_ERR_STORAGE : sync_one(fd);
    int error = errno;

    if (fd >= 0) {
        close(fd);
    }
    free(copy);
    errno = error;
    return rc;
}

int ompi_common_cryptmpio_posix_rename(const char *from, const char *to)
{
    struct stat status;
    int rc = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);

    if (0 != rc && (EINVAL == errno || ENOSYS == errno)) {      /* not supported by this file system */
        rc = link(from, to);
        if (0 == rc) {
            rc = unlink(from);
        } else if (EEXIST != errno && ENOENT != errno) {        /* nor are hard links */
            rc = 0 == lstat(to, &status) ? (errno = EEXIST, -1) : rename(from, to);
        }
    }
    return rc;
}

/* ---- access rights ---- */

#define ACL "system.posix_acl_access"

static bool there_is_none(void) { return ENODATA == errno || EOPNOTSUPP == errno; }

bool ompi_common_cryptmpio_posix_no_acl(int of) { return fgetxattr(of, ACL, NULL, 0) < 0 && there_is_none(); }

bool ompi_common_cryptmpio_posix_copy_acl(int fd, int of)
{
    char list[XATTR_SIZE_MAX];
    ssize_t bytes = fgetxattr(of, ACL, list, sizeof(list));

    if (bytes >= 0) {
        return 0 == fsetxattr(fd, ACL, list, (size_t) bytes, 0);
    }
    return there_is_none() && (0 == fremovexattr(fd, ACL) || there_is_none());      /* inherited from its directory */
}

/* ---- the attribute ---- */

static bool none_there(void) { return ENODATA == errno || ENOTSUP == errno || EPERM == errno; }

int ompi_common_cryptmpio_posix_attribute_read(const ompi_common_cryptmpio_posix_t *posix, uint8_t **bytes, size_t *count)
{
    ssize_t size = fgetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, NULL, 0);

    *bytes = NULL;
    *count = 0;
    if (size <= 0) {
        return 0 == size || none_there() ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
    }
    *bytes = malloc((size_t) size);
    if (NULL == *bytes) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    ssize_t got = fgetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, *bytes, (size_t) size);
    if (got != size) {                  /* it is being replaced: treat it as damaged */
        memset(*bytes, 0, (size_t) size);
    }
    *count = (size_t) size;
    return OPAL_CRYPT_OK;
}

int ompi_common_cryptmpio_posix_attribute_write(const ompi_common_cryptmpio_posix_t *posix,
                                                const opal_cryptfile_map_t *map)
{
    size_t count = opal_cryptfile_map_bytes(map);
    uint8_t digest_bytes[OPAL_CRYPTFILE_MAP_DIGEST_BYTES], *bytes = malloc(count);
    opal_cryptfile_map_digest_t digest;

    if (NULL == bytes) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_cryptfile_map_write(map, bytes);
    int rc = fsetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, bytes, count, 0);
    free(bytes);
    if (0 != rc && (ENOSPC == errno || E2BIG == errno || ERANGE == errno || EDQUOT == errno)) {
        rc = opal_cryptfile_map_digest(map, &digest);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
        opal_cryptfile_map_digest_write(&digest, digest_bytes);
        /* A digest newer than the file's map, which a power failure could leave, would look like an attack. */
        if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_sync(posix)) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
        rc = fsetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, digest_bytes, sizeof(digest_bytes), 0);
    }
    return 0 == rc || none_there() ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

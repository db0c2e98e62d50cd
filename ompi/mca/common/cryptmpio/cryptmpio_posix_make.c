/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Creating a sidecar while others may try to create the same one.  Its maker holds
 * the maker's lock until header, map and the data's attribute are written:
 *
 *     open, or create   lock | still there, and vacant?  write ...  attribute | unlock
 *     another           lock ................................................| whole: use it
 *
 * A vacant sidecar belongs to the holder of the lock, which completes or deletes it.
 * If a maker dies, the kernel releases its lock; the sidecar left behind is vacant,
 * except for the short time that writing takes.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/sidecar.h"
#include "opal/mca/common/cryptfile/file/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

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

/* DIRECTORY/UUID.mpic-old, or UUID.1.mpic-old and so on, since copies share a UUID; zeros for an unreadable one. */
static int rename_aside(const char *sidecar, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES])
{
    enum { TRIES = 1000 };
    const char *slash = strrchr(sidecar, '/');
    char hex[2 * OPAL_CRYPTFILE_UUID_BYTES + 1], number[16] = "", aside[PATH_MAX];
    int rc = -1;

    for (size_t i = 0; i < OPAL_CRYPTFILE_UUID_BYTES; ++i) {
        snprintf(hex + 2 * i, 3, "%02x", uuid[i]);
    }
    errno = EEXIST;
    for (int i = 0; i < TRIES && 0 != rc && EEXIST == errno; ++i) {
        if (i > 0) {
            snprintf(number, sizeof(number), ".%d", i);
        }
        if (snprintf(aside, sizeof(aside), "%.*s/%s%s" OMPI_CRYPTMPIO_ASIDE, NULL == slash ? 0 : (int) (slash - sidecar), sidecar, hex,
                     number) >= (int) sizeof(aside)) {
            errno = ENAMETOOLONG;
            break;
        }
        rc = ompi_common_cryptmpio_posix_rename(sidecar, aside);
    }
    return rc;
}

int ompi_common_cryptmpio_posix_set_aside(ompi_common_cryptmpio_posix_t *posix, const char *sidecar)
{
    opal_cryptfile_sidecar_header_t header;

    if (OPAL_CRYPT_OK != opal_cryptfile_sidecar_read(&posix->super, &header)) {
        memset(header.uuid, 0, sizeof(header.uuid));
    }
    int rc = !ompi_common_cryptmpio_posix_lies_at(posix->sidecar_fd, sidecar) || 0 == rename_aside(sidecar, header.uuid) ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
    int error = errno;

    ompi_common_cryptmpio_posix_close(posix);
    errno = error;
    return rc;
}

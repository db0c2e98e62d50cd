/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From a name in the mount to a descriptor.  openat2 keeps every step beneath DIR, even if directories are renamed or links
 * replaced meanwhile.  The mount never presents a link as a link: the kernel would follow it from the mountpoint, to anywhere.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mount.h"
#include "opal/mca/common/cryptfile/file/header.h"

static int open_beneath(const char *path)
{
    struct open_how how = {.flags = O_PATH | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};
    long fd = -1;

    errno = EAGAIN;                     /* something was renamed while `..` was resolved, which need not end */
    for (int tries = 0; fd < 0 && EAGAIN == errno && tries < 100; ++tries) {
        fd = syscall(SYS_openat2, mpicrypt_mount.root, path, &how, sizeof(how));
    }
    return (int) fd;
}

static int outside(const char *path)
{
    char text[PATH_MAX + 64];

    snprintf(text, sizeof(text), "%s: leads out of the directory, or to another file system", path);
    mpicrypt_mount_log(path, MPICRYPT_MOUNT_OUTSIDE, text);
    return EACCES;
}

/* 0 or an errno. */
static int may_show(const mpicrypt_mount_node_t *node, const char *name, const char *path, const struct stat *status)
{
    if (status->st_dev != mpicrypt_mount.device) {          /* a subvolume: the same mount all the same */
        return outside(path);
    }
    if (S_ISDIR(status->st_mode)) {
        return NULL != name && mpicrypt_mount_above(node, status) ? ELOOP : 0;
    }
    return S_ISREG(status->st_mode) ? 0 : ENOENT;
}

int mpicrypt_mount_resolve(const mpicrypt_mount_node_t *node, const char *name, int *fd, struct stat *status)
{
    char path[PATH_MAX];
    int error = mpicrypt_mount_path(node, name, path);

    if (0 != error) {
        return error;
    }
    *fd = open_beneath(path);
    if (*fd < 0) {
        return EXDEV == errno ? outside(path) : errno;
    }
    error = 0 == fstat(*fd, status) ? may_show(node, name, path, status) : errno;
    if (0 != error) {
        close(*fd);
    }
    return error;
}

int mpicrypt_mount_reopen(int path_fd, int flags, int *fd)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
    *fd = open(path, flags | O_CLOEXEC | O_NOCTTY);
    return *fd < 0 ? errno : 0;
}

bool mpicrypt_mount_begins(int path_fd)
{
    char bytes[OPAL_CRYPTFILE_FILE_MAGIC_BYTES];
    int fd;

    if (0 != mpicrypt_mount_reopen(path_fd, O_RDONLY, &fd)) {
        return false;
    }
    ssize_t got = pread(fd, bytes, sizeof(bytes), 0);
    close(fd);
    return (ssize_t) sizeof(bytes) == got && 0 == memcmp(bytes, OPAL_CRYPTFILE_FILE_MAGIC, sizeof(bytes));
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading a file that holds a secret.  Every check is made on the open
 * descriptor, so that the file checked is the file read.
 */
#include "secret_file.h"
#include "constant.h"
#include "hex.h"
#include "secmem.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PSK_DIGITS 64

static const struct {
    unsigned long magic;
    opal_crypt_fs_t kind;
    const char *name;
} known[] = {
    /* statfs(2) and linux/magic.h */
    {0xef53, OPAL_CRYPT_FS_LOCAL, "ext4"},
    {0x58465342, OPAL_CRYPT_FS_LOCAL, "xfs"},
    {0x9123683e, OPAL_CRYPT_FS_LOCAL, "btrfs"},
    {0x01021994, OPAL_CRYPT_FS_LOCAL, "tmpfs"},
    {0x858458f6, OPAL_CRYPT_FS_LOCAL, "ramfs"},
    {0x794c7630, OPAL_CRYPT_FS_LOCAL, "overlayfs"},
    {0x2fc12fc1, OPAL_CRYPT_FS_LOCAL, "zfs"},
    {0xf2f52010, OPAL_CRYPT_FS_LOCAL, "f2fs"},
    {0xca451a4e, OPAL_CRYPT_FS_LOCAL, "bcachefs"},
    {0x3153464a, OPAL_CRYPT_FS_LOCAL, "jfs"},
    {0x73717368, OPAL_CRYPT_FS_LOCAL, "squashfs"},
    {0x6969, OPAL_CRYPT_FS_NETWORK, "nfs"},
    {0xff534d42, OPAL_CRYPT_FS_NETWORK, "cifs"},
    {0xfe534d42, OPAL_CRYPT_FS_NETWORK, "smb2"},
    {0x517b, OPAL_CRYPT_FS_NETWORK, "smb"},
    {0x0bd00bd0, OPAL_CRYPT_FS_NETWORK, "lustre"},
    {0x47504653, OPAL_CRYPT_FS_NETWORK, "gpfs"},
    {0x19830326, OPAL_CRYPT_FS_NETWORK, "beegfs"},
    {0x20030528, OPAL_CRYPT_FS_NETWORK, "orangefs"},
    {0x00c36400, OPAL_CRYPT_FS_NETWORK, "ceph"},
    {0x01161970, OPAL_CRYPT_FS_NETWORK, "gfs2"},
    {0x7461636f, OPAL_CRYPT_FS_NETWORK, "ocfs2"},
    {0x5346414f, OPAL_CRYPT_FS_NETWORK, "afs"},
    {0x6b414653, OPAL_CRYPT_FS_NETWORK, "afs"},
    {0x01021997, OPAL_CRYPT_FS_NETWORK, "9p"},
    {0x65735546, OPAL_CRYPT_FS_UNKNOWN, "fuse"},
};

opal_crypt_fs_t opal_crypt_fs_kind(unsigned long magic, const char **name)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (known[i].magic == (magic & 0xffffffff)) {
            *name = known[i].name;
            return known[i].kind;
        }
    }
    *name = "unknown";
    return OPAL_CRYPT_FS_UNKNOWN;
}

void opal_crypt_fs_local(char text[OPAL_CRYPT_FS_LOCAL_BYTES])
{
    size_t used = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); ++i) {
        if (OPAL_CRYPT_FS_LOCAL == known[i].kind) {
            used += (size_t) snprintf(text + used, OPAL_CRYPT_FS_LOCAL_BYTES - used, " %lx ", known[i].magic);
        }
    }
}

int opal_crypt_fs_of(const char *path, opal_crypt_fs_t *kind, const char **name)
{
    struct statfs system;

    if (0 != statfs(path, &system)) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    *kind = opal_crypt_fs_kind((unsigned long) system.f_type, name);
    return OPAL_CRYPT_OK;
}

opal_crypt_fs_t opal_crypt_fs_of_open(int fd, const char **name, unsigned long *magic)
{
    struct statfs system;

    *magic = 0;
    *name = "unknown";
    if (0 != fstatfs(fd, &system)) {
        return OPAL_CRYPT_FS_UNKNOWN;
    }
    *magic = (unsigned long) system.f_type & 0xffffffff;
    return opal_crypt_fs_kind(*magic, name);
}

/* ---- the checks, on the descriptor ---- */

static int refuse_open(const char *path, const char *what, int error, opal_crypt_why_t *why)
{
    const char *topic = ENOENT == error || ENOTDIR == error ? "secret-missing"
                      : ELOOP == error ? "secret-symlink" : "secret-open";

    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, topic, "%s %s: %s", what, path, strerror(error));
}

static int check_secret(int fd, const char *path, const char *what, const opal_crypt_secret_group_t *group, struct stat *status,
                        opal_crypt_why_t *why)
{
    if (0 != fstat(fd, status)) {
        return refuse_open(path, what, errno, why);
    }
    if (!S_ISREG(status->st_mode)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-not-regular", "%s %s", what, path);
    }
    if (NULL != group) {
        return opal_crypt_secret_group_file(fd, status, what, path, group, why);
    }
    if (status->st_uid != geteuid()) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-owner",
                                 "%s %s: it belongs to user id %lu, this process runs as %lu", what, path,
                                 (unsigned long) status->st_uid, (unsigned long) geteuid());
    }
    if (0 != (status->st_mode & (S_IRWXG | S_IRWXO | S_IXUSR | S_ISUID | S_ISGID | S_ISVTX))) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-mode", "%s %s: its mode is 0%o",
                                 what, path, (unsigned) status->st_mode & 07777);
    }
    return OPAL_CRYPT_OK;
}

/* A user who can rename the file can replace it with another of our files, such as an older key.  In a directory with
 * the sticky bit (/tmp) only the owner can. */
static int directory_of(const char *path, const char *what, const opal_crypt_secret_group_t *group, int *directory,
                        opal_crypt_why_t *why)
{
    const char *slash = strrchr(path, '/');
    char *name = NULL == slash ? strdup(".") : strndup(path, (size_t) (slash - path) + 1);
    int fd = NULL == name ? -1 : open(name, (NULL == group ? O_PATH : O_RDONLY) | O_DIRECTORY | O_CLOEXEC), error = errno, rc;
    struct stat status;

    free(name);
    if (fd < 0 || 0 != fstat(fd, &status)) {
        rc = refuse_open(path, what, fd < 0 ? error : errno, why);
    } else if (NULL != group) {
        rc = opal_crypt_secret_group_directory(fd, what, path, group, why);
    } else if ((0 != status.st_uid && geteuid() != status.st_uid)
               || (0 != (status.st_mode & (S_IWGRP | S_IWOTH)) && 0 == (status.st_mode & S_ISVTX))) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-directory",
                               "%s %s: its directory belongs to user id %lu and has the mode 0%o", what, path,
                               (unsigned long) status.st_uid, (unsigned) status.st_mode & 07777);
    } else {
        rc = OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_OK == rc) {
        *directory = fd;
    } else if (fd >= 0) {
        close(fd);
    }
    return rc;
}

int opal_crypt_secret_file_directory(const char *path, const char *what, int *directory, opal_crypt_why_t *why)
{
    return directory_of(path, what, NULL, directory, why);
}

static int open_in_directory(const char *path, const char *what, const opal_crypt_secret_group_t *group, int *fd, opal_crypt_why_t *why)
{
    const char *slash = strrchr(path, '/');
    int directory, rc = directory_of(path, what, group, &directory, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    *fd = openat(directory, NULL == slash ? path : slash + 1, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    int error = *fd < 0 ? errno : 0;
    close(directory);
    return 0 == error ? OPAL_CRYPT_OK : refuse_open(path, what, error, why);
}

int opal_crypt_secret_file_place(int fd, const char *path, const char *what, bool allow_network,
                                 opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    const char *name;
    unsigned long magic;

    if (OPAL_CRYPT_FS_LOCAL == opal_crypt_fs_of_open(fd, &name, &magic)) {
        return OPAL_CRYPT_OK;
    }
    if (allow_network) {
        opal_crypt_refuse(warning, OPAL_CRYPT_OK, "secret-netfs-allowed",
                          "%s %s: the file system is of type %s (0x%lx)", what, path, name, magic);
        return OPAL_CRYPT_OK;
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-netfs",
                             "%s %s: the file system is of type %s (0x%lx)", what, path, name, magic);
}

int opal_crypt_read_whole(int fd, void *bytes, size_t count, bool *whole)
{
    size_t done = 0;
    char more;

    *whole = false;
    /* Try to read one byte more than expected: a file that grows is not whole. */
    while (done <= count) {
        ssize_t got = done < count ? read(fd, (char *) bytes + done, count - done) : read(fd, &more, 1);

        if (got < 0 && EINTR == errno) {
            continue;
        }
        if (got <= 0) {
            *whole = 0 == got && done == count;
            return got < 0 ? errno : 0;
        }
        done += (size_t) got;
    }
    return 0;
}

static int read_secret(int fd, const char *path, const char *what, size_t count, uint8_t *bytes,
                       opal_crypt_why_t *why)
{
    bool whole;
    int error = opal_crypt_read_whole(fd, bytes, count, &whole);

    if (0 != error) {
        return refuse_open(path, what, error, why);
    }
    return whole ? OPAL_CRYPT_OK
         : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-length", "%s %s: it changed while it was read",
                             what, path);
}

/* `in` and `of`: whose the directory and the file may be; NULL: only ours. */
static int read_by(const opal_crypt_secret_group_t *in, const opal_crypt_secret_group_t *of, const char *path, const char *what,
                   size_t min, size_t max, bool allow_network, opal_crypt_secret_file_t *file, opal_crypt_why_t *why)
{
    struct stat status;
    int fd = -1, rc;

    memset(file, 0, sizeof(*file));
    rc = open_in_directory(path, what, in, &fd, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    rc = check_secret(fd, path, what, of, &status, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_crypt_secret_file_place(fd, path, what, allow_network, &file->warning, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        goto close;
    }
    if (status.st_size < 0 || (size_t) status.st_size < min || (size_t) status.st_size > max) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-length",
                               "%s %s: %lld bytes, where %zu to %zu are expected", what, path,
                               (long long) status.st_size, min, max);
        goto close;
    }
    file->count = (size_t) status.st_size;
    file->bytes = opal_crypt_secmem_alloc(file->count + 1);
    if (NULL == file->bytes) {
        rc = opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "%s %s", what, path);
        goto close;
    }
    rc = read_secret(fd, path, what, file->count, file->bytes, why);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(file->bytes);
        file->bytes = NULL;
    } else {
        file->bytes[file->count] = 0;
    }
close:
    close(fd);
    return rc;
}

int opal_crypt_secret_file_read(const char *path, const char *what, size_t min, size_t max, bool allow_network,
                                opal_crypt_secret_file_t *file, opal_crypt_why_t *why)
{
    return read_by(NULL, NULL, path, what, min, max, allow_network, file, why);
}

int opal_crypt_secret_group_read(const opal_crypt_secret_group_t *group, const char *path, const char *what, size_t min, size_t max,
                                 bool allow_network, opal_crypt_secret_file_t *file, opal_crypt_why_t *why)
{
    return read_by(group, group, path, what, min, max, allow_network, file, why);
}

/* ---- 32 bytes in hexadecimal ---- */

int opal_crypt_secret_file_hex(const char *path, const char *what, bool allow_network,
                               uint8_t **secret, opal_crypt_why_t *warning,
                               opal_crypt_why_t *why)
{
    return opal_crypt_secret_group_hex(NULL, path, what, allow_network, secret, warning, why);
}

int opal_crypt_secret_group_hex(const opal_crypt_secret_group_t *group, const char *path, const char *what, bool allow_network,
                                uint8_t **secret, opal_crypt_why_t *warning, opal_crypt_why_t *why)
{
    opal_crypt_secret_file_t file;
    unsigned bad = 0, any = 0;
    uint8_t *out;
    bool newline;
    int rc;

    *secret = NULL;
    rc = read_by(NULL, group, path, what, PSK_DIGITS, PSK_DIGITS + 1, allow_network, &file, why);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    newline = '\n' == file.bytes[PSK_DIGITS - 1];
    OPAL_CRYPT_PUBLIC(&newline, sizeof(newline));       /* the length is no secret */
    if (PSK_DIGITS == file.count && newline) {
        opal_crypt_secmem_free(file.bytes);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-length",
                                 "%s %s: %d digits, where %d are expected", what, path, PSK_DIGITS - 1,
                                 PSK_DIGITS);
    }
    out = opal_crypt_secmem_alloc(PSK_DIGITS / 2);
    if (NULL == out) {
        opal_crypt_secmem_free(file.bytes);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_MEMORY, "no-secret-memory", "%s %s", what, path);
    }
    for (unsigned i = 0; i < PSK_DIGITS / 2; ++i) {
        unsigned high = opal_crypt_hex_value((char) file.bytes[2 * i]);
        unsigned low = opal_crypt_hex_value((char) file.bytes[2 * i + 1]);

        bad |= (high | low) & OPAL_CRYPT_HEX_BAD;
        out[i] = (uint8_t) (high << 4 | low);
        any |= out[i];
    }
    if (PSK_DIGITS + 1 == file.count && '\n' != file.bytes[PSK_DIGITS]) {
        bad = 1;
    }
    opal_crypt_secmem_free(file.bytes);
    any = 0u - (0u != any);
    OPAL_CRYPT_PUBLIC(&bad, sizeof(bad));       /* such a file is refused */
    OPAL_CRYPT_PUBLIC(&any, sizeof(any));
    if (0 != bad) {
        opal_crypt_secmem_free(out);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-not-hex", "%s %s", what, path);
    }
    if (0 == any) {
        opal_crypt_secmem_free(out);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "secret-zero", "%s %s", what, path);
    }
    *secret = out;
    if (NULL != warning) {
        *warning = file.warning;
    }
    return OPAL_CRYPT_OK;
}

int opal_crypt_home_path(const char *name, char *path, size_t path_bytes, opal_crypt_why_t *why)
{
    const char *home = getenv("HOME");
    struct passwd entry, *found = NULL;
    char text[4096];
    int length;

    if (NULL == home || '/' != home[0]) {
        home = 0 == getpwuid_r(geteuid(), &entry, text, sizeof(text), &found) && NULL != found ? found->pw_dir : NULL;
    }
    length = NULL == home ? -1 : snprintf(path, path_bytes, "%s/.ompi-crypt/%s", home, name);
    if (length < 0 || (size_t) length >= path_bytes) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "no-home", "user id %lu",
                                 (unsigned long) geteuid());
    }
    return OPAL_CRYPT_OK;
}

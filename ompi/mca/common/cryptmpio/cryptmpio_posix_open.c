/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The two parts of an encrypted file on storage: finding and opening the sidecar, syncing both,
 * and the extended attribute of the data.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/header.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

char *ompi_common_cryptmpio_posix_sidecar(const char *path)
{
    char *real = realpath(path, NULL);
    char *sidecar = NULL == real ? NULL : realloc(real, strlen(real) + sizeof(OPAL_CRYPTFILE_SIDECAR_SUFFIX));

    if (NULL != sidecar) {
        strcat(sidecar, OPAL_CRYPTFILE_SIDECAR_SUFFIX);
    } else {
        free(real);
    }
    return sidecar;
}

/* Non-blocking: somebody may have put a FIFO there.  A process with a lease on the file, such as an NFS or Samba
 * server, is asked to give it up; in the end the kernel breaks the lease. */
static int open_sidecar(const char *sidecar, int how, mode_t mode)
{
    enum { TRIES = 6000 };              /* a minute; /proc/sys/fs/lease-break-time is 45 s */
    const struct timespec moment = {0, 10000000};
    int fd = -1;

    for (int i = 0; i < TRIES; ++i) {
        fd = open(sidecar, how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, mode);
        if (fd >= 0 || EWOULDBLOCK != errno) {
            break;
        }
        (void) nanosleep(&moment, NULL);
    }
    return fd;
}

int ompi_common_cryptmpio_posix_open(ompi_common_cryptmpio_posix_t *posix, const char *sidecar, int creating)
{
    struct stat data, side;

    if (0 != fstat(posix->data_fd, &data)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    posix->sidecar_fd = open_sidecar(sidecar, (posix->may_write ? O_RDWR : O_RDONLY) | creating, data.st_mode & 0666);
    if (posix->sidecar_fd < 0) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    if (0 != fstat(posix->sidecar_fd, &side) || !S_ISREG(side.st_mode)) {
        ompi_common_cryptmpio_posix_close(posix);
        errno = EINVAL;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    return OPAL_CRYPT_OK;
}

int ompi_common_cryptmpio_posix_begins_as_one(ompi_common_cryptmpio_posix_t *posix, bool *one)
{
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t state;
    int rc = opal_cryptfile_beginning_read(&posix->super, one, &header, &state);

    return *one ? OPAL_CRYPT_OK : rc;
}

void ompi_common_cryptmpio_posix_close(ompi_common_cryptmpio_posix_t *posix)
{
    if (posix->sidecar_fd >= 0) {
        if (!opal_crypt_forked()) {         /* a child forked since holds the locks, too, as long as it lives */
            (void) posix->super.unlock(&posix->super, 0, 0);          /* all locks of the sidecar */
        }
        if (!ompi_common_cryptmpio_posix_is_one(posix)) {
            close(posix->sidecar_fd);
        }
        posix->sidecar_fd = -1;
    }
}

static int sync_one(int fd)
{
    int rc;

    do {
        rc = fsync(fd);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/* The names of the two parts, which are in one directory. */
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

void ompi_common_cryptmpio_posix_sync_begin(const ompi_common_cryptmpio_posix_t *posix)
{
    if (posix->sidecar_fd >= 0) {
        (void) sync_file_range(posix->sidecar_fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

int ompi_common_cryptmpio_posix_sync_sidecar(const ompi_common_cryptmpio_posix_t *posix)
{
    return posix->sidecar_fd < 0 ? OPAL_CRYPT_OK : sync_one(posix->sidecar_fd);
}

int ompi_common_cryptmpio_posix_sync(const ompi_common_cryptmpio_posix_t *posix)
{
    ompi_common_cryptmpio_posix_sync_begin(posix);
    int rc = sync_one(posix->data_fd);

    return OPAL_CRYPT_OK == rc && !ompi_common_cryptmpio_posix_is_one(posix) ? ompi_common_cryptmpio_posix_sync_sidecar(posix) : rc;
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
        opal_cryptfile_map_digest_write_kind(&digest, 0 == map->geometry.group_bytes ? OPAL_CRYPTFILE_KIND_DIGEST
                                                                                     : OPAL_CRYPTFILE_KIND_ONE_DIGEST, digest_bytes);
        /* A digest newer than the sidecar's map, which a power failure could leave, would look like an attack. */
        if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_sync_sidecar(posix)) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
        rc = fsetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, digest_bytes, sizeof(digest_bytes), 0);
    }
    return 0 == rc || none_there() ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Positional I/O on the two parts.  Extents that touch in the file go into one
 * system call, whatever their places in memory; reading also goes over small
 * gaps, since a call costs more than the bytes between.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/cryptfile/file/store.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <unistd.h>

enum { VECTOR = 256, GAP = 512 };

static const ompi_common_cryptmpio_posix_t *posix_of(const opal_cryptfile_storage_t *storage)
{
    return (const ompi_common_cryptmpio_posix_t *) storage;
}

static int fd_of(const opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part)
{
    return OPAL_CRYPTFILE_DATA == part ? posix_of(storage)->data_fd : posix_of(storage)->sidecar_fd;
}

/* A call that did `done` bytes of the vector: what is left of it. */
static void advance(struct iovec **vector, int *count, size_t done)
{
    while (*count > 0 && done >= (*vector)->iov_len) {
        done -= (*vector)->iov_len;
        ++*vector;
        --*count;
    }
    if (*count > 0) {
        (*vector)->iov_base = (uint8_t *) (*vector)->iov_base + done;
        (*vector)->iov_len -= done;
    }
}

static int read_vector(int fd, struct iovec *vector, int count, uint64_t at)
{
    while (count > 0) {
        ssize_t done = preadv(fd, vector, count, (off_t) at);
        if (done < 0 && EINTR == errno) {
            continue;
        }
        if (done < 0) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
        if (0 == done) {                /* the end of the file */
            for (int i = 0; i < count; ++i) {
                memset(vector[i].iov_base, 0, vector[i].iov_len);
            }
            return OPAL_CRYPT_OK;
        }
        at += (uint64_t) done;
        advance(&vector, &count, (size_t) done);
    }
    return OPAL_CRYPT_OK;
}

static int write_vector(int fd, struct iovec *vector, int count, uint64_t at)
{
    while (count > 0) {
        ssize_t done = pwritev(fd, vector, count, (off_t) at);
        if (done < 0 && EINTR == errno) {
            continue;
        }
        if (done <= 0) {
            errno = 0 == done ? ENOSPC : errno;
            return OPAL_CRYPT_ERR_STORAGE;
        }
        at += (uint64_t) done;
        advance(&vector, &count, (size_t) done);
    }
    return OPAL_CRYPT_OK;
}

static int posix_read(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                      const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    struct iovec vector[VECTOR];
    uint8_t gap[GAP];
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; i < extent_count && OPAL_CRYPT_OK == rc;) {
        uint64_t at = extents[i].at, end = at;
        int count = 0;
        while (i < extent_count && count < VECTOR - 1 && extents[i].at - end <= GAP) {
            if (extents[i].at > end) {
                vector[count++] = (struct iovec){gap, extents[i].at - end};
            }
            vector[count++] = (struct iovec){extents[i].bytes, extents[i].count};
            end = extents[i].at + extents[i].count;
            ++i;
        }
        rc = read_vector(fd_of(storage, part), vector, count, at);
    }
    return rc;
}

static int posix_write(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part,
                       const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    struct iovec vector[VECTOR];
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; i < extent_count && OPAL_CRYPT_OK == rc;) {
        uint64_t at = extents[i].at, end = at;
        int count = 0;
        while (i < extent_count && count < VECTOR && extents[i].at == end) {
            vector[count++] = (struct iovec){extents[i].bytes, extents[i].count};
            end += extents[i].count;
            ++i;
        }
        rc = write_vector(fd_of(storage, part), vector, count, at);
    }
    return rc;
}

static int posix_size(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t *bytes)
{
    struct stat status;

    if (0 != fstat(fd_of(storage, part), &status)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    *bytes = (uint64_t) status.st_size;
    return OPAL_CRYPT_OK;
}

static int posix_resize(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t bytes)
{
    int rc;

    do {
        rc = ftruncate(fd_of(storage, part), (off_t) bytes);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

static int posix_zero(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part, uint64_t at, uint64_t bytes)
{
    static uint8_t zeros[65536];
    int rc;

    do {
        rc = fallocate(fd_of(storage, part), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) at, (off_t) bytes);
    } while (0 != rc && EINTR == errno);
    if (0 == rc) {
        return OPAL_CRYPT_OK;
    }
    if (EOPNOTSUPP != errno && ENOSYS != errno) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    for (rc = OPAL_CRYPT_OK; bytes > 0 && OPAL_CRYPT_OK == rc;) {
        size_t part_bytes = bytes < sizeof(zeros) ? (size_t) bytes : sizeof(zeros);
        const opal_cryptfile_extent_t extent = {at, zeros, part_bytes};
        rc = posix_write(storage, part, &extent, 1);
        at += part_bytes;
        bytes -= part_bytes;
    }
    return rc;
}

/* ---- life ---- */

void ompi_common_cryptmpio_posix_init(ompi_common_cryptmpio_posix_t *posix, int data_fd, bool may_write)
{
    *posix = (ompi_common_cryptmpio_posix_t){
        .super = {posix_read, posix_write, posix_size, posix_resize, posix_zero, ompi_common_cryptmpio_posix_lock,
                  ompi_common_cryptmpio_posix_unlock, ompi_common_cryptmpio_posix_try_lock},
        .data_fd = data_fd,
        .sidecar_fd = -1,
        .may_write = may_write,
    };
    ompi_common_cryptmpio_posix_place(posix);
}

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

int ompi_common_cryptmpio_posix_open(ompi_common_cryptmpio_posix_t *posix, const char *sidecar, int creating)
{
    struct stat data, side;

    if (0 != fstat(posix->data_fd, &data)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    posix->sidecar_fd = open(sidecar, (posix->may_write ? O_RDWR : O_RDONLY) | creating | O_NOFOLLOW | O_CLOEXEC,
                             data.st_mode & 0666);
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

void ompi_common_cryptmpio_posix_close(ompi_common_cryptmpio_posix_t *posix)
{
    if (posix->sidecar_fd >= 0) {
        close(posix->sidecar_fd);
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

static int posix_barrier(opal_cryptfile_storage_t *storage, opal_cryptfile_part_t part)
{
    int rc;

    do {
        rc = fdatasync(fd_of(storage, part));
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

void ompi_common_cryptmpio_posix_durable(ompi_common_cryptmpio_posix_t *posix)
{
    posix->super.barrier = posix_barrier;
}

/* The names of the two parts, which lie in one directory. */
int ompi_common_cryptmpio_posix_sync_names(const char *sidecar)
{
    char *path = strdup(sidecar), *slash = NULL == path ? NULL : strrchr(path, '/');
    int rc = OPAL_CRYPT_ERR_MEMORY;

    if (NULL != slash) {
        slash[slash == path] = '\0';
        int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        rc = fd < 0 ? OPAL_CRYPT_ERR_STORAGE : sync_one(fd);
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        errno = error;
    }
    free(path);
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

    return OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync_sidecar(posix) : rc;
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
    if (got != size) {                  /* it is being replaced: take it for damaged */
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
        /* One that is newer than the sidecar's map, as a power cut may leave it, speaks of an attack. */
        if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_sync_sidecar(posix)) {
            return OPAL_CRYPT_ERR_STORAGE;
        }
        rc = fsetxattr(posix->data_fd, OMPI_CRYPTMPIO_ATTRIBUTE, digest_bytes, sizeof(digest_bytes), 0);
    }
    return 0 == rc || none_there() ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The storage's functions: positional I/O and range locks.
 *
 * Extents that touch in the file go into one system call, wherever they are in memory;
 * reading also goes over small gaps, since a call costs more than the bytes between.
 *
 * Locks belong to the open file description.  They do two things: they keep out other processes; and on file
 * systems whose nodes cache what they read and write (NFS, and BeeGFS where it buffers), taking a lock makes a node ask
 * the server again, and releasing it makes the node send what was written.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/secret_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { VECTOR = 256, GAP = 512, ZEROS = 65536 };

static const ompi_common_cryptmpio_posix_t *posix_of(const opal_cryptfile_storage_t *storage)
{
    return (const ompi_common_cryptmpio_posix_t *) storage;
}

static int fd_of(const opal_cryptfile_storage_t *storage) { return posix_of(storage)->data_fd; }

/* What is left of the vector after a call that transferred `done` bytes. */
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

static int posix_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t extent_count)
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
        rc = read_vector(fd_of(storage), vector, count, at);
    }
    return rc;
}

static int posix_write(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t extent_count)
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
        rc = write_vector(fd_of(storage), vector, count, at);
    }
    return rc;
}

static int posix_size(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    struct stat status;

    if (0 != fstat(fd_of(storage), &status)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    *bytes = (uint64_t) status.st_size;
    return OPAL_CRYPT_OK;
}

static int posix_resize(opal_cryptfile_storage_t *storage, uint64_t bytes)
{
    int rc;

    do {
        rc = ftruncate(fd_of(storage), (off_t) bytes);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/* If no hole can be punched: zeros only the bytes that are not zero, so holes and the file's end stay. */
static int zero_some(opal_cryptfile_storage_t *storage, uint64_t at, size_t bytes)
{
    static const uint8_t zeros[ZEROS];
    uint8_t there[ZEROS];
    opal_cryptfile_extent_t extent = {at, there, bytes};
    int rc = storage->read(storage, &extent, 1);

    if (OPAL_CRYPT_OK == rc && 0 != memcmp(there, zeros, bytes)) {
        memset(there, 0, bytes);
        rc = storage->write(storage, &extent, 1);
    }
    return rc;
}

static int posix_zero(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    int rc;

    do {
        rc = fallocate(fd_of(storage), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t) at, (off_t) bytes);
    } while (0 != rc && EINTR == errno);
    if (0 == rc) {
        return OPAL_CRYPT_OK;
    }
    if (EOPNOTSUPP != errno && ENOSYS != errno) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    for (rc = OPAL_CRYPT_OK; bytes > 0 && OPAL_CRYPT_OK == rc;) {
        size_t part_bytes = bytes < ZEROS ? (size_t) bytes : ZEROS;
        rc = zero_some(storage, at, part_bytes);
        at += part_bytes;
        bytes -= part_bytes;
    }
    return rc;
}

static int posix_barrier(opal_cryptfile_storage_t *storage)
{
    int rc;

    do {
        rc = fdatasync(fd_of(storage));
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/* ---- locks ---- */

static int posix_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    return ompi_common_cryptmpio_posix_take_lock(posix_of(storage)->data_fd, exclusive ? F_WRLCK : F_RDLCK, at, bytes);
}

/* Set a lock, or remove it, without waiting. */
static int set_lock(const opal_cryptfile_storage_t *storage, short type, uint64_t at, uint64_t bytes)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) bytes};
    int rc;

    do {
        rc = fcntl(posix_of(storage)->data_fd, F_OFD_SETLK, &lock);
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

static int posix_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    return set_lock(storage, F_UNLCK, at, bytes);
}

static int try_lock(const opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    int rc = set_lock(storage, exclusive ? F_WRLCK : F_RDLCK, at, bytes);

    *got = OPAL_CRYPT_OK == rc;
    return *got || EAGAIN == errno || EACCES == errno ? OPAL_CRYPT_OK : rc;
}

static int posix_try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    return try_lock(storage, at, bytes, exclusive, got);
}

static int posix_wait_once(opal_cryptfile_storage_t *storage, uint64_t at, opal_cryptfile_wait_t *wait)
{
    return ompi_common_cryptmpio_posix_wait_once(posix_of(storage)->data_fd, at, wait);
}

int ompi_common_cryptmpio_posix_lock_now(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool exclusive, bool *got)
{
    return try_lock(&posix->super, at, 1, exclusive, got);
}

int ompi_common_cryptmpio_posix_share_now(const ompi_common_cryptmpio_posix_t *posix, bool writes, bool *got)
{
    static_assert(OMPI_CRYPTMPIO_LOCK_WRITERS + 1 == OMPI_CRYPTMPIO_LOCK_USE, "one range for both");
    return try_lock(&posix->super, writes ? OMPI_CRYPTMPIO_LOCK_WRITERS : OMPI_CRYPTMPIO_LOCK_USE, writes ? 2 : 1, false, got);
}

/* No other lock there conflicts with one of this type. */
static int test(int fd, short type, uint64_t at, uint64_t bytes, bool *is_free)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) bytes};

    if (0 != fcntl(fd, F_OFD_GETLK, &lock)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    *is_free = F_UNLCK == lock.l_type;
    return OPAL_CRYPT_OK;
}

int ompi_common_cryptmpio_posix_lock_test(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool *is_free)
{
    return test(posix->data_fd, F_RDLCK, at, 1, is_free);
}

int ompi_common_cryptmpio_posix_lock_stays(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool *stays)
{
    char again[64];
    bool is_free;

    snprintf(again, sizeof(again), "/proc/self/fd/%d", posix->data_fd);
    int other = open(again, O_RDONLY | O_CLOEXEC), closed = open(again, O_RDONLY | O_CLOEXEC);
    int rc = closed >= 0 && 0 == close(closed) && other >= 0 ? test(other, F_RDLCK, at, 1, &is_free) : OPAL_CRYPT_ERR_STORAGE;
    int error = errno;

    *stays = OPAL_CRYPT_OK == rc && !is_free;
    if (other >= 0) {
        close(other);
    }
    errno = error;
    return rc;
}

int ompi_common_cryptmpio_posix_locked(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, uint64_t bytes, bool *is_free)
{
    return test(posix->data_fd, F_WRLCK, at, bytes, is_free);
}

int ompi_common_cryptmpio_posix_refresh(ompi_common_cryptmpio_posix_t *posix)
{
    opal_cryptfile_storage_t *storage = &posix->super;

    if (!posix->remote) {
        return OPAL_CRYPT_OK;
    }
    int rc = storage->lock(storage, OMPI_CRYPTMPIO_LOCK_REFRESH, 1, false);
    rc = OPAL_CRYPT_OK == rc ? storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_REFRESH, 1) : rc;
    return posix->may_write ? rc : OPAL_CRYPT_OK;       /* a reader needs no locks */
}

/* ---- the table ---- */

/* Is the file system local to this node?  One of an unknown type is not.  With FUSE, the kernel may have kept pages that it
 * read while another node wrote the file: ceph-fuse does not know of them, and never tells it to drop them. */
void ompi_common_cryptmpio_posix_find_system(ompi_common_cryptmpio_posix_t *posix)
{
    struct statfs system = {.f_type = 0};
    const char *name = "";

    posix->remote = posix->data_fd >= 0 &&
                    (0 != fstatfs(posix->data_fd, &system) ||
                     OPAL_CRYPT_FS_LOCAL != opal_crypt_fs_kind((unsigned long) system.f_type, &name));
    posix->nfs = posix->remote && 0 == strcmp(name, "nfs");
    if (posix->remote && 0 == strcmp(name, "fuse")) {
        (void) posix_fadvise(posix->data_fd, 0, 0, POSIX_FADV_DONTNEED);
    }
}

void ompi_common_cryptmpio_posix_init(ompi_common_cryptmpio_posix_t *posix, int data_fd, bool may_write)
{
    *posix = (ompi_common_cryptmpio_posix_t){
        .super = {posix_read, posix_write, posix_size, posix_resize, posix_zero, posix_lock,
                  posix_unlock, posix_try_lock, NULL, posix_barrier, posix_wait_once},
        .data_fd = data_fd,
        .may_write = may_write,
    };
}

void ompi_common_cryptmpio_posix_durable(ompi_common_cryptmpio_posix_t *posix)
{
    posix->super.barrier = posix_barrier;
}

void ompi_common_cryptmpio_posix_release(ompi_common_cryptmpio_posix_t *posix)
{
    if (posix->data_fd >= 0 && !opal_crypt_forked()) {      /* a child forked since has the locks, too, as long as it lives */
        (void) posix_unlock(&posix->super, 0, 0);           /* all of them */
    }
}

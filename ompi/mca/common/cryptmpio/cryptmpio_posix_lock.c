/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Range locks of the open file description.  They do two things: they keep out
 * other processes, for which a lock of the sidecar is enough; and on file systems
 * whose nodes keep what they have read and written (NFS, and BeeGFS where it
 * buffers), taking one is what makes a node ask the server again, and giving it
 * back what makes it hand over what was written.  That holds for the locked file
 * alone, so there both parts are locked:
 *
 *     lock the sidecar | lock the data | ... | unlock the data | unlock the sidecar
 *
 * In this order nobody ever waits for the second lock, and the ciphertext is at the
 * server before the entries are.  On a file system of this node all processes see
 * the same pages, and the second lock would only cost.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include "opal/mca/common/crypt/base/secret_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* A lock server that knows processes, but not their threads or files, may see a ring
 * where there is none: all of ours take locks in the same order.  So it is asked again,
 * for this many times a millisecond. */
enum { RING_MAX = 10000 };

static const ompi_common_cryptmpio_posix_t *posix_of(const opal_cryptfile_storage_t *storage)
{
    return (const ompi_common_cryptmpio_posix_t *) storage;
}

void ompi_common_cryptmpio_posix_place(ompi_common_cryptmpio_posix_t *posix)
{
    struct statfs system = {.f_type = 0};
    const char *name = "";

    posix->both = posix->data_fd >= 0 &&
                  (0 != fstatfs(posix->data_fd, &system) ||
                   OPAL_CRYPT_FS_LOCAL != opal_crypt_fs_kind((unsigned long) system.f_type, &name));
    posix->nfs = posix->both && 0 == strcmp(name, "nfs");
}

static int set_lock(int fd, short type, uint64_t at, uint64_t bytes)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) bytes};
    const struct timespec moment = {0, 1000000};
    int rings = 0, rc;

    do {
        rc = fcntl(fd, F_UNLCK == type ? F_OFD_SETLK : F_OFD_SETLKW, &lock);
        if (0 != rc && EDEADLK == errno && ++rings <= RING_MAX) {
            (void) nanosleep(&moment, NULL);
            errno = EINTR;
        }
    } while (0 != rc && EINTR == errno);
    return 0 == rc ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

/* What is locked below those of blocks and of whole files says nothing of the data. */
static bool covers_data(const ompi_common_cryptmpio_posix_t *posix, uint64_t at)
{
    return posix->both && at >= OMPI_CRYPTMPIO_LOCKS_FIRST;
}

int ompi_common_cryptmpio_posix_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    const ompi_common_cryptmpio_posix_t *posix = posix_of(storage);
    short type = exclusive ? F_WRLCK : F_RDLCK;
    int rc = set_lock(posix->sidecar_fd, type, at, bytes);

    if (OPAL_CRYPT_OK == rc && covers_data(posix, at)) {
        rc = set_lock(posix->data_fd, type, at, bytes);
        if (OPAL_CRYPT_OK != rc) {
            int error = errno;
            (void) set_lock(posix->sidecar_fd, F_UNLCK, at, bytes);
            errno = error;
        }
    }
    return rc;
}

int ompi_common_cryptmpio_posix_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    const ompi_common_cryptmpio_posix_t *posix = posix_of(storage);
    int data = covers_data(posix, at) ? set_lock(posix->data_fd, F_UNLCK, at, bytes) : OPAL_CRYPT_OK;
    int error = errno;
    int rc = set_lock(posix->sidecar_fd, F_UNLCK, at, bytes);

    errno = OPAL_CRYPT_OK == rc ? error : errno;
    return OPAL_CRYPT_OK == rc ? data : rc;
}

static int set_lock_now(int fd, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    struct flock lock = {.l_type = exclusive ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = (off_t) at, .l_len = (off_t) bytes};
    int rc;

    do {
        rc = fcntl(fd, F_OFD_SETLK, &lock);
    } while (0 != rc && EINTR == errno);
    *got = 0 == rc;
    return *got || EAGAIN == errno || EACCES == errno ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_STORAGE;
}

int ompi_common_cryptmpio_posix_try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    const ompi_common_cryptmpio_posix_t *posix = posix_of(storage);
    int rc = set_lock_now(posix->sidecar_fd, at, bytes, exclusive, got);

    if (OPAL_CRYPT_OK == rc && *got && covers_data(posix, at)) {
        rc = set_lock_now(posix->data_fd, at, bytes, exclusive, got);
        if (!*got) {
            int error = errno;
            (void) set_lock(posix->sidecar_fd, F_UNLCK, at, bytes);
            errno = error;
        }
    }
    return rc;
}

int ompi_common_cryptmpio_posix_lock_now(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, bool exclusive, bool *got)
{
    return set_lock_now(posix->sidecar_fd, at, 1, exclusive, got);
}

/* Nobody has a lock there that one of this type would have to wait for. */
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
    bool data_free = false;
    int rc = test(posix->sidecar_fd, F_RDLCK, at, 1, is_free);

    if (OPAL_CRYPT_OK == rc && covers_data(posix, at)) {
        rc = test(posix->data_fd, F_RDLCK, at, 1, &data_free);
        *is_free = *is_free || data_free;
    }
    return rc;
}

int ompi_common_cryptmpio_posix_locked(const ompi_common_cryptmpio_posix_t *posix, uint64_t at, uint64_t bytes, bool *is_free)
{
    return test(posix->sidecar_fd, F_WRLCK, at, bytes, is_free);
}

int ompi_common_cryptmpio_posix_refresh(ompi_common_cryptmpio_posix_t *posix)
{
    opal_cryptfile_storage_t *storage = &posix->super;

    if (!posix->both || posix->sidecar_fd < 0) {
        return OPAL_CRYPT_OK;
    }
    int rc = storage->lock(storage, OMPI_CRYPTMPIO_LOCK_REFRESH, 1, false);
    rc = OPAL_CRYPT_OK == rc ? storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_REFRESH, 1) : rc;
    return posix->may_write ? rc : OPAL_CRYPT_OK;       /* who only reads needs no locks */
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file of a few pages, all filled with one value, by which nodes find out whether they see one another's writes.  Value 2
 * replaces 1 and changes nothing but bytes, not even the time of the last change: a node that goes by size and time to tell
 * whether its cached pages are old (FUSE) keeps them, as it would if the other node's clock were behind.  Each larger value
 * lengthens the file by a page: new space is allocated at its end.
 */
#ifndef _GNU_SOURCE
#    define _GNU_SOURCE
#endif
#include "cryptmpio_posix.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { PAGE = 4096 };

ompi_common_cryptmpio_seen_t ompi_common_cryptmpio_posix_pages(ompi_common_cryptmpio_posix_t *posix, bool writing, uint8_t value)
{
    opal_cryptfile_storage_t *storage = &posix->super;
    uint8_t bytes[OMPI_CRYPTMPIO_PAGES_MAX * PAGE];
    const opal_cryptfile_extent_t extent = {0, bytes, (size_t) (value < 3 ? 1 : value - 1) * PAGE};
    const bool unseen = writing && 2 == value;      /* by its time */
    struct stat before;
    uint64_t size = 0;

    if (0 == value || value > OMPI_CRYPTMPIO_PAGES_MAX) {
        errno = EINVAL;
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    if (unseen && 0 != fstat(posix->data_fd, &before)) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    memset(bytes, writing ? value : 0, sizeof(bytes));
    int rc = writing ? storage->write(storage, &extent, 1) : storage->read(storage, &extent, 1);
    if (OPAL_CRYPT_OK == rc && unseen && 0 != futimens(posix->data_fd, (const struct timespec[]){before.st_atim, before.st_mtim})) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, &size) : rc;
    if (OPAL_CRYPT_OK != rc) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    errno = ESTALE;
    return size != extent.count ? OMPI_CRYPTMPIO_SEEN_SIZE
           : value != bytes[0] || value != bytes[extent.count - 1] ? OMPI_CRYPTMPIO_SEEN_BYTES : OMPI_CRYPTMPIO_SEEN_RIGHT;
}

ompi_common_cryptmpio_seen_t ompi_common_cryptmpio_posix_pages_locked(ompi_common_cryptmpio_posix_t *posix, bool writing, uint8_t value)
{
    opal_cryptfile_storage_t *storage = &posix->super;

    if (OPAL_CRYPT_OK != storage->lock(storage, OMPI_CRYPTMPIO_LOCK_PROBE, 1, writing)) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    ompi_common_cryptmpio_seen_t seen = ompi_common_cryptmpio_posix_pages(posix, writing, value);
    int error = errno;
    if (OPAL_CRYPT_OK != storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_PROBE, 1)) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    errno = error;
    return seen;
}

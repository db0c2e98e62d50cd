/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Deleting: a file's sidecar is deleted with it, but not that of another file which somebody is just
 * creating under the same name.  Between the two unlinks no other process can complete the sidecar or
 * begin to use it:
 *
 *     open the sidecar, maker's lock, exclusive use lock | unlink the data | same inode still? unlink it
 *
 * For a sidecar that cannot be opened or locked, only the inode at its path decides.  If the file has no
 * attribute, though it could have one, or has another UUID, the sidecar may belong to an encrypted file
 * that was renamed and is unreadable without it: it is set aside.
 *
 * One file has no sidecar, and what has the name of one is not touched.
 */
#include "cryptmpio_internal.h"
#include "ompi/mca/common/cryptmpi/cryptmpi.h"
#include "opal/mca/common/cryptfile/file/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* How long to wait for a process that is creating the sidecar: it may be stopped. */
enum { PATIENCE_MS = 2000 };

#define HELP "help-ompi-common-cryptmpio.txt"

static void wait_for_maker(const ompi_common_cryptmpio_posix_t *posix)
{
    const struct timespec moment = {0, 1000000};
    bool got = false;

    for (int i = 0; i < PATIENCE_MS && !got; ++i) {
        if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_MAKER, posix->may_write, &got)) {
            return;                     /* there are no locks */
        }
        if (!got) {
            (void) nanosleep(&moment, NULL);
        }
    }
}

static int open_doomed(const char *sidecar, int how)
{
    return open(sidecar, how | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* Needs neither part open. */
static bool is_of_another(const char *filename, const struct stat *sidecar)
{
    return getxattr(filename, OMPI_CRYPTMPIO_ATTRIBUTE, NULL, 0) < 0 && ENODATA == errno
           && (uint64_t) sidecar->st_size > OPAL_CRYPTFILE_SIDECAR_FREE;
}

/* The file's attribute has another UUID than the open sidecar. */
static bool differ(const char *filename, ompi_common_cryptmpio_posix_t *posix)
{
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];

    return ompi_common_cryptmpio_posix_uuid_at(filename, uuid) && !ompi_common_cryptmpio_posix_is_of(posix, uuid);
}

/* An encrypted file that is one file, or was one before another program overwrote it; also if nobody knows. */
static bool is_one(const char *filename)
{
    ompi_common_cryptmpio_look_t look = {.label = ""};
    const int copy = OPAL_CRYPTFILE_COPY_ATTRIBUTE;
    int fd = open_doomed(filename, O_RDONLY);
    bool one = false;
    size_t count;

    if (fd >= 0) {
        ompi_common_cryptmpio_posix_t posix;
        ompi_common_cryptmpio_posix_init(&posix, fd, false);
        one = OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_begins_as_one(&posix, &one) || one;
        if (!one && OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_attribute_read(&posix, &look.copies[copy], &count)) {
            look.sizes[copy] = count;
            one = ompi_common_cryptmpio_was_one(&look);
            free(look.copies[copy]);
        }
        close(fd);
    }
    return one;
}

void ompi_common_cryptmpio_delete_begin(const char *filename, ompi_common_cryptmpio_doomed_t *doomed)
{
    ompi_common_cryptmpio_posix_t *posix = &doomed->posix;
    bool got = false;

    *doomed = (ompi_common_cryptmpio_doomed_t){.sidecar = ompi_common_cryptmpio_posix_sidecar(filename), .used = true};
    ompi_common_cryptmpio_posix_init(posix, -1, true);
    doomed->there = NULL != doomed->sidecar && 0 == lstat(doomed->sidecar, &doomed->status) && !is_one(filename);
    if (!doomed->there || !S_ISREG(doomed->status.st_mode)) {
        return;
    }
    doomed->of_another = is_of_another(filename, &doomed->status);
    posix->sidecar_fd = open_doomed(doomed->sidecar, O_RDWR);
    if (posix->sidecar_fd < 0) {
        posix->may_write = false;
        posix->sidecar_fd = open_doomed(doomed->sidecar, O_RDONLY);
    }
    if (posix->sidecar_fd >= 0 && 0 == fstat(posix->sidecar_fd, &doomed->status)) {
        wait_for_maker(posix);
        doomed->of_another = doomed->of_another || differ(filename, posix);
        doomed->used = OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_now(posix, OMPI_CRYPTMPIO_LOCK_USE, true, &got) || !got;
    }
}

/* A new file has the name already, and some process uses the sidecar: without attributes, it may have taken it
 * for that of the new file. */
static bool taken_over(const ompi_common_cryptmpio_doomed_t *doomed, const char *filename)
{
    struct stat status;

    return doomed->used && 0 == lstat(filename, &status);
}

/* If it cannot be set aside, it stays where it is. */
static void keep(const char *filename, ompi_common_cryptmpio_doomed_t *doomed)
{
    (void) ompi_common_cryptmpio_posix_set_aside(&doomed->posix, doomed->sidecar);
    opal_cryptproc_show_here(HELP, "file-sidecar-kept", filename, opal_process_info.nodename, doomed->sidecar);
}

int ompi_common_cryptmpio_delete_end(const char *filename, ompi_common_cryptmpio_doomed_t *doomed, int rc)
{
    struct stat now;

    if (OMPI_SUCCESS == rc && doomed->there && !taken_over(doomed, filename) && 0 == lstat(doomed->sidecar, &now) &&
        doomed->status.st_dev == now.st_dev && doomed->status.st_ino == now.st_ino) {
        if (doomed->of_another) {
            keep(filename, doomed);
        } else {
            rc = 0 == unlink(doomed->sidecar) || ENOENT == errno ? OMPI_SUCCESS
                                                                 : ompi_common_cryptmpio_error(OPAL_CRYPT_ERR_STORAGE, errno);
        }
    }
    ompi_common_cryptmpio_posix_close(&doomed->posix);
    free(doomed->sidecar);
    return rc;
}

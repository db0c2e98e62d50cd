/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Deleting: the sidecar of a file goes with it, but not that of another file which somebody makes
 * under the same name at this moment.  Between the two parts nobody else can make anything of the
 * sidecar, nor begin to use it:
 *
 *     open the sidecar, maker's lock, lock alone | unlink the data | the same lies there still? unlink it
 *
 * A sidecar that cannot be opened, or locked, goes by what lies there alone.  One beside a file that has no
 * attribute, where it could have one, or another UUID, may be that of an encrypted file which was given
 * another name, and which nobody could read without it: it is set aside.
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

/* So long somebody is waited for who makes the sidecar: he may be stopped. */
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

/* Whether it can be opened or not. */
static bool is_of_another(const char *filename, const struct stat *sidecar)
{
    return getxattr(filename, OMPI_CRYPTMPIO_ATTRIBUTE, NULL, 0) < 0 && ENODATA == errno
           && (uint64_t) sidecar->st_size > OPAL_CRYPTFILE_SIDECAR_FREE;
}

/* The file has an attribute, and the sidecar, which is open, another UUID. */
static bool differ(const char *filename, ompi_common_cryptmpio_posix_t *posix)
{
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];

    return ompi_common_cryptmpio_posix_uuid_at(filename, uuid) && !ompi_common_cryptmpio_posix_is_of(posix, uuid);
}

void ompi_common_cryptmpio_delete_begin(const char *filename, ompi_common_cryptmpio_doomed_t *doomed)
{
    ompi_common_cryptmpio_posix_t *posix = &doomed->posix;
    bool got = false;

    *doomed = (ompi_common_cryptmpio_doomed_t){.sidecar = ompi_common_cryptmpio_posix_sidecar(filename), .used = true};
    ompi_common_cryptmpio_posix_init(posix, -1, true);
    doomed->there = NULL != doomed->sidecar && 0 == lstat(doomed->sidecar, &doomed->status);
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

/* A new file has the name already, and somebody uses the sidecar: where files have no attributes, he may have
 * taken it for that of the new one. */
static bool taken_over(const ompi_common_cryptmpio_doomed_t *doomed, const char *filename)
{
    struct stat status;

    return doomed->used && 0 == lstat(filename, &status);
}

/* Where it cannot be set aside, it stays where it is. */
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

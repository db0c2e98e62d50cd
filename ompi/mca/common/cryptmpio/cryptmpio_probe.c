/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a file system shared between nodes must do for files that several of them
 * write: a lock of one keeps out the others, and what was written under a lock
 * is read under the next one.  Some do neither unless configured to, and none says
 * so; so it is tried when a file is opened for writing.
 *
 *     rank 0  lock the file, close another descriptor of it, still locked? |
 *     others                                                               | taken?
 *
 *     rank 0  write 1, lock ranges |             | lock, write 2, unlock |            | lock, write 3, unlock |            | delete
 *     others                       | read, taken? |                      | lock, read |                       | lock, read |
 *                                                                                                       in .mpicrypt-probe.NUMBER
 *
 * The second write changes nothing but bytes, not even the time of the last change: a node that goes by size and time
 * to tell whether its cached pages are old (FUSE) keeps them, as it would if the other node's clock were behind.  The
 * third lengthens that file: new space is allocated at its end.  A process that has met the first one of its node leaves the
 * reading to that.
 * Rank 0 holds the first lock throughout, so that communicators that open the same file
 * run their probes one after the other.
 */
#include "cryptmpio_internal.h"

#include "opal/mca/common/crypt/base/secmem.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { STEPS = 3, NAME_BYTES = PATH_MAX + 40 };

int ompi_common_cryptmpio_probe_begin(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_crypt_why_t why;
    bool stays;

    if (OPAL_CRYPT_OK != storage->lock(storage, OMPI_CRYPTMPIO_LOCK_PROBE, 1, true)
        || OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_stays(&state->posix, OMPI_CRYPTMPIO_LOCK_PROBE, &stays)) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    return stays ? MPI_SUCCESS
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_LIBRARY, "file-locks",
                                                                 "a lock is gone once any descriptor of the file is closed"), &why);
}

int ompi_common_cryptmpio_probe_lock(ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;
    bool is_free = false;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_test(&state->posix, OMPI_CRYPTMPIO_LOCK_PROBE, &is_free)) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    return !is_free ? MPI_SUCCESS
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_LIBRARY, "file-locks",
                                                                 "this process could take the lock that another node holds"), &why);
}

/* ---- the probe file ---- */

static bool locked(ompi_common_cryptmpio_posix_t *probe, bool writing, uint8_t step)
{
    return OMPI_CRYPTMPIO_SEEN_RIGHT == ompi_common_cryptmpio_posix_pages_locked(probe, writing, step);
}

/* Rank 0 could not write, or others did not see what it wrote. */
static int failed(const ompi_common_cryptmpio_file_t *state, bool right)
{
    return right ? MPI_SUCCESS : ompi_common_cryptmpio_show_errno(state, 0 == state->fh->f_rank ? "file-failed" : "file-stale", errno);
}

static int ranges_taken(const ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_posix_t *probe)
{
    opal_crypt_why_t why;
    bool right = false;

    return OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_ranges_test(probe, &right) ? ompi_common_cryptmpio_show_errno(state, "file-locks", errno)
           : right ? MPI_SUCCESS
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_LIBRARY, "file-locks",
                                                                 "a part of a range that another node has locked is free, or what it has unlocked is not"), &why);
}

/* In the file's directory, a name that nobody else has.  (The file's own may have 255 bytes.) */
static void name_probe(const ompi_common_cryptmpio_file_t *state, uint64_t number, char name[NAME_BYTES])
{
    char *real = ompi_common_cryptmpio_posix_real_path(state->posix.data_fd, state->path);
    const char *path = NULL == real ? state->path : real, *slash = strrchr(path, '/');

    snprintf(name, NAME_BYTES, "%.*s.mpicrypt-probe.%016" PRIx64, NULL == slash ? 0 : (int) (slash + 1 - path), path, number);
    free(real);
}

/* `creating` as for open(2). */
static bool open_probe(const ompi_common_cryptmpio_file_t *state, const char *name, int creating, ompi_common_cryptmpio_posix_t *probe)
{
    struct stat status;
    int fd = 0 == fstat(state->posix.data_fd, &status) ? open(name, O_RDWR | creating | O_NOFOLLOW | O_CLOEXEC, status.st_mode & 0666) : -1;

    ompi_common_cryptmpio_posix_init(probe, fd, true);
    return fd >= 0;
}

/* If the directory is not writable, nothing can be tried; a message says so.  The broadcast says that rank 0 has written
 * once, the first agreement that the others have read that; and so on. */
int ompi_common_cryptmpio_probe_bytes(ompi_common_cryptmpio_file_t *state)
{
    ompi_common_cryptmpio_posix_t probe = {.data_fd = -1};
    char name[NAME_BYTES];
    uint64_t number = 0;                /* 0: there is no file to try with */
    bool root = 0 == state->fh->f_rank, reads = !root && !state->met, made = false;
    int error = MPI_SUCCESS;

    if (root) {
        opal_crypt_random(&number, sizeof(number));
        name_probe(state, number, name);
        made = open_probe(state, name, O_CREAT | O_EXCL, &probe);
        if (!made) {
            (void) ompi_common_cryptmpio_show_errno(state, "file-untested", errno);
            number = 0;
        }
        error = made ? failed(state, locked(&probe, true, 1)) : MPI_SUCCESS;
        if (made && MPI_SUCCESS == error && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_ranges_take(&probe)) {
            error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
        }
        number = MPI_SUCCESS == error ? number : 0;
    }
    error = OMPI_SUCCESS == ompi_common_cryptmpio_bcast(state->fh, 0, &number, sizeof(number)) ? error : MPI_ERR_INTERN;
    state->untested = 0 == number;
    if (MPI_SUCCESS == error && 0 != number && reads) {
        name_probe(state, number, name);
        error = failed(state, open_probe(state, name, 0, &probe) && locked(&probe, false, 1));
        error = MPI_SUCCESS == error ? ranges_taken(state, &probe) : error;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    for (uint8_t step = 2; MPI_SUCCESS == error && 0 != number && step <= STEPS; ++step) {
        error = ompi_common_cryptmpio_agree(state->fh, root ? failed(state, locked(&probe, true, step)) : MPI_SUCCESS);
        error = MPI_SUCCESS == error && reads ? failed(state, locked(&probe, false, step)) : error;
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (probe.data_fd >= 0) {
        close(probe.data_fd);
    }
    if (made) {
        (void) unlink(name);
    }
    return error;
}


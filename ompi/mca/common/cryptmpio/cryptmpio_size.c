/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Truncating and extending; and deleting a file that a failed open created.
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "opal/mca/common/cryptfile/file/seal.h"

/* One process does it: the first that has every key, if one has; the engine knows which keys are needed. */
int ompi_common_cryptmpio_set_size(ompi_common_cryptmpio_file_t *state, OMPI_MPI_OFFSET_TYPE size)
{
    opal_cryptfile_outcome_t outcome = {.rc = OPAL_CRYPT_ERR_ACCESS, .region = UINT32_MAX};
    int error = MPI_SUCCESS;

    if (!state->posix.may_write) {
        return MPI_ERR_READ_ONLY;
    }
    if (state->resizer == state->fh->f_rank) {
        if (NULL != state->file) {
            (void) ompi_common_cryptmpio_posix_refresh(&state->posix);      /* another node may have extended it */
            (void) opal_cryptfile_resize(state->file, (uint64_t) size, &outcome);
        }
        error = ompi_common_cryptmpio_report(state, true, &outcome);
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (NULL != state->file) {          /* also after an error: it may be partly truncated */
        opal_cryptfile_seal_cut(state->file, (uint64_t) size, MPI_SUCCESS == error);
    }
    if (MPI_SUCCESS == error && OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_refresh(&state->posix)) {
        error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);     /* a node may cache the old size */
    }
    return ompi_common_cryptmpio_agree(state->fh, error);       /* or the others would wait for one that failed */
}

/* Another process is making the file.  (Without locks, none can.) */
static bool has_maker(const ompi_common_cryptmpio_file_t *state)
{
    bool got = false;

    return OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_MAKER, true, &got) && !got;
}

/* With MPI_MODE_EXCL, rank 0 created it.  A file that got its map stays: it is complete, if empty.  The maker's lock, which is held
 * until the file is closed, keeps others from making it. */
void ompi_common_cryptmpio_unmake(const ompi_common_cryptmpio_file_t *state, const char *filename, int amode)
{
    struct stat open_one, named;

    if (0 == state->fh->f_rank && 0 != (amode & MPI_MODE_CREATE) && 0 != (amode & MPI_MODE_EXCL) && !state->encrypted &&
        !has_maker(state) &&
        0 == fstat(state->posix.data_fd, &open_one) && 0 == open_one.st_size && 0 == lstat(filename, &named) &&
        open_one.st_dev == named.st_dev && open_one.st_ino == named.st_ino) {
        (void) unlink(filename);
    }
}

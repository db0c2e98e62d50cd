/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file that is not made: it is empty, or a maker was killed or lost power.  Rank 0 waits for the maker's lock; then
 *
 *     another process has made it       look again
 *     a writer with a label             it is ours to make, and the lock stays
 *     another writer                    clear it, and look again
 *     a reader                          refused
 */
#include "cryptmpio_internal.h"

#include "opal/mca/common/crypt/base/base.h"

#include <errno.h>

bool ompi_common_cryptmpio_is_unmade(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES];
    const opal_cryptfile_extent_t extent = {0, bytes, sizeof(bytes)};
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t said;
    uint64_t end;
    bool magic;

    if (OPAL_CRYPT_OK != storage->size(storage, &end)) {
        return false;
    }
    if (0 == end) {
        return true;
    }
    if (sizeof(bytes) == end && OPAL_CRYPT_OK == storage->read(storage, &extent, 1) && opal_crypt_all_zero(bytes, sizeof(bytes))) {
        return true;
    }
    return OPAL_CRYPT_OK == opal_cryptfile_beginning_read(storage, &magic, &header, &said) && magic && OPAL_CRYPTFILE_STATE_MAKING == said;
}

/* Others may still have it open, from before it was emptied: what they write, under the old keys, could never be read. */
static int have_alone_now(ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;
    bool alone = false;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, true, &alone)) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    if (alone) {
        return ompi_common_cryptmpio_take(state);       /* if the name still leads to it */
    }
    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-busy", "it was emptied, and is still open elsewhere");
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_FILE_IN_USE;
}

/* Take the maker's lock.  False: another process made the file meanwhile, or wrote to it; or *error. */
static bool claim(ompi_common_cryptmpio_file_t *state, int *error)
{
    bool there;

    *error = MPI_SUCCESS;
    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_maker_lock(&state->posix, state->path, &there)) {
        *error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
        return false;
    }
    if (!ompi_common_cryptmpio_is_unmade(state)) {
        ompi_common_cryptmpio_posix_release(&state->posix);
        return false;
    }
    return true;
}

bool ompi_common_cryptmpio_begin(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_scan_t *scan, int *error)
{
    if (!claim(state, error)) {
        return MPI_SUCCESS == *error;
    }
    scan->kind = OMPI_CRYPTMPIO_SCAN_NEW;
    *error = have_alone_now(state);
    if (MPI_SUCCESS != *error) {
        ompi_common_cryptmpio_posix_release(&state->posix);
    }
    return false;
}

bool ompi_common_cryptmpio_clear(ompi_common_cryptmpio_file_t *state, int *error)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_crypt_why_t why;

    if (claim(state, error)) {
        if (state->posix.may_write) {
            *error = have_alone_now(state);
            *error = MPI_SUCCESS == *error ? ompi_common_cryptmpio_stored(state, storage->resize(storage, 0), "it cannot be emptied") : *error;
        } else {
            (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-failed", "its maker was killed");
            ompi_common_cryptmpio_show(state, &why);
            *error = MPI_ERR_IO;
        }
        ompi_common_cryptmpio_posix_release(&state->posix);
    }
    return MPI_SUCCESS == *error;
}

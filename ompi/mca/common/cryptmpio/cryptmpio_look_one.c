/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 looks at an encrypted file that is one file: docs/design/012-one-file.rst, "Plain or encrypted".
 */
#include "cryptmpio_internal.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"
#include "opal/mca/common/crypt/base/le.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Read the contents of the places, as far as they can be a map. */
static int read_places(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_look_t *look)
{
    int rc = OPAL_CRYPT_OK;

    for (unsigned place = 0; place < 2 && OPAL_CRYPT_OK == rc; ++place) {
        unsigned copy = OPAL_CRYPTFILE_COPY_SIDECAR_0 + place;
        size_t count = 0;
        free(look->copies[copy]);
        look->copies[copy] = NULL;
        rc = opal_cryptfile_place_read(&state->posix.super, &look->beginning, place, &look->copies[copy], &count);
        look->sizes[copy] = NULL == look->copies[copy] ? 0 : count;
    }
    return rc;
}

bool ompi_common_cryptmpio_was_one(const ompi_common_cryptmpio_look_t *look)
{
    opal_cryptfile_kind_t kind;

    return OPAL_CRYPT_OK == opal_cryptfile_kind(look->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE], look->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE], &kind) &&
           (OPAL_CRYPTFILE_KIND_ONE_MAP == kind || OPAL_CRYPTFILE_KIND_ONE_DIGEST == kind);
}

bool ompi_common_cryptmpio_is_unmade(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES];
    const opal_cryptfile_extent_t extent = {0, bytes, sizeof(bytes)};
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t begun;
    uint64_t end;
    bool magic;

    if (OPAL_CRYPT_OK != storage->size(storage, OPAL_CRYPTFILE_DATA, &end)) {
        return false;
    }
    if (0 == end) {
        return true;
    }
    if (sizeof(bytes) == end && OPAL_CRYPT_OK == storage->read(storage, OPAL_CRYPTFILE_DATA, &extent, 1) && opal_crypt_all_zero(bytes, sizeof(bytes))) {
        return true;
    }
    return OPAL_CRYPT_OK == opal_cryptfile_beginning_read(storage, &magic, &header, &begun) && magic && OPAL_CRYPTFILE_STATE_MAKING == begun;
}

/* One that was emptied may still be open elsewhere: what is written there, under the old keys, could never be read. */
static int have_alone_now(ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;
    bool alone = false;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, true, &alone)) {
        return ompi_common_cryptmpio_show_sidecar(state, "file-locks", errno);
    }
    if (alone) {
        return MPI_SUCCESS;
    }
    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-busy", "it was emptied, and is still open elsewhere");
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_FILE_IN_USE;
}

/* Take the maker's lock of a file that is not made.  False: another process made it meanwhile, or wrote to it; or *error. */
static bool claim(ompi_common_cryptmpio_file_t *state, int *error)
{
    bool there;

    *error = MPI_SUCCESS;
    ompi_common_cryptmpio_posix_one(&state->posix);
    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_maker_lock(&state->posix, state->sidecar, &there)) {
        *error = ompi_common_cryptmpio_show_sidecar(state, "file-locks", errno);
        return false;
    }
    if (!ompi_common_cryptmpio_is_unmade(state)) {
        ompi_common_cryptmpio_posix_close(&state->posix);
        return false;
    }
    return true;
}

bool ompi_common_cryptmpio_begin_one(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_look_t *look, int *error)
{
    if (!claim(state, error)) {
        return MPI_SUCCESS == *error;
    }
    look->kind = OMPI_CRYPTMPIO_LOOK_NEW;
    look->one = true;
    *error = have_alone_now(state);
    if (MPI_SUCCESS != *error) {
        ompi_common_cryptmpio_posix_close(&state->posix);
    }
    return false;
}

bool ompi_common_cryptmpio_clear_one(ompi_common_cryptmpio_file_t *state, int *error)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_crypt_why_t why;

    if (claim(state, error)) {
        if (state->posix.may_write) {
            *error = ompi_common_cryptmpio_stored(state, storage->resize(storage, OPAL_CRYPTFILE_DATA, 0), "it cannot be emptied");
        } else {
            (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-failed", "whoever made it was killed");
            ompi_common_cryptmpio_show(state, &why);
            *error = MPI_ERR_IO;
        }
        ompi_common_cryptmpio_posix_close(&state->posix);
    }
    return MPI_SUCCESS == *error;
}

int ompi_common_cryptmpio_read_one(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_look_t *look, bool *again,
                                   const char **topic, const char **detail)
{
    opal_cryptfile_state_t begun;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&state->posix.super, &magic, &look->beginning, &begun);

    *topic = "file-failed";
    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        *detail = "another version of ompi-crypt made it";
        return MPI_ERR_IO;
    }
    if (OPAL_CRYPT_ERR_AUTH == rc || (OPAL_CRYPT_OK == rc && !magic)) {
        *topic = "file-map-damaged";
        *detail = "its header is damaged";
        return ompi_common_cryptmpi_code(OMPI_CRYPTMPI_FORGED);
    }
    *again = OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_STATE_MAKING == begun;
    if (*again) {
        return MPI_SUCCESS;
    }
    rc = OPAL_CRYPT_OK == rc ? read_places(state, look) : rc;
    if (OPAL_CRYPT_OK != rc) {
        *detail = OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc);
        return ompi_common_cryptmpio_error(rc, errno);
    }
    look->one = true;
    *topic = NULL;
    return MPI_SUCCESS;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Rank 0 looks at an encrypted file that is one file: docs/design/012-one-file.rst, "Plain or encrypted".
 */
#include "cryptmpio_internal.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What the places have, as far as it can be a map. */
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

int ompi_common_cryptmpio_read_one(ompi_common_cryptmpio_file_t *state, ompi_common_cryptmpio_look_t *look, const char **topic,
                                   const char **detail)
{
    opal_cryptfile_state_t begun;
    bool magic;
    int rc = opal_cryptfile_beginning_read(&state->posix.super, &magic, &look->beginning, &begun);

    *topic = "file-failed";
    if (state->posix.may_write) {
        *detail = "it has no sidecar: a job can read such a file, but not write to it";
        return MPI_ERR_ACCESS;
    }
    if (OPAL_CRYPT_ERR_CONFIG == rc) {
        *detail = "another version of ompi-crypt made it";
        return MPI_ERR_IO;
    }
    if (OPAL_CRYPT_ERR_AUTH == rc || (OPAL_CRYPT_OK == rc && !magic)) {
        *topic = "file-map-damaged";
        *detail = "its header is damaged";
        return ompi_common_cryptmpi_code(OMPI_CRYPTMPI_FORGED);
    }
    if (OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_STATE_MAKING == begun) {
        *detail = "it is being made, or whoever made it was killed";
        return MPI_ERR_IO;
    }
    rc = OPAL_CRYPT_OK == rc ? read_places(state, look) : rc;
    if (OPAL_CRYPT_OK != rc) {
        *detail = OPAL_CRYPT_ERR_STORAGE == rc ? strerror(errno) : opal_crypt_strerror(rc);
        return ompi_common_cryptmpio_error(rc, errno);
    }
    look->one = true;
    ompi_common_cryptmpio_posix_one(&state->posix);
    *topic = NULL;
    return MPI_SUCCESS;
}

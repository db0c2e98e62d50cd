/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The seal of a file that is one file, as far as it differs from that of a file with a sidecar.  All processes have
 * accepted what may be sealed of their regions (cryptmpio_seal.c); then:
 *
 *     1. the owner of each region writes what is sealed into its entries, and all sync
 *     2. every owner makes the tree from storage, with its own fields as it accepted them; one
 *        process writes the tables
 *     3. all have the same top, and each region's owner makes its root
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <string.h>

/* ---- 1. ---- */

static int write_fields(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t size)
{
    opal_cryptfile_outcome_t outcome = {.rc = OPAL_CRYPT_OK};

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == outcome.rc; ++i) {
        if (owners[i] == state->fh->f_rank) {
            (void) opal_cryptfile_tree_fields(state->file, i, size, &outcome);
        }
    }
    return ompi_common_cryptmpio_report(state, true, &outcome);
}

/* ---- 2. and 3. ---- */

static int make_tree(const ompi_common_cryptmpio_file_t *state, const int *owners, bool teller, opal_cryptfile_tree_t *tree)
{
    opal_crypt_why_t why = {.topic = NULL};
    int rc = NULL == state->file ? OPAL_CRYPT_OK : opal_cryptfile_tree_make(state->file, tree, teller);

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == rc; ++i) {
        rc = owners[i] == state->fh->f_rank ? opal_cryptfile_tree_root(state->file, i, tree) : rc;
    }
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        rc = opal_crypt_refuse(&why, rc, "file-seal-foreign", "it changed while it was sealed");
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

int ompi_common_cryptmpio_seal_one(ompi_common_cryptmpio_file_t *state, const int *owners, int teller, opal_cryptfile_tree_t *tree)
{
    int error = write_fields(state, owners, tree->size);
    int rc = ompi_common_cryptmpio_posix_sync(&state->posix);
    uint8_t top[OPAL_CRYPT_HASH_BYTES];

    error = ompi_common_cryptmpio_agree(state->fh, MPI_SUCCESS == error ? ompi_common_cryptmpio_error(rc, errno) : error);
    if (MPI_SUCCESS == error) {
        rc = ompi_common_cryptmpio_posix_refresh(&state->posix);        /* fields that were written on other nodes */
        error = OPAL_CRYPT_OK == rc ? make_tree(state, owners, teller == state->fh->f_rank, tree) : ompi_common_cryptmpio_error(rc, errno);
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    memcpy(top, tree->top, sizeof(top));
    if (MPI_SUCCESS == error && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, teller, top, sizeof(top))) {
        error = MPI_ERR_INTERN;
    }
    if (MPI_SUCCESS == error && NULL != state->file && 0 != memcmp(top, tree->top, sizeof(top))) {
        opal_crypt_why_t why;
        error = ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_AUTH, "file-seal-foreign", "processes see different blocks"), &why);
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

/* ---- the previous seal ---- */

ompi_common_cryptmpio_before_t ompi_common_cryptmpio_before_one(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t begun = OPAL_CRYPTFILE_STATE_OPEN;
    uint64_t end = 0;
    bool magic = false;
    int rc = opal_cryptfile_beginning_read(storage, &magic, &header, &begun);

    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, OPAL_CRYPTFILE_DATA, &end) : rc;
    rc = OPAL_CRYPT_OK == rc && (!magic || OPAL_CRYPTFILE_STATE_MAKING == begun) ? OPAL_CRYPT_ERR_AUTH : rc;
    return (ompi_common_cryptmpio_before_t){.bytes = opal_cryptfile_geometry_size(&state->beginning.geometry, end),
                                            .sealed = OPAL_CRYPTFILE_STATE_SEALED == begun,
                                            .error = ompi_common_cryptmpio_error(rc, errno)};
}

int ompi_common_cryptmpio_check_one(const ompi_common_cryptmpio_file_t *state, uint64_t *bytes, opal_crypt_why_t *why)
{
    opal_cryptfile_tree_t tree = {.size = 0};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    int rc = opal_cryptfile_tree_check(state->file, &tree, hash, why);

    *bytes = tree.size;
    return rc;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A seal at the collective close.
 *
 *     1. every process syncs its writes to storage, and reports their values of S; rank 0 becomes the only
 *        writer (cryptmpio_posix_use.c) and stays so to the end, or the file stays unsealed
 *     2. for each region, the lowest rank that has its key accepts what may be sealed, and writes it
 *        into the entries; all sync
 *     3. every owner makes the tree from storage, with its own fields as it accepted them; one process
 *        writes the tables.  All have the same top, and each region's owner makes its root
 *     4. once all of that is on storage, one process marks the file "sealed" and prints the hash of
 *        the roots
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/text.h"

/* ---- 1. ---- */

/* Is this communicator's handle the only one that can write to the file? */
static int have_alone(ompi_common_cryptmpio_file_t *state, bool *alone)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_crypt_why_t why;
    int rc = 0 == state->fh->f_rank ? OPAL_CRYPT_OK : storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_WRITERS, 1);
    int error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_error(rc, errno));

    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        rc = ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_WRITERS, true, alone);
        error = ompi_common_cryptmpio_error(rc, errno);
        if (MPI_SUCCESS == error && !*alone) {
            (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-seal-shared", "a job, or another handle of this one");
            ompi_common_cryptmpio_show(state, &why);
        }
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast_flag(state->fh, alone)) {
        error = MPI_ERR_INTERN;
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

/* Rank 0 says what is sealed; processes on other nodes may have written the end of the file. */
static int announce(ompi_common_cryptmpio_file_t *state, opal_cryptfile_tree_t *seal)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    int error = MPI_SUCCESS;

    if (0 == state->fh->f_rank) {
        int rc = ompi_common_cryptmpio_posix_refresh(&state->posix);
        opal_crypt_random(seal->id, sizeof(seal->id));
        rc = OPAL_CRYPT_OK == rc ? storage->size(storage, &seal->size) : rc;
        error = ompi_common_cryptmpio_error(rc, errno);
        seal->size = ompi_common_cryptmpio_bytes(state, seal->size);
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, seal, sizeof(*seal)) || seal->size > OPAL_CRYPTFILE_OFFSET_MAX) {
        error = MPI_ERR_INTERN;
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

/* ---- 2. ---- */

static int accept_mine(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t size, const uint8_t *witnesses, size_t count)
{
    opal_cryptfile_outcome_t outcome = {.rc = OPAL_CRYPT_OK};
    opal_crypt_why_t why = {.topic = NULL};
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (owners[i] == state->fh->f_rank) {
            rc = opal_cryptfile_seal_witnessed(state->file, i, witnesses, count);
            rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_accept(state->file, i, size, &outcome, &why) : rc;
        }
    }
    return NULL != why.topic || OPAL_CRYPT_OK == outcome.rc ? ompi_common_cryptmpio_told(state, rc, &why)
                                                            : ompi_common_cryptmpio_report(state, true, &outcome);
}

/* Collect every process's values of S, and the base versions of partly written blocks. */
static int accept_watched(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t size)
{
    uint8_t *mine = NULL, *all = NULL;
    int *counts = NULL;
    size_t count = 0, total = 0;
    int rc = NULL == state->file ? OPAL_CRYPT_OK : opal_cryptfile_seal_witnesses(state->file, &mine, &count);
    int error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_error(rc, 0));

    if (MPI_SUCCESS == error && OMPI_SUCCESS != ompi_common_cryptmpio_gather(state->fh, mine, count, &all, &counts)) {
        error = MPI_ERR_INTERN;
    }
    for (int r = 0; MPI_SUCCESS == error && r < state->fh->f_size; ++r) {
        total += (size_t) counts[r];
    }
    if (MPI_SUCCESS == error) {
        error = accept_mine(state, owners, size, all, total);
    }
    free(mine);
    free(all);
    free(counts);
    return error;
}

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

/* ---- 3. ---- */

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

static int seal_all(ompi_common_cryptmpio_file_t *state, const int *owners, int teller, opal_cryptfile_tree_t *tree)
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

/* The process that made a region's root sends it to all: the storage could return another one. */
static int share_roots(const ompi_common_cryptmpio_file_t *state, const int *owners)
{
    uint8_t *roots = calloc(state->region_count, OPAL_CRYPT_HASH_BYTES);
    int error = NULL == roots ? MPI_ERR_NO_MEM : MPI_SUCCESS;

    for (uint32_t i = 0; MPI_SUCCESS == error && i < state->region_count; ++i) {
        if (owners[i] == state->fh->f_rank
            && !opal_cryptfile_seal_root_of(state->file, i, roots + (size_t) i * OPAL_CRYPT_HASH_BYTES)) {
            error = MPI_ERR_INTERN;
        }
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        error = OMPI_SUCCESS == ompi_common_cryptmpio_max_bytes(state->fh, roots, (size_t) state->region_count * OPAL_CRYPT_HASH_BYTES)
                    ? MPI_SUCCESS : MPI_ERR_INTERN;
    }
    for (uint32_t i = 0; MPI_SUCCESS == error && NULL != state->file && i < state->region_count; ++i) {
        if (owners[i] >= 0) {
            opal_cryptfile_seal_root_take(state->file, i, roots + (size_t) i * OPAL_CRYPT_HASH_BYTES);
        }
    }
    free(roots);
    return error;
}

/* ---- 4. ---- */

static int print_root_hash(const ompi_common_cryptmpio_file_t *state)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES], *name = strdup(state->fh->f_filename);
    int rc = NULL == name ? OPAL_CRYPT_ERR_MEMORY : opal_cryptfile_seal_hash(state->file, hash);

    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_seal_text(hash, text);
        fprintf(stderr, "%s: sealed, root %s\n", opal_crypt_harmless(name, ""), text);
    }
    free(name);
    return ompi_common_cryptmpio_error(rc, errno);
}

static int finish(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_tree_t *seal)
{
    int rc = opal_cryptfile_tree_finish(state->file, seal);

    rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync(&state->posix) : rc;
    return OPAL_CRYPT_OK == rc ? print_root_hash(state) : ompi_common_cryptmpio_error(rc, errno);
}

/* ---- all of it ---- */

static int seal_alone(ompi_common_cryptmpio_file_t *state, int *owners)
{
    opal_cryptfile_tree_t seal = {.size = 0};
    int error = announce(state, &seal), rc;

    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_seal_owners(state, true, owners));
    }
    if (MPI_SUCCESS == error) {
        error = accept_watched(state, owners, seal.size);
        rc = ompi_common_cryptmpio_posix_sync(&state->posix);
        error = MPI_SUCCESS == error ? ompi_common_cryptmpio_error(rc, errno) : error;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    int teller = ompi_common_cryptmpio_lowest(state->fh, NULL != state->file);
    error = MPI_SUCCESS == error ? seal_all(state, owners, teller, &seal) : error;
    error = MPI_SUCCESS == error ? share_roots(state, owners) : error;
    return MPI_SUCCESS == error && teller == state->fh->f_rank ? finish(state, &seal) : error;
}

int ompi_common_cryptmpio_seal(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    int *owners = calloc(state->region_count, sizeof(*owners));
    int rc = ompi_common_cryptmpio_posix_sync(&state->posix);
    bool alone = false;
    int error = ompi_common_cryptmpio_agree(state->fh, NULL == owners ? MPI_ERR_NO_MEM : OPAL_CRYPT_OK == rc ? MPI_SUCCESS : MPI_ERR_IO);

    error = MPI_SUCCESS == error ? have_alone(state, &alone) : error;
    if (MPI_SUCCESS == error && alone) {
        error = seal_alone(state, owners);
        if (0 == state->fh->f_rank) {       /* before any process returns, and may open the file again */
            (void) storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_WRITERS, 1);
        }
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    free(owners);
    return error;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sealing a file at its collective close, and demanding a seal at its opening.
 *
 *     1. everybody brings what he wrote to the storage
 *     2. of each region, the lowest rank that has its key makes list and root
 *     3. rank 0, when all of that is on the storage, says "sealed" and shows the
 *        hash of the roots
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/crypt_file_seal.h"

enum { PLAIN = 1, HAS_KEY = 2 };        /* 0: this process cannot tell */

static void look(const ompi_common_cryptmpio_file_t *state, uint8_t *mine)
{
    const opal_common_crypt_map_t *map = NULL == state->file ? NULL : opal_common_crypt_file_map(state->file);

    for (uint32_t i = 0; NULL != map && i < map->region_count; ++i) {
        mine[i] = !map->regions[i].encrypted ? PLAIN : NULL != state->keys[i].data_key ? HAS_KEY : 0;
    }
}

/* owners[i]: who seals region i; -1: nobody needs to. */
static int find_owners(const ompi_common_cryptmpio_file_t *state, int *owners)
{
    size_t regions = state->region_count;
    uint8_t *mine = calloc(1, regions), *all = NULL;
    int *counts = NULL, error = MPI_ERR_INTERN;
    opal_common_crypt_why_t why;

    if (NULL != mine) {
        look(state, mine);
    }
    if (OMPI_SUCCESS == ompi_common_cryptmpio_gather(state->fh, mine, NULL == mine ? 0 : regions, &all, &counts)) {
        error = MPI_SUCCESS;
    }
    for (size_t i = 0; MPI_SUCCESS == error && i < regions; ++i) {
        size_t at = 0;
        bool plain = false;
        owners[i] = -1;
        for (int r = 0; r < state->fh->f_size && owners[i] < 0; at += (size_t) counts[r++]) {
            plain = plain || (0 != counts[r] && PLAIN == all[at + i]);
            owners[i] = 0 != counts[r] && HAS_KEY == all[at + i] ? r : -1;
        }
        if (owners[i] < 0 && !plain) {
            (void) opal_common_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-seal-holder", "%zu", i);
            if (0 == state->fh->f_rank) {
                ompi_common_cryptmpio_show(state, &why);
            }
            error = MPI_ERR_ACCESS;
        }
    }
    free(mine);
    free(all);
    free(counts);
    return error;
}

static int seal_mine(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t bytes)
{
    opal_common_crypt_outcome_t outcome = {.rc = OPAL_CRYPT_OK};

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == outcome.rc; ++i) {
        if (owners[i] == state->fh->f_rank) {
            (void) opal_common_crypt_seal_region(state->file, i, bytes, &outcome);
        }
    }
    return ompi_common_cryptmpio_report(state, true, &outcome);
}

/* The roots are on the storage: any process with a map can hash them. */
static void tell(const ompi_common_cryptmpio_file_t *state)
{
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    char text[OPAL_CRYPT_SEAL_TEXT_BYTES];

    if (OPAL_CRYPT_OK == opal_common_crypt_seal_hash(state->file, hash)) {
        opal_common_crypt_seal_text(hash, text);
        fprintf(stderr, "%s: sealed, root %s\n", state->fh->f_filename, text);
    }
}

int ompi_common_cryptmpio_seal(ompi_common_cryptmpio_file_t *state)
{
    opal_common_crypt_storage_t *storage = &state->posix.super;
    int *owners = calloc(state->region_count, sizeof(*owners));
    int rc = OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync(&state->posix) ? MPI_SUCCESS : MPI_ERR_IO;
    uint64_t bytes = 0;
    int error = ompi_common_cryptmpio_agree(state->fh, NULL == owners ? MPI_ERR_NO_MEM : rc);

    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        error = ompi_common_cryptmpio_error(storage->size(storage, OPAL_CRYPT_FILE_DATA, &bytes), errno);
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, &bytes, sizeof(bytes))) {
        error = MPI_ERR_INTERN;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        error = find_owners(state, owners);
    }
    if (MPI_SUCCESS == error) {
        error = seal_mine(state, owners, bytes);
        rc = ompi_common_cryptmpio_posix_sync(&state->posix);
        error = MPI_SUCCESS == error ? ompi_common_cryptmpio_error(rc, errno) : error;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    int teller = ompi_common_cryptmpio_lowest(state->fh, NULL != state->file);
    if (MPI_SUCCESS == error && teller == state->fh->f_rank) {
        rc = opal_common_crypt_seal_finish(storage, bytes);
        rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync(&state->posix) : rc;
        error = ompi_common_cryptmpio_error(rc, errno);
        if (MPI_SUCCESS == error) {
            tell(state);
        }
    }
    free(owners);
    return ompi_common_cryptmpio_agree(state->fh, error);
}

int ompi_common_cryptmpio_demand_seal(ompi_common_cryptmpio_file_t *state, const char *root)
{
    opal_common_crypt_why_t why = {.topic = NULL};
    uint8_t wanted[OPAL_CRYPT_HASH_BYTES];
    bool given = '\0' != root[0];
    int rc = OPAL_CRYPT_OK;

    if (given && !opal_common_crypt_seal_parse(root, wanted)) {
        rc = opal_common_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-seal", "crypt_seal_root is not 64 hexadecimal digits");
    } else if (NULL != state->file) {
        rc = opal_common_crypt_seal_demand(state->file, given ? wanted : NULL, &why);
    }
    return ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_told(state, rc, &why));
}

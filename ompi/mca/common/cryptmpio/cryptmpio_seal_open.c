/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A seal at opening.
 *
 *     reading   every process checks the list against the root; pages follow as they are read
 *     writing   the lowest rank that has a key checks all of the file against the seal; then rank 0
 *               removes the seal, and writes are tracked.  One communicator after the other: a
 *               second one no longer finds a seal
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- who seals a region, or checks it ---- */

enum { PLAIN = 1, HAS_KEY = 2 };        /* 0: unknown to this process */

static void list_keys(const ompi_common_cryptmpio_file_t *state, uint8_t *mine)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);

    for (uint32_t i = 0; NULL != map && i < map->region_count; ++i) {
        mine[i] = !map->regions[i].encrypted ? PLAIN : NULL != state->keys[i].data_key ? HAS_KEY : 0;
    }
}

/* Each process sends nothing, or a byte for each region. */
static bool are_region_counts(const ompi_common_cryptmpio_file_t *state, const int *counts)
{
    int r = 0;

    while (r < state->fh->f_size && (0 == counts[r] || (size_t) counts[r] == state->region_count)) {
        ++r;
    }
    return r == state->fh->f_size;
}

int ompi_common_cryptmpio_seal_owners(const ompi_common_cryptmpio_file_t *state, bool all_needed, int *owners)
{
    size_t regions = state->region_count;
    uint8_t *mine = calloc(1, regions), *all = NULL;
    int *counts = NULL, error = MPI_ERR_INTERN;
    opal_crypt_why_t why;

    if (NULL != mine) {
        list_keys(state, mine);
    }
    if (OMPI_SUCCESS == ompi_common_cryptmpio_gather(state->fh, mine, NULL == mine ? 0 : regions, &all, &counts)
        && are_region_counts(state, counts)) {
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
        if (owners[i] < 0 && !plain && all_needed) {
            (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-seal-holder", "%zu", i);
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

/* ---- writing ---- */

/* What rank 0 finds of an existing seal. */
typedef struct before {
    uint64_t bytes;
    int sealed, error;
} before_t;

static before_t before_of(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t said = OPAL_CRYPTFILE_STATE_OPEN;
    uint64_t end = 0;
    bool magic = false;
    int rc = opal_cryptfile_beginning_read(storage, &magic, &header, &said);

    rc = OPAL_CRYPT_OK == rc ? storage->size(storage, &end) : rc;
    rc = OPAL_CRYPT_OK == rc && (!magic || OPAL_CRYPTFILE_STATE_MAKING == said) ? OPAL_CRYPT_ERR_AUTH : rc;
    return (before_t){.bytes = ompi_common_cryptmpio_bytes(state, end), .sealed = OPAL_CRYPTFILE_STATE_SEALED == said,
                      .error = ompi_common_cryptmpio_error(rc, errno)};
}

/* An owner of regions checks the whole file; the pages are kept, for watching. */
static int check_mine(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t bytes)
{
    opal_cryptfile_tree_t tree = {.size = bytes};
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
    opal_crypt_why_t why = {.topic = NULL};
    uint32_t i = 0;
    int rc = OPAL_CRYPT_OK;

    while (i < state->region_count && owners[i] != state->fh->f_rank) {
        ++i;
    }
    if (i < state->region_count) {
        rc = opal_cryptfile_tree_check(state->file, &tree, hash, &why);
    }
    if (OPAL_CRYPT_OK == rc && tree.size != bytes) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_AUTH, "file-seal", "it changed while it was looked at");
    }
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        char reason[sizeof(why.detail)];
        memcpy(reason, why.detail, sizeof(reason));
        (void) opal_crypt_refuse(&why, rc, "file-seal-broken", "%s", reason);
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

/* Check again under the lock: its previous holder has removed the seal. */
static before_t before_of_locked(ompi_common_cryptmpio_file_t *state, bool *locked)
{
    before_t before = before_of(state);

    if (MPI_SUCCESS == before.error && before.sealed) {
        *locked = OPAL_CRYPT_OK == state->posix.super.lock(&state->posix.super, OMPI_CRYPTMPIO_LOCK_UNSEAL, 1, true);
        if (*locked) {
            before = before_of(state);
        } else {
            before.error = ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
        }
    }
    return before;
}

int ompi_common_cryptmpio_take_off_seal(ompi_common_cryptmpio_file_t *state)
{
    before_t before = {.error = MPI_SUCCESS};
    bool locked = false;
    int *owners = calloc(state->region_count, sizeof(*owners));
    int error = ompi_common_cryptmpio_agree(state->fh, NULL == owners ? MPI_ERR_NO_MEM : MPI_SUCCESS);

    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        before = before_of_locked(state, &locked);
    }
    if (MPI_SUCCESS == error) {
        error = OMPI_SUCCESS == ompi_common_cryptmpio_bcast(state->fh, 0, &before, sizeof(before))
                        && before.bytes <= OPAL_CRYPTFILE_OFFSET_MAX && (before.sealed & 1) == before.sealed
                    ? ompi_common_cryptmpio_error_of_another(before.error) : MPI_ERR_INTERN;
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (MPI_SUCCESS == error && before.sealed) {
        error = ompi_common_cryptmpio_seal_owners(state, false, owners);
        error = MPI_SUCCESS == error ? check_mine(state, owners, before.bytes) : error;
        error = ompi_common_cryptmpio_agree(state->fh, error);
        if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
            /* Synced before anything is written, or a loss of power could leave the seal on a changed file. */
            int rc = opal_cryptfile_state_put(&state->posix.super, &state->beginning.geometry, OPAL_CRYPTFILE_STATE_OPEN);
            error = ompi_common_cryptmpio_error(rc, errno);
        }
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (locked) {
        (void) state->posix.super.unlock(&state->posix.super, OMPI_CRYPTMPIO_LOCK_UNSEAL, 1);
    }
    if (MPI_SUCCESS == error && state->seal && NULL != state->file) {
        opal_cryptfile_seal_watch(state->file, before.bytes);
    }
    free(owners);
    return error;
}

/* ---- reading ---- */

int ompi_common_cryptmpio_demand_seal(ompi_common_cryptmpio_file_t *state, const char *root)
{
    opal_crypt_why_t why = {.topic = NULL};
    uint8_t wanted[OPAL_CRYPT_HASH_BYTES];
    bool given = '\0' != root[0];
    int rc = OPAL_CRYPT_OK;

    if (given && !opal_cryptfile_seal_parse(root, wanted)) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-seal", "crypt_seal_root is not 64 hexadecimal digits");
    } else if (NULL != state->file) {
        rc = opal_cryptfile_seal_demand(state->file, given ? wanted : NULL, &why);
    }
    return ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_told(state, rc, &why));
}

int ompi_common_cryptmpio_size_sealed(const ompi_common_cryptmpio_file_t *state, OMPI_MPI_OFFSET_TYPE *size)
{
    opal_crypt_why_t why = {.topic = NULL};
    uint64_t sealed;
    int rc = OPAL_CRYPT_OK;

    if (NULL != state) {
        *size = (OMPI_MPI_OFFSET_TYPE) ompi_common_cryptmpio_bytes(state, (uint64_t) *size);
    }
    if (NULL != state && NULL != state->file && opal_cryptfile_sealed_bytes(state->file, &sealed) && (uint64_t) *size != sealed) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_AUTH, "file-seal", "the size of the file is %lld, and was %llu", (long long) *size,
                               (unsigned long long) sealed);
        *size = (OMPI_MPI_OFFSET_TYPE) sealed;      /* to append, Open MPI seeks there, ignoring the error */
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

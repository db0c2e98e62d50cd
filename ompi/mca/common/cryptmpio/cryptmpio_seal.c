/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A seal at opening, and at the collective close.
 *
 *     reading   every process checks the list against the root; pages follow as they are read
 *     writing   for each region, the lowest rank that has its key checks all of it against
 *               the seal; then rank 0 removes the seal, and writes are tracked.
 *               One communicator after the other: a second one no longer finds a seal
 *
 *     1. every process syncs its writes to storage, and reports their values of S; rank 0 becomes the only
 *        writer (cryptmpio_posix_use.c) and stays so to the end, or the file stays unsealed
 *     2. for each region, the same rank makes list and root, of the blocks that may be sealed; of one
 *        file, it accepts those blocks, and the rest is in cryptmpio_seal_one.c
 *     3. rank 0, once all of that is on storage, marks the file "sealed" and prints the
 *        hash of the roots
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/text.h"

enum { PLAIN = 1, HAS_KEY = 2 };        /* 0: unknown to this process */

static void look(const ompi_common_cryptmpio_file_t *state, uint8_t *mine)
{
    const opal_cryptfile_map_t *map = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);

    for (uint32_t i = 0; NULL != map && i < map->region_count; ++i) {
        mine[i] = !map->regions[i].encrypted ? PLAIN : NULL != state->keys[i].data_key ? HAS_KEY : 0;
    }
}

/* Each process sends nothing, or a byte for each region. */
static bool are_looks(const ompi_common_cryptmpio_file_t *state, const int *counts)
{
    int r = 0;

    while (r < state->fh->f_size && (0 == counts[r] || (size_t) counts[r] == state->region_count)) {
        ++r;
    }
    return r == state->fh->f_size;
}

/* owners[i]: the rank that seals region i; -1: none needs to or, if that is allowed, none can. */
static int find_owners(const ompi_common_cryptmpio_file_t *state, bool all_needed, int *owners)
{
    size_t regions = state->region_count;
    uint8_t *mine = calloc(1, regions), *all = NULL;
    int *counts = NULL, error = MPI_ERR_INTERN;
    opal_crypt_why_t why;

    if (NULL != mine) {
        look(state, mine);
    }
    if (OMPI_SUCCESS == ompi_common_cryptmpio_gather(state->fh, mine, NULL == mine ? 0 : regions, &all, &counts)
        && are_looks(state, counts)) {
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

/* A seal in the making, as rank 0 announces it; `top` is for files that are one file. */
typedef opal_cryptfile_tree_t seal_t;

static int seal_mine(const ompi_common_cryptmpio_file_t *state, const int *owners, const seal_t *seal, const uint8_t *witnesses,
                     size_t count)
{
    opal_cryptfile_outcome_t outcome = {.rc = OPAL_CRYPT_OK};
    opal_crypt_why_t why = {.topic = NULL};
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == rc; ++i) {
        if (owners[i] == state->fh->f_rank) {
            rc = opal_cryptfile_seal_witnessed(state->file, i, witnesses, count);
            rc = OPAL_CRYPT_OK != rc ? rc
                 : ompi_common_cryptmpio_is_one(state) ? opal_cryptfile_tree_accept(state->file, i, seal->size, &outcome, &why)
                                                       : opal_cryptfile_seal_region(state->file, i, seal->size, seal->id, &outcome, &why);
        }
    }
    return NULL != why.topic || OPAL_CRYPT_OK == outcome.rc ? ompi_common_cryptmpio_told(state, rc, &why)
                                                            : ompi_common_cryptmpio_report(state, true, &outcome);
}

/* Collect every process's values of S, and the base versions of partly written blocks. */
static int seal_watched(const ompi_common_cryptmpio_file_t *state, const int *owners, const seal_t *seal)
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
        error = seal_mine(state, owners, seal, all, total);
    }
    free(mine);
    free(all);
    free(counts);
    return error;
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

static int tell(const ompi_common_cryptmpio_file_t *state)
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

int ompi_common_cryptmpio_seal(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    int *owners = calloc(state->region_count, sizeof(*owners));
    int rc = OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_sync(&state->posix) ? MPI_SUCCESS : MPI_ERR_IO;
    seal_t seal = {.size = 0};
    bool alone = false;
    int error = ompi_common_cryptmpio_agree(state->fh, NULL == owners ? MPI_ERR_NO_MEM : rc);

    error = MPI_SUCCESS == error ? have_alone(state, &alone) : error;
    if (MPI_SUCCESS != error || !alone) {
        free(owners);
        return error;
    }
    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        /* Processes on other nodes may have written the end of the file. */
        error = OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_refresh(&state->posix) ? MPI_SUCCESS : MPI_ERR_IO;
    }
    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        opal_crypt_random(seal.id, sizeof(seal.id));
        error = ompi_common_cryptmpio_error(storage->size(storage, OPAL_CRYPTFILE_DATA, &seal.size), errno);
        seal.size = ompi_common_cryptmpio_is_one(state) ? opal_cryptfile_geometry_size(&state->beginning.geometry, seal.size) : seal.size;
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, &seal, sizeof(seal)) || seal.size > OPAL_CRYPTFILE_OFFSET_MAX) {
        error = MPI_ERR_INTERN;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_agree(state->fh, find_owners(state, true, owners));
    }
    if (MPI_SUCCESS == error) {
        error = seal_watched(state, owners, &seal);
        rc = ompi_common_cryptmpio_posix_sync(&state->posix);
        error = MPI_SUCCESS == error ? ompi_common_cryptmpio_error(rc, errno) : error;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    int teller = ompi_common_cryptmpio_lowest(state->fh, NULL != state->file);
    if (MPI_SUCCESS == error && ompi_common_cryptmpio_is_one(state)) {
        error = ompi_common_cryptmpio_seal_one(state, owners, teller, &seal);
    }
    error = MPI_SUCCESS == error ? share_roots(state, owners) : error;
    if (MPI_SUCCESS == error && teller == state->fh->f_rank) {
        rc = ompi_common_cryptmpio_is_one(state) ? opal_cryptfile_tree_finish(state->file, &seal)
                                                 : opal_cryptfile_seal_finish(storage, seal.size, seal.id);
        rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync(&state->posix) : rc;
        error = ompi_common_cryptmpio_error(rc, errno);
        error = MPI_SUCCESS == error ? tell(state) : error;
    }
    free(owners);
    if (0 == state->fh->f_rank) {           /* before any process returns, and may open the file again */
        (void) storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_WRITERS, 1);
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

/* ---- opening ---- */

typedef ompi_common_cryptmpio_before_t before_t;

static before_t look_before(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_sidecar_header_t header = {.sealed = false};
    before_t before = {.bytes = 0};

    if (ompi_common_cryptmpio_is_one(state)) {
        return ompi_common_cryptmpio_before_one(state);
    }
    int rc = opal_cryptfile_sidecar_read(&state->posix.super, &header);

    rc = OPAL_CRYPT_OK == rc ? state->posix.super.size(&state->posix.super, OPAL_CRYPTFILE_DATA, &before.bytes) : rc;
    before.sealed = header.sealed;
    before.bytes = header.sealed ? header.sealed_size : before.bytes;       /* the size that the checks find, too */
    before.error = ompi_common_cryptmpio_error(rc, errno);
    return before;
}

/* Check the regions that this process owns; one file as a whole, once. */
static int check_mine(const ompi_common_cryptmpio_file_t *state, const int *owners, uint64_t bytes)
{
    opal_crypt_why_t why = {.topic = NULL};
    uint64_t found = bytes;
    bool one = ompi_common_cryptmpio_is_one(state), done = false;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < state->region_count && OPAL_CRYPT_OK == rc && !(one && done); ++i) {
        done = owners[i] == state->fh->f_rank;
        rc = !done ? OPAL_CRYPT_OK : one ? ompi_common_cryptmpio_check_one(state, &found, &why) : opal_cryptfile_seal_check(state->file, i, &found, &why);
        if (OPAL_CRYPT_OK == rc && found != bytes) {
            rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_AUTH, "file-seal", "it changed while it was looked at");
        }
    }
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        char reason[sizeof(why.detail)];
        memcpy(reason, why.detail, sizeof(reason));
        (void) opal_crypt_refuse(&why, rc, "file-seal-broken", "%s", reason);
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

/* Check again under the lock: its previous holder has removed the seal. */
static before_t look_alone(ompi_common_cryptmpio_file_t *state, bool *locked)
{
    before_t before = look_before(state);

    if (MPI_SUCCESS == before.error && before.sealed) {
        *locked = OPAL_CRYPT_OK == state->posix.super.lock(&state->posix.super, OMPI_CRYPTMPIO_LOCK_UNSEAL, 1, true);
        if (*locked) {
            before = look_before(state);
        } else {
            before.error = ompi_common_cryptmpio_show_sidecar(state, "file-locks", errno);
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
        before = look_alone(state, &locked);
    }
    if (MPI_SUCCESS == error) {
        error = OMPI_SUCCESS == ompi_common_cryptmpio_bcast(state->fh, 0, &before, sizeof(before))
                        && before.bytes <= OPAL_CRYPTFILE_OFFSET_MAX && (before.sealed & 1) == before.sealed
                    ? ompi_common_cryptmpio_error_of_another(before.error) : MPI_ERR_INTERN;
        error = ompi_common_cryptmpio_agree(state->fh, error);
    }
    if (MPI_SUCCESS == error && before.sealed) {
        error = find_owners(state, false, owners);
        error = MPI_SUCCESS == error ? check_mine(state, owners, before.bytes) : error;
        error = ompi_common_cryptmpio_agree(state->fh, error);
        if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
            opal_cryptfile_storage_t *under = &state->posix.super;
            int rc = ompi_common_cryptmpio_is_one(state)
                         ? opal_cryptfile_state_put(under, &state->beginning.geometry, OPAL_CRYPTFILE_STATE_OPEN)
                         : opal_cryptfile_sidecar_unseal(under);
            /* Sync this before anything is written, or a loss of power could leave the seal on a changed file. */
            rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync_sidecar(&state->posix) : rc;
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

    if (NULL != state && ompi_common_cryptmpio_is_one(state)) {
        *size = (OMPI_MPI_OFFSET_TYPE) opal_cryptfile_geometry_size(&state->beginning.geometry, (uint64_t) *size);
    }
    if (NULL != state && NULL != state->file && opal_cryptfile_sealed_bytes(state->file, &sealed) && (uint64_t) *size != sealed) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_AUTH, "file-seal", "the size of the file is %lld, and was %llu", (long long) *size,
                               (unsigned long long) sealed);
        *size = (OMPI_MPI_OFFSET_TYPE) sealed;      /* to append, Open MPI seeks there, ignoring the error */
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

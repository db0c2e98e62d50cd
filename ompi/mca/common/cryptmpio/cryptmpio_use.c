/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * From a map that all processes agree on to an open file: locks and the engine.
 */
#include "cryptmpio_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool has_fbtl(const ompio_file_t *fh)
{
    const mca_base_component_t *fbtl = fh->f_fbtl_component;

    return NULL != fbtl && 0 == strcmp(fbtl->mca_component_name, "crypt");
}

bool ompi_common_cryptmpio_could_use(const ompio_file_t *fh) { return !ompi_common_cryptmpio_exposed(fh) && has_fbtl(fh); }

int ompi_common_cryptmpio_usable(const ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;

    if (ompi_common_cryptmpio_could_use(state->fh)) {
        return MPI_SUCCESS;
    }
    if (ompi_common_cryptmpio_exposed(state->fh)) {
        (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-exposed", "%s", "");
    } else {
        (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-failed",
                                 "fbtl/crypt is not selected: leave the parameter fbtl at its default");
    }
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_ACCESS;
}

/* ---- all processes use it ---- */

int ompi_common_cryptmpio_show_errno(const ompi_common_cryptmpio_file_t *state, const char *topic, int error)
{
    opal_crypt_why_t why;

    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_STORAGE, topic, "%s", strerror(error));
    ompi_common_cryptmpio_show(state, &why);
    return ompi_common_cryptmpio_error(OPAL_CRYPT_ERR_STORAGE, error);
}

/* Rank 0 of writers keeps the name of the file itself, behind all links: these may lead elsewhere later, and its directory is
 * synced. */
static void keep_name(ompi_common_cryptmpio_file_t *state)
{
    char *real = 0 == state->fh->f_rank && state->posix.may_write
                     ? ompi_common_cryptmpio_posix_real_path(state->posix.data_fd, state->path) : NULL;

    if (NULL != real) {
        free(state->path);
        state->path = real;
    }
}

/* A reader may do without locks, and keeps the file that it has open if others replace it. */
int ompi_common_cryptmpio_take(ompi_common_cryptmpio_file_t *state)
{
    ompi_common_cryptmpio_use_t use = OMPI_CRYPTMPIO_USE_OURS;
    opal_crypt_why_t why;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_use(&state->posix, state->path, false, &use) && state->posix.may_write) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    if (OMPI_CRYPTMPIO_USE_OURS == use) {       /* the name that was given leads to it: the kernel's may be another one by now */
        keep_name(state);
        return MPI_SUCCESS;
    }
    (void) opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-busy", "%s", ompi_common_cryptmpio_posix_why_not(use));
    ompi_common_cryptmpio_show(state, &why);
    return MPI_ERR_FILE_IN_USE;
}

/* Rank 0 never releases its lock, so that nobody else can have the file alone meanwhile. */
int ompi_common_cryptmpio_together(ompi_common_cryptmpio_file_t *state)
{
    bool got = false;
    int rc = OPAL_CRYPT_OK, error;

    if (0 == state->fh->f_rank) {
        rc = ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, false, &got);
    }
    error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_error(rc, errno));
    if (MPI_SUCCESS == error && 0 != state->fh->f_rank) {
        rc = ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, false, &got);
        error = OPAL_CRYPT_OK == rc && !got ? MPI_ERR_FILE_IN_USE : ompi_common_cryptmpio_error(rc, errno);
    }
    return ompi_common_cryptmpio_agree(state->fh, error);
}

int ompi_common_cryptmpio_alone(ompi_common_cryptmpio_file_t *state, bool *alone)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    int rc = 0 == state->fh->f_rank ? OPAL_CRYPT_OK : storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_USE, 1);
    int error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_error(rc, errno));

    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        rc = ompi_common_cryptmpio_posix_lock_now(&state->posix, OMPI_CRYPTMPIO_LOCK_USE, true, alone);
        error = ompi_common_cryptmpio_error(rc, errno);
    }
    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast_flag(state->fh, alone)) {
        error = MPI_ERR_INTERN;
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS != error || !*alone) {
        int shared = ompi_common_cryptmpio_together(state);
        *alone = false;
        error = MPI_SUCCESS == error ? shared : error;
    }
    return error;
}

/* All ranks opened the file by name: is it the one that rank 0 looked at?  One that is being made has no header yet. */
static int is_same_file(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_header_t header;
    bool magic;
    int rc = state->making ? OPAL_CRYPT_OK : opal_cryptfile_header_read(&state->posix.super, &magic, &header);

    if (OPAL_CRYPT_OK == rc
        && (state->making || (magic && 0 == memcmp(header.uuid, state->beginning.uuid, sizeof(header.uuid))
                              && opal_cryptfile_geometry_same(&header.geometry, &state->beginning.geometry)))) {
        return MPI_SUCCESS;
    }
    return ompi_common_cryptmpio_show_errno(state, "file-failed", OPAL_CRYPT_ERR_STORAGE == rc ? errno : ESTALE);
}

static int join_root(ompi_common_cryptmpio_file_t *state)
{
    if (!state->gives && !state->met) {      /* else the first process of the node has found it */
        ompi_common_cryptmpio_posix_find_system(&state->posix);
    }
    int error = is_same_file(state);

    return MPI_SUCCESS == error && state->posix.may_write ? ompi_common_cryptmpio_take(state) : error;
}

/* The site says so, or the user, on this node. */
static int forbidden(const ompi_common_cryptmpio_file_t *state)
{
    opal_crypt_why_t why;

    return !ompi_common_cryptmpio_apart(state->fh) || !ompi_common_cryptmpio_one_node(state->path) ? MPI_SUCCESS
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-one-node", "%s", ""), &why);
}

static void leave_probe(ompi_common_cryptmpio_file_t *state)
{
    if (0 == state->fh->f_rank && state->posix.may_write) {
        (void) state->posix.super.unlock(&state->posix.super, OMPI_CRYPTMPIO_LOCK_PROBE, 1);
    }
}

int ompi_common_cryptmpio_join_begin(ompi_common_cryptmpio_file_t *state, int error)
{
    error = MPI_SUCCESS == error && state->posix.may_write ? forbidden(state) : error;
    if (MPI_SUCCESS == error) {
        error = 0 != state->fh->f_rank ? join_root(state) : state->posix.may_write ? ompi_common_cryptmpio_probe_begin(state) : MPI_SUCCESS;
    }
    error = ompi_common_cryptmpio_agree_any(state->fh, error, &state->posix.remote);        /* on any node */
    if (MPI_SUCCESS != error) {
        leave_probe(state);
    }
    return error;
}

int ompi_common_cryptmpio_join_end(ompi_common_cryptmpio_file_t *state, int error)
{
    if (!state->posix.may_write) {
        return error;
    }
    if (MPI_SUCCESS == error && 0 != state->fh->f_rank) {
        error = ompi_common_cryptmpio_probe_lock(state);
    }
    error = ompi_common_cryptmpio_agree(state->fh, error);
    /* If one process has peers on another node, all have. */
    if (MPI_SUCCESS == error && ompi_common_cryptmpio_apart(state->fh)) {
        error = ompi_common_cryptmpio_probe_bytes(state);
    }
    leave_probe(state);
    return MPI_SUCCESS == error && state->posix.remote ? ompi_common_cryptmpio_presence(state) : error;
}

int ompi_common_cryptmpio_join(ompi_common_cryptmpio_file_t *state, int error)
{
    error = ompi_common_cryptmpio_join_begin(state, error);
    return MPI_SUCCESS == error ? ompi_common_cryptmpio_join_end(state, MPI_SUCCESS) : error;
}

/* ---- the engine ---- */

static int make_engine(ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    const opal_cryptfile_of_t of = {&state->posix.super, ompi_common_cryptmpio_provider, NULL, 0};
    uint32_t old = NULL == state->file ? 0 : opal_cryptfile_map_of(state->file)->region_count;
    int rc = NULL == state->file ? opal_cryptfile_create(&of, &state->file) : OPAL_CRYPT_OK;

    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_use(state->file, map, keys);
    }
    if (OPAL_CRYPT_OK != rc) {
        if (NULL != state->file && NULL == opal_cryptfile_map_of(state->file)) {
            opal_cryptfile_destroy(state->file);                /* an engine always has a map */
            state->file = NULL;
        }
        opal_cryptfile_keys_free(keys, map->region_count);
        opal_cryptfile_map_destroy(map);
        return rc;
    }
    opal_cryptfile_keys_free(state->keys, old);
    state->keys = keys;
    return OPAL_CRYPT_OK;
}

/* If a file was made anew with labels of which this process holds none, what it wrote as before could never be read. */
static void drop_engine(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_keys_free(state->keys, opal_cryptfile_map_of(state->file)->region_count);
    state->keys = NULL;
    opal_cryptfile_destroy(state->file);
    state->file = NULL;
}

/* The rights of this process in a region; *able: it may do everything there. */
static unsigned right_in(const ompi_common_cryptmpio_file_t *state, uint32_t region, bool *able)
{
    bool encrypted = NULL != state->file && opal_cryptfile_map_of(state->file)->regions[region].encrypted;

    *able = NULL != state->keys && (!encrypted || OPAL_CRYPTFILE_GRANT_SEAL == state->keys[region].grant);
    return NULL == state->keys ? 0 : encrypted ? (unsigned) state->keys[region].grant : 1;
}

/* Those of every process in every region: are they the same?  Of a few regions, they fit into one number.
 * Not malloc'd: the others would wait for one without memory. */
static int compare_rights(ompi_common_cryptmpio_file_t *state, int error, uint32_t regions)
{
    enum { LOWEST, RIGHTS, VALUES = RIGHTS + OMPI_CRYPTMPIO_SAYS, FEW = 15, BITS = 2 };
    uint8_t most[2 * OPAL_CRYPTFILE_REGIONS_MAX];
    int values[VALUES] = {0}, few = 0;
    bool able = MPI_SUCCESS == error && NULL != state->keys, here = false;

    static_assert(OPAL_CRYPTFILE_GRANT_SEAL < 1 << BITS && FEW * BITS < 31, "rights of a few regions fit");
    for (uint32_t i = 0; i < regions; ++i) {
        const unsigned right = MPI_SUCCESS == error ? right_in(state, i, &here) : 0;    /* the engine may have fewer regions */
        able = able && here;
        most[i] = (uint8_t) right;
        most[regions + i] = (uint8_t) (255 - right);
        few |= i < FEW ? (int) (right << (BITS * i)) : 0;
    }
    ompi_common_cryptmpio_say(few, values + RIGHTS);
    /* A process with all keys, or else one with any: extending needs none. */
    values[LOWEST] = ompi_common_cryptmpio_rank_as_value(state->fh, able ? 2 : NULL != state->file ? 1 : 0);
    error = ompi_common_cryptmpio_agree_values(state->fh, error, values, VALUES);
    if (MPI_SUCCESS == error && regions > FEW && OMPI_SUCCESS != ompi_common_cryptmpio_max_bytes(state->fh, most, 2 * (size_t) regions)) {
        error = MPI_ERR_INTERN;
    }
    if (MPI_SUCCESS != error) {
        return error;
    }
    state->uniform = ompi_common_cryptmpio_said_alike(values + RIGHTS);
    for (uint32_t i = FEW; i < regions; ++i) {
        state->uniform = state->uniform && 255 == most[i] + most[regions + i];
    }
    state->resizer = ompi_common_cryptmpio_rank_of_value(state->fh, values[LOWEST]);
    return MPI_SUCCESS;
}

int ompi_common_cryptmpio_use(ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t *map,
                              opal_cryptfile_key_t *keys, int error)
{
    uint32_t regions = map->region_count, block_bytes = 0;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; i < regions; ++i) {
        block_bytes = map->regions[i].block_bytes > block_bytes ? map->regions[i].block_bytes : block_bytes;
    }
    if (NULL != keys) {
        rc = make_engine(state, map, keys);
    } else {
        if (NULL != state->file && 0 != memcmp(opal_cryptfile_map_of(state->file)->uuid, map->uuid, sizeof(map->uuid))) {
            drop_engine(state);
        }
        opal_cryptfile_map_destroy(map);
    }
    error = compare_rights(state, MPI_SUCCESS == error ? ompi_common_cryptmpio_error(rc, errno) : error, regions);
    if (MPI_SUCCESS == error) {
        state->encrypted = true;
        state->region_count = regions;
        error = ompi_common_cryptmpio_spread(state->fh, block_bytes);
    }
    return error;
}

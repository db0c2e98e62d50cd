/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Adding regions to the map of an open file.
 *
 *     1. every process hands in its requests; all build the same map, for a file
 *        that is theirs to create or that others have created meanwhile
 *     2. the new regions get their keys, and all their MACs (cryptmpio_map_seal.c)
 *     3. all check that they have the ciphers; rank 0 writes the map; all use it
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/cryptfile/file/seal.h"

/* ---- 1. ---- */

/* Does it have as many regions as the map that this process has verified and has keys for? */
static bool is_ours(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map)
{
    const opal_cryptfile_map_t *own = NULL == state->file ? NULL : opal_cryptfile_map_of(state->file);

    return NULL == own || (own->region_count == map->region_count && own->generation == map->generation
                           && 0 == memcmp(own->uuid, map->uuid, sizeof(own->uuid)));
}

/* The file's map, from the lowest rank that could verify it: a process that
 * holds none of its labels may still hold one of the new regions'.  Twice: *map gets more regions. */
static int copy_map(const ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t **now, opal_cryptfile_map_t **map)
{
    const ompio_file_t *fh = state->fh;
    int root = ompi_common_cryptmpio_lowest(fh, NULL != state->file), rc = OPAL_CRYPT_ERR_LIBRARY;
    bool here = root == fh->f_rank && NULL != state->file;
    uint64_t count = here ? opal_cryptfile_map_bytes(opal_cryptfile_map_of(state->file)) : 0;

    if (OMPI_SUCCESS != ompi_common_cryptmpio_bcast(fh, root, &count, sizeof(count))) {
        return OPAL_CRYPT_ERR_ACCESS;
    }
    uint8_t *bytes = 0 == count || count > OPAL_CRYPTFILE_MAP_MAX_BYTES ? NULL : malloc(count);
    if (here && NULL != bytes) {
        opal_cryptfile_map_write(opal_cryptfile_map_of(state->file), bytes);
    }
    if (MPI_SUCCESS == ompi_common_cryptmpio_agree(fh, NULL == bytes ? MPI_ERR_NO_MEM : MPI_SUCCESS)
        && OMPI_SUCCESS == ompi_common_cryptmpio_bcast(fh, root, bytes, count)) {
        rc = opal_cryptfile_map_parse(bytes, count, map);
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_parse(bytes, count, now) : rc;
    }
    free(bytes);
    rc = 0 == count ? OPAL_CRYPT_ERR_ACCESS : rc;
    return OPAL_CRYPT_OK == rc && !is_ours(state, *map) ? OPAL_CRYPT_ERR_LIBRARY : rc;
}

/* The map to start from: the file's, which *now gets, too, or an empty one with rank 0's UUID. */
static int base_map(const ompi_common_cryptmpio_file_t *state, bool anew, opal_cryptfile_map_t **now, opal_cryptfile_map_t **map)
{
    int rc = anew ? opal_cryptfile_map_create(map) : copy_map(state, now, map);
    uint8_t none[OPAL_CRYPTFILE_UUID_BYTES] = {0}, *uuid = OPAL_CRYPT_OK == rc ? (*map)->uuid : none;

    if (anew && OMPI_SUCCESS != ompi_common_cryptmpio_bcast(state->fh, 0, uuid, sizeof(none))) {      /* without memory, too */
        rc = OPAL_CRYPT_OK == rc ? OPAL_CRYPT_ERR_LIBRARY : rc;
    }
    return rc;
}

/* Is the ask that begins here valid and complete, with all of its runs? */
static bool read_ask(const uint8_t *bytes, size_t count, ompi_common_cryptmpio_ask_t *ask)
{
    if (count < sizeof(*ask)) {
        return false;
    }
    memcpy(ask, bytes, sizeof(*ask));
    return ask->run_count <= OPAL_CRYPTFILE_RUNS_MAX
           && ask->run_count * sizeof(opal_cryptfile_run_t) <= count - sizeof(*ask)
           && NULL != memchr(ask->label, '\0', sizeof(ask->label))
           && ask->cipher >= 0 && ask->cipher < (int32_t) OPAL_AEAD_CIPHERS;
}

/* The next ask, how long it is, and the region that it is for. */
static int add_ask(opal_cryptfile_map_t *map, const uint8_t *bytes, size_t count, size_t *used, uint32_t *region, bool *added,
                   opal_crypt_why_t *why)
{
    ompi_common_cryptmpio_ask_t ask;
    opal_cryptfile_tiling_t tiling;

    if (!read_ask(bytes, count, &ask)) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    opal_cryptfile_run_t *runs = calloc((size_t) ask.run_count + 1, sizeof(*runs));
    if (NULL == runs) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    memcpy(runs, bytes + sizeof(ask), ask.run_count * sizeof(*runs));
    *used = sizeof(ask) + ask.run_count * sizeof(*runs);
    int rc = ask.rest ? OPAL_CRYPT_OK
                      : opal_cryptfile_tiling_make(&tiling, ask.displacement, ask.extent, 0 != ask.once, runs, ask.run_count, why);
    free(runs);
    if (OPAL_CRYPT_OK == rc) {
        const opal_cryptfile_region_ask_t region_ask = {0 != ask.encrypted, (opal_aead_cipher_t) ask.cipher, ask.block_bytes,
                                                           ask.label, ask.rest ? NULL : &tiling};
        rc = opal_cryptfile_map_add(map, &region_ask, region, added, why);
        if (!ask.rest) {
            opal_cryptfile_tiling_free(&tiling);
        }
    }
    return rc;
}

static int add_all(opal_cryptfile_map_t *map, const uint8_t *asks, size_t count, bool *changed, bool *asked,
                   opal_crypt_why_t *why)
{
    int rc = OPAL_CRYPT_OK;

    *changed = false;
    while (count > 0 && OPAL_CRYPT_OK == rc) {
        size_t used = 0;
        bool added = false;
        uint32_t region = 0;
        rc = add_ask(map, asks, count, &used, &region, &added, why);
        if (OPAL_CRYPT_OK == rc) {
            asked[region] = true;
        }
        *changed = *changed || added;
        asks += used;
        count -= used;
    }
    return rc;
}

int ompi_common_cryptmpio_add_default_ask(opal_cryptfile_map_t *map, const ompi_common_cryptmpio_default_ask_t *ask, opal_crypt_why_t *why)
{
    bool asked[OPAL_CRYPTFILE_REGIONS_MAX], changed;

    return add_all(map, (const uint8_t *) ask, sizeof(*ask), &changed, asked, why);
}

/* ---- 3. ---- */

/* No map is stored that a process cannot use.  A process without a region's key needs no cipher for it. */
int ompi_common_cryptmpio_check_ciphers(const opal_cryptfile_map_t *map, uint32_t old, const opal_cryptfile_key_t *keys)
{
    bool there = true;
    unsigned seen = 0;

    for (uint32_t i = old; NULL != keys && i < map->region_count && there; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        bool mine = region->encrypted && NULL != keys[i].data_key;
        if (mine && 0 == (seen & OPAL_AEAD_BIT(region->cipher))) {
            seen |= OPAL_AEAD_BIT(region->cipher);
            there = NULL != ompi_common_cryptmpio_provider(NULL, region->cipher);
        }
    }
    return there ? MPI_SUCCESS : MPI_ERR_ARG;
}

/* The map has no keys yet. */
static size_t map_bytes_most(const opal_cryptfile_map_t *map)
{
    return opal_cryptfile_map_bytes(map) + (size_t) map->region_count * OPAL_CRYPTFILE_WRAPPED_MAX;
}

int ompi_common_cryptmpio_choose_geometry(opal_cryptfile_map_t *map) { return opal_cryptfile_geometry_choose(map, map_bytes_most(map)); }

/* A file keeps its geometry, unless it is made anew. */
int ompi_common_cryptmpio_check_fits(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map)
{
    opal_crypt_why_t why = {.topic = NULL};
    int rc = opal_cryptfile_geometry_fits(map, opal_cryptfile_map_bytes(map));

    if (OPAL_CRYPT_ERR_AUTH == rc) {
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-geometry", "%s", "it has data, or others have it open");
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

/* The same regions in a map for a file that is made anew: with another UUID, and no keys yet. */
static int map_again(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, opal_cryptfile_map_t **again, opal_crypt_why_t *why)
{
    int rc = base_map(state, true, NULL, again);

    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &map->regions[i];
        const opal_cryptfile_region_ask_t ask = {region->encrypted, region->cipher, region->block_bytes, region->label,
                                                 0 == region->tiling.run_count ? NULL : &region->tiling};
        uint32_t number;
        bool added;
        rc = opal_cryptfile_map_add(*again, &ask, &number, &added, why);
        rc = OPAL_CRYPT_OK == rc && (!added || number != i) ? OPAL_CRYPT_ERR_LIBRARY : rc;
    }
    return rc;
}

/* If a file has no data, its geometry does not fit more regions, and nobody else has it open, choose another one:
 * *anew, with the lock that keeps others away, and *map. */
static int fit_anew(ompi_common_cryptmpio_file_t *state, opal_cryptfile_map_t **map, bool *anew)
{
    opal_crypt_why_t why = {.topic = NULL};
    opal_cryptfile_map_t *again = NULL;
    int rc = opal_cryptfile_geometry_fits(*map, map_bytes_most(*map));
    int error = ompi_common_cryptmpio_agree(state->fh, OPAL_CRYPT_ERR_AUTH == rc ? MPI_SUCCESS : ompi_common_cryptmpio_error(rc, 0));

    if (MPI_SUCCESS != error || OPAL_CRYPT_ERR_AUTH != rc) {
        return error;
    }
    error = ompi_common_cryptmpio_alone(state, anew);
    if (MPI_SUCCESS != error || !*anew) {
        return error;
    }
    error = ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_told(state, map_again(state, *map, &again, &why), &why));
    if (MPI_SUCCESS != error) {
        opal_cryptfile_map_destroy(again);
        return error;
    }
    opal_cryptfile_map_destroy(*map);
    *map = again;
    return MPI_SUCCESS;
}

/* The default map is to be replaced, which gives it another UUID and other keys: what another handle writes with
 * the old ones could never be read. */
static int take_over_defaults(ompi_common_cryptmpio_file_t *state, bool *alone)
{
    opal_crypt_why_t why = {.topic = NULL};
    int error = ompi_common_cryptmpio_alone(state, alone);

    return MPI_SUCCESS != error || *alone ? error
           : ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-late", "others have it open"), &why);
}

/* ---- all of it ---- */

/* A rest must be the last region: bytes already written as the rest would become part of a new
 * region, which has no entry for them; and the storage's operator could bring back the previous
 * map, by which the bytes of the new region belong to the rest, and are plain. */
static int keep_the_rest(const opal_cryptfile_map_t *map, uint32_t old, opal_crypt_why_t *why)
{
    uint32_t rest = 0;

    while (rest < old && map->regions[rest].tiling.run_count > 0) {
        ++rest;
    }
    return rest == old || map->region_count == old ? OPAL_CRYPT_OK
           : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-overlap",
                               "region %u, the rest of the file: ask for it last", (unsigned) rest);
}

/* A map is verified by the keys of its regions: without one, nobody could use the file again. */
static int has_encrypted(const opal_cryptfile_map_t *map, opal_crypt_why_t *why)
{
    uint32_t i = 0;

    while (i < map->region_count && !map->regions[i].encrypted) {
        ++i;
    }
    return i < map->region_count ? OPAL_CRYPT_OK
           : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-plain",
                               "all regions that were asked for are plain");
}

/* The map that is wanted, with new regions or without (`changed`), and the file's, unless it is made anew. */
static int want(const ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t count, bool anew, bool *asked, bool *changed,
                opal_cryptfile_map_t **now, opal_cryptfile_map_t **map)
{
    opal_crypt_why_t why = {.topic = NULL};
    int rc = base_map(state, anew, now, map);
    const uint32_t old = OPAL_CRYPT_OK == rc ? (*map)->region_count : 0;

    if (!anew) {
        memcpy(asked, state->asked, sizeof(state->asked));
    }
    rc = OPAL_CRYPT_OK == rc ? add_all(*map, asks, count, changed, asked, &why) : rc;
    rc = OPAL_CRYPT_OK == rc ? keep_the_rest(*map, old, &why) : rc;
    rc = OPAL_CRYPT_OK == rc && *changed ? has_encrypted(*map, &why) : rc;
    if (OPAL_CRYPT_OK == rc && *changed && state->joined) {     /* its makers go on with the map that they know */
        rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-late", "others made the file since it was opened");
    }
    return ompi_common_cryptmpio_agree(state->fh, ompi_common_cryptmpio_told(state, rc, &why));
}

/* `empty`: the file is made, and has no data. */
static int add_and_seal(ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t count, bool anew, bool empty)
{
    bool asked[OPAL_CRYPTFILE_REGIONS_MAX] = {false};
    opal_cryptfile_map_t *map = NULL, *now = NULL;
    opal_cryptfile_key_t *keys = NULL;
    bool changed = false, again = false, gone = false;      /* gone: the map of the engine */
    int error = want(state, asks, count, anew, asked, &changed, &now, &map), chosen = MPI_SUCCESS;

    if (MPI_SUCCESS != error || !changed) {
        opal_cryptfile_map_destroy(now);
        opal_cryptfile_map_destroy(map);
        if (MPI_SUCCESS == error) {
            ompi_common_cryptmpio_took(state, asked);
        }
        return error;
    }
    uint32_t old = NULL == now ? 0 : now->region_count;
    if (!anew && empty && state->posix.may_write) {
        error = fit_anew(state, &map, &again);
        anew = again;
        old = again ? 0 : old;
    } else if (anew && empty) {
        error = take_over_defaults(state, &again);
    }
    ++map->generation;
    if (MPI_SUCCESS == error && anew) {
        chosen = ompi_common_cryptmpio_error(ompi_common_cryptmpio_choose_geometry(map), 0);
    }
    error = MPI_SUCCESS != error ? error : state->posix.may_write ? ompi_common_cryptmpio_seal_map(state, chosen, map, old, &keys) : MPI_ERR_READ_ONLY;
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_check_ciphers(map, old, keys) : error;
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_check_fits(state, map) : error;
    error = ompi_common_cryptmpio_agree(state->fh, error);
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_store(state, anew ? NULL : now, map);
        gone = anew && MPI_SUCCESS == error;
    }
    opal_cryptfile_map_destroy(now);
    if (again) {
        int shared = ompi_common_cryptmpio_together(state);
        error = MPI_SUCCESS == error ? shared : error;
    }
    if (MPI_SUCCESS != error) {
        opal_cryptfile_keys_free(keys, map->region_count);
        opal_cryptfile_map_destroy(map);
    } else {
        state->encrypted = true;        /* even if it cannot be used here: no plaintext may go into it */
        error = ompi_common_cryptmpio_use(state, map, keys, MPI_SUCCESS);
    }
    if (MPI_SUCCESS == error && state->seal && NULL != state->file) {
        opal_cryptfile_seal_watch(state->file, 0);      /* a new file: nobody had written to it */
    }
    if (MPI_SUCCESS == error) {
        ompi_common_cryptmpio_took(state, asked);
    } else if (gone) {
        ompi_common_cryptmpio_close_regions(state);
    }
    return error;
}

/* Does the file have bytes?  The same answer on every process. */
static int has_bytes(const ompi_common_cryptmpio_file_t *state, bool *has)
{
    opal_cryptfile_storage_t *storage = (opal_cryptfile_storage_t *) &state->posix.super;
    uint64_t bytes = 0;
    int error = 0 == state->fh->f_rank ? ompi_common_cryptmpio_error(storage->size(storage, &bytes), errno)
                                       : MPI_SUCCESS;

    *has = !state->making && ompi_common_cryptmpio_bytes(state, bytes) > 0;      /* remains of a maker are no data */
    return ompi_common_cryptmpio_agree_any(state->fh, error, has);
}

/* For a file that is being made: all processes have the same ask. */
int ompi_common_cryptmpio_add_default(ompi_common_cryptmpio_file_t *state, const uint8_t *ask, size_t ask_bytes)
{
    int error = add_and_seal(state, ask, ask_bytes, true, false);

    ompi_common_cryptmpio_abandon(state);
    return error;
}

int ompi_common_cryptmpio_add_regions(ompi_common_cryptmpio_file_t *state, const uint8_t *asks, size_t ask_bytes, int error)
{
    opal_crypt_why_t why = {.topic = NULL};
    const opal_crypt_input_t piece = {asks, ask_bytes};
    uint8_t *all = NULL, hash[OPAL_CRYPT_HASH_BYTES] = {0};
    int *counts = NULL, says[OMPI_CRYPTMPIO_SAYS_HASH];
    size_t total = 0;
    bool has = false;

    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_usable(state);
    }
    if (MPI_SUCCESS == error) {
        error = ompi_common_cryptmpio_error(opal_crypt_sha256(&piece, 1, hash), 0);
    }
    ompi_common_cryptmpio_say_hash(hash, says);
    error = ompi_common_cryptmpio_agree_values(state->fh, error, says, OMPI_CRYPTMPIO_SAYS_HASH);
    if (MPI_SUCCESS == error && ompi_common_cryptmpio_said_alike_hash(says)) {
        total = ask_bytes;              /* mostly, all ask for the same: each has it */
    } else if (MPI_SUCCESS == error && OMPI_SUCCESS != ompi_common_cryptmpio_gather(state->fh, asks, ask_bytes, &all, &counts)) {
        error = MPI_ERR_INTERN;
    }
    for (int r = 0; MPI_SUCCESS == error && NULL != counts && r < state->fh->f_size; ++r) {
        total += (size_t) counts[r];
    }
    if (MPI_SUCCESS == error && total > 0 && !state->encrypted && !state->making && state->posix.may_write) {
        error = ompi_common_cryptmpio_scan_again(state);
    }
    if (MPI_SUCCESS == error) {
        error = has_bytes(state, &has);
    }
    if (MPI_SUCCESS == error && !state->encrypted && has) {
        error = ompi_common_cryptmpio_told(state, opal_crypt_refuse(&why, OPAL_CRYPT_ERR_ACCESS, "file-plain", "%s", "set_encryption_map"), &why);
    }
    if (MPI_SUCCESS == error && total > 0) {
        /* A new file's default map is replaced by what the program asks for. */
        error = add_and_seal(state, NULL == all ? asks : all, total, !state->encrypted || (state->fresh && !has), ompi_common_cryptmpio_is_made(state) && !has);
        state->fresh = state->fresh && MPI_SUCCESS != error;
    }
    ompi_common_cryptmpio_abandon(state);
    free(all);
    free(counts);
    return error;
}

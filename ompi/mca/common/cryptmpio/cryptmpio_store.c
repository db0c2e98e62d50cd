/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Writing a file's map, by rank 0.  A file is made, or made anew, under the maker's lock, which tells others that it is
 * not complete yet; its state says so to the next process after a maker that was killed.  A map that takes the place of
 * another one is written under the map's lock.
 */
#include "cryptmpio_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Make the map survive a power failure, with all names that lead to it. */
static int keep_map(ompi_common_cryptmpio_file_t *state)
{
    int rc = OPAL_CRYPT_OK;

    if (NULL != state->posix.super.barrier) {
        rc = ompi_common_cryptmpio_posix_sync(&state->posix);
        rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync_names(state->path) : rc;
    }
    return ompi_common_cryptmpio_stored(state, rc, "its map cannot be stored");
}

/* Under the maker's lock, also over a file that another process began.  Another job's failed open may have deleted it. */
static int make_file(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;

    if (!ompi_common_cryptmpio_posix_is_at(state->posix.data_fd, state->path)) {
        errno = ESTALE;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    int rc = opal_cryptfile_make_begin(storage, map);
    rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_attribute_write(&state->posix, map) : rc;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_make_end(storage, map) : rc;
    return OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_sync_names(state->path) : rc;
}

/* Does a place still have what was read there at opening? */
static int has_as_read(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan, unsigned place, bool *has)
{
    const unsigned copy = OPAL_CRYPTFILE_COPY_PLACE_0 + place;
    uint8_t *bytes;
    size_t count;
    int rc = opal_cryptfile_place_read(&state->posix.super, &scan->beginning, place, &bytes, &count);

    if (OPAL_CRYPT_OK == rc) {
        count = NULL == bytes ? 0 : count;
        *has = count == scan->sizes[copy] && (0 == count || 0 == memcmp(bytes, scan->copies[copy], count));
        free(bytes);
    }
    return rc;
}

int ompi_common_cryptmpio_change_map(ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan,
                                     const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *next, bool *late)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_cryptfile_place_t holds = OPAL_CRYPTFILE_PLACE_HAS;
    bool has = true;
    int rc = storage->lock(storage, 0, 1, true);

    *late = false;
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    for (unsigned place = 0; place < 2 && OPAL_CRYPT_OK == rc; ++place) {
        rc = NULL != scan ? has_as_read(state, scan, place, &has) : opal_cryptfile_place_holds(storage, now, place, &holds);
        *late = *late || (OPAL_CRYPT_OK == rc && (!has || OPAL_CRYPTFILE_PLACE_OTHER == holds));
    }
    if (OPAL_CRYPT_OK == rc && !*late) {
        rc = opal_cryptfile_map_replace(storage, now, next);
        rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_posix_attribute_write(&state->posix, next) : rc;
    }
    (void) storage->unlock(storage, 0, 1);
    return rc;
}

static int show_came_late(const ompi_common_cryptmpio_file_t *state, const char *reason)
{
    opal_crypt_why_t why;
    int rc = opal_crypt_refuse(&why, OPAL_CRYPT_ERR_CONFIG, "file-map-late", "%s", reason);

    ompi_common_cryptmpio_show(state, &why);
    return ompi_common_cryptmpio_error(rc, 0);
}

/* `now`: the map that it replaces; NULL: the file is made. */
static int write_map(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *map)
{
    bool late = false;
    int rc = NULL == now ? make_file(state, map) : ompi_common_cryptmpio_change_map(state, NULL, now, map, &late);

    return late ? show_came_late(state, "another process changed its map since it was opened")
           : OPAL_CRYPT_OK == rc ? keep_map(state) : ompi_common_cryptmpio_stored(state, rc, "its map cannot be stored");
}

int ompi_common_cryptmpio_make(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map)
{
    int error = write_map(state, NULL, map);

    if (MPI_SUCCESS == error) {
        ompi_common_cryptmpio_posix_maker_unlock(&state->posix);
    }
    return error;
}

/* Has nobody made it anew, or written to it? */
static bool is_as_made(ompi_common_cryptmpio_file_t *state)
{
    opal_cryptfile_storage_t *storage = &state->posix.super;
    opal_cryptfile_header_t header;
    opal_cryptfile_state_t begun;
    uint64_t end;
    bool magic;

    return OPAL_CRYPT_OK == opal_cryptfile_beginning_read(storage, &magic, &header, &begun) && magic &&
           OPAL_CRYPTFILE_STATE_OPEN == begun && 0 == memcmp(header.uuid, state->beginning.uuid, sizeof(header.uuid)) &&
           opal_cryptfile_geometry_same(&header.geometry, &state->beginning.geometry) &&
           OPAL_CRYPT_OK == storage->size(storage, &end) &&
           0 == opal_cryptfile_geometry_size(&header.geometry, end);
}

/* Replace the default map made by this very open, if it is unchanged.  *lost: the old map is gone, and
 * none has replaced it. */
static int write_over_defaults(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *map, bool *lost)
{
    bool there;

    if (OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_maker_lock(&state->posix, state->path, &there)) {
        return ompi_common_cryptmpio_show_errno(state, "file-locks", errno);
    }
    int error = there && is_as_made(state) ? MPI_SUCCESS : show_came_late(state, "others use it with the map that the defaults made");
    if (MPI_SUCCESS == error) {
        error = write_map(state, NULL, map);
        *lost = MPI_SUCCESS != error;
    }
    ompi_common_cryptmpio_posix_maker_unlock(&state->posix);
    return error;
}

void ompi_common_cryptmpio_close_regions(ompi_common_cryptmpio_file_t *state)
{
    state->fits = false;                /* also when the limits are set again */
    memset(state->asked, 0, sizeof(state->asked));
    for (uint32_t i = 0; NULL != state->file && i < opal_cryptfile_map_of(state->file)->region_count; ++i) {
        opal_cryptfile_limit(state->file, i, OPAL_CRYPTFILE_GRANT_NONE);
    }
}

int ompi_common_cryptmpio_store(ompi_common_cryptmpio_file_t *state, const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *map)
{
    int error = state->making ? ompi_common_cryptmpio_join(state, MPI_SUCCESS) : MPI_SUCCESS;
    bool lost = false;

    if (MPI_SUCCESS == error && 0 == state->fh->f_rank) {
        error = state->making ? ompi_common_cryptmpio_make(state, map)
                : NULL == now ? write_over_defaults(state, map, &lost) : write_map(state, now, map);
    }
    error = ompi_common_cryptmpio_agree_any(state->fh, error, &lost);
    if (MPI_SUCCESS == error) {
        state->making = false;
        memcpy(state->beginning.uuid, map->uuid, sizeof(map->uuid));
        state->beginning.geometry = map->geometry;
    }
    if (lost) {
        ompi_common_cryptmpio_close_regions(state);
    }
    return error;
}

void ompi_common_cryptmpio_abandon(ompi_common_cryptmpio_file_t *state)
{
    if (state->making) {
        ompi_common_cryptmpio_posix_release(&state->posix);
    }
    state->making = false;
    ompi_common_cryptmpio_node_end(state);
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A new file whose map rank 0 can make alone, from the defaults: its label is rank 0's, and so is the key.  It does so before it
 * tells the others what it found, and sends the map along.  They make the same map, as far as it needs no key, and compare.
 *
 *     rank 0   make map and data key, send | compare, check the MAC | locks | write the map
 *     others                               |                        |       |
 *
 * Processes that are given keys check the MAC once they have them, before the map is written.
 *
 * Where rank 0 cannot make it, all do so together (cryptmpio_map.c).
 */
#include "cryptmpio_internal.h"

#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/cryptfile/file/seal.h"

/* Without keys. */
static int make_without_keys(const ompi_common_cryptmpio_scan_t *scan, const uint8_t *uuid, opal_cryptfile_map_t **map)
{
    ompi_common_cryptmpio_default_ask_t ask;
    opal_crypt_why_t why = {.topic = NULL};
    int rc = ompi_common_cryptmpio_default_ask(&ask, scan->label, scan->algorithm, scan->block_size, &why);

    *map = NULL;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_create(map) : rc;
    rc = OPAL_CRYPT_OK == rc ? ompi_common_cryptmpio_add_default_ask(*map, &ask, &why) : rc;
    if (OPAL_CRYPT_OK == rc) {
        ++(*map)->generation;
        if (NULL != uuid) {
            memcpy((*map)->uuid, uuid, sizeof((*map)->uuid));
        }
        rc = ompi_common_cryptmpio_choose_geometry(*map);
    }
    if (OPAL_CRYPT_OK != rc && NULL != *map) {
        opal_cryptfile_map_destroy(*map);
        *map = NULL;
    }
    return rc;
}

void ompi_common_cryptmpio_made_begin(ompi_common_cryptmpio_scan_t *scan, opal_cryptfile_copy_state_t *made)
{
    uint8_t **bytes = &scan->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE];
    opal_crypt_input_t body = {NULL, 0};
    opal_crypt_why_t why;

    int rc = ompi_common_cryptmpio_holds(scan->label) ? make_without_keys(scan, NULL, &made->map) : OPAL_CRYPT_ERR_ACCESS;
    if (OPAL_CRYPT_OK == rc) {
        made->keys = calloc(made->map->region_count, sizeof(*made->keys));
        rc = NULL == made->keys ? OPAL_CRYPT_ERR_MEMORY
             : opal_cryptfile_map_lock(made->map, 0, ompi_common_cryptmpio_keystore(), &made->keys[0], &why);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_body(made->map, &body) : rc;
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_body_mac(made->map, &body, 0, made->keys[0].data_key, made->map->regions[0].mac) : rc;
    if (OPAL_CRYPT_OK == rc) {
        scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] = opal_cryptfile_map_bytes(made->map);
        *bytes = malloc(scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE]);
        rc = NULL == *bytes ? OPAL_CRYPT_ERR_MEMORY : OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_OK == rc) {
        opal_cryptfile_map_write(made->map, *bytes);
        made->verified = true;
    } else {                            /* the common way finds the reason again, and says it */
        scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE] = 0;
        opal_cryptfile_copy_free(made);
    }
    free((void *) (uintptr_t) body.base);
}

static bool same_map_body(const opal_cryptfile_map_t *a, const opal_cryptfile_map_t *b)
{
    opal_crypt_input_t one = {NULL, 0}, other = {NULL, 0};
    const bool same = OPAL_CRYPT_OK == opal_cryptfile_map_body(a, &one) && OPAL_CRYPT_OK == opal_cryptfile_map_body(b, &other)
                      && one.bytes == other.bytes && 0 == memcmp(one.base, other.base, one.bytes);

    free((void *) (uintptr_t) one.base);
    free((void *) (uintptr_t) other.base);
    return same;
}

int ompi_common_cryptmpio_made_judge(const ompi_common_cryptmpio_file_t *state, const ompi_common_cryptmpio_scan_t *scan, bool asks,
                                     opal_cryptfile_copy_state_t *made)
{
    const uint64_t bytes = scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE];
    opal_cryptfile_map_t *own = NULL;
    opal_crypt_why_t why = {.topic = NULL};

    if (0 == bytes || NULL != made->map) {
        return MPI_SUCCESS;
    }
    int rc = opal_cryptfile_map_parse(scan->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE], bytes, &made->map);
    rc = OPAL_CRYPT_OK == rc ? make_without_keys(scan, made->map->uuid, &own) : rc;
    rc = OPAL_CRYPT_OK == rc && !same_map_body(own, made->map) ? OPAL_CRYPT_ERR_LIBRARY : rc;
    if (OPAL_CRYPT_OK == rc) {
        made->keys = calloc(made->map->region_count, sizeof(*made->keys));
        rc = NULL == made->keys ? OPAL_CRYPT_ERR_MEMORY
             : asks             ? opal_cryptfile_map_unlock(made->map, ompi_common_cryptmpio_keystore(), made->keys, &why)
                                : OPAL_CRYPT_ERR_ACCESS;
        made->verified = OPAL_CRYPT_OK == rc;
        rc = OPAL_CRYPT_ERR_ACCESS == rc ? OPAL_CRYPT_OK : rc;
    }
    if (NULL != own) {
        opal_cryptfile_map_destroy(own);
    }
    return ompi_common_cryptmpio_told(state, rc, &why);
}

int ompi_common_cryptmpio_made_open(ompi_common_cryptmpio_file_t *state, opal_cryptfile_copy_state_t *made)
{
    bool asked[OPAL_CRYPTFILE_REGIONS_MAX] = {true};
    opal_cryptfile_key_t *keys;

    ompi_common_cryptmpio_node_ask(state);
    int error = ompi_common_cryptmpio_join_begin(state, MPI_SUCCESS);
    if (MPI_SUCCESS != error) {
        return error;
    }
    error = ompi_common_cryptmpio_node_keys(state, made->map, state->given || made->verified ? made->keys : NULL,
                                            &made->verified);
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_check_ciphers(made->map, 0, made->verified ? made->keys : NULL) : error;
    error = MPI_SUCCESS == error ? ompi_common_cryptmpio_check_fits(state, made->map) : error;
    error = ompi_common_cryptmpio_join_end(state, error);
    if (MPI_SUCCESS != error) {
        return error;
    }
    memcpy(state->beginning.uuid, made->map->uuid, sizeof(made->map->uuid));
    state->beginning.geometry = made->map->geometry;
    if (0 == state->fh->f_rank) {       /* which the next agreement tells the others */
        error = ompi_common_cryptmpio_make(state, made->map);
    }
    keys = made->verified ? made->keys : NULL;
    if (NULL == keys) {
        opal_cryptfile_keys_free(made->keys, made->map->region_count);
    }
    error = ompi_common_cryptmpio_use(state, made->map, keys, error);
    *made = (opal_cryptfile_copy_state_t){.map = NULL};
    state->making = state->making && MPI_SUCCESS != error;
    if (MPI_SUCCESS == error && state->seal && NULL != state->file) {
        opal_cryptfile_seal_watch(state->file, 0);      /* a new file: nobody had written to it */
    }
    if (MPI_SUCCESS == error) {
        ompi_common_cryptmpio_took(state, asked);
    }
    return error;
}

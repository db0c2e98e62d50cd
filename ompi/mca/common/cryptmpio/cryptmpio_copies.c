/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which copy of a file's map counts: every process judges all of them with the labels that it holds, and together they
 * choose one.  Rank 0 makes the others agree with it.
 */
#include "cryptmpio_internal.h"

#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"

#include <string.h>

typedef ompi_common_cryptmpio_scan_t file_scan_t;

/* Separately: only those in places have a CRC, and both places would share one map. */
int ompi_common_cryptmpio_judge_copies(const file_scan_t *scan, opal_cryptfile_keystore_t *keystore, opal_cryptfile_copy_state_t *states)
{
    int rc = opal_cryptfile_copy_judge(scan->copies[OPAL_CRYPTFILE_COPY_ATTRIBUTE], scan->sizes[OPAL_CRYPTFILE_COPY_ATTRIBUTE],
                                       keystore, NULL, &states[OPAL_CRYPTFILE_COPY_ATTRIBUTE]);

    for (int i = OPAL_CRYPTFILE_COPY_PLACE_0; i < OPAL_CRYPTFILE_COPIES && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_place_judge(scan->copies[i], scan->sizes[i], &scan->beginning, keystore, &states[i - 1], &states[i]);
    }
    return ompi_common_cryptmpio_error(rc, 0);
}

/* The error for a file of which no copy of the map counts. */
static int refuse_copies(const ompi_common_cryptmpio_file_t *state, opal_crypt_why_t *why, bool refused)
{
    if (NULL == why->topic) {           /* only another process knows the reason */
        (void) opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-map-damaged", "no copy of it can be read");
    }
    ompi_common_cryptmpio_show(state, why);
    return !refused && ompi_common_cryptmpio_lacks_key(why) ? ompi_common_cryptmpi_code(OMPI_CRYPTMPI_NO_KEY)
           : 0 == strcmp(why->topic, "file-map-extension")  ? MPI_ERR_IO
                                                            : ompi_common_cryptmpi_code(OMPI_CRYPTMPI_FORGED);
}

static int best_of(const file_scan_t *scan, const opal_cryptfile_copy_state_t *states, bool *differ, opal_crypt_why_t *why)
{
    opal_cryptfile_copy_t chosen;

    return OPAL_CRYPT_OK == opal_cryptfile_header_choose(states, &scan->beginning, &chosen, differ, why) ? (int) chosen : -1;
}

int ompi_common_cryptmpio_choose_copy(ompi_common_cryptmpio_file_t *state, const file_scan_t *scan, const int *seen,
                                      opal_cryptfile_copy_state_t *states, int *best, bool *differ)
{
    bool mine[OPAL_CRYPTFILE_COPIES];
    opal_crypt_why_t why = {.topic = NULL};
    bool refused = false;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        mine[i] = states[i].verified;
    }
    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        states[i].verified = 0 != seen[2 * i];
        states[i].refused = 0 != seen[2 * i + 1];
        refused = refused || states[i].refused;
    }
    *best = best_of(scan, states, differ, &why);
    if (*best < 0) {
        return refuse_copies(state, &why, refused);
    }
    states[*best].verified = mine[*best];
    return MPI_SUCCESS;
}

static void warn_of_repair(const ompi_common_cryptmpio_file_t *state, const opal_cryptfile_copy_state_t *states)
{
    opal_crypt_why_t why;

    if (states[OPAL_CRYPTFILE_COPY_ATTRIBUTE].present) {
        (void) opal_crypt_refuse(&why, OPAL_CRYPT_OK, "file-map-repaired", "%s", "");
        ompi_common_cryptmpio_show(state, &why);
    }
}

int ompi_common_cryptmpio_repair_copies(ompi_common_cryptmpio_file_t *state, const file_scan_t *scan, const opal_cryptfile_copy_state_t *states,
                                        int best)
{
    const opal_cryptfile_map_t *map = states[best].map;
    bool late;
    int error = ompi_common_cryptmpio_stored(state, ompi_common_cryptmpio_change_map(state, scan, map, map, &late), "its map cannot be stored");

    if (!late && MPI_SUCCESS == error) {        /* late: who changed it since has made them agree */
        warn_of_repair(state, states);
    }
    return error;
}

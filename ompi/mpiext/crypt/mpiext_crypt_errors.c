/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The error classes of encrypted files, found as any program could find them: by the prefix
 * of their texts.  No symbol of the components is looked up, so that in a job without them
 * this still works, and returns MPI_UNDEFINED.
 */
#include <mpi.h>

#include <stdbool.h>
#include <string.h>

#include "mpi_crypt.h"
#include "ompi/mca/common/cryptmpi/cryptmpi_classes.h"

#pragma GCC visibility push(default)
int MPIX_Err_crypt_torn(void);
int MPIX_Err_crypt_forged(void);
int MPIX_Err_crypt_no_key(void);
#pragma GCC visibility pop

static bool has_mpi(void)
{
    int started = 0, ended = 0;

    (void) PMPI_Initialized(&started);
    (void) PMPI_Finalized(&ended);
    return started && !ended;
}

static int class_of(const char *name)
{
    size_t bytes = strlen(name);
    char text[MPI_MAX_ERROR_STRING];
    int *last = NULL, found = 0, length;

    if (!has_mpi() || MPI_SUCCESS != PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &found) || !found) {
        return MPI_UNDEFINED;
    }
    for (int code = MPI_ERR_LASTCODE + 1; code <= *last; ++code) {
        if (MPI_SUCCESS == PMPI_Error_string(code, text, &length) && 0 == strncmp(text, name, bytes) && ':' == text[bytes]) {
            return code;
        }
    }
    return MPI_UNDEFINED;
}

int MPIX_Err_crypt_torn(void) { return class_of(OMPI_CRYPTMPI_TORN_NAME); }

int MPIX_Err_crypt_forged(void) { return class_of(OMPI_CRYPTMPI_FORGED_NAME); }

int MPIX_Err_crypt_no_key(void) { return class_of(OMPI_CRYPTMPI_NO_KEY_NAME); }

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Choices: values of one parameter of Open MPI that a job compares, such as the
 * algorithms of a collective.  The parameter is set between two calls, at all
 * ranks, through MPI_T.
 */
#include <string.h>

#include "mpicrypt_mpi.h"

static MPI_T_cvar_handle handle;

/* The parameter's number, and its enumeration. */
static int find(const char *name, MPI_T_enum *names)
{
    int index, name_bytes = 0, help_bytes = 0, verbosity, bind, scope, count;
    MPI_Datatype type;

    if (MPI_SUCCESS != MPI_T_cvar_get_index(name, &index)
        || MPI_SUCCESS != MPI_T_cvar_get_info(index, NULL, &name_bytes, &verbosity, &type, names, NULL, &help_bytes,
                                              &bind, &scope)
        || MPI_INT != type || MPI_T_ENUM_NULL == *names
        || MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        mpicrypt_mpi_abort(MPICRYPT_MISSING, "no component in this job has a parameter %s with names to choose from",
                           name);
    }
    return index;
}

static int value_of(MPI_T_enum names, const char *wanted)
{
    int count = 0, enum_bytes = 0, value;
    char text[128];

    MPI_T_enum_get_info(names, &count, NULL, &enum_bytes);
    for (int i = 0; i < count; ++i) {
        int bytes = sizeof(text);
        if (MPI_SUCCESS == MPI_T_enum_get_item(names, i, &value, text, &bytes) && 0 == strcmp(text, wanted)) {
            return value;
        }
    }
    mpicrypt_mpi_abort(MPICRYPT_USAGE, "parameter %s has no value '%s'", mpicrypt_mpi_job.choose, wanted);
}

int mpicrypt_mpi_choices(void)
{
    return NULL == mpicrypt_mpi_job.choose ? 1 : mpicrypt_mpi_job.choices.count;
}

void mpicrypt_mpi_choose(int choice)
{
    MPI_T_enum names = MPI_T_ENUM_NULL;
    int provided;

    if (NULL == mpicrypt_mpi_job.choose) {
        return;
    }
    MPI_T_init_thread(MPI_THREAD_SINGLE, &provided);
    find(mpicrypt_mpi_job.choose, &names);
    int value = value_of(names, mpicrypt_mpi_job.choices.value[choice]);
    if (MPI_SUCCESS != MPI_T_cvar_write(handle, &value)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "parameter %s cannot be set", mpicrypt_mpi_job.choose);
    }
    MPI_T_cvar_handle_free(&handle);
    MPI_T_finalize();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Choices: values of one parameter of Open MPI that a job compares, such as the
 * algorithms of a collective.  The parameter is set between two calls, at all
 * ranks, through MPI_T, which is initialized before the first and finalized after the
 * last: initializing it loads components, and takes longer than what is measured.
 */
#include <string.h>

#include "rank.h"

static MPI_T_cvar_handle handle;
static MPI_T_enum names;
static bool begun;

static void begin(const char *name)
{
    int index, name_bytes = 0, help_bytes = 0, verbosity, bind, scope, count;
    MPI_Datatype type;

    MPI_T_init_thread(MPI_THREAD_SINGLE, &count);
    if (MPI_SUCCESS != MPI_T_cvar_get_index(name, &index)
        || MPI_SUCCESS != MPI_T_cvar_get_info(index, NULL, &name_bytes, &verbosity, &type, &names, NULL, &help_bytes,
                                              &bind, &scope)
        || MPI_INT != type || MPI_T_ENUM_NULL == names
        || MPI_SUCCESS != MPI_T_cvar_handle_alloc(index, NULL, &handle, &count)) {
        mpicrypt_mpi_abort(MPICRYPT_MISSING, "no component in this job has a parameter %s with names to choose from",
                           name);
    }
    begun = true;
}

static int value_of(const char *wanted)
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
    if (NULL == mpicrypt_mpi_job.choose) {
        return;
    }
    if (!begun) {
        begin(mpicrypt_mpi_job.choose);
    }
    int value = value_of(mpicrypt_mpi_job.choices.value[choice]);
    if (MPI_SUCCESS != MPI_T_cvar_write(handle, &value)) {
        mpicrypt_mpi_abort(MPICRYPT_FAILED, "parameter %s cannot be set", mpicrypt_mpi_job.choose);
    }
}

void mpicrypt_mpi_chosen(void)
{
    if (begun) {
        MPI_T_cvar_handle_free(&handle);
        MPI_T_finalize();
        begun = false;
    }
}

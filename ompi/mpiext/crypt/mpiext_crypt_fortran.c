/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The same for Fortran with mpif.h or `use mpi`: handles are integers, and the
 * lengths of strings follow all other arguments.
 */
#include <mpi.h>

#include <stdlib.h>
#include <string.h>

#include "mpi_crypt.h"

#pragma GCC visibility push(default)
void mpix_file_set_encryption_map_(const MPI_Fint *fh, const MPI_Offset *disp, const MPI_Fint *etype, const MPI_Fint *filetype,
                                   const char *datarep, const MPI_Fint *info, MPI_Fint *error, size_t datarep_length);
void mpix_file_get_encryption_regions_(const MPI_Fint *fh, MPI_Fint *regions, MPI_Fint *error);
void mpix_file_get_encryption_map_(const MPI_Fint *fh, const MPI_Fint *region, MPI_Offset *disp, MPI_Fint *etype,
                                   MPI_Fint *filetype, char *datarep, MPI_Fint *info, MPI_Fint *error, size_t datarep_length);
MPI_Fint mpix_err_crypt_torn_(void);
MPI_Fint mpix_err_crypt_forged_(void);
MPI_Fint mpix_err_crypt_no_key_(void);
#pragma GCC visibility pop

MPI_Fint mpix_err_crypt_torn_(void) { return MPIX_ERR_CRYPT_TORN; }
MPI_Fint mpix_err_crypt_forged_(void) { return MPIX_ERR_CRYPT_FORGED; }
MPI_Fint mpix_err_crypt_no_key_(void) { return MPIX_ERR_CRYPT_NO_KEY; }

void mpix_file_set_encryption_map_(const MPI_Fint *fh, const MPI_Offset *disp, const MPI_Fint *etype, const MPI_Fint *filetype,
                                   const char *datarep, const MPI_Fint *info, MPI_Fint *error, size_t datarep_length)
{
    char text[MPI_MAX_DATAREP_STRING];
    size_t bytes = datarep_length < sizeof(text) ? datarep_length : sizeof(text) - 1;

    while (bytes > 0 && ' ' == datarep[bytes - 1]) {
        --bytes;
    }
    memcpy(text, datarep, bytes);
    text[bytes] = '\0';
    *error = MPIX_File_set_encryption_map(MPI_File_f2c(*fh), *disp, MPI_Type_f2c(*etype), MPI_Type_f2c(*filetype), text,
                                          MPI_Info_f2c(*info));
}

void mpix_file_get_encryption_regions_(const MPI_Fint *fh, MPI_Fint *regions, MPI_Fint *error)
{
    int count = 0;

    *error = MPIX_File_get_encryption_regions(MPI_File_f2c(*fh), &count);
    *regions = count;
}

/* `region` counts from 1, as in Fortran. */
void mpix_file_get_encryption_map_(const MPI_Fint *fh, const MPI_Fint *region, MPI_Offset *disp, MPI_Fint *etype,
                                   MPI_Fint *filetype, char *datarep, MPI_Fint *info, MPI_Fint *error, size_t datarep_length)
{
    char text[MPI_MAX_DATAREP_STRING] = "";
    MPI_Datatype types[2];
    MPI_Info of;

    *error = MPIX_File_get_encryption_map(MPI_File_f2c(*fh), *region - 1, disp, &types[0], &types[1], text, &of);
    if (MPI_SUCCESS == *error) {
        size_t bytes = strlen(text) < datarep_length ? strlen(text) : datarep_length;
        memset(datarep, ' ', datarep_length);
        memcpy(datarep, text, bytes);
        *etype = MPI_Type_c2f(types[0]);
        *filetype = MPI_Type_c2f(types[1]);
        *info = MPI_Info_c2f(of);
    }
}

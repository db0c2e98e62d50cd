/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program of PnetCDF that knows nothing of encryption: two variables, written
 * by rows, one of them by combined nonblocking calls, read by columns.
 * pnetcdf_rows FILE write|read
 */
#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 96, COLUMNS = 200 };

static int rank, size;

#define REQUIRE(call) \
    do { \
        int rc_ = (call); \
        if (NC_NOERR != rc_) { \
            fprintf(stderr, "%s:%d: rank %d: %s: %s\n", __FILE__, __LINE__, rank, #call, ncmpi_strerror(rc_)); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

static int value(MPI_Offset row, MPI_Offset column, int variable) { return (int) (row * COLUMNS + column) * 2 + variable; }

static void write_rows(int file, const int *variables)
{
    MPI_Offset from = ROWS * rank / size, to = ROWS * (rank + 1) / size;
    const MPI_Offset start[2] = {from, 0}, count[2] = {to - from, COLUMNS};
    int *values = calloc((size_t) (count[0] * COLUMNS) + 1, sizeof(*values)), request;

    for (int i = 0; i < 2; ++i) {
        for (MPI_Offset k = 0; k < count[0] * COLUMNS; ++k) {
            values[k] = value(from + k / COLUMNS, k % COLUMNS, i);
        }
        if (0 == i) {
            REQUIRE(ncmpi_put_vara_int_all(file, variables[i], start, count, values));
        } else {
            REQUIRE(ncmpi_iput_vara_int(file, variables[i], start, count, values, &request));
            REQUIRE(ncmpi_wait_all(file, 1, &request, NULL));
        }
    }
    free(values);
}

static void read_columns(int file, const int *variables)
{
    MPI_Offset from = COLUMNS * rank / size, to = COLUMNS * (rank + 1) / size;
    const MPI_Offset start[2] = {0, from}, count[2] = {ROWS, to - from};
    int *values = calloc((size_t) (ROWS * count[1]) + 1, sizeof(*values));

    for (int i = 0; i < 2; ++i) {
        REQUIRE(ncmpi_get_vara_int_all(file, variables[i], start, count, values));
        for (MPI_Offset k = 0; k < ROWS * count[1]; ++k) {
            REQUIRE(values[k] == value(k / count[1], from + k % count[1], i) ? NC_NOERR : NC_EINVAL);
        }
    }
    free(values);
}

int main(int argc, char **argv)
{
    int file, dimensions[2], variables[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    REQUIRE(3 == argc ? NC_NOERR : NC_EINVAL);
    if (0 == strcmp(argv[2], "write")) {
        REQUIRE(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
        REQUIRE(ncmpi_def_dim(file, "row", ROWS, &dimensions[0]));
        REQUIRE(ncmpi_def_dim(file, "column", COLUMNS, &dimensions[1]));
        REQUIRE(ncmpi_def_var(file, "first", NC_INT, 2, dimensions, &variables[0]));
        REQUIRE(ncmpi_def_var(file, "second", NC_INT, 2, dimensions, &variables[1]));
        REQUIRE(ncmpi_put_att_text(file, NC_GLOBAL, "text", 20, "PnetCDF-canary-text"));
        REQUIRE(ncmpi_enddef(file));
        write_rows(file, variables);
    } else {
        REQUIRE(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
        REQUIRE(ncmpi_inq_varid(file, "first", &variables[0]));
        REQUIRE(ncmpi_inq_varid(file, "second", &variables[1]));
    }
    read_columns(file, variables);
    REQUIRE(ncmpi_close(file));
    if (0 == rank) {
        printf("%s: %s by %d processes\n", argv[1], argv[2], size);
    }
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program of parallel HDF5 that knows nothing of encryption: two datasets,
 * contiguous and chunked, written by rows, collectively and not, read by columns.
 * hdf5_rows FILE write|read
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 120, COLUMNS = 240 };

static int rank, size;

#define REQUIRE(cond) \
    do { \
        if (!(cond)) { \
            fprintf(stderr, "%s:%d: rank %d: %s\n", __FILE__, __LINE__, rank, #cond); \
            MPI_Abort(MPI_COMM_WORLD, 1); \
        } \
    } while (0)

static double value(hsize_t row, hsize_t column, int dataset) { return (double) (row * COLUMNS + column) + 0.5 * dataset; }

/* My share of `count` things: [*from, *to). */
static void share(hsize_t count, hsize_t *from, hsize_t *to)
{
    *from = count * (hsize_t) rank / (hsize_t) size;
    *to = count * (hsize_t) (rank + 1) / (hsize_t) size;
}

static hid_t transfer(int collective)
{
    hid_t list = H5Pcreate(H5P_DATASET_XFER);

    REQUIRE(H5Pset_dxpl_mpio(list, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT) >= 0);
    return list;
}

/* Rows of mine, or columns of mine: written, or read and compared. */
static void move(hid_t dataset, int number, int by_columns, int writing, int collective)
{
    hsize_t from, to;
    share(by_columns ? COLUMNS : ROWS, &from, &to);
    const hsize_t start[2] = {by_columns ? 0 : from, by_columns ? from : 0};
    const hsize_t count[2] = {by_columns ? ROWS : to - from, by_columns ? to - from : COLUMNS};
    double *values = calloc(count[0] * count[1], sizeof(*values));
    hid_t file_space = H5Dget_space(dataset), memory_space = H5Screate_simple(2, count, NULL), list = transfer(collective);

    REQUIRE(NULL != values && H5Sselect_hyperslab(file_space, H5S_SELECT_SET, start, NULL, count, NULL) >= 0);
    for (hsize_t i = 0; writing && i < count[0] * count[1]; ++i) {
        values[i] = value(start[0] + i / count[1], start[1] + i % count[1], number);
    }
    REQUIRE((writing ? H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory_space, file_space, list, values)
                     : H5Dread(dataset, H5T_NATIVE_DOUBLE, memory_space, file_space, list, values)) >= 0);
    for (hsize_t i = 0; !writing && i < count[0] * count[1]; ++i) {
        REQUIRE(values[i] == value(start[0] + i / count[1], start[1] + i % count[1], number));
    }
    H5Pclose(list);
    H5Sclose(memory_space);
    H5Sclose(file_space);
    free(values);
}

static void create(hid_t file)
{
    static const hsize_t shape[2] = {ROWS, COLUMNS}, chunk[2] = {30, 60};
    static const char *const names[] = {"contiguous", "chunked"};
    static const char text[] = "HDF5-canary-attribute";

    for (int i = 0; i < 2; ++i) {
        hid_t space = H5Screate_simple(2, shape, NULL), layout = H5Pcreate(H5P_DATASET_CREATE);
        REQUIRE(H5Pset_obj_track_times(layout, 0) >= 0);        /* two runs are to make the same bytes */
        REQUIRE(0 == i || H5Pset_chunk(layout, 2, chunk) >= 0);
        hid_t dataset = H5Dcreate2(file, names[i], H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, layout, H5P_DEFAULT);
        REQUIRE(dataset >= 0);
        move(dataset, i, 0, 1, i);
        hid_t type = H5Tcopy(H5T_C_S1), scalar = H5Screate(H5S_SCALAR);
        REQUIRE(H5Tset_size(type, sizeof(text)) >= 0);
        hid_t attribute = H5Acreate2(dataset, "text", type, scalar, H5P_DEFAULT, H5P_DEFAULT);
        REQUIRE(attribute >= 0 && H5Awrite(attribute, type, text) >= 0);
        H5Aclose(attribute);
        H5Sclose(scalar);
        H5Tclose(type);
        H5Dclose(dataset);
        H5Pclose(layout);
        H5Sclose(space);
    }
}

static void look(hid_t file)
{
    static const char *const names[] = {"contiguous", "chunked"};

    for (int i = 0; i < 2; ++i) {
        hid_t dataset = H5Dopen2(file, names[i], H5P_DEFAULT);
        REQUIRE(dataset >= 0);
        for (int way = 0; way < 4; ++way) {
            move(dataset, i, way % 2, 0, way / 2);
        }
        H5Dclose(dataset);
    }
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    REQUIRE(3 == argc);
    int writing = 0 == strcmp(argv[2], "write");
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    REQUIRE(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL) >= 0);
    hid_t made = H5Pcreate(H5P_FILE_CREATE);
    REQUIRE(H5Pset_obj_track_times(made, 0) >= 0);            /* 2.2 does that for the root group */
    hid_t file = writing ? H5Fcreate(argv[1], H5F_ACC_TRUNC, made, access) : H5Fopen(argv[1], H5F_ACC_RDONLY, access);
    REQUIRE(file >= 0);
    if (writing) {
        create(file);
    }
    look(file);
    REQUIRE(H5Fclose(file) >= 0);
    H5Pclose(made);
    H5Pclose(access);
    if (0 == rank) {
        printf("%s: %s by %d processes\n", argv[1], argv[2], size);
    }
    MPI_Finalize();
    return 0;
}

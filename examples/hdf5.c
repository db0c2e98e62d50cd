/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * hdf5 FILE: an encrypted HDF5 file (parallel HDF5; Debian: libhdf5-openmpi-dev).
 * HDF5 passes its info object to MPI_File_open, so info keys can ask for encryption.
 * With --mca fs_crypt_key_label results, no change of the program is needed.
 *
 *     mpicc -o hdf5 hdf5.c $(pkg-config --cflags --libs hdf5-openmpi)
 *     mpicrypt key new results
 *     mpirun -n 4 --mca pml crypt ./hdf5 FILE
 */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { COLUMNS = 1000 };

static hid_t good(hid_t id, const char *call)
{
    if (id < 0) {
        fprintf(stderr, "hdf5: %s failed\n", call);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return id;
}

static hid_t open_file(const char *path, hid_t access)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "crypt_key_label", "results");
    good(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, info), "H5Pset_fapl_mpio");
    hid_t file = good(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access), "H5Fcreate");
    MPI_Info_free(&info);
    return file;
}

int main(int argc, char **argv)
{
    static double row[COLUMNS], again[COLUMNS];
    int rank, ranks, same = 1, all;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < COLUMNS; ++i) {
        row[i] = rank + i / 1000.0;
    }

    /* A row of the data set for each rank, written and read collectively. */
    hsize_t shape[2] = {(hsize_t) ranks, COLUMNS}, start[2] = {(hsize_t) rank, 0}, count[2] = {1, COLUMNS};
    hid_t access = good(H5Pcreate(H5P_FILE_ACCESS), "H5Pcreate"), transfer = good(H5Pcreate(H5P_DATASET_XFER), "H5Pcreate");
    hid_t file = open_file(argc > 1 ? argv[1] : "hdf5.h5", access);
    hid_t space = good(H5Screate_simple(2, shape, NULL), "H5Screate_simple");
    hid_t memory = good(H5Screate_simple(2, count, NULL), "H5Screate_simple");
    hid_t data = good(H5Dcreate2(file, "results", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
                      "H5Dcreate2");
    good(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL), "H5Sselect_hyperslab");
    good(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE), "H5Pset_dxpl_mpio");
    good(H5Dwrite(data, H5T_NATIVE_DOUBLE, memory, space, transfer, row), "H5Dwrite");
    good(H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, transfer, again), "H5Dread");
    H5Dclose(data);
    H5Sclose(memory);
    H5Sclose(space);
    good(H5Fclose(file), "H5Fclose");
    H5Pclose(transfer);
    H5Pclose(access);

    for (int i = 0; i < COLUMNS; ++i) {
        same = same && row[i] == again[i];
    }
    MPI_Reduce(&same, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d ranks: each read %s\n", ranks, all ? "what it had written" : "SOMETHING ELSE");
    }
    MPI_Finalize();
    return same ? EXIT_SUCCESS : EXIT_FAILURE;
}

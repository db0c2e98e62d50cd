/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * regions FILE: a file with a plain header of 64 bytes, which any program can read,
 * followed by encrypted data: an encryption map of one region.
 *
 *     mpicc -o regions regions.c -lmpi_crypt
 *     mpicrypt key new results
 *     mpirun -n 4 --mca pml crypt ./regions FILE
 *     mpicrypt file info FILE
 */
#include <mpi.h>
#include <mpi_crypt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER = 64, LINE = 1024 };

static void check(int rc, const char *call)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (MPI_SUCCESS != rc) {
        MPI_Error_string(rc, text, &length);
        fprintf(stderr, "regions: %s: %s\n", call, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

/* All bytes from HEADER on are encrypted under the label results; those before stay
 * plain. */
static void set_map(MPI_File file)
{
    MPI_Info info;

    MPI_Info_create(&info);
    MPI_Info_set(info, "crypt_key_label", "results");
    MPI_Info_set(info, "crypt_algorithm", "aes-256-gcm");
    MPI_Info_set(info, "crypt_rest", "plain");
    check(MPIX_File_set_encryption_map(file, HEADER, MPI_BYTE, MPI_BYTE, "native", info), "MPIX_File_set_encryption_map");
    MPI_Info_free(&info);
}

int main(int argc, char **argv)
{
    char header[HEADER + 1] = "", line[LINE + 1] = "", again[LINE + 1] = "";
    int rank, ranks, good, all;
    MPI_File file;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    snprintf(header, sizeof(header), "%-*s", HEADER, "lines of 1024 bytes, one a rank, encrypted\n");
    snprintf(line, sizeof(line), "%-*d", LINE, rank);
    memcpy(line + 8, "secret of the rank", 18);

    check(MPI_File_open(MPI_COMM_WORLD, argc > 1 ? argv[1] : "regions.out", MPI_MODE_CREATE | MPI_MODE_RDWR,
                        MPI_INFO_NULL, &file), "MPI_File_open");
    set_map(file);
    if (0 == rank) {
        check(MPI_File_write_at(file, 0, header, HEADER, MPI_CHAR, MPI_STATUS_IGNORE), "MPI_File_write_at");
    }
    MPI_Offset mine = HEADER + (MPI_Offset) rank * LINE;
    check(MPI_File_write_at_all(file, mine, line, LINE, MPI_CHAR, MPI_STATUS_IGNORE), "MPI_File_write_at_all");
    check(MPI_File_read_at_all(file, mine, again, LINE, MPI_CHAR, MPI_STATUS_IGNORE), "MPI_File_read_at_all");
    check(MPI_File_close(&file), "MPI_File_close");

    good = 0 == memcmp(line, again, LINE);
    MPI_Reduce(&good, &all, 1, MPI_INT, MPI_LAND, 0, MPI_COMM_WORLD);
    if (0 == rank) {
        printf("%d ranks: each read %s\n", ranks, all ? "what it had written" : "SOMETHING ELSE");
    }
    MPI_Finalize();
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

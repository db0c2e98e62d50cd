/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * verbose_job FILE: two ranks exchange messages, take part in collectives and write an encrypted
 * file; rank 1 dumps the PML while it has messages that a probe took.  For tests/shell/verbose.sh.
 */
#include "ompi_config.h"

#include <string.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml.h"

#include <mpi.h>

enum { LONG = 300000 };

int main(int argc, char **argv)
{
    static char buffer[LONG], all[2 * LONG];
    ompi_communicator_t *world;
    MPI_Status status;
    MPI_File file;
    int rank;

    MPI_Init(&argc, &argv);
    world = MPI_COMM_WORLD;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < LONG; i++) {
        buffer[i] = "payload-of-the-test "[i % 20];
    }
    if (0 == rank) {
        MPI_Send(buffer, 100, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Send(buffer, LONG, MPI_CHAR, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Probe(0, 2, MPI_COMM_WORLD, &status);
        MCA_PML_CALL(dump(world, 1));
        MPI_Recv(buffer, 100, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(buffer, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Allgather(buffer, LONG, MPI_CHAR, all, LONG, MPI_CHAR, MPI_COMM_WORLD);
    if (argc > 1 && MPI_SUCCESS == MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)) {
        MPI_File_write_at_all(file, rank * 100, buffer, 100, MPI_CHAR, MPI_STATUS_IGNORE);
        MPI_File_close(&file);
    }
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * sender: the second process sends one message to the first, which sends none.
 */
#include "mt.h"

int main(int argc, char **argv)
{
    int value = 42;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    if (1 == mt_rank) {
        MT_MPI(MPI_Send(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    } else if (0 == mt_rank) {
        MT_MPI(MPI_Recv(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
    return mt_end();
}

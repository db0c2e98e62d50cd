/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * message BYTES COUNT: so many messages from rank 0 to rank 1, which waits for each and says when it is ready.
 * With trace.so before it, what happens meanwhile is written down.
 */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

void timeline_begin(int rank) __attribute__((weak));
void timeline_end(void) __attribute__((weak));

enum { WARM = 5 };

int main(int argc, char **argv)
{
    const int bytes = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 1;
    char *buffer = malloc((size_t) bytes), ready = 0;
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(buffer, rank + 1, (size_t) bytes);
    for (int i = -WARM; i < count; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (i >= 0 && NULL != timeline_begin) {
            timeline_begin(rank);
        }
        if (0 == rank) {
            MPI_Recv(&ready, 1, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(buffer, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        } else if (1 == rank) {
            MPI_Request request;
            MPI_Irecv(buffer, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
            MPI_Send(&ready, 1, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            if (1 != buffer[0] || 1 != buffer[bytes - 1]) {
                MPI_Abort(MPI_COMM_WORLD, 1);
            }
        }
        if (i >= 0 && NULL != timeline_end) {
            timeline_end();
        }
    }
    MPI_Finalize();
    free(buffer);
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program that behaves as those of the NAS Parallel Benchmarks do, for
 * `mpicrypt bench nas`.  What it does is in its name: near (messages within a
 * node only), far (also to other nodes, every call that is timed), quiet (no
 * message), bad (verification fails), silent (none).
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BYTES = 200000 };

static int rank, size;
static char out[BYTES], in[BYTES];

static void all_calls(MPI_Comm comm, int peer)
{
    MPI_Request request[2];
    int me, flag, index, sum;

    MPI_Comm_rank(comm, &me);
    MPI_Sendrecv(out, BYTES, MPI_CHAR, peer, 0, in, BYTES, MPI_CHAR, peer, 0, comm, MPI_STATUS_IGNORE);
    if (me < peer) {
        MPI_Send(out, BYTES, MPI_CHAR, peer, 1, comm);
        MPI_Recv(in, BYTES, MPI_CHAR, MPI_ANY_SOURCE, 1, comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, BYTES, MPI_CHAR, peer, 1, comm, MPI_STATUS_IGNORE);
        MPI_Ssend(out, BYTES, MPI_CHAR, peer, 1, comm);
    }
    for (int way = 0; way < 3; ++way) {
        MPI_Irecv(in, BYTES, MPI_CHAR, peer, 2, comm, &request[0]);
        MPI_Isend(out, BYTES, MPI_CHAR, peer, 2, comm, &request[1]);
        if (0 == way) {
            MPI_Waitall(2, request, MPI_STATUSES_IGNORE);
        } else if (1 == way) {
            MPI_Wait(&request[1], MPI_STATUS_IGNORE);
            for (flag = 0; !flag;) {
                MPI_Test(&request[0], &flag, MPI_STATUS_IGNORE);
            }
        } else {
            MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
            MPI_Waitany(2, request, &index, MPI_STATUS_IGNORE);
        }
    }
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Barrier(comm);
}

int main(int argc, char **argv)
{
    const char *name = strrchr(argv[0], '/') + 1;
    MPI_Comm node, half;
    int mine;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &mine);
    if (0 == strncmp(name, "near", 4)) {
        all_calls(node, mine ^ 1);
    } else if (0 == strncmp(name, "far", 3)) {
        /* Two of each: ranks of a node are not neighbors here, and the communicator
         * that is freed may lend its handle to the next. */
        for (int again = 0; again < 3; ++again) {
            MPI_Comm_split(MPI_COMM_WORLD, mine, rank, &half);
            int me;
            MPI_Comm_rank(half, &me);
            all_calls(half, me ^ 1);
            MPI_Comm_free(&half);
        }
    }
    MPI_Comm_free(&node);
    if (0 == rank) {
        printf(" Time in seconds = %25.2f\n", 12.5);
        if (0 != strncmp(name, "silent", 6)) {
            printf(" Verification    =  %22s\n", 0 == strncmp(name, "bad", 3) ? "UNSUCCESSFUL" : "SUCCESSFUL");
        }
    }
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * survivors: a process dies in the middle of messages; the others find out, revoke, shrink, and go on.
 */
#include "mt.h"

#include <signal.h>
#include <unistd.h>

#if MT_HAS_MPI4
#    include <mpi-ext.h>

enum { ROUNDS = 60, BYTES = 600000 };

/* Messages around the ring, checked.  MPI's first error. */
static int around(MPI_Comm comm, int rounds, int dies)
{
    static unsigned char out[BYTES], in[BYTES];
    int rank, size, rc = MPI_SUCCESS;

    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    for (int i = 0; i < rounds && MPI_SUCCESS == rc; i++) {
        const int n = (i * 99991) % BYTES, from = (rank + size - 1) % size;
        if (dies >= 0 && i == rounds / 2 && rank == dies) {
            kill(getpid(), SIGKILL);
        }
        mt_fill(out, (size_t) n, mt_key(i, rank, 0, 0));
        rc = MPI_Sendrecv(out, n, MPI_BYTE, (rank + 1) % size, 1, in, n, MPI_BYTE, from, 1, comm, MPI_STATUS_IGNORE);
        if (MPI_SUCCESS == rc) {
            MT_SAME(in, (size_t) n, mt_key(i, from, 0, 0), "around");
        }
    }
    return rc;
}

int main(int argc, char **argv)
{
    MPI_Comm left;
    int rc, kind, size, sum = 0, one = 1;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    MT_MPI(around(MPI_COMM_WORLD, ROUNDS, -1));
    rc = around(MPI_COMM_WORLD, ROUNDS, mt_size - 1);
    MT_MPI(MPI_Error_class(rc, &kind));
    MT_CHECK(MPIX_ERR_PROC_FAILED == kind || MPIX_ERR_REVOKED == kind, "error class %d", kind);
    MT_MPI(MPIX_Comm_revoke(MPI_COMM_WORLD));
    MT_MPI(MPIX_Comm_shrink(MPI_COMM_WORLD, &left));
    MT_MPI(MPI_Comm_size(left, &size));
    MT_CHECK(size == mt_size - 1, "%d of %d are left", size, mt_size);
    MT_MPI(around(left, ROUNDS, -1));
    MT_MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left));
    MT_CHECK(sum == size, "sum %d", sum);
    if (0 == mt_rank) {
        printf("passed survivors: %d of %d\n", size, mt_size);
        fflush(stdout);
    }
    MT_MPI(MPI_Barrier(left));
    MT_MPI(MPI_Finalize());
    return 0;
}
#else
int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_skip("Open MPI 4.1 has no fault tolerance");
}
#endif

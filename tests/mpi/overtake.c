/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A communicator with mpi_assert_allow_overtaking: messages may arrive in any
 * order, but each once and whole; and the other assertions of MPI 4.
 */
#include "mt.h"

enum { COUNT = 300 };

static size_t size_of(int source, int i)
{
    uint64_t state = mt_key(9, source, i, 0);
    return 8 + mt_random_size(&state, 150000);
}

static void any_order(MPI_Comm comm)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, seen[COUNT] = {0};
    unsigned char *p[COUNT];
    MPI_Request req[COUNT];
    MPI_Status status;
    mt_buf_t buf;
    for (int64_t i = 0; i < COUNT; i++) {
        size_t n = size_of(mt_rank, (int) i);
        p[i] = malloc(n);
        memcpy(p[i], &i, 8);
        mt_fill(p[i] + 8, n - 8, mt_key(1, mt_rank, (int) i, 0));
        MT_MPI(MPI_Isend(p[i], (int) n, MPI_BYTE, to, 1, comm, &req[i]));
    }
    mt_buf_new(&buf, 160000);
    for (int i = 0; i < COUNT; i++) {
        int64_t k;
        MT_MPI(MPI_Recv(buf.p, 160000, MPI_BYTE, from, 1, comm, &status));
        memcpy(&k, buf.p, 8);
        MT_CHECK(k >= 0 && k < COUNT && 1 == ++seen[k], "message %ld", (long) k);
        MT_STATUS(&status, from, 1, size_of(from, (int) k));
        MT_SAME(buf.p + 8, size_of(from, (int) k) - 8, mt_key(1, from, (int) k, 0), "any order");
    }
    MT_MPI(MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < COUNT; i++) {
        free(p[i]);
    }
    mt_buf_free(&buf);
}

int main(int argc, char **argv)
{
    static const char *keys[] = {"mpi_assert_allow_overtaking", "mpi_assert_no_any_source", "mpi_assert_no_any_tag",
                                 "mpi_assert_exact_length"};
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 0; i < 3; i++) {
        MPI_Info info;
        MPI_Comm comm;
        MT_MPI(MPI_Info_create(&info));
        for (int k = 0; k <= i; k++) {
            MT_MPI(MPI_Info_set(info, keys[k], "true"));
        }
        MT_MPI(MPI_Comm_dup_with_info(MPI_COMM_WORLD, info, &comm));
        any_order(comm);
        MT_MPI(MPI_Info_free(&info));
        MT_MPI(MPI_Comm_free(&comm));
        mt_group("%s%s", keys[i], i ? " and those before" : "");
    }
    return mt_end();
}

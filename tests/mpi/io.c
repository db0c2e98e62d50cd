/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI-IO, a smoke test: collective and independent, at offsets, through views,
 * non-blocking, shared pointer.  Its exchanges are messages.  "dir" names a
 * directory that all nodes share: io.c DIR.
 */
#include "mt.h"

static char path[1024];

static void blocks(size_t n, bool collective, bool nonblocking)
{
    unsigned char *p = malloc(n + 1), *q = malloc(n + 1);
    MPI_Offset at = (MPI_Offset) n * mt_rank;
    MPI_File f;
    MPI_Request req;
    MPI_Status status;
    int other = (mt_rank + 1) % mt_size, count;
    mt_fill(p, n, mt_key(1, mt_rank, collective, nonblocking));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    if (nonblocking) {
        MT_MPI(collective ? MPI_File_iwrite_at_all(f, at, p, (int) n, MPI_BYTE, &req)
                          : MPI_File_iwrite_at(f, at, p, (int) n, MPI_BYTE, &req));
        MT_MPI(MPI_Wait(&req, &status));
    } else {
        MT_MPI(collective ? MPI_File_write_at_all(f, at, p, (int) n, MPI_BYTE, &status)
                          : MPI_File_write_at(f, at, p, (int) n, MPI_BYTE, &status));
    }
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_sync(f));
    at = (MPI_Offset) n * other;
    MT_MPI(collective ? MPI_File_read_at_all(f, at, q, (int) n, MPI_BYTE, &status)
                      : MPI_File_read_at(f, at, q, (int) n, MPI_BYTE, &status));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK((size_t) count == n, "read %d of %zu", count, n);
    MT_SAME(q, n, mt_key(1, other, collective, nonblocking), "read");
    MT_MPI(MPI_File_close(&f));
    free(p);
    free(q);
}

/* Every rank sees every mt_size-th group of 10 integers. */
static void view(int groups)
{
    MPI_Datatype etype = MPI_INT, filetype, one;
    MPI_File f;
    int n = groups * 10, *p = malloc((size_t) n * 4 + 4), *q = malloc((size_t) n * 4 + 4);
    MT_MPI(MPI_Type_contiguous(10, etype, &one));
    MT_MPI(MPI_Type_create_resized(one, 0, (MPI_Aint) mt_size * 40, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    mt_fill(p, (size_t) n * 4, mt_key(2, mt_rank, groups, 0));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) mt_rank * 40, etype, filetype, "native", MPI_INFO_NULL));
    MT_MPI(MPI_File_write_all(f, p, n, etype, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_seek(f, 0, MPI_SEEK_SET));
    MT_MPI(MPI_File_read_all(f, q, n, etype, MPI_STATUS_IGNORE));
    MT_SAME(q, (size_t) n * 4, mt_key(2, mt_rank, groups, 0), "read through a view");
    MT_MPI(MPI_File_close(&f));
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&one));
    free(p);
    free(q);
}

static void shared_pointer(void)
{
    int value = 1000 + mt_rank, *all = malloc((size_t) mt_size * 4);
    MPI_File f;
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_set_size(f, 0));
    MT_MPI(MPI_File_write_ordered(f, &value, 1, MPI_INT, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_read_at(f, 0, all, mt_size * 4, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < mt_size; i++) {
        MT_CHECK(1000 + i == all[i], "ordered write: %d at %d", all[i], i);
    }
    MT_MPI(MPI_File_close(&f));
    free(all);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    snprintf(path, sizeof(path), "%s/io-test", argv[1]);
    for (int i = 0; i < mt_few_sizes_count; i++) {
        for (int k = 0; k < 4; k++) {
            blocks(mt_few_sizes[i], k & 1, k & 2);
        }
    }
    mt_group("blocks, independent and collective, blocking and not");
    for (int groups = 1; groups < 20000; groups *= 11) {
        view(groups);
    }
    mt_group("collective writes through views");
    shared_pointer();
    mt_group("shared pointer, ordered");
    if (0 == mt_rank) {
        MT_MPI(MPI_File_delete(path, MPI_INFO_NULL));
    }
    return mt_end();
}

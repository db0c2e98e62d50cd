/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages above 2 GiB and above 4 GiB ("bytes=N"): counts of a larger type,
 * MPI_Get_elements_x, a probe that reports them, every byte checked.
 */
#include "mt.h"

#define ITEM 4096

static void transfer(int from, int to, MPI_Count bytes, int way)
{
    MPI_Datatype item;
    MPI_Count elements;
    MPI_Status status;
    int items = (int) (bytes / ITEM), count;
    size_t size = (size_t) items * ITEM;
    MT_MPI(MPI_Type_contiguous(ITEM, MPI_BYTE, &item));
    MT_MPI(MPI_Type_commit(&item));
    if (mt_rank == from || mt_rank == to) {
        unsigned char *p = mt_alloc(size);
        MT_CHECK(NULL != p, "no memory for %zu bytes", size);
        if (mt_rank == from) {
            mt_fill(p, size, mt_key(1, from, way, 0));
            MT_MPI(MPI_Send(p, items, item, to, way, MPI_COMM_WORLD));
        } else {
            memset(p, 0, size);
            if (way % 2) {
                MT_MPI(MPI_Probe(from, way, MPI_COMM_WORLD, &status));
                MT_MPI(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
                MT_CHECK(elements == (MPI_Count) size, "probe: %lld bytes", (long long) elements);
            }
            MT_MPI(MPI_Recv(p, items, item, from, way, MPI_COMM_WORLD, &status));
            MT_MPI(MPI_Get_count(&status, item, &count));
            MT_MPI(MPI_Get_elements_x(&status, MPI_BYTE, &elements));
            MT_CHECK(count == items && elements == (MPI_Count) size, "count %d, %lld bytes", count, (long long) elements);
            MT_SAME(p, size, mt_key(1, from, way, 0), "large");
        }
        free(p);
    }
    MT_MPI(MPI_Type_free(&item));
    mt_group("%lld bytes from rank %d to rank %d%s", (long long) size, from, to, way % 2 ? ", probed" : "");
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    long bytes = mt_arg("bytes", 2200L * 1000 * 1000);
    transfer(0, mt_size - 1, bytes, 0);             /* the far end */
    transfer(mt_size - 1, 0, bytes, 1);
    transfer(0, 1, bytes, 1);                       /* maybe the same node */
    return mt_end();
}

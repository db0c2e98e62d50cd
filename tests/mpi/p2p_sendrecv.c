/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Sendrecv and MPI_Sendrecv_replace: rings, unequal sizes, MPI_PROC_NULL
 * at the ends, to itself, wildcards, and a type with holes.
 */
#include "mt.h"

static void ring(size_t n, int distance)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    size_t other = n + (size_t) (from % 3);         /* what `from` sends */
    size_t own = n + (size_t) (mt_rank % 3);
    unsigned char *p = mt_alloc(own + 1);
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n + 7);
    mt_fill(p, own, mt_key(1, mt_rank, distance, 0));
    MT_MPI(MPI_Sendrecv(p, (int) own, MPI_BYTE, to, distance, buf.p, (int) buf.n, MPI_BYTE, from, distance,
                        MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, distance, other);
    MT_BUF(&buf, other, mt_key(1, from, distance, 0));

    mt_buf_poison(&buf);
    mt_fill(buf.p, n, mt_key(2, mt_rank, distance, 0));
    MT_MPI(MPI_Sendrecv_replace(buf.p, (int) n, MPI_BYTE, to, 5, from, 5, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, 5, n);
    MT_BUF(&buf, n, mt_key(2, from, distance, 0));

    mt_buf_poison(&buf);                            /* nobody else uses tag 6 */
    MT_MPI(MPI_Sendrecv(p, (int) own, MPI_BYTE, to, 6, buf.p, (int) buf.n, MPI_BYTE, MPI_ANY_SOURCE, 6,
                        MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, 6, other);
    MT_BUF(&buf, other, mt_key(1, from, distance, 0));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));            /* ... nor of another distance */
    mt_buf_free(&buf);
    free(p);
}

/* A line instead of a ring: the ends use MPI_PROC_NULL. */
static void line(size_t n)
{
    int to = mt_rank + 1 < mt_size ? mt_rank + 1 : MPI_PROC_NULL;
    int from = mt_rank > 0 ? mt_rank - 1 : MPI_PROC_NULL;
    unsigned char *p = mt_alloc(n + 1);
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n);
    mt_fill(p, n, mt_key(3, mt_rank, 0, 0));
    MT_MPI(MPI_Sendrecv(p, (int) n, MPI_BYTE, to, 9, buf.p, (int) n, MPI_BYTE, from, 9, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, MPI_PROC_NULL == from ? MPI_ANY_TAG : 9, MPI_PROC_NULL == from ? 0 : n);
    MT_BUF(&buf, MPI_PROC_NULL == from ? 0 : n, mt_key(3, from, 0, 0));
    mt_buf_poison(&buf);
    mt_fill(buf.p, n, mt_key(4, mt_rank, 0, 0));
    MT_MPI(MPI_Sendrecv_replace(buf.p, (int) n, MPI_BYTE, to, 9, from, 9, MPI_COMM_WORLD, &status));
    MT_BUF(&buf, n, mt_key(4, MPI_PROC_NULL == from ? mt_rank : from, 0, 0));
    mt_buf_free(&buf);
    free(p);
}

static void self(size_t n)
{
    unsigned char *p = mt_alloc(n + 1);
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n + 1);
    mt_fill(p, n, mt_key(5, mt_rank, 0, 0));
    MT_MPI(MPI_Sendrecv(p, (int) n, MPI_BYTE, mt_rank, 1, buf.p, (int) buf.n, MPI_BYTE, mt_rank, 1,
                        MPI_COMM_WORLD, &status));
    MT_STATUS(&status, mt_rank, 1, n);
    MT_BUF(&buf, n, mt_key(5, mt_rank, 0, 0));
    MT_MPI(MPI_Sendrecv_replace(buf.p, (int) n, MPI_BYTE, 0, 1, 0, 1, MPI_COMM_SELF, &status));
    MT_STATUS(&status, 0, 1, n);
    MT_BUF(&buf, n, mt_key(5, mt_rank, 0, 0));
    mt_buf_free(&buf);
    free(p);
}

/* Every second integer of an array goes round; the others stay. */
static void strided(int ints)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    int *a = malloc(2 * (size_t) ints * sizeof(*a));
    MPI_Datatype even;
    MPI_Status status;
    MT_MPI(MPI_Type_vector(ints, 1, 2, MPI_INT, &even));
    MT_MPI(MPI_Type_commit(&even));
    for (int i = 0; i < 2 * ints; i++) {
        a[i] = i % 2 ? -i : mt_rank * 1000000 + i;
    }
    MT_MPI(MPI_Sendrecv_replace(a, 1, even, to, 2, from, 2, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, 2, (size_t) ints * sizeof(int));
    for (int i = 0; i < 2 * ints; i++) {
        MT_CHECK(a[i] == (i % 2 ? -i : from * 1000000 + i), "at %d: %d", i, a[i]);
    }
    MT_MPI(MPI_Type_free(&even));
    free(a);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int d = 0; d < mt_size; d++) {
        for (int i = 0; i < mt_sizes_count; i++) {
            ring(mt_sizes[i], d);
        }
        mt_group("sendrecv and sendrecv_replace, distance %d", d);
    }
    for (int i = 0; i < mt_sizes_count; i++) {
        line(mt_sizes[i]);
        self(mt_sizes[i]);
    }
    mt_group("MPI_PROC_NULL at the ends, and to itself");
    for (int ints = 1; ints < 300000; ints = ints * 3 + 1) {
        strided(ints);
    }
    mt_group("sendrecv_replace of a vector");
    return mt_end();
}

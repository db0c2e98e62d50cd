/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Empty messages, no receiver, or only oneself: zero bytes in every form,
 * MPI_PROC_NULL, MPI_COMM_SELF and messages to one's own rank.
 */
#include "mt.h"

static void zero_bytes(int distance)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size, size;
    char c = 'x';
    MPI_Datatype empty;
    MPI_Request in, out[6];
    MPI_Status status;
    MT_MPI(MPI_Type_contiguous(0, MPI_INT, &empty));
    MT_MPI(MPI_Type_commit(&empty));
    MT_MPI(MPI_Type_size(empty, &size));
    MT_CHECK(0 == size, "size %d", size);
    MT_MPI(MPI_Isend(NULL, 0, MPI_BYTE, to, 0, MPI_COMM_WORLD, &out[0]));
    MT_MPI(MPI_Issend(NULL, 0, MPI_DOUBLE, to, 1, MPI_COMM_WORLD, &out[1]));
    MT_MPI(MPI_Isend(&c, 1000, empty, to, 2, MPI_COMM_WORLD, &out[2]));
    MT_MPI(MPI_Ibsend(NULL, 0, MPI_BYTE, to, 3, MPI_COMM_WORLD, &out[3]));      /* needs no attached buffer */
    MT_MPI(MPI_Isend(&c, 1, MPI_CHAR, to, 4, MPI_COMM_WORLD, &out[4]));
    MT_MPI(MPI_Isend(MPI_BOTTOM, 0, MPI_CHAR, to, 5, MPI_COMM_WORLD, &out[5]));
    MT_MPI(MPI_Probe(from, 1, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, from, 1, 0);
    for (int tag = 5; tag >= 0; tag--) {
        char got = 'y';
        bool one = 4 == tag;                /* the only byte among them */
        MT_MPI(MPI_Irecv(one || tag % 2 ? &got : NULL, one || tag % 2, MPI_CHAR, from, tag, MPI_COMM_WORLD, &in));
        MT_MPI(MPI_Wait(&in, &status));
        MT_STATUS(&status, from, tag, one);
        MT_CHECK((one ? 'x' : 'y') == got, "tag %d: byte %d", tag, got);
    }
    MT_MPI(MPI_Waitall(6, out, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Type_free(&empty));
}

static void nobody(void)
{
    char c = 'x';
    MPI_Request req[6];
    MPI_Status status[6];
    MT_MPI(MPI_Send(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MT_MPI(MPI_Ssend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MT_MPI(MPI_Rsend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MT_MPI(MPI_Bsend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    MT_MPI(MPI_Recv(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &status[0]));
    MT_STATUS(&status[0], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MT_MPI(MPI_Isend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[0]));
    MT_MPI(MPI_Issend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[1]));
    MT_MPI(MPI_Irsend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[2]));
    MT_MPI(MPI_Ibsend(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[3]));
    MT_MPI(MPI_Irecv(&c, 1, MPI_CHAR, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &req[4]));
    MT_MPI(MPI_Irecv(&c, 1, MPI_CHAR, MPI_PROC_NULL, MPI_ANY_TAG, MPI_COMM_SELF, &req[5]));
    MT_MPI(MPI_Waitall(6, req, status));
    MT_STATUS(&status[4], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MT_STATUS(&status[5], MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MT_CHECK('x' == c, "written");
}

/* To oneself: posted first and last, with wildcards, probed, all sizes. */
static void self(MPI_Comm comm, int me)
{
    unsigned char *p = mt_alloc(MT_MAX_SIZE);
    MPI_Request in, out;
    MPI_Status status;
    mt_buf_t buf;
    for (int i = 0; i < mt_sizes_count; i++) {
        size_t n = mt_sizes[i];
        mt_fill(p, n, mt_key(1, me, i, 0));
        mt_buf_new(&buf, n);
        if (i % 2) {
            MT_MPI(MPI_Irecv(buf.p, (int) n, MPI_BYTE, MPI_ANY_SOURCE, i, comm, &in));
            MT_MPI(MPI_Ssend(p, (int) n, MPI_BYTE, me, i, comm));
            MT_MPI(MPI_Wait(&in, &status));
        } else {
            MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, me, i, comm, &out));
            MT_MPI(MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status));
            MT_STATUS(&status, me, i, n);
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, me, MPI_ANY_TAG, comm, &status));
            MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
        }
        MT_STATUS(&status, me, i, n);
        MT_BUF(&buf, n, mt_key(1, me, i, 0));
        mt_buf_free(&buf);
    }
    free(p);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int d = 0; d < mt_size; d++) {
        for (int i = 0; i < 20; i++) {
            zero_bytes(d);
        }
        mt_group("zero bytes, distance %d", d);
    }
    nobody();
    mt_group("MPI_PROC_NULL");
    self(MPI_COMM_WORLD, mt_rank);
    self(MPI_COMM_SELF, 0);
    mt_group("to oneself, %d sizes", mt_sizes_count);
    return mt_end();
}

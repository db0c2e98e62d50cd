/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Cancel: a pending receive that nothing matches is cancelled and leaves
 * its buffer alone; what arrives later goes to the receives that are left, in
 * order; a matched receive completes; cancelled sends either arrive or do not.
 */
#include "mt.h"

enum { COUNT = 10 };

static int next, prev;

static bool cancelled(MPI_Request *req, MPI_Status *status)
{
    int flag;
    MT_MPI(MPI_Wait(req, status));
    MT_MPI(MPI_Test_cancelled(status, &flag));
    return flag;
}

/* Every second of several posted receives is cancelled before anybody sends. */
static void pending(size_t n, int source, int tag)
{
    mt_buf_t buf[COUNT];
    MPI_Request req[COUNT];
    MPI_Status status;
    unsigned char *p = mt_alloc(n + 1);
    for (int i = 0; i < COUNT; i++) {
        mt_buf_new(&buf[i], n);
        MT_MPI(MPI_Irecv(buf[i].p, (int) n, MPI_BYTE, source, tag, MPI_COMM_WORLD, &req[i]));
    }
    for (int i = 0; i < COUNT; i += 2) {
        MT_MPI(MPI_Cancel(&req[i]));
        MT_CHECK(cancelled(&req[i], &status), "receive %d was not cancelled", i);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < COUNT / 2; i++) {
        mt_fill(p, n, mt_key(1, mt_rank, i, 0));
        MT_MPI(MPI_Send(p, (int) n, MPI_BYTE, next, 3, MPI_COMM_WORLD));
    }
    for (int i = 0; i < COUNT; i++) {
        if (i % 2) {
            MT_CHECK(!cancelled(&req[i], &status), "receive %d", i);
            MT_STATUS(&status, prev, 3, n);
        }
        MT_BUF(&buf[i], i % 2 ? n : 0, mt_key(1, prev, i / 2, 0));
        mt_buf_free(&buf[i]);
    }
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* The message is there already: the receive matches it and cannot be undone. */
static void matched(size_t n)
{
    unsigned char *p = mt_alloc(n + 1);
    int flag = 0;
    MPI_Request in, out;
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n);
    mt_fill(p, n, mt_key(2, mt_rank, 0, 0));
    MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, next, 4, MPI_COMM_WORLD, &out));
    while (!flag) {
        MT_MPI(MPI_Iprobe(prev, 4, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_Irecv(buf.p, (int) n, MPI_BYTE, prev, 4, MPI_COMM_WORLD, &in));
    MT_MPI(MPI_Cancel(&in));
    MT_CHECK(!cancelled(&in, &status), "a matched receive was cancelled");
    MT_STATUS(&status, prev, 4, n);
    MT_BUF(&buf, n, mt_key(2, prev, 0, 0));
    MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    mt_buf_free(&buf);
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* Both outcomes are legal; the receiver is told which, and gets the message
 * exactly if the sender was not told that it was cancelled. */
static void sends(size_t n)
{
    unsigned char *p = mt_alloc(n + 1);
    int gone, other;
    MPI_Request out;
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, n);
    mt_fill(p, n, mt_key(3, mt_rank, 0, 0));
    MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, next, 5, MPI_COMM_WORLD, &out));
    MT_MPI(MPI_Cancel(&out));
    /* Let the neighbor receive while we wait. */
    MPI_Request told;
    MT_MPI(MPI_Irecv(&other, 1, MPI_INT, prev, 6, MPI_COMM_WORLD, &told));
    int done = 0, flag = 0;
    bool said = false;
    while (!done || !said) {
        if (!said) {
            MT_MPI(MPI_Test(&out, &flag, &status));
            if (flag) {
                MT_MPI(MPI_Test_cancelled(&status, &gone));
                MT_MPI(MPI_Send(&gone, 1, MPI_INT, next, 6, MPI_COMM_WORLD));
                said = true;
            }
        }
        int here = 0;
        MT_MPI(MPI_Iprobe(prev, 5, MPI_COMM_WORLD, &here, &status));
        if (here) {
            MT_STATUS(&status, prev, 5, n);
            MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, prev, 5, MPI_COMM_WORLD, &status));
            MT_BUF(&buf, n, mt_key(3, prev, 0, 0));
            done = 1;
        }
        int known = 0;
        MT_MPI(MPI_Request_get_status(told, &known, MPI_STATUS_IGNORE));
        if (known && other) {
            done = 1;
        }
    }
    MT_MPI(MPI_Wait(&told, MPI_STATUS_IGNORE));
    mt_buf_free(&buf);
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int d = 1; d < mt_size; d++) {
        next = (mt_rank + d) % mt_size;
        prev = (mt_rank + mt_size - d) % mt_size;
        for (int i = 0; i < mt_few_sizes_count; i++) {
            pending(mt_few_sizes[i], prev, 3);
            pending(mt_few_sizes[i], MPI_ANY_SOURCE, MPI_ANY_TAG);
            matched(mt_few_sizes[i]);
            sends(mt_few_sizes[i]);
        }
        mt_group("pending and matched receives, sends, distance %d", d);
    }
    for (int i = 0; i < 2000; i++) {
        char c;
        MPI_Request req;
        MPI_Status status;
        MT_MPI(MPI_Irecv(&c, 1, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : prev, 9, MPI_COMM_WORLD, &req));
        MT_MPI(MPI_Cancel(&req));
        MT_CHECK(cancelled(&req, &status), "round %d", i);
    }
    mt_group("2000 receives posted and cancelled");
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Persistent requests: all modes, started again and again with new contents,
 * alone and with MPI_Startall, sizes that change at the sender, inactive
 * requests in wait and test, cancelling and starting again, freeing.
 *
 * Open MPI 4.1's and 5.0's ob1 sends the wrong bytes when a buffered
 * persistent send above the eager limit is started a second time (its
 * convertor still points to the buffer of the first time), so plain runs
 * restart it for short messages only.
 */
#include "mt.h"

enum { STD, SYNC, READY, BUF, MODES };

#define PLAIN_BUFFERED_LIMIT 1000

static int init_send(int mode, void *p, int n, int to, int tag, MPI_Request *req)
{
    switch (mode) {
    case STD:  return MPI_Send_init(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
    case SYNC: return MPI_Ssend_init(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
    case BUF:  return MPI_Bsend_init(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
    default:   return MPI_Rsend_init(p, n, MPI_BYTE, to, tag, MPI_COMM_WORLD, req);
    }
}

static void check_empty(const MPI_Status *s)
{
    int count, cancelled;
    MT_MPI(MPI_Get_count(s, MPI_BYTE, &count));
    MT_MPI(MPI_Test_cancelled(s, &cancelled));
    MT_CHECK(MPI_ANY_SOURCE == s->MPI_SOURCE && MPI_ANY_TAG == s->MPI_TAG && 0 == count && !cancelled,
             "not an empty status: source %d tag %d count %d", s->MPI_SOURCE, s->MPI_TAG, count);
}

static void rounds(size_t n, int distance, int times)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    unsigned char *p = mt_alloc(MODES * n + 1);
    MPI_Request in[MODES], out[MODES];
    MPI_Status status[MODES];
    mt_buf_t buf[MODES];
    int modes = n <= PLAIN_BUFFERED_LIMIT || mt_sealed() ? MODES : BUF;
    for (int m = 0; m < modes; m++) {
        mt_buf_new(&buf[m], n + 3);
        MT_MPI(MPI_Recv_init(buf[m].p, (int) buf[m].n, MPI_BYTE, m % 2 ? MPI_ANY_SOURCE : from,
                             m, MPI_COMM_WORLD, &in[m]));
        MT_MPI(init_send(m, p + (size_t) m * n, (int) n, to, m, &out[m]));
    }
    for (int t = 0; t < times; t++) {
        for (int m = 0; m < modes; m++) {
            mt_buf_poison(&buf[m]);
            mt_fill(p + (size_t) m * n, n, mt_key(distance, mt_rank, m, t));
        }
        MT_MPI(MPI_Startall(modes, in));
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (t % 2) {
            MT_MPI(MPI_Startall(modes, out));
        } else {
            for (int m = modes - 1; m >= 0; m--) {
                MT_MPI(MPI_Start(&out[m]));
            }
        }
        MT_MPI(MPI_Waitall(modes, in, status));
        for (int m = 0; m < modes; m++) {
            MT_STATUS(&status[m], from, m, n);
            MT_BUF(&buf[m], n, mt_key(distance, from, m, t));
        }
        MT_MPI(MPI_Waitall(modes, out, MPI_STATUSES_IGNORE));
        for (int m = 0; m < modes; m++) {           /* still allocated, inactive */
            MT_CHECK(MPI_REQUEST_NULL != in[m] && MPI_REQUEST_NULL != out[m], "freed by wait");
        }
        MT_MPI(MPI_Wait(&in[t % modes], &status[0]));
        check_empty(&status[0]);
    }
    for (int m = 0; m < modes; m++) {
        MT_MPI(MPI_Request_free(&in[m]));
        MT_MPI(MPI_Request_free(&out[m]));
        mt_buf_free(&buf[m]);
    }
    free(p);
}

/* One persistent receive takes what ordinary sends of every size bring. */
static void persistent_receive_alone(void)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *p = mt_alloc(MT_MAX_SIZE);
    MPI_Request in, out;
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, MT_MAX_SIZE);
    MT_MPI(MPI_Recv_init(buf.p, (int) buf.n, MPI_BYTE, from, MPI_ANY_TAG, MPI_COMM_WORLD, &in));
    for (int i = 0; i < mt_sizes_count; i++) {
        size_t n = mt_sizes[i];
        int flag = 0;
        mt_buf_poison(&buf);
        mt_fill(p, n, mt_key(7, mt_rank, i, 0));
        MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to, i, MPI_COMM_WORLD, &out));
        MT_MPI(MPI_Start(&in));
        while (!flag) {
            MT_MPI(MPI_Test(&in, &flag, &status));
        }
        MT_STATUS(&status, from, i, n);
        MT_BUF(&buf, n, mt_key(7, from, i, 0));
        MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_Request_free(&in));
    mt_buf_free(&buf);
    free(p);
}

static void inactive_and_cancel(void)
{
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, flag, index, value = mt_rank, got = -1;
    MPI_Request req[3];
    MPI_Status status;
    MT_MPI(MPI_Recv_init(&got, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &req[0]));
    MT_MPI(MPI_Send_init(&value, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &req[1]));
    req[2] = MPI_REQUEST_NULL;
    MT_MPI(MPI_Wait(&req[0], &status));
    check_empty(&status);
    MT_MPI(MPI_Test(&req[1], &flag, &status));
    MT_CHECK(flag, "an inactive request tests true");
    check_empty(&status);
    MT_MPI(MPI_Waitany(3, req, &index, &status));
    MT_CHECK(MPI_UNDEFINED == index, "index %d", index);
    MT_MPI(MPI_Testall(3, req, &flag, MPI_STATUSES_IGNORE));
    MT_CHECK(flag, "testall of inactive requests");

    for (int t = 0; t < 20; t++) {                  /* cancelled, then used */
        int cancelled = 0;
        MT_MPI(MPI_Start(&req[0]));
        MT_MPI(MPI_Cancel(&req[0]));
        MT_MPI(MPI_Wait(&req[0], &status));
        MT_MPI(MPI_Test_cancelled(&status, &cancelled));
        MT_CHECK(cancelled, "round %d: nobody sent, yet it was not cancelled", t);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));        /* until here nobody sent */
        value = mt_rank * 100 + t;
        MT_MPI(MPI_Startall(2, req));
        MT_MPI(MPI_Waitany(1, req, &index, &status));
        MT_CHECK(0 == index && got == from * 100 + t, "index %d, value %d", index, got);
        MT_STATUS(&status, from, 1, sizeof(int));
        MT_MPI(MPI_Wait(&req[1], MPI_STATUS_IGNORE));
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MT_MPI(MPI_Request_free(&req[0]));
    MT_MPI(MPI_Request_free(&req[1]));
}

static void nobody(void)
{
    char c = 'x';
    MPI_Request req[2];
    MPI_Status status[2];
    MT_MPI(MPI_Send_init(&c, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req[0]));
    MT_MPI(MPI_Recv_init(&c, 1, MPI_CHAR, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &req[1]));
    for (int t = 0; t < 3; t++) {
        MT_MPI(MPI_Startall(2, req));
        MT_MPI(MPI_Waitall(2, req, status));
        MT_STATUS(&status[1], MPI_PROC_NULL, MPI_ANY_TAG, 0);
        MT_CHECK('x' == c, "written");
    }
    MT_MPI(MPI_Request_free(&req[0]));
    MT_MPI(MPI_Request_free(&req[1]));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    int times = (int) mt_arg("times", 10), room = 2 * MT_MAX_SIZE + 8 * MPI_BSEND_OVERHEAD;
    void *buffer = malloc((size_t) room);
    MT_MPI(MPI_Buffer_attach(buffer, room));
    for (int d = 1; d < mt_size; d++) {
        for (int i = 0; i < mt_few_sizes_count; i++) {
            rounds(mt_few_sizes[i], d, times);
        }
        mt_group("4 modes, %d sizes, %d starts, distance %d", mt_few_sizes_count, times, d);
    }
    rounds(100, 1, 50 * times);
    mt_group("%d starts of 100 bytes", 50 * times);
    persistent_receive_alone();
    mt_group("one persistent receive for every size");
    inactive_and_cancel();
    mt_group("inactive requests, cancel and start again");
    nobody();
    mt_group("MPI_PROC_NULL");
    MT_MPI(MPI_Buffer_detach(&buffer, &room));
    free(buffer);
    return mt_end();
}

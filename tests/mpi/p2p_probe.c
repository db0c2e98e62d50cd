/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI_Probe, MPI_Iprobe, MPI_Mprobe, MPI_Improbe, MPI_Mrecv, MPI_Imrecv: they
 * report the bytes of the message whatever is sent first, consume nothing
 * (or exactly one message), and see messages in the order of sending.
 */
#include "mt.h"

static int from_prev, to_next;

enum { PROBE, IPROBE, MPROBE, IMPROBE_MRECV, IMPROBE_IMRECV, WAYS };

static void take(int way, int source, int tag, mt_buf_t *buf, MPI_Status *probed, MPI_Status *got)
{
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request req;
    int flag = 0, n;
    switch (way) {
    case PROBE:
        MT_MPI(MPI_Probe(source, tag, MPI_COMM_WORLD, probed));
        break;
    case IPROBE:
        while (!flag) {
            MT_MPI(MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, probed));
        }
        break;
    case MPROBE:
        MT_MPI(MPI_Mprobe(source, tag, MPI_COMM_WORLD, &message, probed));
        break;
    default:
        while (!flag) {
            MT_MPI(MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, &message, probed));
        }
        break;
    }
    MT_MPI(MPI_Get_count(probed, MPI_BYTE, &n));
    mt_buf_new(buf, (size_t) n);
    switch (way) {
    case PROBE: case IPROBE:
        MT_MPI(MPI_Recv(buf->p, n, MPI_BYTE, probed->MPI_SOURCE, probed->MPI_TAG, MPI_COMM_WORLD, got));
        break;
    case IMPROBE_IMRECV:
        MT_MPI(MPI_Imrecv(buf->p, n, MPI_BYTE, &message, &req));
        MT_CHECK(MPI_MESSAGE_NULL == message, "imrecv leaves the handle");
        MT_MPI(MPI_Wait(&req, got));
        break;
    default:
        MT_MPI(MPI_Mrecv(buf->p, n, MPI_BYTE, &message, got));
        MT_CHECK(MPI_MESSAGE_NULL == message, "mrecv leaves the handle");
        break;
    }
}

/* Every size, every way, with and without wildcards, before or after arrival. */
static void sizes(int way, int source, bool any_tag)
{
    unsigned char *p = mt_alloc(MT_MAX_SIZE);
    MPI_Request out;
    MPI_Status probed, got;
    mt_buf_t buf;
    for (int i = 0; i < mt_sizes_count; i++) {
        size_t n = mt_sizes[i];
        mt_fill(p, n, mt_key(way, mt_rank, i, 0));
        MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to_next, i, MPI_COMM_WORLD, &out));
        if (i % 2) {
            MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        }
        take(way, source, any_tag ? MPI_ANY_TAG : i, &buf, &probed, &got);
        MT_STATUS(&probed, from_prev, i, n);
        MT_STATUS(&got, from_prev, i, n);
        MT_BUF(&buf, n, mt_key(way, from_prev, i, 0));
        mt_buf_free(&buf);
        MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    }
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void nothing_there(void)
{
    int flag = 1;
    MPI_Message message;
    MPI_Status status;
    for (int i = 0; i < 100; i++) {
        MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status));
        MT_CHECK(!flag, "iprobe sees a message from %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
        MT_MPI(MPI_Improbe(from_prev, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status));
        MT_CHECK(!flag, "improbe sees a message from %d, tag %d", status.MPI_SOURCE, status.MPI_TAG);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void proc_null(void)
{
    int flag = 0;
    char c = 'x';
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request req;
    MPI_Status status;
    MT_MPI(MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status));
    MT_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MT_MPI(MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status));
    MT_CHECK(flag, "iprobe of MPI_PROC_NULL");
    MT_MPI(MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status));
    MT_CHECK(MPI_MESSAGE_NO_PROC == message, "mprobe of MPI_PROC_NULL");
    MT_MPI(MPI_Mrecv(&c, 1, MPI_CHAR, &message, &status));
    MT_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
    MT_CHECK(MPI_MESSAGE_NULL == message && 'x' == c, "mrecv of MPI_MESSAGE_NO_PROC");
    MT_MPI(MPI_Improbe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &message, &status));
    MT_MPI(MPI_Imrecv(&c, 1, MPI_CHAR, &message, &req));
    MT_MPI(MPI_Wait(&req, &status));
    MT_STATUS(&status, MPI_PROC_NULL, MPI_ANY_TAG, 0);
}

/* A probe sees the first matching message that no posted receive took, twice
 * the same, and later ones only by their tag. */
static void order(size_t first, size_t second)
{
    unsigned char *p = mt_alloc(4 * (first + second) + 4), *at = p;
    size_t n[6];
    mt_buf_t early, buf;
    MPI_Request in, out[6];
    MPI_Status probed, got;
    mt_buf_new(&early, first + second + 1);
    MT_MPI(MPI_Irecv(early.p, (int) early.n, MPI_BYTE, from_prev, 1, MPI_COMM_WORLD, &in));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < 6; i++) {       /* tags 1 2 1 2 1 2 */
        n[i] = i / 2 % 2 ? second : first;
        mt_fill(at, n[i], mt_key(20, mt_rank, i, 0));
        MT_MPI(MPI_Isend(at, (int) n[i], MPI_BYTE, to_next, 1 + i % 2, MPI_COMM_WORLD, &out[i]));
        at += n[i];
    }
    for (int again = 0; again < 2; again++) {
        MT_MPI(MPI_Probe(from_prev, MPI_ANY_TAG, MPI_COMM_WORLD, &probed));
        MT_STATUS(&probed, from_prev, 2, n[1]);     /* number 0 belongs to the posted receive */
        MT_MPI(MPI_Probe(from_prev, 1, MPI_COMM_WORLD, &probed));
        MT_STATUS(&probed, from_prev, 1, n[2]);
    }
    static const int turn[] = {2, 1, 3, 4, 5};      /* number 2 overtakes number 1 by its tag */
    for (int i = 0; i < 5; i++) {
        int k = turn[i];
        take(i % WAYS, i % 2 ? MPI_ANY_SOURCE : from_prev, 0 == i ? 1 : MPI_ANY_TAG, &buf, &probed, &got);
        MT_STATUS(&probed, from_prev, 1 + k % 2, n[k]);
        MT_BUF(&buf, n[k], mt_key(20, from_prev, k, 0));
        mt_buf_free(&buf);
    }
    MT_MPI(MPI_Wait(&in, &got));
    MT_STATUS(&got, from_prev, 1, n[0]);
    MT_BUF(&early, n[0], mt_key(20, from_prev, 0, 0));
    MT_MPI(MPI_Waitall(6, out, MPI_STATUSES_IGNORE));
    mt_buf_free(&early);
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* Handles are kept while later messages of the same tag are received. */
static void kept_handles(size_t n)
{
    enum { COUNT = 8 };
    unsigned char *p = mt_alloc(COUNT * n + 1);
    MPI_Message kept[COUNT / 2];
    MPI_Request out[COUNT];
    MPI_Status status;
    mt_buf_t buf;
    for (int i = 0; i < COUNT; i++) {
        mt_fill(p + (size_t) i * n, n, mt_key(30, mt_rank, i, 0));
        MT_MPI(MPI_Isend(p + (size_t) i * n, (int) n, MPI_BYTE, to_next, 4, MPI_COMM_WORLD, &out[i]));
    }
    mt_buf_new(&buf, n + 5);
    for (int i = 0; i < COUNT; i++) {               /* even ones are kept, odd ones received */
        mt_buf_poison(&buf);
        if (0 == i % 2) {
            MT_MPI(MPI_Mprobe(from_prev, 4, MPI_COMM_WORLD, &kept[i / 2], &status));
            MT_STATUS(&status, from_prev, 4, n);
        } else {
            MT_MPI(MPI_Recv(buf.p, (int) buf.n, MPI_BYTE, from_prev, 4, MPI_COMM_WORLD, &status));
            MT_BUF(&buf, n, mt_key(30, from_prev, i, 0));
        }
    }
    for (int i = COUNT / 2 - 1; i >= 0; i--) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Mrecv(buf.p, (int) buf.n, MPI_BYTE, &kept[i], &status));
        MT_STATUS(&status, from_prev, 4, n);
        MT_BUF(&buf, n, mt_key(30, from_prev, 2 * i, 0));
    }
    MT_MPI(MPI_Waitall(COUNT, out, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    free(p);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

/* The communicator is freed before its message is received, and nothing else in this process keeps it; another one, of
 * other ranks, may be allocated at its address. */
static void freed_between(int sender, size_t n)
{
    unsigned char *p = mt_alloc(n + 1);
    MPI_Comm comm, next;
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Request out = MPI_REQUEST_NULL;
    MPI_Status status;
    mt_buf_t buf;
    mt_fill(p, n, mt_key(40, sender, (int) n, 0));
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &comm));
    if (sender == mt_rank) {
        MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to_next, 7, comm, &out));
    } else if (sender == from_prev) {
        MT_MPI(MPI_Mprobe(from_prev, 7, comm, &message, &status));
        MT_STATUS(&status, from_prev, 7, n);
    }
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, 0, -mt_rank, &next));
    if (MPI_MESSAGE_NULL != message) {
        mt_buf_new(&buf, n);
        MT_MPI(MPI_Mrecv(buf.p, (int) n, MPI_BYTE, &message, &status));
        MT_STATUS(&status, from_prev, 7, n);
        MT_BUF(&buf, n, mt_key(40, from_prev, (int) n, 0));
        mt_buf_free(&buf);
    }
    MT_MPI(MPI_Wait(&out, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Comm_free(&next));
    free(p);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int d = 1; d < mt_size; d++) {
        to_next = (mt_rank + d) % mt_size;
        from_prev = (mt_rank + mt_size - d) % mt_size;
        for (int way = 0; way < WAYS; way++) {
            sizes(way, from_prev, false);
            sizes(way, MPI_ANY_SOURCE, true);
        }
        mt_group("5 ways of probing at every size, distance %d", d);
        nothing_there();
        for (int i = 0; i < mt_few_sizes_count; i++) {
            for (int k = 0; k < mt_few_sizes_count; k++) {
                order(mt_few_sizes[i], mt_few_sizes[k]);
            }
            kept_handles(mt_few_sizes[i]);
        }
        mt_group("order of probed messages, kept handles, distance %d", d);
        for (int i = 0; i < mt_few_sizes_count; i++) {
            for (int sender = 0; sender < mt_size; sender++) {
                freed_between(sender, mt_few_sizes[i]);
            }
        }
        mt_group("received after its communicator was freed, distance %d", d);
    }
    proc_null();
    mt_group("MPI_PROC_NULL");
    return mt_end();
}

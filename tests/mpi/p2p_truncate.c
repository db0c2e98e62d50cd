/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A message longer than the receive: the class is MPI_ERR_TRUNCATE, the status
 * still counts the bytes of the message, nothing is written behind the buffer,
 * the sender gets no error, and the messages that follow are whole.
 *
 * Plain ob1 writes behind the buffer on its rendezvous paths, so plain runs
 * receive into a part of a larger buffer and do not look at what lies behind.
 */
#include "mt.h"

enum { RECV, IRECV, MRECV, IMRECV, SENDRECV, WAITALL, PERSISTENT, WAYS };

static int class_of(int rc)
{
    int class;
    MPI_Error_class(rc, &class);
    return class;
}

static int receive(int way, unsigned char *p, int room, int from, int tag, MPI_Status *status)
{
    MPI_Request req;
    MPI_Message message;
    int rc;
    switch (way) {
    case RECV:
        return MPI_Recv(p, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
    case IRECV:
        MT_MPI(MPI_Irecv(p, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &req));
        return MPI_Wait(&req, status);
    case MRECV:
        MT_MPI(MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, status));
        return MPI_Mrecv(p, room, MPI_BYTE, &message, status);
    case IMRECV:
        MT_MPI(MPI_Mprobe(from, tag, MPI_COMM_WORLD, &message, status));
        MT_MPI(MPI_Imrecv(p, room, MPI_BYTE, &message, &req));
        return MPI_Wait(&req, status);
    case SENDRECV:
        return MPI_Sendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, p, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, status);
    case WAITALL:
        MT_MPI(MPI_Irecv(p, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &req));
        rc = MPI_Waitall(1, &req, status);              /* the error is in the status */
        if (MPI_SUCCESS == rc) {
            return rc;
        }
        MT_CHECK(MPI_ERR_IN_STATUS == class_of(rc), "waitall: class %d", class_of(rc));
        return status->MPI_ERROR;
    default:
        MT_MPI(MPI_Recv_init(p, room, MPI_BYTE, from, tag, MPI_COMM_WORLD, &req));
        MT_MPI(MPI_Start(&req));
        rc = MPI_Wait(&req, status);
        if (MPI_REQUEST_NULL != req) {          /* Open MPI frees a request that failed */
            MT_MPI(MPI_Request_free(&req));
        }
        return rc;
    }
}

/* A message of n bytes into `room`, and one that fits behind it. */
static void one(int way, size_t n, size_t room, int distance, bool posted_late)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size, count;
    unsigned char *p = mt_alloc(2 * n);
    MPI_Request out[2];
    MPI_Status status;
    mt_buf_t buf;
    mt_buf_new(&buf, mt_sealed() ? room : n);
    mt_fill(p, n, mt_key(way, mt_rank, 0, 0));
    mt_fill(p + n, n, mt_key(way, mt_rank, 1, 0));
    MT_MPI(MPI_Isend(p, (int) n, MPI_BYTE, to, 7, MPI_COMM_WORLD, &out[0]));
    MT_MPI(MPI_Isend(p + n, (int) n, MPI_BYTE, to, 7, MPI_COMM_WORLD, &out[1]));
    if (posted_late) {
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    int rc = receive(way, buf.p, (int) room, from, 7, &status);
    MT_CHECK(MPI_ERR_TRUNCATE == class_of(rc), "way %d, %zu bytes into %zu: class %d", way, n, room, class_of(rc));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK(from == status.MPI_SOURCE && 7 == status.MPI_TAG && (size_t) count == n,
             "way %d, %zu bytes into %zu: source %d tag %d count %d", way, n, room, status.MPI_SOURCE, status.MPI_TAG, count);
    if (mt_sealed()) {              /* nothing outside the buffer */
        memset(buf.p, 0xa7, room);
        MT_BUF(&buf, 0, 0);
    }
    mt_buf_free(&buf);
    mt_buf_new(&buf, n);
    rc = receive(way, buf.p, (int) n, from, 7, &status);
    MT_CHECK(MPI_SUCCESS == rc, "the next message: %d", rc);
    MT_STATUS(&status, from, 7, n);
    MT_BUF(&buf, n, mt_key(way, from, 1, 0));
    MT_MPI(MPI_Waitall(2, out, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    free(p);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    for (int d = 1; d < mt_size; d++) {
        for (int way = 0; way < WAYS; way++) {
            for (int i = 0; i < mt_sizes_count; i++) {
                size_t n = mt_sizes[i];
                if (n < 1 || (n < 1000 && i % 3) || n > 1100000) {
                    continue;
                }
                one(way, n, 0, d, i % 2);
                one(way, n, n - 1, d, i % 2);
                one(way, n, n / 2, d, !(i % 2));
                one(way, n, n > 24 ? n - 24 : 0, d, i % 2);
            }
        }
        mt_group("%d ways to receive too little, distance %d", WAYS, d);
    }
    one(RECV, MT_MAX_SIZE, 100, 1, false);
    one(IRECV, MT_MAX_SIZE, 70000, 1, true);
    one(MRECV, MT_MAX_SIZE, MT_MAX_SIZE - 1, 1, false);
    mt_group("%d bytes into less", MT_MAX_SIZE);
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The wait and test families on many requests of all sizes and kinds at once,
 * MPI_Request_get_status, null and inactive requests, generalized requests in
 * between, and sends whose request is freed before they are done.
 */
#include "mt.h"

enum { COUNT = 24 };
enum { WAITALL, WAITANY, WAITSOME, TESTALL, TESTANY, TESTSOME, EACH, GET_STATUS, WAYS };

static int next, prev;

typedef struct {
    MPI_Request req[2 * COUNT + 2];     /* receives, sends, null, generalized */
    MPI_Status status[2 * COUNT + 2];
    bool done[2 * COUNT + 2];
    mt_buf_t buf[COUNT];
    unsigned char *p[COUNT];
    size_t bytes[COUNT];
} work_t;

static int g_query(void *extra, MPI_Status *status)
{
    (void) extra;
    MPI_Status_set_elements(status, MPI_INT, 5);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = 17;
    status->MPI_TAG = 18;
    return MPI_SUCCESS;
}
static int g_free(void *extra) { ++*(int *) extra; return MPI_SUCCESS; }
static int g_cancel(void *extra, int complete) { (void) extra; (void) complete; return MPI_SUCCESS; }

static void start(work_t *w, int way, int *freed)
{
    uint64_t state = mt_key(way, 0, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        w->bytes[i] = mt_random_size(&state, 400000);
        w->p[i] = mt_alloc(w->bytes[i] + 1);
        mt_fill(w->p[i], w->bytes[i], mt_key(way, mt_rank, i, 0));
        mt_buf_new(&w->buf[i], w->bytes[i]);
        MT_MPI(MPI_Irecv(w->buf[i].p, (int) w->bytes[i], MPI_BYTE, i % 3 ? prev : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &w->req[i]));
    }
    for (int i = 0; i < COUNT; i++) {
        int k = COUNT - 1 - i;
        int rc = i % 4 ? MPI_Isend(w->p[k], (int) w->bytes[k], MPI_BYTE, next, k, MPI_COMM_WORLD, &w->req[COUNT + k])
                       : MPI_Issend(w->p[k], (int) w->bytes[k], MPI_BYTE, next, k, MPI_COMM_WORLD, &w->req[COUNT + k]);
        MT_MPI(rc);
    }
    w->req[2 * COUNT] = MPI_REQUEST_NULL;
    MT_MPI(MPI_Grequest_start(g_query, g_free, g_cancel, freed, &w->req[2 * COUNT + 1]));
    MT_MPI(MPI_Grequest_complete(w->req[2 * COUNT + 1]));
    memset(w->done, 0, sizeof(w->done));
}

static void finished(work_t *w, int way, int i)
{
    MT_CHECK(i >= 0 && i < 2 * COUNT + 2 && !w->done[i], "request %d completes twice", i);
    w->done[i] = true;
    MT_CHECK(MPI_REQUEST_NULL == w->req[i], "request %d is not freed", i);
    if (i < COUNT) {
        MT_STATUS(&w->status[i], prev, i, w->bytes[i]);
        MT_BUF(&w->buf[i], w->bytes[i], mt_key(way, prev, i, 0));
    } else if (2 * COUNT + 1 == i) {
        MT_STATUS(&w->status[i], 17, 18, 5 * sizeof(int));
    }
}

static void finish_some(work_t *w, int way, int rc, int out, const int *indices, const MPI_Status *status)
{
    MT_MPI(rc);
    for (int k = 0; k < out; k++) {
        w->status[indices[k]] = status[k];
        finished(w, way, indices[k]);
    }
}

static void run(int way)
{
    enum { ALL = 2 * COUNT + 2 };
    work_t *w = malloc(sizeof(*w));
    int freed = 0, flag = 0, index, out, indices[ALL];
    MPI_Status status, some[ALL];
    start(w, way, &freed);
    switch (way) {
    case WAITALL:
        MT_MPI(MPI_Waitall(ALL, w->req, w->status));
        break;
    case TESTALL:
        while (!flag) {
            MT_MPI(MPI_Testall(ALL, w->req, &flag, w->status));
        }
        break;
    case EACH:
        for (int i = ALL - 1; i >= 0; i--) {
            for (flag = 0; !flag && i % 2;) {
                MT_MPI(MPI_Test(&w->req[i], &flag, &w->status[i]));
            }
            if (!(i % 2)) {
                MT_MPI(MPI_Wait(&w->req[i], &w->status[i]));
            }
        }
        break;
    case GET_STATUS:            /* looks, and frees nothing; then wait agrees */
        for (int i = 0; i < ALL; i++) {
            for (flag = 0; !flag;) {
                MT_MPI(MPI_Request_get_status(w->req[i], &flag, &status));
            }
            MT_CHECK(MPI_REQUEST_NULL != w->req[i] || 2 * COUNT == i, "get_status freed request %d", i);
            if (i < COUNT) {
                MT_STATUS(&status, prev, i, w->bytes[i]);
            }
            MT_MPI(MPI_Wait(&w->req[i], &w->status[i]));
        }
        break;
    default:
        for (int left = 2 * COUNT + 1; left > 0; left -= out) {
            if (WAITANY == way || TESTANY == way) {
                flag = 1;
                MT_MPI(WAITANY == way ? MPI_Waitany(ALL, w->req, &index, &some[0])
                                      : MPI_Testany(ALL, w->req, &index, &flag, &some[0]));
                out = flag ? 1 : 0;
                finish_some(w, way, MPI_SUCCESS, out, &index, some);
            } else {
                int rc = WAITSOME == way ? MPI_Waitsome(ALL, w->req, &out, indices, some)
                                         : MPI_Testsome(ALL, w->req, &out, indices, some);
                finish_some(w, way, rc, out, indices, some);
            }
        }
        MT_MPI(MPI_Waitany(ALL, w->req, &index, &status));
        MT_CHECK(MPI_UNDEFINED == index, "index %d of null requests", index);
        MT_MPI(MPI_Waitsome(ALL, w->req, &out, indices, some));
        MT_CHECK(MPI_UNDEFINED == out, "outcount %d of null requests", out);
        break;
    }
    for (int i = 0; i < ALL; i++) {
        if (!w->done[i] && 2 * COUNT != i) {
            finished(w, way, i);
        }
    }
    MT_CHECK(1 == freed, "generalized request freed %d times", freed);
    for (int i = 0; i < COUNT; i++) {
        mt_buf_free(&w->buf[i]);
        free(w->p[i]);
    }
    free(w);
}

/* Requests freed while active: the messages still arrive. */
static void freed_requests(void)
{
    unsigned char *p[mt_few_sizes_count];
    MPI_Request req;
    mt_buf_t buf;
    char token = 0;
    for (int i = 0; i < mt_few_sizes_count; i++) {
        p[i] = mt_alloc(mt_few_sizes[i] + 1);
        mt_fill(p[i], mt_few_sizes[i], mt_key(50, mt_rank, i, 0));
        MT_MPI(i % 2 ? MPI_Isend(p[i], (int) mt_few_sizes[i], MPI_BYTE, next, i, MPI_COMM_WORLD, &req)
                     : MPI_Issend(p[i], (int) mt_few_sizes[i], MPI_BYTE, next, i, MPI_COMM_WORLD, &req));
        MT_MPI(MPI_Request_free(&req));
        MT_CHECK(MPI_REQUEST_NULL == req, "request_free leaves the handle");
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = mt_few_sizes_count - 1; i >= 0; i--) {
        mt_buf_new(&buf, mt_few_sizes[i]);
        if (i % 2) {            /* a freed receive: known to be done by a later message */
            MT_MPI(MPI_Irecv(buf.p, (int) buf.n, MPI_BYTE, prev, i, MPI_COMM_WORLD, &req));
            MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
        } else {
            MT_MPI(MPI_Recv(buf.p, (int) buf.n, MPI_BYTE, prev, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
        MT_BUF(&buf, mt_few_sizes[i], mt_key(50, prev, i, 0));
        mt_buf_free(&buf);
    }
    MT_MPI(MPI_Sendrecv(&token, 1, MPI_CHAR, prev, 99, &token, 1, MPI_CHAR, next, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    for (int i = 0; i < mt_few_sizes_count; i++) {
        free(p[i]);             /* the neighbor has everything */
    }
}

/* A small receive freed while active; its arrival shows in the buffer only. */
static void freed_receive(void)
{
    volatile int *value = malloc(sizeof(int));
    int own = 1000 + mt_rank;
    MPI_Request req;
    *value = -1;
    MT_MPI(MPI_Irecv((void *) value, 1, MPI_INT, prev, 60, MPI_COMM_WORLD, &req));
    MT_MPI(MPI_Request_free(&req));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Send(&own, 1, MPI_INT, next, 60, MPI_COMM_WORLD));
    while (-1 == *value) {
        int flag;
        MT_MPI(MPI_Iprobe(prev, 61, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE));
    }
    MT_CHECK(1000 + prev == *value, "value %d", *value);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    free((void *) value);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int d = 1; d < mt_size; d++) {
        next = (mt_rank + d) % mt_size;
        prev = (mt_rank + mt_size - d) % mt_size;
        for (int round = 0; round < 5; round++) {
            for (int way = 0; way < WAYS; way++) {
                run(way);
                MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
            }
        }
        mt_group("8 ways of waiting for %d requests, distance %d", 2 * COUNT + 2, d);
        freed_requests();
        freed_receive();
        mt_group("freed requests, distance %d", d);
    }
    return mt_end();
}

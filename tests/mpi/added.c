/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What MPI 4.0 to 5.0 added to point-to-point: MPI_Isendrecv and its like; the state of several requests, which
 * stay; buffers of buffered sends that belong to a communicator or a session, are as large as it takes, or are flushed.
 */
#include "mt.h"

#if MT_HAS_MPI4
/* With all ranks at once; and with MPI_PROC_NULL, whose message is empty. */
static void isendrecv(size_t n)
{
    unsigned char *out = malloc(n + 1);
    mt_buf_t in[2];
    MPI_Status status[3];
    MPI_Request req[3];

    mt_buf_new(&in[0], n);
    mt_buf_new(&in[1], n);
    for (int d = 0; d < mt_size; d++) {
        const int to = (mt_rank + d) % mt_size, from = (mt_rank + mt_size - d) % mt_size;

        mt_buf_poison(&in[0]);
        mt_buf_poison(&in[1]);
        mt_fill(out, n, mt_key(1, mt_rank, to, 0));
        mt_fill(in[1].p, n, mt_key(1, mt_rank, to, 1));
        MT_MPI(MPI_Isendrecv(out, (int) n, MPI_BYTE, to, 1, in[0].p, (int) n, MPI_BYTE, from, 1, MPI_COMM_WORLD, &req[0]));
        MT_MPI(MPI_Isendrecv_replace(in[1].p, (int) n, MPI_BYTE, to, 2, from, 2, MPI_COMM_WORLD, &req[1]));
        MT_MPI(MPI_Isendrecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 3, NULL, 0, MPI_BYTE, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &req[2]));
        MT_MPI(MPI_Waitall(3, req, status));
        for (int i = 0; i < 2; i++) {
            MT_STATUS(&status[i], from, 1 + i, n);
            MT_BUF(&in[i], n, mt_key(1, from, mt_rank, i));
        }
    }
    mt_buf_free(&in[0]);
    mt_buf_free(&in[1]);
    free(out);
}
#endif

#if MT_HAS_MPI5
enum { COUNT = 5, FIRST = 2 };

/* Message FIRST alone, then the rest: the calls must report which have arrived, and free none. */
static void several(size_t n)
{
    const int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *out = malloc(n + 1);
    int flag, index, some, which[COUNT];
    MPI_Request req[COUNT];
    MPI_Status status, statuses[COUNT];
    mt_buf_t in[COUNT];

    for (int i = 0; i < COUNT; i++) {
        mt_buf_new(&in[i], n);
        mt_buf_poison(&in[i]);
        MT_MPI(MPI_Irecv(in[i].p, (int) n, MPI_BYTE, from, i, MPI_COMM_WORLD, &req[i]));
    }
    MT_MPI(MPI_Request_get_status_any(COUNT, req, &index, &flag, &status));
    MT_CHECK(!flag, "any: request %d, before anything was sent", index);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_fill(out, n, mt_key(2, mt_rank, FIRST, 0));
    MT_MPI(MPI_Send(out, (int) n, MPI_BYTE, to, FIRST, MPI_COMM_WORLD));
    for (flag = 0; !flag;) {
        MT_MPI(MPI_Request_get_status_any(COUNT, req, &index, &flag, &status));
    }
    MT_CHECK(FIRST == index, "any: %d", index);
    MT_STATUS(&status, from, FIRST, n);
    MT_MPI(MPI_Request_get_status_some(COUNT, req, &some, which, statuses));
    MT_CHECK(1 == some && FIRST == which[0], "some: %d, first %d", some, which[0]);
    MT_STATUS(&statuses[0], from, FIRST, n);
    MT_MPI(MPI_Request_get_status_all(COUNT, req, &flag, MPI_STATUSES_IGNORE));
    MT_CHECK(!flag, "all, of which one was sent");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < COUNT; i++) {
        if (FIRST != i) {
            mt_fill(out, n, mt_key(2, mt_rank, i, 0));
            MT_MPI(MPI_Send(out, (int) n, MPI_BYTE, to, i, MPI_COMM_WORLD));
        }
    }
    for (flag = 0; !flag;) {
        MT_MPI(MPI_Request_get_status_all(COUNT, req, &flag, statuses));
    }
    for (int i = 0; i < COUNT; i++) {
        MT_CHECK(MPI_REQUEST_NULL != req[i], "request %d is gone", i);
        MT_STATUS(&statuses[i], from, i, n);
        MT_BUF(&in[i], n, mt_key(2, from, i, 0));
    }
    MT_MPI(MPI_Request_get_status_some(COUNT, req, &some, which, MPI_STATUSES_IGNORE));
    MT_CHECK(COUNT == some, "some: %d of %d", some, COUNT);
    MT_MPI(MPI_Waitall(COUNT, req, MPI_STATUSES_IGNORE));
    MT_MPI(MPI_Request_get_status_any(COUNT, req, &index, &flag, &status));
    MT_CHECK(flag && MPI_UNDEFINED == index, "any of none: %d", index);
    for (int i = 0; i < COUNT; i++) {
        mt_buf_free(&in[i]);
    }
    free(out);
}

/* Sends through the buffer that `comm` uses, with data that is overwritten at once. */
static void buffered(MPI_Comm comm, size_t n)
{
    const int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    unsigned char *out = malloc(n + 1);
    mt_buf_t in;

    for (int i = 0; i < COUNT; i++) {
        mt_fill(out, n, mt_key(3, mt_rank, i, 0));
        MT_MPI(MPI_Bsend(out, (int) n, MPI_BYTE, to, 4, comm));
        memset(out, 0xee, n);
    }
    mt_buf_new(&in, n);
    for (int i = 0; i < COUNT; i++) {
        mt_buf_poison(&in);
        MT_MPI(MPI_Recv(in.p, (int) n, MPI_BYTE, from, 4, comm, MPI_STATUS_IGNORE));
        MT_BUF(&in, n, mt_key(3, from, i, 0));
    }
    mt_buf_free(&in);
    free(out);
}

static void of_process(size_t n)
{
    MPI_Request req;
    void *back;
    int room;

    MT_MPI(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    buffered(MPI_COMM_WORLD, n);
    MT_MPI(MPI_Buffer_flush());
    buffered(MPI_COMM_WORLD, n);
    MT_MPI(MPI_Buffer_iflush(&req));
    MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Buffer_detach(&back, &room));
    MT_CHECK(MPI_BUFFER_AUTOMATIC == back, "another buffer than was attached");
}

/* The communicator's buffer is used, not the process's larger one, which serves the others. */
static void of_comm(size_t n)
{
    const int room = COUNT * (int) (n + MPI_BSEND_OVERHEAD) + 4096;
    static unsigned char large[300000];         /* more than is sent without a buffer */
    char *buffer = malloc((size_t) room), small[1000];
    int got, rc, class;
    MPI_Comm own, spoilt;
    void *back;

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &own));
    MT_MPI(MPI_Comm_attach_buffer(own, buffer, room));
    buffered(own, n);
    MT_MPI(MPI_Comm_flush_buffer(own));
    MT_MPI(MPI_Comm_detach_buffer(own, &back, &got));
    MT_CHECK(back == buffer && got == room, "detach: %d of %d", got, room);
    MT_MPI(MPI_Comm_attach_buffer(own, MPI_BUFFER_AUTOMATIC, 0));
    buffered(own, n);
    MT_MPI(MPI_Comm_detach_buffer(own, &back, &got));
    MT_MPI(MPI_Comm_free(&own));

    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &spoilt));
    MT_MPI(MPI_Comm_set_errhandler(spoilt, MPI_ERRORS_RETURN));
    MT_MPI(MPI_Buffer_attach(MPI_BUFFER_AUTOMATIC, 0));
    MT_MPI(MPI_Comm_attach_buffer(spoilt, small, (int) sizeof(small)));
    rc = MPI_Bsend(large, (int) sizeof(large), MPI_BYTE, (mt_rank + 1) % mt_size, 5, spoilt);
    MPI_Error_class(rc, &class);
    MT_CHECK(MPI_ERR_BUFFER == class, "more than its communicator's buffer: class %d", class);
    buffered(MPI_COMM_WORLD, n);
    MT_MPI(MPI_Comm_detach_buffer(spoilt, &back, &got));
    MT_MPI(MPI_Buffer_detach(&back, &got));
    MT_MPI(MPI_Comm_free(&spoilt));
    free(buffer);
}

static void of_session(size_t n)
{
    const int room = COUNT * (int) (n + MPI_BSEND_OVERHEAD) + 4096;
    char *buffer = malloc((size_t) room);
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    void *back;
    int got;

    MT_MPI(MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session));
    MT_MPI(MPI_Group_from_session_pset(session, "mpi://WORLD", &group));
    MT_MPI(MPI_Comm_create_from_group(group, "ompi-crypt.tests.added", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm));
    MT_MPI(MPI_Group_free(&group));
    MT_MPI(MPI_Session_attach_buffer(session, buffer, room));
    buffered(comm, n);
    MT_MPI(MPI_Session_flush_buffer(session));
    MT_MPI(MPI_Session_detach_buffer(session, &back, &got));
    MT_CHECK(back == buffer && got == room, "detach: %d of %d", got, room);
    MT_MPI(MPI_Comm_free(&comm));
    MT_MPI(MPI_Session_finalize(&session));
    free(buffer);
}
#endif

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
#if MT_HAS_MPI4
    for (int i = 0; i < mt_few_sizes_count; i++) {
        isendrecv(mt_few_sizes[i]);
    }
    mt_group("isendrecv and isendrecv_replace");
#    if MT_HAS_MPI5
    static const struct { const char *name; void (*run)(size_t n); } parts[] = {
        {"several requests", several}, {"an automatic buffer", of_process}, {"a communicator's buffer", of_comm},
        {"a session's buffer", of_session}};
    for (size_t p = 0; p < sizeof(parts) / sizeof(*parts); p++) {
        for (int i = 0; i < mt_few_sizes_count; i++) {
            parts[p].run(mt_few_sizes[i]);
        }
        mt_group("%s", parts[p].name);
    }
#    endif
    return mt_end();
#else
    mt_skip("this MPI has none of them");
#endif
}

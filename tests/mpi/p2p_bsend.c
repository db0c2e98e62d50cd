/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Buffered sends: complete without a receiver, the user's data may change at
 * once, a full buffer is an error, detach waits until everything has left,
 * and what is still buffered at MPI_Finalize arrives ("last").
 */
#include "mt.h"

enum { COUNT = 8 };

static int next, prev;

static void change_at_once(size_t n)
{
    int room = COUNT * (int) (n + MPI_BSEND_OVERHEAD) + 4096, got;
    unsigned char *p = mt_alloc(n + 1);
    void *buffer = malloc((size_t) room), *back;
    MPI_Request req;
    mt_buf_t buf;
    MT_MPI(MPI_Buffer_attach(buffer, room));
    for (int i = 0; i < COUNT; i++) {
        mt_fill(p, n, mt_key(1, mt_rank, i, 0));
        if (i % 2) {
            MT_MPI(MPI_Bsend(p, (int) n, MPI_BYTE, next, 1, MPI_COMM_WORLD));
        } else {
            MT_MPI(MPI_Ibsend(p, (int) n, MPI_BYTE, next, 1, MPI_COMM_WORLD, &req));
            MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
        }
        memset(p, 0xee, n);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_buf_new(&buf, n);
    for (int i = 0; i < COUNT; i++) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, prev, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_BUF(&buf, n, mt_key(1, prev, i, 0));
    }
    mt_buf_free(&buf);
    MT_MPI(MPI_Buffer_detach(&back, &got));
    MT_CHECK(back == buffer && got == room, "detach: %d of %d", got, room);
    free(buffer);
    free(p);
}

/* The receiver starts only when told by us, which we do before detaching. */
static void detach_waits(size_t n)
{
    int room = 2 * (int) (n + MPI_BSEND_OVERHEAD) + 4096, got;
    unsigned char *p = mt_alloc(n + 1);
    void *buffer = malloc((size_t) room), *back;
    char token = 0;
    mt_buf_t buf;
    mt_fill(p, n, mt_key(2, mt_rank, 0, 0));
    if (0 == mt_rank % 2 && mt_rank + 1 < mt_size) {
        MT_MPI(MPI_Buffer_attach(buffer, room));
        MT_MPI(MPI_Bsend(p, (int) n, MPI_BYTE, mt_rank + 1, 2, MPI_COMM_WORLD));
        MT_MPI(MPI_Send(&token, 1, MPI_CHAR, mt_rank + 1, 3, MPI_COMM_WORLD));
        MT_MPI(MPI_Buffer_detach(&back, &got));
        memset(back, 0xee, (size_t) got);           /* ours again */
        MT_CHECK(back == buffer && got == room, "detach: %d of %d", got, room);
    } else if (mt_rank % 2) {
        mt_buf_new(&buf, n);
        MT_MPI(MPI_Recv(&token, 1, MPI_CHAR, mt_rank - 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, mt_rank - 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_BUF(&buf, n, mt_key(2, mt_rank - 1, 0, 0));
        mt_buf_free(&buf);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    free(buffer);
    free(p);
}

/* A refused send leaves a hole in ob1's numbering, after which nothing more
 * arrives on that communicator: so it gets one of its own. */
static void full_buffer(void)
{
    MPI_Comm spoilt;
    static unsigned char p[300000];         /* above ob1's eager limits: those need no buffer */
    static char buffer[50000];
    void *back;
    int got, class, rc;
    MT_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &spoilt));
    MT_MPI(MPI_Comm_set_errhandler(spoilt, MPI_ERRORS_RETURN));
    MT_MPI(MPI_Buffer_attach(buffer, (int) sizeof(buffer)));
    rc = MPI_Bsend(p, (int) sizeof(p), MPI_BYTE, next, 4, spoilt);
    MPI_Error_class(rc, &class);
    MT_CHECK(MPI_ERR_BUFFER == class, "more than the buffer: class %d", class);
    rc = MPI_Bsend("y", 1, MPI_BYTE, next, 5, MPI_COMM_WORLD);          /* it still works */
    MT_CHECK(MPI_SUCCESS == rc, "after the error: %d", rc);
    char c = 0;
    MT_MPI(MPI_Recv(&c, 1, MPI_CHAR, prev, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    MT_CHECK('y' == c, "byte %d", c);
    MT_MPI(MPI_Buffer_detach(&back, &got));
    int here;
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_Iprobe(MPI_ANY_SOURCE, 4, spoilt, &here, MPI_STATUS_IGNORE));
    MT_CHECK(!here, "a refused message arrived");
    MT_MPI(MPI_Comm_free(&spoilt));
}

/* Everybody sends and goes straight to MPI_Finalize; receivers come later. */
static int last(size_t n)
{
    int room = COUNT * (int) (n + MPI_BSEND_OVERHEAD) + 4096;
    unsigned char *p = mt_alloc(n + 1);
    void *buffer = malloc((size_t) room);
    mt_buf_t buf;
    MPI_Status status;
    if (0 == mt_rank) {
        MT_MPI(MPI_Buffer_attach(buffer, room));
        for (int to = 1; to < mt_size && to <= COUNT; to++) {
            mt_fill(p, n, mt_key(3, 0, to, 0));
            MT_MPI(MPI_Bsend(p, (int) n, MPI_BYTE, to, 6, MPI_COMM_WORLD));
        }
    } else if (mt_rank <= COUNT) {
        mt_buf_new(&buf, n);
        MT_MPI(MPI_Probe(0, 6, MPI_COMM_WORLD, &status));
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, 0, 6, n);
        MT_BUF(&buf, n, mt_key(3, 0, mt_rank, 0));
        mt_buf_free(&buf);
        printf("ok p2p_bsend: rank %d has the %zu bytes that rank 0 left at finalize\n", mt_rank, n);
    }
    MT_MPI(MPI_Finalize());
    free(buffer);
    free(p);
    return 0;
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (mt_flag("last")) {
        return last((size_t) mt_arg("bytes", 1000000));
    }
    for (int d = 1; d < mt_size; d++) {
        next = (mt_rank + d) % mt_size;
        prev = (mt_rank + mt_size - d) % mt_size;
        for (int i = 0; i < mt_few_sizes_count; i++) {
            change_at_once(mt_few_sizes[i]);
            detach_waits(mt_few_sizes[i]);
        }
        mt_group("data changed at once, detach with messages under way, distance %d", d);
        full_buffer();
        mt_group("full buffer, distance %d", d);
    }
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Every send mode, blocking and not, at every size, to every distance: into
 * posted receives, as unexpected messages, and from memory that may only be
 * read.
 */
#include "mt.h"

#include <sys/mman.h>

enum { STD, SYNC, READY, BUF, ISTD, ISYNC, IREADY, IBUF, MODES };

static void send_by(int mode, const void *p, size_t n, int to, int tag, MPI_Request *req)
{
    int count = (int) n;
    *req = MPI_REQUEST_NULL;
    switch (mode) {
    case STD:    MT_MPI(MPI_Send(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD)); break;
    case SYNC:   MT_MPI(MPI_Ssend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD)); break;
    case READY:  MT_MPI(MPI_Rsend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD)); break;
    case BUF:    MT_MPI(MPI_Bsend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD)); break;
    case ISTD:   MT_MPI(MPI_Isend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, req)); break;
    case ISYNC:  MT_MPI(MPI_Issend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, req)); break;
    case IREADY: MT_MPI(MPI_Irsend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, req)); break;
    default:     MT_MPI(MPI_Ibsend(p, count, MPI_BYTE, to, tag, MPI_COMM_WORLD, req)); break;
    }
}

/* All receives are posted before anybody sends. */
static void posted(size_t n, int distance)
{
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    MPI_Request in[MODES], out[MODES];
    MPI_Status status[MODES];
    mt_buf_t buf[MODES];
    unsigned char *p = mt_alloc(MODES * n + 1);
    for (int m = 0; m < MODES; m++) {
        mt_buf_new(&buf[m], n + (size_t) m);        /* some receives are larger */
        MT_MPI(MPI_Irecv(buf[m].p, (int) buf[m].n, MPI_BYTE, from, m, MPI_COMM_WORLD, &in[m]));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int m = 0; m < MODES; m++) {
        mt_fill(p + (size_t) m * n, n, mt_key(1, mt_rank, m, distance));
        send_by(m, p + (size_t) m * n, n, to, m, &out[m]);
    }
    MT_MPI(MPI_Waitall(MODES, in, status));
    MT_MPI(MPI_Waitall(MODES, out, MPI_STATUSES_IGNORE));
    for (int m = 0; m < MODES; m++) {
        MT_STATUS(&status[m], from, m, n);
        MT_BUF(&buf[m], n, mt_key(1, from, m, distance));
        mt_buf_free(&buf[m]);
    }
    free(p);
}

/* Nobody receives before everybody has sent; then in reverse order of tags. */
static void unexpected(size_t n, int distance)
{
    static const int modes[] = {ISTD, BUF, ISYNC, IBUF};
    enum { COUNT = sizeof(modes) / sizeof(*modes) };
    int to = (mt_rank + distance) % mt_size, from = (mt_rank + mt_size - distance) % mt_size;
    MPI_Request out[COUNT];
    MPI_Status status;
    mt_buf_t buf;
    unsigned char *p = mt_alloc(COUNT * n + 1);
    for (int i = 0; i < COUNT; i++) {
        mt_fill(p + (size_t) i * n, n, mt_key(2, mt_rank, i, distance));
        send_by(modes[i], p + (size_t) i * n, n, to, i, &out[i]);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_buf_new(&buf, n);
    for (int i = COUNT - 1; i >= 0; i--) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, from, i, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, from, i, n);
        MT_BUF(&buf, n, mt_key(2, from, i, distance));
    }
    MT_MPI(MPI_Waitall(COUNT, out, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    free(p);
}

/* The send buffer lies in read-only pages and serves many sends at a time. */
static void read_only(void)
{
    size_t n = MT_MAX_SIZE;
    unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MPI_Request req[64];
    mt_buf_t buf;
    int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size, many = 0;
    MT_CHECK(MAP_FAILED != p, "mmap");
    mt_fill(p, n, mt_key(3, mt_rank, 0, 0));
    MT_CHECK(0 == mprotect(p, n, PROT_READ), "mprotect");
    for (int i = 0; i < mt_few_sizes_count; i++) {
        int size = (int) mt_few_sizes[i];
        MT_MPI(MPI_Isend(p, size, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[many++]));
        MT_MPI(MPI_Issend(p, size, MPI_BYTE, to, i, MPI_COMM_WORLD, &req[many++]));
    }
    mt_buf_new(&buf, n);
    for (int i = 0; i < 2 * mt_few_sizes_count; i++) {
        mt_buf_poison(&buf);
        MT_MPI(MPI_Recv(buf.p, (int) n, MPI_BYTE, from, i / 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_BUF(&buf, mt_few_sizes[i / 2], mt_key(3, from, 0, 0));
    }
    MT_MPI(MPI_Waitall(many, req, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    munmap(p, n);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    size_t limit = (size_t) mt_arg("max", MT_MAX_SIZE), room = 4 * (size_t) MT_MAX_SIZE + 16 * MPI_BSEND_OVERHEAD;
    void *buffer = malloc(room), *back;
    int bytes;
    MT_MPI(MPI_Buffer_attach(buffer, (int) room));
    for (int d = 1; d < mt_size; d++) {
        for (int i = 0; i < mt_sizes_count; i++) {
            if (mt_sizes[i] <= limit) {
                posted(mt_sizes[i], d);
            }
        }
        mt_group("8 send modes into posted receives, distance %d", d);
        for (int i = 0; i < mt_sizes_count; i++) {
            if (mt_sizes[i] <= limit) {
                unexpected(mt_sizes[i], d);
            }
        }
        mt_group("4 send modes, unexpected, distance %d", d);
    }
    read_only();
    mt_group("read-only send buffers, shared by many sends");
    MT_MPI(MPI_Buffer_detach(&back, &bytes));
    MT_CHECK(back == buffer && (size_t) bytes == room, "detach");
    free(buffer);
    return mt_end();
}

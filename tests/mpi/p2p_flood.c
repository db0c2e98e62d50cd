/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Many messages: a flood of unexpected ones before the first receive, many
 * large transfers both ways at once, and memory that stops growing.
 */
#include "mt.h"

static int next, prev;

/* `count` messages of up to `limit` bytes are queued before any is received.
 * ob1 tells messages of a pair apart by 16-bit numbers and mixes them up when
 * more than 65,535 are on their way, so small ones are waited for by the
 * thousand: they complete at the sender, unexpected or not. */
static void flood(int count, size_t limit)
{
    uint64_t state = mt_key(1, mt_rank, next, 0), other = mt_key(1, prev, mt_rank, 0);
    MPI_Request *req = malloc((size_t) count * sizeof(*req));
    unsigned char *p = mt_alloc((size_t) count * limit + 1), *at = p;
    MPI_Status status;
    mt_buf_t buf;
    MT_CHECK(NULL != req && NULL != p, "memory");
    for (int i = 0; i < count; i++) {
        size_t n = mt_below(&state, limit + 1);
        mt_fill(at, n, mt_key(2, mt_rank, i, 0));
        MT_MPI(MPI_Isend(at, (int) n, MPI_BYTE, next, i % 1000, MPI_COMM_WORLD, &req[i]));
        at += n;
        if (limit < 1000 && 999 == i % 1000) {
            MT_MPI(MPI_Waitall(1000, &req[i - 999], MPI_STATUSES_IGNORE));
        }
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    mt_buf_new(&buf, limit);
    for (int i = 0; i < count; i++) {
        size_t n = mt_below(&other, limit + 1);
        MT_MPI(MPI_Recv(buf.p, (int) limit, MPI_BYTE, prev, MPI_ANY_TAG, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, prev, i % 1000, n);
        MT_SAME(buf.p, n, mt_key(2, prev, i, 0), "flood");
    }
    MT_MPI(MPI_Waitall(count, req, MPI_STATUSES_IGNORE));
    mt_buf_free(&buf);
    free(req);
    free(p);
}

/* `count` large messages to and from every other rank, all at once. */
static void all_at_once(int count, size_t n)
{
    int many = 0, peers = mt_size - 1;
    size_t total = (size_t) count * (size_t) peers;
    MPI_Request *req = malloc(2 * total * sizeof(*req));
    unsigned char *p = mt_alloc(total * n), *q = mt_alloc(total * n);
    MT_CHECK(NULL != req && NULL != p && NULL != q, "memory");
    memset(q, 0, total * n);
    for (int i = 0; i < count; i++) {
        for (int d = 1; d < mt_size; d++) {
            size_t slot = (size_t) i * (size_t) peers + (size_t) d - 1;
            int to = (mt_rank + d) % mt_size, from = (mt_rank + mt_size - d) % mt_size;
            mt_fill(p + slot * n, n, mt_key(3, mt_rank, to, i));
            MT_MPI(MPI_Isend(p + slot * n, (int) n, MPI_BYTE, to, 5, MPI_COMM_WORLD, &req[many++]));
            MT_MPI(MPI_Irecv(q + slot * n, (int) n, MPI_BYTE, from, 5, MPI_COMM_WORLD, &req[many++]));
        }
    }
    MT_MPI(MPI_Waitall(many, req, MPI_STATUSES_IGNORE));
    for (int i = 0; i < count; i++) {
        for (int d = 1; d < mt_size; d++) {
            size_t slot = (size_t) i * (size_t) peers + (size_t) d - 1;
            MT_SAME(q + slot * n, n, mt_key(3, (mt_rank + mt_size - d) % mt_size, mt_rank, i), "all at once");
        }
    }
    free(req);
    free(p);
    free(q);
}

static void ping_pong(long times, size_t limit)
{
    uint64_t state = mt_key(4, 0, 0, 0);
    unsigned char *p = mt_alloc(limit + 1);
    mt_buf_t buf;
    MPI_Status status;
    mt_buf_new(&buf, limit);
    mt_fill(p, limit, mt_key(5, mt_rank, 0, 0));
    for (long i = 0; i < times; i++) {
        size_t n = 0 == i % 50 ? mt_random_size(&state, limit) : mt_below(&state, 500);
        MT_MPI(MPI_Sendrecv(p, (int) n, MPI_BYTE, next, 6, buf.p, (int) limit, MPI_BYTE,
                            i % 2 ? prev : MPI_ANY_SOURCE, 6, MPI_COMM_WORLD, &status));
        MT_STATUS(&status, prev, 6, n);
        MT_SAME(buf.p, n, mt_key(5, prev, 0, 0), "ping-pong");
    }
    mt_buf_free(&buf);
    free(p);
}

/* After a warm-up of the same kind, memory must not grow with the messages. */
static void no_growth(long times)
{
    ping_pong(times / 4, 200000);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    long begin = mt_rss_kib();
    ping_pong(times / 2, 200000);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    long middle = mt_rss_kib();
    ping_pong(times - times / 2, 200000);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    long end = mt_rss_kib(), grown = end - begin, most;
    MT_MPI(MPI_Allreduce(&grown, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD));
    /* 8 MiB: room for transport buffers; a leak of one 100-byte object a message is more. */
    MT_CHECK(grown < 8192, "%ld KiB more after %ld messages", grown, times);
    mt_group("%ld messages, resident memory of rank 0: %ld KiB, in the middle %ld, at the end %ld; of no rank more than %+ld",
             times, begin, middle, end, most);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    next = (mt_rank + 1) % mt_size;
    prev = (mt_rank + mt_size - 1) % mt_size;
    int count = (int) mt_arg("count", 100000);
    flood(count, 100);
    mt_group("%d unexpected messages of up to 100 bytes", count);
    flood(2000, 20000);
    mt_group("2000 unexpected messages of up to 20000 bytes");
    flood(150, 300000);
    mt_group("150 unexpected messages of up to 300000 bytes");
    all_at_once(16, 1048577);
    mt_group("16 transfers of 1 MiB from and to everybody at once");
    all_at_once(3, MT_MAX_SIZE);
    mt_group("3 transfers of %d bytes from and to everybody at once", MT_MAX_SIZE);
    no_growth(mt_arg("messages", 100000));
    return mt_end();
}

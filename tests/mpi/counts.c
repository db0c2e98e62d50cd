/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Calls with an MPI_Count (`_c`), which MPI 4 has and Open MPI from 6.0 on.  Collectives whose pieces are gigabytes
 * apart, in memory of which only the pieces are ever touched; with "bytes=N" also messages and a broadcast of
 * more elements than an int can count.
 */
#define _GNU_SOURCE
#include "mt.h"

#if MT_HAS_MPI5
#    include <sys/mman.h>

/* Further apart than an int can say. */
static const MPI_Aint apart = 3000000001;

static unsigned char *wide(void)
{
    void *p = mmap(NULL, (size_t) (apart * (mt_size + 1)), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    MT_CHECK(MAP_FAILED != p, "no addresses");
    return p;
}

static void narrow(unsigned char *p)
{
    munmap(p, (size_t) (apart * (mt_size + 1)));
}

/* Unequal pieces, of rank `from` for rank `to`; to < 0: for all. */
static MPI_Count piece(size_t n, int from, int to)
{
    return (MPI_Count) n + 10 * from + to + 1;
}

static void all_gather(size_t n, bool blocking)
{
    const MPI_Count mine = piece(n, mt_rank, -1);
    MPI_Count *counts = malloc((size_t) mt_size * sizeof(*counts));
    MPI_Aint *at = malloc((size_t) mt_size * sizeof(*at));
    unsigned char *out = malloc((size_t) mine + 1), *in = wide();
    MPI_Request req;

    for (int i = 0; i < mt_size; i++) {
        counts[i] = piece(n, i, -1);
        at[i] = apart * (mt_size - i);
    }
    mt_fill(out, (size_t) mine, mt_key(1, mt_rank, 0, 0));
    if (blocking) {
        MT_MPI(MPI_Allgatherv_c(out, mine, MPI_BYTE, in, counts, at, MPI_BYTE, MPI_COMM_WORLD));
    } else {
        MT_MPI(MPI_Iallgatherv_c(out, mine, MPI_BYTE, in, counts, at, MPI_BYTE, MPI_COMM_WORLD, &req));
        MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < mt_size; i++) {
        MT_SAME(in + at[i], (size_t) counts[i], mt_key(1, i, 0, 0), "all-gather");
    }
    narrow(in);
    free(out);
    free(at);
    free(counts);
}

static void all_to_all(size_t n, bool blocking)
{
    MPI_Count *counts = malloc(2 * (size_t) mt_size * sizeof(*counts)), *there = counts + mt_size;
    MPI_Aint *at = malloc((size_t) mt_size * sizeof(*at));
    unsigned char *out = wide(), *in = wide();
    MPI_Request req;

    for (int i = 0; i < mt_size; i++) {
        counts[i] = piece(n, mt_rank, i);
        there[i] = piece(n, i, mt_rank);
        at[i] = apart * i;
        mt_fill(out + at[i], (size_t) counts[i], mt_key(2, mt_rank, i, 0));
    }
    if (blocking) {
        MT_MPI(MPI_Alltoallv_c(out, counts, at, MPI_BYTE, in, there, at, MPI_BYTE, MPI_COMM_WORLD));
    } else {
        MT_MPI(MPI_Ialltoallv_c(out, counts, at, MPI_BYTE, in, there, at, MPI_BYTE, MPI_COMM_WORLD, &req));
        MT_MPI(MPI_Wait(&req, MPI_STATUS_IGNORE));
    }
    for (int i = 0; i < mt_size; i++) {
        MT_SAME(in + at[i], (size_t) there[i], mt_key(2, i, mt_rank, 0), "all-to-all");
    }
    narrow(in);
    narrow(out);
    free(at);
    free(counts);
}

/* Every way to send and to receive, once. */
static void messages(size_t n)
{
    const int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;
    const MPI_Count count = (MPI_Count) n, room = count + MPI_BSEND_OVERHEAD + 4096;
    unsigned char *out = malloc(n + 1), *buffer = malloc((size_t) room);
    MPI_Request req[2];
    MPI_Message message;
    MPI_Status status;
    MPI_Count got;
    mt_buf_t in;
    void *back;

    mt_buf_new(&in, n);
    MT_MPI(MPI_Buffer_attach_c(buffer, room));
    for (int way = 0; way < 6; way++) {
        mt_buf_poison(&in);
        mt_fill(out, n, mt_key(3, mt_rank, way, 0));
        switch (way) {
        case 0: MT_MPI(MPI_Isend_c(out, count, MPI_BYTE, to, way, MPI_COMM_WORLD, &req[0])); break;
        case 1: MT_MPI(MPI_Issend_c(out, count, MPI_BYTE, to, way, MPI_COMM_WORLD, &req[0])); break;
        case 2: MT_MPI(MPI_Ibsend_c(out, count, MPI_BYTE, to, way, MPI_COMM_WORLD, &req[0])); break;
        case 3: MT_MPI(MPI_Send_init_c(out, count, MPI_BYTE, to, way, MPI_COMM_WORLD, &req[0]));
                MT_MPI(MPI_Start(&req[0])); break;
        case 4: MT_MPI(MPI_Isendrecv_c(out, count, MPI_BYTE, to, way, in.p, count, MPI_BYTE, from, way, MPI_COMM_WORLD, &req[0])); break;
        default: MT_MPI(MPI_Sendrecv_c(out, count, MPI_BYTE, to, way, in.p, count, MPI_BYTE, from, way, MPI_COMM_WORLD, &status));
        }
        if (way % 2 && way < 4) {
            MT_MPI(MPI_Mprobe(from, way, MPI_COMM_WORLD, &message, &status));
            MT_MPI(MPI_Get_count_c(&status, MPI_BYTE, &got));
            MT_CHECK(got == count, "probe: %lld bytes", (long long) got);
            MT_MPI(MPI_Mrecv_c(in.p, count, MPI_BYTE, &message, &status));
        } else if (way < 4) {
            MT_MPI(MPI_Irecv_c(in.p, count, MPI_BYTE, from, way, MPI_COMM_WORLD, &req[1]));
            MT_MPI(MPI_Wait(&req[1], &status));
        }
        if (way < 5) {
            MT_MPI(MPI_Wait(&req[0], 4 == way ? &status : MPI_STATUS_IGNORE));
        }
        if (3 == way) {
            MT_MPI(MPI_Request_free(&req[0]));
        }
        MT_STATUS(&status, from, way, n);
        MT_BUF(&in, n, mt_key(3, from, way, 0));
    }
    MT_MPI(MPI_Buffer_detach_c(&back, &got));
    MT_CHECK(back == buffer && got == room, "detach: %lld of %lld", (long long) got, (long long) room);
    mt_buf_free(&in);
    free(buffer);
    free(out);
}

/* Between the two ends, there and back; the second time probed. */
static void large(size_t n)
{
    unsigned char *p = malloc(n);
    const int last = mt_size - 1;
    MPI_Status status;
    MPI_Count got;

    MT_CHECK(NULL != p, "no memory for %zu bytes", n);
    for (int way = 0; way < 2; way++) {
        if (mt_rank == (way ? last : 0)) {
            mt_fill(p, n, mt_key(4, way, 0, 0));
            MT_MPI(MPI_Send_c(p, (MPI_Count) n, MPI_BYTE, way ? 0 : last, way, MPI_COMM_WORLD));
        } else if (mt_rank == (way ? 0 : last)) {
            memset(p, 0, n);
            if (way) {
                MT_MPI(MPI_Probe(last, way, MPI_COMM_WORLD, &status));
                MT_MPI(MPI_Get_count_c(&status, MPI_BYTE, &got));
                MT_CHECK(got == (MPI_Count) n, "probe: %lld bytes", (long long) got);
            }
            MT_MPI(MPI_Recv_c(p, (MPI_Count) n, MPI_BYTE, way ? last : 0, way, MPI_COMM_WORLD, &status));
            MT_MPI(MPI_Get_count_c(&status, MPI_BYTE, &got));
            MT_CHECK(got == (MPI_Count) n, "%lld bytes", (long long) got);
            MT_SAME(p, n, mt_key(4, way, 0, 0), "large");
        }
    }
    mt_group("%zu elements each way", n);
    if (0 == mt_rank) {
        mt_fill(p, n, mt_key(5, 0, 0, 0));
    } else {
        memset(p, 0, n);
    }
    MT_MPI(MPI_Bcast_c(p, (MPI_Count) n, MPI_BYTE, 0, MPI_COMM_WORLD));
    MT_SAME(p, n, mt_key(5, 0, 0, 0), "broadcast");
    mt_group("a broadcast of %zu elements", n);
    free(p);
}
#endif

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
#if MT_HAS_MPI5
    const long bytes = mt_arg("bytes", 0);

    for (int i = 0; i < mt_few_sizes_count; i++) {
        messages(mt_few_sizes[i]);
    }
    mt_group("messages");
    for (int i = 0; i < mt_few_sizes_count; i++) {
        all_gather(mt_few_sizes[i], true);
        all_gather(mt_few_sizes[i], false);
    }
    mt_group("all-gathers");
    for (int i = 0; i < mt_few_sizes_count; i++) {
        all_to_all(mt_few_sizes[i], true);
        all_to_all(mt_few_sizes[i], false);
    }
    mt_group("all-to-alls");
    if (bytes > 0) {
        large((size_t) bytes);
    }
    return mt_end();
#else
    mt_skip("this MPI counts in int");
#endif
}

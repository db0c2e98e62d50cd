/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * own_node (p2p | coll) (plain | sealed): neighbors on a node send each other a
 * canary, point-to-point or in collectives.  Then every process looks for it in
 * the memory that it shares with others: "plain", some must find it; "sealed",
 * nobody.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <fcntl.h>
#include <unistd.h>

enum { CANARY = 32, PIECE = 1 << 20 };

static const int sizes[] = {64, 1000, 4000, 30000, 300000};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]), LARGEST = 300000 };

static unsigned char canary[CANARY];
static MPI_Comm node;
static int rank, size;                  /* on this node */
static unsigned char out[LARGEST], in[LARGEST];

static void fill(unsigned char *p, int n)
{
    for (int at = 0; at < n; at++) {
        p[at] = canary[at % CANARY];
    }
}

static void arrived(const char *what, int n)
{
    MT_CHECK(0 == memcmp(in, out, (size_t) n), "%s: wrong bytes", what);
    memset(in, 0, (size_t) n);
}

static void p2p(int n)
{
    int to = (rank + 1) % size, from = (rank + size - 1) % size;
    for (int times = 0; times < 10; times++) {
        MT_MPI(MPI_Sendrecv(out, n, MPI_BYTE, to, 1, in, n, MPI_BYTE, from, 1, node, MPI_STATUS_IGNORE));
        arrived("MPI_Sendrecv", n);
    }
}

static void coll(int n)
{
    for (int root = 0; root < size; root++) {
        if (rank == root) {
            memcpy(in, out, (size_t) n);
        }
        MT_MPI(MPI_Bcast(in, n, MPI_BYTE, root, node));
        arrived("MPI_Bcast", n);
        MT_MPI(MPI_Reduce(out, in, n, MPI_BYTE, MPI_BOR, root, node));
        if (rank == root) {
            arrived("MPI_Reduce", n);
        }
    }
    MT_MPI(MPI_Allreduce(out, in, n, MPI_BYTE, MPI_BOR, node));
    arrived("MPI_Allreduce", n);
}

/* ---- looking for it ---- */

static long found_between(int memory, unsigned long from, unsigned long to)
{
    static unsigned char piece[PIECE + CANARY];
    long found = 0;
    for (unsigned long at = from; at < to; at += PIECE) {
        size_t want = to - at < sizeof(piece) ? to - at : sizeof(piece);
        ssize_t have = pread(memory, piece, want, (off_t) at);
        if (have > 0) {                 /* behind the end of a file there is nothing */
            found += NULL != memmem(piece, (size_t) have, canary, CANARY);
        }
    }
    return found;
}

static long found_in_shared_memory(void)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "r");
    int memory = open("/proc/self/mem", O_RDONLY);
    long found = 0, shared = 0;
    MT_CHECK(NULL != maps && memory >= 0, "/proc/self");
    while (NULL != fgets(line, sizeof(line), maps)) {
        unsigned long from, to;
        char rights[5];
        if (3 == sscanf(line, "%lx-%lx %4s", &from, &to, rights) && 's' == rights[3] && 'r' == rights[0]) {
            long here = found_between(memory, from, to);
            if (here > 0 && 0 == found) {
                printf("rank %d: %s", mt_rank, line);
            }
            found += here;
            shared++;
        }
    }
    fclose(maps);
    close(memory);
    MT_CHECK(shared > 0, "no memory is shared");
    return found;
}

int main(int argc, char **argv)
{
    long found, all;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(mt_flag("p2p") != mt_flag("coll") && mt_flag("plain") != mt_flag("sealed"), "own_node WAY EXPECTED");
    MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
    MT_MPI(MPI_Comm_rank(node, &rank));
    MT_MPI(MPI_Comm_size(node, &size));
    MT_CHECK(size > 1, "alone on a node");
    mt_fill(canary, CANARY, mt_key(1, 2, 3, 4));
    fill(out, LARGEST);
    for (int s = 0; s < SIZES; s++) {
        mt_flag("p2p") ? p2p(sizes[s]) : coll(sizes[s]);
        mt_group("%d bytes", sizes[s]);
    }
    found = found_in_shared_memory();
    MT_MPI(MPI_Allreduce(&found, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD));
    MT_CHECK(mt_flag("plain") == (all > 0), "the canary was found in %ld places", all);
    MT_MPI(MPI_Comm_free(&node));
    return mt_end();
}

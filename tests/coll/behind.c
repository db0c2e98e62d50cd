/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A rank is late for a series of broadcasts, and for one that is long: its root waits, and nothing piles up in the memory
 * of those between the two.  The last rank is the late one; it must not be the one that receives for its node.
 *
 *     behind in=DIR           for files that all ranks see
 */
#include "mt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { ROUNDS = 100, BYTES = 512 << 10, LONG = 128 << 20, MOST_AHEAD = 4, MOST_GROWN = 48 << 10 /* KiB */ };

static const char *directory;

static const char *path_of(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static bool exists(const char *name) { return 0 == access(path_of(name), F_OK); }

static void make(const char *name)
{
    int fd = open(path_of(name), O_WRONLY | O_CREAT, 0600);

    MT_CHECK(fd >= 0 && 0 == close(fd), "%s", path_of(name));
}

/* The late one: until the root has gone too far, or has had time for it. */
static void be_late(const char *far, const char *entered)
{
    for (int i = 0; i < 200 && !exists(far); i++) {
        usleep(10000);
    }
    make(entered);
}

static void many(unsigned char *buffer)
{
    int ahead = 0;

    MT_MPI(MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));      /* all have met */
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (mt_rank == mt_size - 1) {
        be_late("far", "entered");
    }
    for (int i = 0; i < ROUNDS; i++) {
        mt_fill(buffer, BYTES, mt_key(1, i, 0 == mt_rank ? 0 : mt_rank, 0));
        MT_MPI(MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD));
        MT_SAME(buffer, BYTES, mt_key(1, i, 0, 0), "broadcast");
        if (0 == mt_rank && !exists("entered")) {
            ahead = i + 1;
            if (ahead > MOST_AHEAD) {
                make("far");
            }
        }
    }
    MT_CHECK(ahead <= MOST_AHEAD, "the root was %d broadcasts ahead", ahead);
    mt_group("broadcasts");
}

static long peak(void)
{
    struct rusage used;

    MT_CHECK(0 == getrusage(RUSAGE_SELF, &used), "getrusage");
    return used.ru_maxrss;
}

static void one(unsigned char *buffer)
{
    mt_fill(buffer, LONG, mt_key(2, mt_rank, 0, 0));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    const long before = peak();
    if (mt_rank == mt_size - 1) {
        be_late("never", "entered-too");
    }
    MT_MPI(MPI_Bcast(buffer, LONG, MPI_BYTE, 0, MPI_COMM_WORLD));
    MT_SAME(buffer, LONG, mt_key(2, 0, 0, 0), "the long broadcast");
    MT_CHECK(peak() - before <= MOST_GROWN, "%ld KiB more in a broadcast", peak() - before);
    mt_group("a long broadcast");
}

int main(int argc, char **argv)
{
    unsigned char *buffer = malloc(LONG);

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    for (int i = 1; i < argc; i++) {
        directory = 0 == strncmp(argv[i], "in=", 3) ? argv[i] + 3 : directory;
    }
    MT_CHECK(NULL != directory && NULL != buffer, "in=DIR, and memory");
    many(buffer);
    one(buffer);
    free(buffer);
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * More than 2 GiB: many ranks' blocks together, and one block alone.
 *
 *     allgather_large [mib=1100] MAP
 */
#include "cryptag.h"

#include <sys/mman.h>

#define MIB ((size_t) 1 << 20)
enum { SPOTS = 4096 };

/* A few bytes of each MiB say whose block it is, and which MiB. */
static void mark(unsigned char *block, size_t mib, int rank)
{
    for (size_t i = 0; i < mib; i++) {
        mt_fill(block + i * MIB + (i * 997 % 255) * SPOTS, 64, mt_key(1, rank, (int) i, 0));
    }
}

static void check(const unsigned char *block, size_t mib, int rank)
{
    for (size_t i = 0; i < mib; i++) {
        MT_SAME(block + i * MIB + (i * 997 % 255) * SPOTS, 64, mt_key(1, rank, (int) i, 0), "allgather");
    }
}

static unsigned char *memory(size_t bytes)
{
    void *block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (MAP_FAILED == block) {
        mt_fail(__FILE__, __LINE__, "no memory for %zu bytes", bytes);
    }
    return block;
}

/* Two ranks, each with the result and as much of sealed blocks. */
static void need_memory(size_t gib)
{
    FILE *info = fopen("/proc/meminfo", "r");
    unsigned long kib = 0;
    char line[128];

    while (NULL != info && NULL != fgets(line, sizeof(line), info)
           && 1 != sscanf(line, "MemAvailable: %lu kB", &kib)) {
    }
    if (NULL != info) {
        fclose(info);
    }
    if (kib >> 20 < gib) {
        mt_skip("needs %zu GiB of memory", gib);
    }
}

static void even(MPI_Comm comm, size_t mib, int algorithm)
{
    int p, rank;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    unsigned char *in = memory((size_t) p * mib * MIB);
    cryptag_set("allgather_algorithm", algorithm);
    mark(in + (size_t) rank * mib * MIB, mib, rank);
    MT_MPI(MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, (int) (mib * MIB), MPI_BYTE, comm));
    for (int i = 0; i < p; i++) {
        check(in + (size_t) i * mib * MIB, mib, i);
    }
    munmap(in, (size_t) p * mib * MIB);
}

/* The last rank contributes everything. */
static void single(MPI_Comm comm, size_t mib, int algorithm)
{
    int p, rank, counts[MAP_RANKS] = { 0 }, places[MAP_RANKS] = { 0 };
    unsigned char *in = memory(mib * MIB);
    MPI_Datatype one;

    MPI_Comm_size(comm, &p);
    MPI_Comm_rank(comm, &rank);
    cryptag_set("allgather_algorithm", algorithm);
    MT_MPI(MPI_Type_contiguous((int) MIB, MPI_BYTE, &one));
    MT_MPI(MPI_Type_commit(&one));
    counts[p - 1] = (int) mib;
    if (rank == p - 1) {
        mark(in, mib, rank);
    }
    MT_MPI(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, in, counts, places, one, comm));
    check(in, mib, p - 1);
    munmap(in, mib * MIB);
    MPI_Type_free(&one);
}

int main(int argc, char **argv)
{
    const char *maps[1];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    cryptag_start();
    need_memory(10);
    const size_t mib = (size_t) mt_arg("mib", 1100);
    MT_CHECK(1 == map_arguments(argc, argv, maps, 1), "needs a map");
    MPI_Comm comm = map_comm(maps[0]);
    int p = 0;

    if (MPI_COMM_NULL != comm) {
        MPI_Comm_size(comm, &p);
        even(comm, mib, 0);
        even(comm, mib, 2);
    }
    mt_group("%zu MiB a block, %zu MiB in all", mib, (size_t) p * mib);
    if (MPI_COMM_NULL != comm) {
        single(comm, 2200, 0);
        MT_MPI(MPI_Comm_free(&comm));
    }
    mt_group("one block of 2200 MiB");
    cryptag_stop();
    return mt_end();
}

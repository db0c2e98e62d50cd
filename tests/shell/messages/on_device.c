/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages from and to the memory of an accelerator (device.h), which a processor that touches it dies of:
 * short ones and long ones, of types with gaps and without, in a ring.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

enum { ROOM = 8 << 20 };

static int rank, ranks, failures;

static char byte_of(int from, size_t i) { return (char) (i * 7 + i / 251 + (size_t) from * 31); }

static void fill(char *at, size_t n, int from)
{
    for (size_t i = 0; i < n; i++) {
        at[i] = byte_of(from, i);
    }
}

static void check(const char *at, size_t n, int from, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] != byte_of(from, i)) {
            fprintf(stderr, "rank %d: %s: byte %zu of %zu is wrong\n", rank, what, i, n);
            failures++;
            return;
        }
    }
}

static void a_ring(size_t n)
{
    static char host[ROOM];
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI_Datatype gaps;
    MPI_Request requests[2];

    /* from the device, to the host */
    fill(DEVICE_ALIAS, n, rank);
    memset(host, 0, n);
    MPI_Sendrecv(DEVICE_ADDRESS, (int) n, MPI_BYTE, to, 1, host, (int) n, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(host, n, from, "device to host");
    /* and back */
    fill(host, n, rank);
    memset(DEVICE_ALIAS, 0, n);
    MPI_Irecv(DEVICE_ADDRESS, (int) n, MPI_BYTE, from, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(host, (int) n, MPI_BYTE, to, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(DEVICE_ALIAS, n, from, "host to device");
    /* one byte of two, from the device to the device */
    MPI_Type_vector((int) (n / 2), 1, 2, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    fill(DEVICE_ALIAS, n, rank);
    MPI_Sendrecv(DEVICE_ADDRESS, 1, gaps, to, 3, DEVICE_ADDRESS + ROOM, (int) (n / 2), MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < n / 2; i++) {
        if (DEVICE_ALIAS[ROOM + i] != byte_of(from, 2 * i)) {
            fprintf(stderr, "rank %d: with gaps: byte %zu of %zu is wrong\n", rank, i, n);
            failures++;
            break;
        }
    }
    MPI_Type_free(&gaps);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {0, 1, 8, 255, 256, 4000, 4097, 65536, 65537, 200000, 1048577, ROOM - 3};
    const int fd = memfd_create("device", 0);

    if (fd < 0 || 0 != ftruncate(fd, 3 * (off_t) ROOM)
        || DEVICE_ADDRESS != mmap(DEVICE_ADDRESS, 3 * (size_t) ROOM, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0)
        || DEVICE_ALIAS != mmap(DEVICE_ALIAS, 3 * (size_t) ROOM, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)) {
        perror("device");
        return 2;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        a_ring(lengths[i]);
    }
    MPI_Allreduce(MPI_IN_PLACE, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (0 == rank && 0 == failures && argc > 1) {
        fclose(fopen(argv[1], "w"));            /* mpirun of 5.0 may lose what is said last */
    }
    return 0 != failures;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Messages and collectives from and to the memory of an accelerator (device.h), which a processor that touches it dies of:
 * short ones and long ones, of types with gaps and without, by absolute addresses, in a ring.  With REMAINS in the
 * environment nothing of what was sent may be in this process after MPI_Finalize; with TWO only long messages are tried, of two
 * devices, and of a thread that has no context.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "device.h"

enum { ROOM = 8 << 20, RUN = 32, STEP = 7 };

static int rank, ranks, failures;
static char host[ROOM];

/* Most RUN bytes of a message rise by STEP each, or twice that: remains() looks for those. */
static char byte_of(int from, size_t i) { return (char) (i * STEP + i / 251 * 13 + (size_t) from * 31); }

static void fill(char *at, size_t n, int from)
{
    for (size_t i = 0; i < n; i++) {
        at[i] = byte_of(from, i);
    }
}

static void check(const char *at, size_t n, size_t step, int from, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (at[i] != byte_of(from, step * i)) {
            fprintf(stderr, "rank %d: %s: byte %zu of %zu is wrong\n", rank, what, i, n);
            failures++;
            return;
        }
    }
}

static void a_ring(size_t n)
{
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    const MPI_Aint at = (MPI_Aint) DEVICE_ADDRESS;
    const int length = (int) n;
    MPI_Datatype gaps, absolute;
    MPI_Request requests[2];

    /* from the device, to the host */
    fill(DEVICE_ALIAS, n, rank);
    memset(host, 0, n);
    MPI_Sendrecv(DEVICE_ADDRESS, (int) n, MPI_BYTE, to, 1, host, (int) n, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(host, n, 1, from, "device to host");
    /* and back */
    fill(host, n, rank);
    memset(DEVICE_ALIAS, 0, n);
    MPI_Irecv(DEVICE_ADDRESS, (int) n, MPI_BYTE, from, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(host, (int) n, MPI_BYTE, to, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    check(DEVICE_ALIAS, n, 1, from, "host to device");
    /* one byte of two, from the device to the device */
    MPI_Type_vector((int) (n / 2), 1, 2, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    fill(DEVICE_ALIAS, n, rank);
    MPI_Sendrecv(DEVICE_ADDRESS, 1, gaps, to, 3, DEVICE_ADDRESS + ROOM, (int) (n / 2), MPI_BYTE, from, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(DEVICE_ALIAS + ROOM, n / 2, 2, from, "with gaps");
    MPI_Type_free(&gaps);
    /* by absolute addresses: Open MPI itself takes MPI_BOTTOM for memory of the host */
    if (NULL != getenv("REMAINS")) {
        MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &absolute);
        MPI_Type_commit(&absolute);
        memset(host, 0, n);
        MPI_Sendrecv(MPI_BOTTOM, 1, absolute, to, 4, host, (int) n, MPI_BYTE, from, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        check(host, n, 1, from, "by its address");
        MPI_Type_free(&absolute);
    }
}

/* By absolute addresses from rank 0 to one of its node: a long message is refused, a short one sent; either can be received. */
static void within_node(int other)
{
    enum { SHORT = 4000, LONG = 100000 };
    const MPI_Aint at = (MPI_Aint) DEVICE_ADDRESS;
    MPI_Datatype of[2];

    for (int i = 0; i < 2; i++) {
        const int length = i ? LONG : SHORT;

        MPI_Type_create_hindexed(1, &length, &at, MPI_BYTE, &of[i]);
        MPI_Type_commit(&of[i]);
        fill(host, LONG, 0);
        if (0 == rank) {
            fill(DEVICE_ALIAS, LONG, 0);
            if ((MPI_SUCCESS == MPI_Send(MPI_BOTTOM, 1, of[i], other, 5, MPI_COMM_WORLD)) != (0 == i)) {
                fprintf(stderr, "%d bytes by their address: sent, or refused, wrongly\n", length);
                failures++;
            }
            MPI_Send(host, length, MPI_BYTE, other, 6, MPI_COMM_WORLD);
        } else if (other == rank) {
            if (0 == i) {
                MPI_Recv(host, length, MPI_BYTE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                check(host, SHORT, 1, 0, "by its address within a node");
            }
            memset(DEVICE_ALIAS, 0, LONG);
            MPI_Recv(MPI_BOTTOM, 1, of[i], 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            check(DEVICE_ALIAS, (size_t) length, 1, 0, "to its address within a node");
        }
    }
    if (NULL != getenv("REFUSED")) {            /* ends the job */
        MPI_Bcast(MPI_BOTTOM, 1, of[1], 0, MPI_COMM_WORLD);
    }
    MPI_Type_free(&of[0]);
    MPI_Type_free(&of[1]);
}

static void collectives(size_t n)
{
    const size_t block = n / (size_t) ranks;

    fill(DEVICE_ALIAS, block, rank);
    memset(DEVICE_ALIAS + ROOM, 0, n);
    MPI_Allgather(DEVICE_ADDRESS, (int) block, MPI_BYTE, DEVICE_ADDRESS + ROOM, (int) block, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        check(DEVICE_ALIAS + ROOM + (size_t) i * block, block, 1, i, "all-gather");
    }
    MPI_Alltoall(DEVICE_ADDRESS + ROOM, (int) block, MPI_BYTE, DEVICE_ADDRESS + 2 * (size_t) ROOM, (int) block, MPI_BYTE, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        check(DEVICE_ALIAS + 2 * (size_t) ROOM + (size_t) i * block, block, 1, rank, "all-to-all");
    }
    MPI_Bcast(DEVICE_ADDRESS, (int) block, MPI_BYTE, 1, MPI_COMM_WORLD);
    check(DEVICE_ALIAS, block, 1, 1, "broadcast");
}

static void *wait_there(void *requests)
{
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    return NULL;
}

/* A message to each neighbor from the memory of each device, while device `now` is the current one; `other`: a thread of which the
 * accelerator knows nothing waits for them. */
static void two_devices(int now, int other)
{
    enum { LONG = 3000001 };
    const int to = (rank + 1) % ranks, from = (rank + ranks - 1) % ranks;
    MPI_Request requests[4];
    pthread_t thread;

    setenv("DEVICE_CURRENT", now ? "1" : "0", 1);
    for (size_t d = 0; d < 2; d++) {
        fill(DEVICE_ALIAS + d * DEVICE_SECOND, LONG, rank + (int) d);
        memset(DEVICE_ALIAS + d * DEVICE_SECOND + ROOM, 0, LONG);
        MPI_Irecv(DEVICE_ADDRESS + d * DEVICE_SECOND + ROOM, LONG, MPI_BYTE, from, (int) d, MPI_COMM_WORLD, &requests[d]);
    }
    for (size_t d = 0; d < 2; d++) {
        MPI_Isend(DEVICE_ADDRESS + d * DEVICE_SECOND, LONG, MPI_BYTE, to, (int) d, MPI_COMM_WORLD, &requests[2 + d]);
    }
    if (!other || 0 != pthread_create(&thread, NULL, wait_there, requests)) {
        wait_there(requests);
    } else {
        pthread_join(thread, NULL);
    }
    for (size_t d = 0; d < 2; d++) {
        check(DEVICE_ALIAS + d * DEVICE_SECOND + ROOM, LONG, 1, from + (int) d, d ? "from device 1" : "from device 0");
    }
}

/* What was sent, anywhere but in the user's buffers. */
static void remains(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    unsigned long first, end;
    char line[512];

    memset(host, 0, sizeof(host));
    while (NULL != maps && NULL != fgets(line, sizeof(line), maps)) {
        unsigned run = 0, last = 0, step;

        if (2 != sscanf(line, "%lx-%lx r", &first, &end) || NULL == strstr(line, " r") || NULL != strstr(line, "[v")
            || on_device((char *) first) || on_device((char *) first - DEVICE_ALIAS + DEVICE_ADDRESS)) {
            continue;
        }
        for (const unsigned char *at = (unsigned char *) first + 1; at < (unsigned char *) end; at++) {
            step = (unsigned char) (at[0] - at[-1]);
            run = step == last && (STEP == step || 2 * STEP == step) ? run + 1 : 0;
            last = step;
            if (RUN == run) {
                fprintf(stderr, "rank %d: plaintext at %p: %s", rank, (const void *) at, line);
                failures++;
                break;
            }
        }
    }
    fclose(maps);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {0, 1, 8, 255, 256, 4000, 4097, 65536, 65537, 200000, 1048577, ROOM - 3};
    const int fd = memfd_create("device", 0);
    int all = 0, provided;

    if (fd < 0 || 0 != ftruncate(fd, (off_t) DEVICE_BYTES)
        || DEVICE_ADDRESS != mmap(DEVICE_ADDRESS, DEVICE_BYTES, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0)
        || DEVICE_ALIAS != mmap(DEVICE_ALIAS, DEVICE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0)) {
        perror("device");
        return 2;
    }
    MPI_Init_thread(&argc, &argv, NULL != getenv("TWO") ? MPI_THREAD_SERIALIZED : MPI_THREAD_SINGLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < 4 && NULL != getenv("TWO"); i++) {
        MPI_Comm another;

        MPI_Comm_dup(MPI_COMM_WORLD, &another);         /* streams are used again also after this */
        MPI_Comm_free(&another);
        two_devices((i + 1) / 2 % 2, i == 3);           /* 0, 1, 1, 0: when 0 is current again, there are streams of both */
    }
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && NULL == getenv("TWO"); i++) {
        a_ring(lengths[i]);
        collectives(lengths[i]);
    }
    if (NULL != getenv("WITHIN")) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        within_node(ranks / 2);
    }
    MPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    if (NULL != getenv("REMAINS")) {
        remains();
        all += failures;
    }
    if (0 == rank && 0 == all && argc > 1) {
        fclose(fopen(argv[1], "w"));            /* mpirun of 5.0 may lose what is said last */
    }
    return 0 != failures || 0 != all;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * survivors: a process dies in the middle of messages; the others find out, revoke, shrink, and go on.
 * survivors cut: nobody dies, but the first process cuts the newest of its connections with the last; each of the two takes
 * the other one for dead.
 * survivors silent: the last process stops before anybody spoke to it, and its node takes connections as before; the first
 * process, which sends to it, is told that it has failed.
 * survivors unmapped: the last process dies in the middle of a long message; when the first has been told so, its memory for
 * the message goes, and it goes on.
 */
#include "mt.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#if MT_HAS_MPI4
#    include <mpi-ext.h>

enum { ROUNDS = 60, BYTES = 3000000 };

/* The peer's, or ours: IPv4 in IPv6's form, or IPv6; 0: it has none. */
static int address_of(int fd, int peer, struct in6_addr *address)
{
    struct sockaddr_storage found;
    socklen_t bytes = sizeof(found);

    if (0 != (peer ? getpeername : getsockname)(fd, (struct sockaddr *) &found, &bytes)
        || (AF_INET != found.ss_family && AF_INET6 != found.ss_family)) {
        return 0;
    }
    *address = ((struct sockaddr_in6 *) &found)->sin6_addr;
    if (AF_INET == found.ss_family) {
        *address = (struct in6_addr) {.s6_addr = {[10] = 0xff, [11] = 0xff}};
        memcpy(address->s6_addr + 12, &((struct sockaddr_in *) &found)->sin_addr, 4);
    }
    return 1;
}

/* Does it lead to another node?  (That with PMIx does not.) */
static int leads_away(int fd)
{
    struct in6_addr here, there;

    return address_of(fd, 0, &here) && address_of(fd, 1, &there)
           && 0 != memcmp(&here, &there, sizeof(here));
}

static void cut_newest(void)
{
    int newest = -1, count = 0;

    for (int fd = 0; fd < 1024; fd++) {
        if (leads_away(fd)) {
            newest = fd;
            count++;
        }
    }
    printf("survivors: one of %d connections is cut\n", count);
    fflush(stdout);
    MT_CHECK(0 == shutdown(newest, SHUT_RDWR), "nothing was cut");
}

/* Messages around the ring, checked.  MPI's first error.  `dies`: in the middle that process dies, or, if it is the first
 * one, cuts a connection. */
static int around(MPI_Comm comm, int rounds, int dies)
{
    static unsigned char out[BYTES], in[BYTES];
    int rank, size, rc = MPI_SUCCESS;

    MT_MPI(MPI_Comm_rank(comm, &rank));
    MT_MPI(MPI_Comm_size(comm, &size));
    for (int i = 0; i < rounds && MPI_SUCCESS == rc; i++) {
        const int n = (i * 499979) % BYTES, from = (rank + size - 1) % size;
        if (i == ROUNDS / 2 && rank == dies) {
            if (0 == dies) {
                cut_newest();
            } else {
                kill(getpid(), SIGKILL);
            }
        }
        mt_fill(out, (size_t) n, mt_key(i, rank, 0, 0));
        rc = MPI_Sendrecv(out, n, MPI_BYTE, (rank + 1) % size, 1, in, n, MPI_BYTE, from, 1, comm, MPI_STATUS_IGNORE);
        if (MPI_SUCCESS == rc) {
            MT_SAME(in, (size_t) n, mt_key(i, from, 0, 0), "around");
        }
    }
    return rc;
}

/* Its number is in the file that SURVIVORS_PID names, in place once it is whole. */
static void stop(void)
{
    char beside[4096];
    FILE *file;

    snprintf(beside, sizeof(beside), "%s.new", getenv("SURVIVORS_PID"));
    MT_CHECK(NULL != (file = fopen(beside, "w")), "%s", beside);
    MT_CHECK(fprintf(file, "%ld\n", (long) getpid()) > 0 && 0 == fclose(file), "%s", beside);
    MT_CHECK(0 == rename(beside, getenv("SURVIVORS_PID")), "%s", beside);
    raise(SIGSTOP);
}

static int is_stopped(long *pid)
{
    char name[64], state = '?';
    FILE *file = fopen(getenv("SURVIVORS_PID"), "r");

    if (NULL == file || 1 != fscanf(file, "%ld", pid)) {
        *pid = -1;
    }
    if (NULL != file) {
        fclose(file);
    }
    snprintf(name, sizeof(name), "/proc/%ld/stat", *pid);
    file = *pid < 0 ? NULL : fopen(name, "r");
    if (NULL != file) {
        MT_CHECK(1 == fscanf(file, "%*d (%*[^)]) %c", &state), "%s", name);
        fclose(file);
    }
    return 'T' == state;
}

static void silent(void)
{
    long pid;
    int rc, kind;

    if (mt_rank == mt_size - 1) {
        stop();
        return;
    }
    while (!is_stopped(&pid)) {
        usleep(10000);
    }
    rc = MPI_Ssend(&pid, 1, MPI_LONG, mt_size - 1, 1, MPI_COMM_WORLD);
    kill((pid_t) pid, SIGKILL);
    MT_MPI(MPI_Error_class(rc, &kind));
    MT_CHECK(MPIX_ERR_PROC_FAILED == kind, "error class %d", kind);
    printf("passed survivors: silent\n");
    fflush(stdout);
    _exit(0);
}

/* It stays for as long as the receiver's progress takes it, and then some: what it has sent is in the sockets. */
static void unmapped(void)
{
    enum { LONG = 256 << 20 };
    volatile unsigned char *memory = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const int last = mt_size - 1;
    MPI_Request request;
    MPI_Comm left;
    long pid = getpid();
    int done = 0, size, kind, rc = MPI_SUCCESS;

    MT_CHECK(MAP_FAILED != memory, "memory");
    if (last == mt_rank) {
        memset((void *) memory, 1, LONG);
        MT_MPI(MPI_Send(&pid, 1, MPI_LONG, 0, 1, MPI_COMM_WORLD));
        (void) MPI_Send((void *) memory, LONG, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    if (0 == mt_rank) {
        MT_MPI(MPI_Recv(&pid, 1, MPI_LONG, last, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MT_MPI(MPI_Irecv((void *) memory, LONG, MPI_BYTE, last, 2, MPI_COMM_WORLD, &request));
        while (1 != memory[LONG / 4]) {
            MT_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
            MT_CHECK(!done, "all of it is here");
        }
        usleep(300000);                         /* the sockets fill */
        kill((pid_t) pid, SIGKILL);
        usleep(2000000);                        /* the news comes */
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        munmap((void *) memory, LONG);
    }
    if (0 != mt_rank) {
        rc = MPI_Recv(&pid, 1, MPI_LONG, last, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MT_MPI(MPI_Error_class(rc, &kind));
    MT_CHECK(MPIX_ERR_PROC_FAILED == kind || MPIX_ERR_REVOKED == kind, "error class %d", kind);
    MT_MPI(MPIX_Comm_revoke(MPI_COMM_WORLD));
    MT_MPI(MPIX_Comm_shrink(MPI_COMM_WORLD, &left));
    MT_MPI(around(left, ROUNDS, -1));
    MT_MPI(MPI_Comm_size(left, &size));
    MT_CHECK(size == mt_size - 1, "%d of %d are left", size, mt_size);
    if (0 == mt_rank) {
        printf("passed survivors: unmapped\n");
        fflush(stdout);
    }
    MT_MPI(MPI_Barrier(left));
    MT_MPI(MPI_Finalize());
    exit(0);
}

int main(int argc, char **argv)
{
    MPI_Comm left;
    int rc, kind, size, sum = 0, one = 1, cuts;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    cuts = mt_flag("cut");
    MT_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    if (mt_flag("silent")) {
        silent();
    }
    if (mt_flag("unmapped")) {
        unmapped();
    }
    MT_MPI(around(MPI_COMM_WORLD, ROUNDS, -1));
    rc = around(MPI_COMM_WORLD, cuts ? 100 * ROUNDS : ROUNDS, cuts ? 0 : mt_size - 1);
    MT_MPI(MPI_Error_class(rc, &kind));
    MT_CHECK(MPIX_ERR_PROC_FAILED == kind || MPIX_ERR_REVOKED == kind, "error class %d", kind);
    if (cuts) {                                 /* what two do who believe that of each other is Open MPI's */
        printf("passed survivors: rank %d\n", mt_rank);
        fflush(stdout);
        _exit(0);
    }
    MT_MPI(MPIX_Comm_revoke(MPI_COMM_WORLD));
    MT_MPI(MPIX_Comm_shrink(MPI_COMM_WORLD, &left));
    MT_MPI(MPI_Comm_size(left, &size));
    MT_CHECK(size == mt_size - 1, "%d of %d are left", size, mt_size);
    MT_MPI(around(left, ROUNDS, -1));
    MT_MPI(MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, left));
    MT_CHECK(sum == size, "sum %d", sum);
    if (0 == mt_rank) {
        printf("passed survivors: %d of %d\n", size, mt_size);
        fflush(stdout);
    }
    MT_MPI(MPI_Barrier(left));
    MT_MPI(MPI_Finalize());
    return 0;
}
#else
int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    mt_skip("Open MPI 4.1 has no fault tolerance");
}
#endif

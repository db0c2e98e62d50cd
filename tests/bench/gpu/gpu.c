/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * gpu LIBRARY PREFIX device|staged BYTES...: ping-pong and all-reduction between two ranks, with buffers in the memory of a GPU,
 * which MPI gets ("device") or the program copies to memory of the host and back ("staged").  LIBRARY is the run-time library of
 * CUDA or ROCm, PREFIX begins its functions' names (cuda, hip).  Prints microseconds, medians: half a round trip; a reduction.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 51, ANY_KIND = 4 };
typedef int (*allocate_t)(void **memory, size_t bytes, unsigned flags);         /* flags: of the host's only */
typedef int (*copy_t)(void *to, const void *from, size_t bytes, int kind);

static copy_t copy;
static int rank, staged;
static char *gpu[2], *host[2];

static void need(int fine, const char *what)
{
    if (!fine) {
        fprintf(stderr, "gpu: %s\n", what);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
}

static void move(char *to, const char *from, int n) { need(0 == copy(to, from, (size_t) n, ANY_KIND), "a copy failed"); }

static void send(int n)
{
    if (staged) {
        move(host[0], gpu[0], n);
    }
    MPI_Send(staged ? host[0] : gpu[0], n, MPI_BYTE, !rank, 0, MPI_COMM_WORLD);
}

static void receive(int n)
{
    MPI_Recv(staged ? host[1] : gpu[1], n, MPI_BYTE, !rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (staged) {
        move(gpu[1], host[1], n);
    }
}

static void reduce(int n)
{
    if (staged) {
        move(host[0], gpu[0], n);
    }
    MPI_Allreduce(staged ? host[0] : gpu[0], staged ? host[1] : gpu[1], n / 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (staged) {
        move(gpu[1], host[1], n);
    }
}

static int order(const void *a, const void *b) { return (*(const double *) a > *(const double *) b) - (*(const double *) a < *(const double *) b); }

static void measure(int n, int reductions)
{
    int *data = malloc((size_t) n);
    double took[ROUNDS];

    for (int i = 0; i < n / 4; i++) {
        data[i] = i + 1;
    }
    move(gpu[0], (char *) data, n);
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        took[i] = -MPI_Wtime();
        if (reductions) {
            reduce(n);
        } else if (0 == rank) {
            send(n);
            receive(n);
        } else {
            receive(n);
            send(n);
        }
        took[i] = (took[i] + MPI_Wtime()) * (reductions ? 1e6 : .5e6);
    }
    move((char *) data, gpu[1], n);
    for (int i = 0; i < n / 4; i++) {
        need(data[i] == (reductions ? 2 : 1) * (i + 1), "wrong data");
    }
    qsort(took, ROUNDS, sizeof(*took), order);
    if (0 == rank) {
        printf("%s %d %.1f\n", reductions ? "allreduce" : "ping-pong", n, took[ROUNDS / 2]);
    }
    free(data);
}

int main(int argc, char **argv)
{
    const size_t most = 1 << 26;
    char malloc_name[32], host_name[32], copy_name[32];
    void *library;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    need(argc > 4 && NULL != (library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)), "usage, or there is no such library");
    snprintf(malloc_name, sizeof(malloc_name), "%sMalloc", argv[2]);
    snprintf(host_name, sizeof(host_name), "%sHost%s", argv[2], 0 == strcmp(argv[2], "cuda") ? "Alloc" : "Malloc");
    snprintf(copy_name, sizeof(copy_name), "%sMemcpy", argv[2]);
    copy = (copy_t) dlsym(library, copy_name);
    staged = 0 == strcmp(argv[3], "staged");
    for (int i = 0; i < 2; i++) {
        need(0 == ((allocate_t) dlsym(library, malloc_name))((void **) &gpu[i], most, 0)
                 && 0 == ((allocate_t) dlsym(library, host_name))((void **) &host[i], most, 0), "no memory");
    }
    for (int i = 4; i < argc; i++) {
        need(atoi(argv[i]) > 3 && (size_t) atoi(argv[i]) <= most, "4 bytes to 64 MiB");
        measure(atoi(argv[i]) / 4 * 4, 0);
        measure(atoi(argv[i]) / 4 * 4, 1);
    }
    MPI_Finalize();
    return 0;
}

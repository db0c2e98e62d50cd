/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which of our functions a call passes through: path FILE.  Run by path.sh on two
 * processes of two nodes, with libraries that were compiled with
 * -finstrument-functions.
 *
 *     direct    a blocking message of 1 KiB: what sends it, what receives it
 *     chopped   one of 64 KiB
 *     block     4 KiB written to FILE, an encrypted one, and read again
 *
 * Prints "PATH LIBRARY OFFSET" for each function that was entered, once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096 };

static void *entered[MOST];
static int count;
static volatile int tracing;
static pthread_t traced;

/* The compiler adds a call of this to the beginning of every function. */
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void) caller;
    if (tracing && pthread_equal(traced, pthread_self())) {
        for (int i = 0; i < count; i++) {
            if (entered[i] == function) {
                return;
            }
        }
        if (count < MOST) {
            entered[count++] = function;
        }
    }
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void) function, (void) caller;
}

static void begin(void)
{
    count = 0;
    traced = pthread_self();
    tracing = 1;
}

static void end(const char *path)
{
    Dl_info info;

    tracing = 0;
    for (int i = 0; i < count; i++) {
        if (0 != dladdr(entered[i], &info)) {
            printf("%s %s 0x%lx\n", path, info.dli_fname, (unsigned long) ((char *) entered[i] - (char *) info.dli_fbase));
        }
    }
    fflush(stdout);
}

/* The third one, after the work of first contact. */
static void message(const char *name, int rank, char *buffer, int bytes)
{
    char path[64];

    for (int i = 0; i < 3; i++) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (2 == i) {
            begin();
        }
        if (0 == rank) {
            MPI_Send(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        if (2 == i) {
            snprintf(path, sizeof(path), "%s-%s", name, 0 == rank ? "sent" : "received");
            end(path);
        }
    }
}

static void block(const char *name, char *buffer)
{
    MPI_File file;

    if (MPI_SUCCESS != MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file)) {
        fprintf(stderr, "%s cannot be opened\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    for (int i = 0; i < 3; i++) {
        if (2 == i) {
            begin();
        }
        MPI_File_write_at(file, 4096 * i, buffer, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
        if (2 == i) {
            end("block-written");
        }
    }
    for (int i = 0; i < 2; i++) {
        if (1 == i) {
            begin();
        }
        MPI_File_read_at(file, 4096 * i, buffer, 4096, MPI_BYTE, MPI_STATUS_IGNORE);
        if (1 == i) {
            end("block-read");
        }
    }
    MPI_File_close(&file);
}

int main(int argc, char **argv)
{
    static char buffer[65536];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    memset(buffer, 1, sizeof(buffer));
    message("direct", rank, buffer, 1024);
    message("chopped", rank, buffer, sizeof(buffer));
    if (0 == rank && argc > 1) {
        block(argv[1], buffer);
    }
    MPI_Finalize();
    return 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The job of the table of misuses: a ring of messages, and then
 *
 *     misuse/job.c file FILE     a file
 *     misuse/job.c window        a window
 *     misuse/job.c threads       a window, with MPI_THREAD_MULTIPLE
 */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

static void write_file(int rank, const char *path)
{
    char text[64] = "the canary of the table of misuses";
    MPI_File file;

    if (MPI_SUCCESS != MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &file)
        || MPI_SUCCESS != MPI_File_write_at_all(file, (MPI_Offset) sizeof(text) * rank, text, sizeof(text), MPI_BYTE,
                                                MPI_STATUS_IGNORE)) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    MPI_File_close(&file);
}

static void make_window(void)
{
    static int memory[16];
    MPI_Win window;

    MPI_Win_create(memory, sizeof(memory), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_free(&window);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int rank, size, got = -1, level;

    MPI_Init_thread(&argc, &argv, 0 == strcmp(what, "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    if (argc > 2) {
        write_file(rank, argv[2]);
    } else if (argc > 1) {
        make_window();
    }
    MPI_Finalize();
    if (0 == rank) {
        puts("job: done");
    }
    return got != (rank + size - 1) % size;
}

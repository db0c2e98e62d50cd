/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The job of the table of misuses: a ring of messages, and then
 *
 *     misuse/job.c file FILE       writes a file, and closes it
 *     misuse/job.c read FILE       reads it
 *     misuse/job.c large FILE      writes 4 MiB a process
 *     misuse/job.c window          a window
 *     misuse/job.c threads         a window, with MPI_THREAD_MULTIPLE
 */
#include <mpi.h>

#include <stdio.h>
#include <string.h>

static const char canary[64] = "the canary of the table of misuses";
static char buffer[4194304];

/* Every call about the file succeeds, or the job ends. */
static void must(int rc)
{
    if (MPI_SUCCESS != rc) {
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void use_file(int rank, const char *what, const char *path)
{
    const int reads = 0 == strcmp(what, "read"), bytes = 0 == strcmp(what, "large") ? (int) sizeof(buffer) : (int) sizeof(canary);
    const int mode = reads ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_WRONLY;
    const MPI_Offset at = (MPI_Offset) bytes * rank;
    MPI_Status status;
    MPI_File file;
    int count;

    must(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file));
    if (reads) {
        must(MPI_File_read_at_all(file, at, buffer, bytes, MPI_BYTE, &status));
        must(MPI_Get_count(&status, MPI_BYTE, &count));
        must(bytes == count && 0 == memcmp(buffer, canary, sizeof(canary)) ? MPI_SUCCESS : MPI_ERR_IO);
    } else {
        memcpy(buffer, canary, sizeof(canary));
        must(MPI_File_write_at_all(file, at, buffer, bytes, MPI_BYTE, &status));
    }
    must(MPI_File_close(&file));
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
    if (0 == strcmp(what, "window") || 0 == strcmp(what, "threads")) {
        make_window();
    } else if (argc > 2) {
        use_file(rank, what, argv[2]);
    }
    MPI_Finalize();
    if (0 == rank) {
        puts("job: done");
    }
    return got != (rank + size - 1) % size;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * victim DIRECTORY: two processes exchange messages of changing lengths until somebody makes the file
 * DIRECTORY/stop.  After the first message each writes its process's number to DIRECTORY/pid.RANK, and
 * at the end to DIRECTORY/end.RANK how many messages came, the most memory, and the most files that it had open.
 * When there is a file DIRECTORY/look, the first writes DIRECTORY/looked.0.  Further processes meet nobody before the end.
 * victim DIRECTORY window: they put into a window, too, which may use another network.
 */
#include "mt.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 100000, PUT = 64 };

static unsigned char out[MOST], in[MOST];

static int open_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    int count = 0;

    MT_CHECK(NULL != list, "/proc/self/fd");
    while (NULL != readdir(list)) {
        count++;
    }
    closedir(list);
    return count;
}

static void fill(unsigned char *bytes, int count, int seed)
{
    for (int i = 0; i < count; i++) {
        bytes[i] = (unsigned char) (i * 7 + seed);
    }
}

/* The first bytes of what was just exchanged, once more, as far as the window has space for them. */
static void put(MPI_Win window, const unsigned char *there, int peer, int bytes)
{
    const int count = bytes < PUT ? bytes : PUT;


    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Put(out, count, MPI_BYTE, peer, 0, count, MPI_BYTE, window));
    MT_MPI(MPI_Win_fence(0, window));
    MT_CHECK(0 == memcmp(there, in, (size_t) count), "wrong bytes in the window");
}

/* To a file: mpirun of 5.0 may lose the last lines of a process. */
static void tell(const char *directory, const char *name, const char *text)
{
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.%d", directory, name, mt_rank);
    file = fopen(path, "w");
    MT_CHECK(NULL != file && fprintf(file, "%s\n", text) > 0 && 0 == fclose(file), "%s", path);
}

int main(int argc, char **argv)
{
    char path[4096], look[4096], text[200];
    bool looked = false;
    long rounds = 0;
    int stop = 0, files = 0, peer;
    struct rusage usage;
    unsigned char *there = NULL;
    MPI_Win window;

    mt_start_alone(&argc, &argv, MPI_THREAD_SINGLE);
    peer = 1 - mt_rank;
    snprintf(path, sizeof(path), "%s/stop", argv[1]);
    snprintf(look, sizeof(look), "%s/look", argv[1]);
    while (mt_rank > 1 && 0 != access(path, F_OK)) {
        usleep(10000);
    }
    if (mt_rank > 1) {
        return mt_end();
    }
    if (mt_flag("window")) {
        MT_MPI(MPI_Win_allocate(PUT, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &there, &window));
    }
    for (; !stop; rounds++) {
        const int bytes = (int) (rounds * 7919 % MOST), now = open_files();

        fill(out, bytes, mt_rank + (int) rounds);
        MT_MPI(MPI_Sendrecv(out, bytes, MPI_BYTE, peer, 1, in, MOST, MPI_BYTE, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        NULL != there ? put(window, there, peer, bytes) : (void) 0;
        fill(out, bytes, peer + (int) rounds);
        MT_CHECK(0 == memcmp(in, out, (size_t) bytes), "round %ld: wrong bytes", rounds);
        if (0 == rounds) {
            snprintf(text, sizeof(text), "%ld", (long) getpid());
            tell(argv[1], "pid", text);
        }
        files = now > files ? now : files;
        if (0 == mt_rank && !looked && 0 == access(look, F_OK)) {
            looked = true;
            snprintf(text, sizeof(text), "%ld", rounds);
            tell(argv[1], "looked", text);
        }
        stop = 0 == mt_rank && 0 == access(path, F_OK);
        if (0 == mt_rank) {
            MT_MPI(MPI_Send(&stop, 1, MPI_INT, 1, 2, MPI_COMM_WORLD));
        } else {
            MT_MPI(MPI_Recv(&stop, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        }
    }
    if (NULL != there) {
        MT_MPI(MPI_Win_free(&window));
    }
    getrusage(RUSAGE_SELF, &usage);
    snprintf(text, sizeof(text), "rank %d rounds %ld KiB %ld files %d", mt_rank, rounds, usage.ru_maxrss, files);
    tell(argv[1], "end", text);
    return mt_end();
}

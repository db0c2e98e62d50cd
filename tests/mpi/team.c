/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Threads that a process has besides its own while large messages go to and fro:
 * none of ours if one thread is asked for, else at most as many as asked for.
 */
#include "mt.h"

#include <dirent.h>

/* Threads of this process whose name begins with "crypt". */
static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    struct dirent *task;
    int count = 0;

    MT_CHECK(NULL != tasks, "/proc/self/task");
    while (NULL != (task = readdir(tasks))) {
        char path[300], name[32] = "";
        FILE *file;
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task->d_name);
        file = fopen(path, "r");
        if ('.' != task->d_name[0] && NULL != file && NULL != fgets(name, sizeof(name), file)) {
            count += 0 == strncmp(name, "crypt", 5);
        }
        if (NULL != file) {
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

/* With the partner in the other half of the ranks, which is the other node. */
static void exchange(size_t bytes, int seed)
{
    int partner = (mt_rank + mt_size / 2) % mt_size;
    char *out = malloc(bytes), *in = malloc(bytes);
    MPI_Request requests[2];

    mt_fill(out, bytes, mt_key(seed, mt_rank, 0, 0));
    MT_MPI(MPI_Irecv(in, (int) bytes, MPI_BYTE, partner, seed, MPI_COMM_WORLD, &requests[0]));
    MT_MPI(MPI_Isend(out, (int) bytes, MPI_BYTE, partner, seed, MPI_COMM_WORLD, &requests[1]));
    MT_MPI(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE));
    MT_SAME(in, bytes, mt_key(seed, partner, 0, 0), "exchange");
    free(out);
    free(in);
}

int main(int argc, char **argv)
{
    int most, threads;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    most = (int) mt_arg("threads", 0);
    MT_CHECK(0 == mt_size % 2, "an even number of ranks, please");
    exchange(1000, 1);
    MT_CHECK(0 == count_threads(), "%d threads before the first large message", count_threads());
    for (int i = 0; i < 20; i++) {
        exchange(4000000, 2 + i);
    }
    threads = count_threads();
    MT_CHECK(threads <= most, "%d threads, %d are allowed", threads, most);
    MT_CHECK(0 == most || threads > 0, "no thread at all");
    mt_group("large messages with at most %d threads of ours", most);
    return mt_end();
}

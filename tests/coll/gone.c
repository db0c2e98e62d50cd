/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The communicator is set up, and then a rank dies that is late for the first call with shared memory: not before the others
 * could have made some.
 */
#include "mt.h"

#include <dirent.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is of ours in /dev/shm. */
static bool is_there(void)
{
    DIR *directory = opendir("/dev/shm");
    bool found = false;

    MT_CHECK(NULL != directory, "/dev/shm");
    for (struct dirent *entry; NULL != (entry = readdir(directory));) {
        found = found || (0 == strncmp(entry->d_name, "ompi-crypt-", 11) && 27 == strlen(entry->d_name));
    }
    closedir(directory);
    return found;
}

int main(int argc, char **argv)
{
    enum { BYTES = 100000 };
    unsigned char *all = malloc((size_t) BYTES * 64);
    int little = 0;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(NULL != all && mt_size <= 64, "memory, and at most 64 ranks");
    MT_MPI(MPI_Bcast(&little, 1, MPI_INT, 0, MPI_COMM_WORLD));
    if (1 == mt_rank) {
        for (int i = 0; i < 200 && !is_there(); i++) {
            usleep(10000);
        }
        kill(getpid(), SIGKILL);
    }
    MT_MPI(MPI_Allgather(all, BYTES, MPI_BYTE, all + BYTES, BYTES, MPI_BYTE, MPI_COMM_WORLD));
    return mt_end();
}

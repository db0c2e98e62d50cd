/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program whose collective calls do not match: where the others open a file, one process is in an MPI_Allreduce of
 * numbers of its own.  The others get an error, and what they may do with the communicator afterwards is MPI's matter.
 *
 *   mismatch DIR
 */
#include "mt.h"

#include <limits.h>

enum { VALUES = 4 };                    /* as many as MPI_File_open itself agrees on */

static const int lies[][VALUES] = {
    {INT_MAX, INT_MAX, INT_MAX, INT_MAX},
    {0, 4, 0, 0},
    {0, 1 << 20, -1, 1},
    {0, 3, 0, INT_MAX},
    {0, 3, INT_MAX, 1},
    {2, 0, 0, -1},
    {0, 0, 0, 0},
    {0, 3, 0, -1},
    {32692, 32692, 32692, 32692},
};

static void one(const char *name, const int lie[VALUES])
{
    int most[VALUES];
    MPI_File f;

    if (1 == mt_rank) {
        MT_MPI(MPI_Allreduce((void *) lie, most, VALUES, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
        return;
    }
    MT_AT();
    const int rc = MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f);
    MT_CHECK(MPI_SUCCESS != rc, "opened, though rank 1 says %d, %d, %d, %d", lie[0], lie[1], lie[2], lie[3]);
}

int main(int argc, char **argv)
{
    char name[4096];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named");
    }
    snprintf(name, sizeof(name), "%s/mismatch", argv[1]);
    for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
        one(name, lies[i]);
        mt_group("others do not open the file, %zu", i);
    }
    return mt_end();
}

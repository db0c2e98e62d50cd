/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All processes meet, and each gets what each other sent to it.
 */
#include "mt.h"

#include <stdlib.h>

int main(int argc, char **argv)
{
    int *out, *in;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    out = malloc((size_t) mt_size * sizeof(*out));
    in = malloc((size_t) mt_size * sizeof(*in));
    for (int i = 0; i < mt_size; i++) {
        out[i] = 1000 * mt_rank + i;
    }
    MT_MPI(MPI_Alltoall(out, 1, MPI_INT, in, 1, MPI_INT, MPI_COMM_WORLD));
    for (int i = 0; i < mt_size; i++) {
        MT_CHECK(1000 * i + mt_rank == in[i], "from %d: %d", i, in[i]);
    }
    free(out);
    free(in);
    return mt_end();
}

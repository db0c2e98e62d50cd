/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What memcheck has to find: bytes that nobody wrote are sent to another node
 * (`unset`), a block is lost (`lost`).
 */
#include "mt.h"

static void *volatile block;

int main(int argc, char **argv)
{
    char buffer[64];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    memset(buffer, 0, sizeof(buffer));
    if (mt_flag("unset")) {
        block = malloc(sizeof(buffer));
        memcpy(buffer, block, sizeof(buffer));
        free(block);
    }
    if (mt_flag("lost")) {
        block = malloc(1000);
        block = NULL;
    }
    MT_MPI(MPI_Sendrecv_replace(buffer, sizeof(buffer), MPI_BYTE, 1 - mt_rank, 1, 1 - mt_rank, 1, MPI_COMM_WORLD,
                                MPI_STATUS_IGNORE));
    return mt_end();
}

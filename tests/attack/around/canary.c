/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * canary HEX (send | window | world | node): 16 bytes leave every rank by a
 * broadcast, or by MPI_Put into a window over all ranks; "world" and "node" only
 * make a window, over all ranks and over those of each node.
 */
#include "mt.h"

enum { CANARY = 16 };

static unsigned char canary[CANARY], got[CANARY];

static void send_it(void)
{
    for (int root = 0; root < mt_size; root++) {
        memset(got, 0, CANARY);
        if (root == mt_rank) {
            memcpy(got, canary, CANARY);
        }
        MT_MPI(MPI_Bcast(got, CANARY, MPI_BYTE, root, MPI_COMM_WORLD));
        MT_CHECK(0 == memcmp(got, canary, CANARY), "wrong bytes");
    }
}

static void put_it(void)
{
    MPI_Win win;
    MT_MPI(MPI_Win_create(got, CANARY, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win));
    MT_MPI(MPI_Win_fence(0, win));
    MT_MPI(MPI_Put(canary, CANARY, MPI_BYTE, (mt_rank + mt_size / 2) % mt_size, 0, CANARY, MPI_BYTE, win));
    MT_MPI(MPI_Win_fence(0, win));
    MT_CHECK(0 == memcmp(got, canary, CANARY), "wrong bytes");
    MT_MPI(MPI_Win_free(&win));
}

static void only_make(MPI_Comm comm)
{
    MPI_Win win;
    unsigned char *memory;
    MT_MPI(MPI_Win_create(got, CANARY, 1, MPI_INFO_NULL, comm, &win));
    MT_MPI(MPI_Win_free(&win));
    MT_MPI(MPI_Win_allocate(CANARY, 1, MPI_INFO_NULL, comm, &memory, &win));
    MT_MPI(MPI_Win_free(&win));
}

int main(int argc, char **argv)
{
    MPI_Comm node;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(3 == argc && 2 * CANARY == strlen(argv[1]), "canary HEX WAY");
    for (int i = 0; i < CANARY; i++) {
        unsigned value;
        MT_CHECK(1 == sscanf(argv[1] + 2 * i, "%2x", &value), "not hex");
        canary[i] = (unsigned char) value;
    }
    mt_flag("send") ? send_it() : (void) 0;
    mt_flag("window") ? put_it() : (void) 0;
    mt_flag("world") ? only_make(MPI_COMM_WORLD) : (void) 0;
    if (mt_flag("node")) {
        MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        only_make(node);
        MT_MPI(MPI_Comm_free(&node));
    }
    return mt_end();
}

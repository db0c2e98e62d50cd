/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * canary HEX (send | self | window | world | node | pairs): 16 bytes leave every rank by a
 * broadcast, or by MPI_Put into a window over all ranks; "self" sends them to the rank
 * itself, in messages of every length; "world", "node" and "pairs" only make a window, over all
 * ranks, over those of each node, and over two ranks of different nodes.
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

/* In one communicator: posted before, found by a probe, synchronous. */
static void self_in(MPI_Comm comm, int bytes)
{
    unsigned char *out = malloc((size_t) bytes), *in = calloc(1, (size_t) bytes);
    MPI_Request request;
    MPI_Status status;
    int me, count;
    MT_MPI(MPI_Comm_rank(comm, &me));
    for (int i = 0; i < bytes; i++) {
        out[i] = canary[i % CANARY];
    }
    MT_MPI(MPI_Irecv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, 3, comm, &request));
    MT_MPI(MPI_Ssend(out, bytes, MPI_BYTE, me, 3, comm));
    MT_MPI(MPI_Wait(&request, &status));
    MT_CHECK(status.MPI_SOURCE == me && 0 == memcmp(in, out, (size_t) bytes), "wrong bytes, %d of them", bytes);
    memset(in, 0, (size_t) bytes);
    MT_MPI(MPI_Isend(out, bytes, MPI_BYTE, me, 4, comm, &request));
    MT_MPI(MPI_Probe(me, MPI_ANY_TAG, comm, &status));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK(4 == status.MPI_TAG && count == bytes, "a probe finds %d bytes, of %d", count, bytes);
    MT_MPI(MPI_Recv(in, bytes, MPI_BYTE, MPI_ANY_SOURCE, 4, comm, MPI_STATUS_IGNORE));
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(in, out, (size_t) bytes), "wrong bytes, %d of them", bytes);
    memset(in, 0, (size_t) bytes);
    MT_MPI(MPI_Sendrecv(out, bytes, MPI_BYTE, me, 5, in, bytes, MPI_BYTE, me, 5, comm, &status));
    MT_CHECK(0 == memcmp(in, out, (size_t) bytes), "wrong bytes, %d of them", bytes);
    free(out);
    free(in);
}

static void to_self(void)
{
    static const int bytes[] = {CANARY, 1000, 65536, 300000, 5000000};
    for (size_t i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        self_in(MPI_COMM_SELF, bytes[i]);
        self_in(MPI_COMM_WORLD, bytes[i]);
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
    MPI_Comm node, pair;
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(3 == argc && 2 * CANARY == strlen(argv[1]), "canary HEX WAY");
    for (int i = 0; i < CANARY; i++) {
        unsigned value;
        MT_CHECK(1 == sscanf(argv[1] + 2 * i, "%2x", &value), "not hex");
        canary[i] = (unsigned char) value;
    }
    mt_flag("send") ? send_it() : (void) 0;
    mt_flag("self") ? to_self() : (void) 0;
    mt_flag("window") ? put_it() : (void) 0;
    mt_flag("world") ? only_make(MPI_COMM_WORLD) : (void) 0;
    if (mt_flag("node")) {
        MT_MPI(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
        only_make(node);
        MT_MPI(MPI_Comm_free(&node));
    }
    if (mt_flag("pairs")) {
        MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % (mt_size / 2), 0, &pair));
        only_make(pair);
        MT_MPI(MPI_Comm_free(&pair));
    }
    return mt_end();
}

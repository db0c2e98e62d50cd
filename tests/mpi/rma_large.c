/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * rma_large [bytes=N]: more than 2 GiB in one put, and in one get, between the first and the last rank.
 */
#include "mt.h"

enum { PIECE = 1 << 20 };               /* of the type that is counted */

static unsigned char *mine;             /* what rank 0 sends and gets */

static void check(const unsigned char *p, size_t bytes, const char *what)
{
    for (size_t at = 0; at < bytes; at += PIECE) {
        const size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        MT_SAME(p + at, n, mt_key(1, 0, 0, (int) (at / PIECE)), what);
    }
}

static MPI_Datatype make_type(size_t bytes)
{
    MPI_Datatype piece, whole, both[2];
    const int lengths[2] = {1, (int) (bytes % PIECE)};
    const MPI_Aint places[2] = {0, (MPI_Aint) (bytes / PIECE * PIECE)};

    MT_MPI(MPI_Type_contiguous(PIECE, MPI_BYTE, &piece));
    MT_MPI(MPI_Type_contiguous((int) (bytes / PIECE), piece, &both[0]));
    both[1] = MPI_BYTE;
    MT_MPI(MPI_Type_create_struct(2, lengths, places, both, &whole));
    MT_MPI(MPI_Type_commit(&whole));
    MT_MPI(MPI_Type_free(&piece));
    MT_MPI(MPI_Type_free(&both[0]));
    return whole;
}

int main(int argc, char **argv)
{
    unsigned char *window;
    MPI_Win win;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    const size_t bytes = (size_t) mt_arg("bytes", 2200000001);
    const int last = mt_size - 1;
    MPI_Datatype type = make_type(bytes);

    MT_MPI(MPI_Win_allocate(last == mt_rank ? (MPI_Aint) bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window, &win));
    if (0 == mt_rank) {
        mine = malloc(bytes);
        MT_CHECK(NULL != mine, "memory");
        for (size_t at = 0; at < bytes; at += PIECE) {
            mt_fill(mine + at, bytes - at < PIECE ? bytes - at : PIECE, mt_key(1, 0, 0, (int) (at / PIECE)));
        }
    }
    MT_MPI(MPI_Win_fence(0, win));
    if (0 == mt_rank) {
        MT_MPI(MPI_Put(mine, 1, type, last, 0, 1, type, win));
    }
    MT_MPI(MPI_Win_fence(0, win));
    if (last == mt_rank) {
        check(window, bytes, "put");
    }
    mt_group("put of %zu bytes", bytes);
    if (0 == mt_rank) {
        memset(mine, 0, bytes);
        MT_MPI(MPI_Get(mine, 1, type, last, 0, 1, type, win));
    }
    MT_MPI(MPI_Win_fence(MPI_MODE_NOSUCCEED, win));
    if (0 == mt_rank) {
        check(mine, bytes, "get");
    }
    mt_group("get of %zu bytes", bytes);
    MT_MPI(MPI_Type_free(&type));
    MT_MPI(MPI_Win_free(&win));
    free(mine);
    return mt_end();
}

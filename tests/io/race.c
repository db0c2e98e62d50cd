/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All processes write pieces of the same blocks, each its own, and read
 * everything at the same time: no write is lost, no read fails, and every piece
 * is of one version.  race DIR [rounds=N]
 */
#include "mt.h"

enum { PIECE = 100, BLOCK = 4096, BLOCKS = 3, PIECES = BLOCK * BLOCKS / PIECE };

static unsigned char buffer[PIECES * PIECE];

static void look(MPI_File f)
{
    MPI_Status status;
    int count;

    MT_MPI(MPI_File_read_at(f, 0, buffer, sizeof(buffer), MPI_BYTE, &status));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    for (int piece = 0; piece < count / PIECE; piece++) {
        /* a piece that crosses a block's end may be of two versions */
        for (int i = 1; i < PIECE && piece * PIECE / BLOCK == (piece * PIECE + PIECE - 1) / BLOCK; i++) {
            MT_CHECK(buffer[piece * PIECE + i] == buffer[piece * PIECE], "piece %d, byte %d", piece, i);
        }
    }
}

int main(int argc, char **argv)
{
    char path[1024];
    unsigned char piece[PIECE];
    MPI_File f;
    MPI_Info info;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    int rounds = (int) mt_arg("rounds", 60);
    snprintf(path, sizeof(path), "%s/race", argv[1]);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    for (int round = 0; round < rounds; round++) {
        for (int i = mt_rank; i < PIECES; i += mt_size) {
            memset(piece, 1 + (round + i) % 255, PIECE);
            MT_MPI(MPI_File_write_at(f, (MPI_Offset) i * PIECE, piece, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
            if (0 == i % 5) {
                look(f);
            }
        }
    }
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_read_at(f, 0, buffer, sizeof(buffer), MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < PIECES * PIECE; i++) {
        MT_CHECK(buffer[i] == 1 + (rounds - 1 + i / PIECE) % 255, "byte %d of piece %d is of round %d", i % PIECE, i / PIECE, buffer[i]);
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("%d pieces of %d blocks by %d processes, %d times", PIECES, BLOCKS, mt_size, rounds);
    return mt_end();
}

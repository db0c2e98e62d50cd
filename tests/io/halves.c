/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two nodes write the two halves of one block, again and again, and a third of the
 * times a part of the half only; neither half is ever lost.  halves DIR [rounds=N]
 *
 * After each round both processes sync, meet, sync, and read all of it: each must see
 * what the other has written.
 */
#include "mt.h"

enum { BLOCK = 4096, HALF = BLOCK / 2 };

static unsigned char mine[HALF], seen[BLOCK];

/* What process `rank` has in its half after round `round`: whole in most of them. */
static unsigned char value_of(int rank, int round, int at)
{
    int last = round;

    while (last > 0 && 0 == last % 3 && at >= 700) {
        last--;                         /* in that round only the first 700 bytes */
    }
    return (unsigned char) (1 + (last * 2 + rank) % 251);
}

static int wrong(int round)
{
    int n = 0;

    for (int i = 0; i < BLOCK; i++) {
        n += seen[i] != value_of(i / HALF, round, i % HALF);
    }
    return n;
}

int main(int argc, char **argv)
{
    char path[1024];
    MPI_File f;
    MPI_Info info;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that both nodes share");
    }
    int rounds = (int) mt_arg("rounds", 1000), lost = 0;
    MT_CHECK(2 == mt_size, "%d processes", mt_size);
    snprintf(path, sizeof(path), "%s/halves", argv[1]);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    for (int round = 1; round <= rounds; round++) {
        int bytes = 0 == round % 3 ? 700 : HALF, class = MPI_SUCCESS;
        for (int i = 0; i < HALF; i++) {
            mine[i] = value_of(mt_rank, round, i);
        }
        MPI_Error_class(MPI_File_write_at(f, mt_rank * HALF, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE), &class);
        MT_CHECK(MPI_SUCCESS == class || lost > 0, "round %d: writing: error class %d", round, class);
        MT_MPI(MPI_File_sync(f));
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_MPI(MPI_File_sync(f));
        MPI_Error_class(MPI_File_read_at(f, 0, seen, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), &class);
        int bad = wrong(round);
        if (MPI_SUCCESS != class || bad > 0) {
            lost++;
            if (lost < 4) {
                printf("round %d, rank %d: error class %d, %d bytes are not what was written\n", round, mt_rank, class, bad);
                fflush(stdout);
            }
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &lost, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
    MT_MPI(MPI_File_close(&f));
    MT_CHECK(0 == lost, "%d times in %d rounds something was lost", lost, rounds);
    mt_group("%d rounds, two halves of a block", rounds);
    return mt_end();
}

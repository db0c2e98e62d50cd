/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A new file for which one process asks for something that the others do not.
 *
 *   differ FILE RANK LABEL     the info of that rank has crypt_key_label=LABEL; -1: of none
 *
 * Every process writes its canary.  Exits with 0 when nothing was refused; if one process is refused
 * an opening, all are.
 */
#include "mt.h"

static const char canary[] = "canary that nobody may see";

int main(int argc, char **argv)
{
    MPI_Info info;
    MPI_File f;
    int refused[2], most[2];

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 4) {
        mt_skip("no file, rank and label named");
    }
    MT_MPI(MPI_Info_create(&info));
    if (mt_rank == atoi(argv[2])) {
        MT_MPI(MPI_Info_set(info, "crypt_key_label", argv[3]));
    }
    refused[0] = MPI_SUCCESS != MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &f);
    refused[1] = !refused[0];
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Allreduce(refused, most, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD));
    MT_CHECK(most[0] != most[1], "some were refused, others not");
    if (!refused[0]) {
        MT_MPI(MPI_File_write_at_all(f, (MPI_Offset) sizeof(canary) * mt_rank, canary, sizeof(canary), MPI_BYTE, MPI_STATUS_IGNORE));
        MT_MPI(MPI_File_close(&f));
    }
    MT_CHECK(!refused[0], "refused");
    mt_group("one file, different wishes");
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Recognizable data goes into a file by every kind of call, shared pointers
 * included, and nothing beside the file has it in clear while the file is open:
 * canary DIR NAME WAY, where WAY is sealed, plain (there it is in clear) or
 * unshared (the encrypted file has no shared pointer, and says so).
 */
#include "clear.h"

#define CANARY "the-canary-sings-in-clear-text\n"       /* leak.sh looks for it, too */

enum { CANARY_BYTES = sizeof(CANARY) - 1, TIMES = 6000, BYTES = TIMES * CANARY_BYTES };

static char buffer[BYTES];

/* A view of alternating rows, so that aggregators get rows of all processes. */
static void write_together(MPI_File f)
{
    MPI_Datatype row, filetype;

    MT_MPI(MPI_Type_contiguous(CANARY_BYTES * 5, MPI_BYTE, &row));
    MT_MPI(MPI_Type_create_resized(row, 0, CANARY_BYTES * 5 * mt_size, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) mt_rank * CANARY_BYTES * 5, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    MT_MPI(MPI_File_write_all(f, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_read_at_all(f, 0, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&row));
}

static void write_shared(MPI_File f, bool refused)
{
    if (refused) {
        MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
        MT_CHECK(MPI_SUCCESS != MPI_File_write_shared(f, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared");
        MT_CHECK(MPI_SUCCESS != MPI_File_write_ordered(f, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered");
    } else {
        MT_MPI(MPI_File_write_shared(f, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
        MT_MPI(MPI_File_write_ordered(f, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    }
}

int main(int argc, char **argv)
{
    char path[1100];
    MPI_File f;
    MPI_Request request;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(4 == argc, "canary DIR NAME WAY");
    bool plain = 0 == strcmp(argv[3], "plain");
    snprintf(path, sizeof(path), "%s/%s", argv[1], argv[2]);
    for (int i = 0; i < TIMES; i++) {
        memcpy(buffer + i * CANARY_BYTES, CANARY, CANARY_BYTES);
    }
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    write_together(f);
    MT_MPI(MPI_File_iwrite_at(f, (MPI_Offset) mt_rank * 777, buffer, BYTES, MPI_BYTE, &request));
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    write_shared(f, 0 == strcmp(argv[3], "unshared"));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        MT_CHECK(clear_below(argv[1], CANARY, CANARY_BYTES) == plain, "beside the open file");
    }
    MT_MPI(MPI_File_close(&f));
    if (0 == mt_rank) {
        MT_CHECK(clear_below(argv[1], CANARY, CANARY_BYTES) == plain, "after the file was closed");
    }
    mt_group("%s: %s", argv[2], argv[3]);
    return mt_end();
}

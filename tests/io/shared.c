/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One file, several jobs.  Its pieces are shorter than a block:
 *   shared FILE make            an empty encrypted file
 *   shared FILE write APP APPS  the pieces of application APP of APPS, each
 *                               process its own, some of them twice
 *   shared FILE read UNIT       all pieces, in a view of units dealt round-robin
 */
#include "mt.h"

enum { PIECE = 700, PIECES = 900, BYTES = PIECE * PIECES };

static unsigned char expected[BYTES], bytes[BYTES];

static MPI_File open_file(const char *path, int mode)
{
    MPI_Info info;
    MPI_File f;

    MT_MPI(MPI_Info_create(&info));
    if (mode & MPI_MODE_CREATE) {
        MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
        MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    }
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &f));
    MT_MPI(MPI_Info_free(&info));
    return f;
}

static void write_pieces(MPI_File f, int app, int apps)
{
    for (int i = 0; i < PIECES; i++) {
        if (i % (apps * mt_size) == app * mt_size + mt_rank) {
            for (int times = 0; times < 1 + (0 == i % 3); times++) {
                MT_MPI(MPI_File_write_at(f, (MPI_Offset) i * PIECE, expected + i * PIECE, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
            }
        }
    }
}

static void read_pieces(MPI_File f, int unit)
{
    MPI_Datatype run, filetype;
    size_t n = 0;

    MT_MPI(MPI_Type_contiguous(unit, MPI_BYTE, &run));
    MT_MPI(MPI_Type_create_resized(run, 0, (MPI_Aint) unit * mt_size, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_File_set_view(f, (MPI_Offset) unit * mt_rank, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (int at = unit * mt_rank; at < BYTES; at += unit * mt_size) {
        n += (size_t) (BYTES - at < unit ? BYTES - at : unit);
    }
    MT_MPI(MPI_File_read_all(f, bytes, (int) n, MPI_BYTE, MPI_STATUS_IGNORE));
    n = 0;
    for (int at = unit * mt_rank; at < BYTES; at += unit * mt_size) {
        size_t part = (size_t) (BYTES - at < unit ? BYTES - at : unit);
        MT_CHECK(0 == memcmp(bytes + n, expected + at, part), "%zu bytes at %d", part, at);
        n += part;
    }
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&run));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 2, "usage");
    mt_fill(expected, BYTES, mt_key(5, 0, 0, 0));
    const char *what = argv[2];
    bool make = 0 == strcmp(what, "make"), reading = 0 == strcmp(what, "read");
    MPI_File f = open_file(argv[1], make ? MPI_MODE_CREATE | MPI_MODE_RDWR : reading ? MPI_MODE_RDONLY : MPI_MODE_RDWR);
    if (reading) {
        read_pieces(f, atoi(argv[3]));
    } else if (!make) {
        write_pieces(f, atoi(argv[3]), atoi(argv[4]));
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("%s by %d processes", what, mt_size);
    return mt_end();
}

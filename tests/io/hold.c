/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Have a file open for writing until told otherwise.  hold FILE [READY END [read]]
 *
 * Once it is open the file READY is made; when END is there, it is closed.  Without
 * these two names it is closed at once.  read: it is open for reading only; else it is written
 * first, and again last.
 */
#include "mt.h"

#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static unsigned char bytes[100];
    MPI_File f;
    MPI_Info info;
    MPI_Offset at;
    bool reads = argc > 4 && 0 == strcmp(argv[4], "read");

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no file named");
    }
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, argv[1], reads ? MPI_MODE_RDONLY : MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    at = (MPI_Offset) sizeof(bytes) * mt_rank;
    if (!reads) {
        MT_MPI(MPI_File_write_at(f, at, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (argc > 3) {
        int fd = open(argv[2], O_CREAT | O_WRONLY, 0600);
        MT_CHECK(fd >= 0, "%s", argv[2]);
        close(fd);
        while (0 != access(argv[3], F_OK)) {
            usleep(10000);
        }
        if (!reads) {
            MT_MPI(MPI_File_write_at(f, at, bytes, sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE));
        }
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("had %s open", argv[1]);
    return mt_end();
}

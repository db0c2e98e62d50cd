/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * All processes of a collective call get the error when storage refuses a write,
 * and all go on: limits DIR [FCOLL], with Open MPI's component FCOLL.  One of those
 * exchanges a short cycle's data while the last cycle is being written.
 */
#include "mt.h"

#include <signal.h>
#include <sys/resource.h>

enum { ROOM = 4 << 20, PAST = 8192, CYCLE = 256 << 10 };

static unsigned char bytes[2 * ROOM], again[2 * ROOM];

static void limit_to(rlim_t limit)
{
    struct rlimit now;

    MT_CHECK(0 == getrlimit(RLIMIT_FSIZE, &now), "getrlimit");
    now.rlim_cur = limit;
    MT_CHECK(0 == setrlimit(RLIMIT_FSIZE, &now), "setrlimit");
}

static int write_all(MPI_File f, int total)
{
    int part = total / mt_size, from = part * mt_rank;

    return MPI_File_write_at_all(f, from, bytes + from, part, MPI_BYTE, MPI_STATUS_IGNORE);
}

static void too_much(MPI_File f, int total)
{
    int class;

    limit_to(ROOM);
    int rc = write_all(f, total);
    limit_to(RLIM_INFINITY);
    MPI_Error_class(rc, &class);
    MT_CHECK(MPI_ERR_IO == class, "%d bytes where %d fit: error class %d", total, ROOM, class);
    MT_MPI(MPI_File_sync(f));
    mt_group("%d bytes where %d fit", total, ROOM);
}

int main(int argc, char **argv)
{
    char path[1024], number[16];
    MPI_Info info;
    MPI_File f;

    if (argc > 2) {
        setenv("OMPI_MCA_fcoll", argv[2], 1);
    }
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    signal(SIGXFSZ, SIG_IGN);
    snprintf(path, sizeof(path), "%s/limits", argv[1]);
    snprintf(number, sizeof(number), "%d", CYCLE);
    mt_fill(bytes, sizeof(bytes), mt_key(6, 0, 0, 0));
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_Info_set(info, "cb_buffer_size", number));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    too_much(f, ROOM + PAST);           /* also in the last cycle */
    too_much(f, 2 * ROOM);
    MT_MPI(write_all(f, 2 * ROOM));
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_read_at_all(f, 0, again, 2 * ROOM, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(bytes, again, sizeof(bytes)), "what was read is not what was written");
    MT_MPI(MPI_File_close(&f));
    mt_group("the same without a limit");
    return mt_end();
}

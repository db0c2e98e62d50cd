/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files that are begun while something goes wrong.  Rank 0 writes the result of each step, 0 or an error
 * class, to OUT, as a line "STEP CLASS"; a read that gets other bytes has class -1.
 *
 *   begun map FILE OUT    open a new file, give it a map, write, close
 *   begun use FILE OUT    open it, new or empty, write, close; and read
 *   begun read FILE OUT   read what these two wrote
 *   begun left FILE OUT FROM   as map, but before it has one, it gets the attribute of FROM: of a maker that was killed
 */
#include "mt.h"

#include "mpi_crypt.h"

#include <sys/xattr.h>

enum { BYTES = 1000 };

static FILE *out;

static int came(const char *step, int rc)
{
    int class = rc;

    if (rc > 0) {
        MPI_Error_class(rc, &class);
    }
    if (0 == mt_rank) {
        MT_CHECK(fprintf(out, "%s %d\n", step, class) > 0 && 0 == fflush(out), "what came of it cannot be written");
    }
    return rc;
}

static int give_map(MPI_File f)
{
    MPI_Datatype type;
    MPI_Info info;

    MT_MPI(MPI_Type_contiguous(100, MPI_BYTE, &type));
    MT_MPI(MPI_Type_commit(&type));
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    int rc = MPIX_File_set_encryption_map(f, 0, MPI_BYTE, type, "native", info);
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Type_free(&type));
    return rc;
}

static void leave_attribute(const char *from, const char *to)
{
    static char map[65536];
    const ssize_t bytes = 0 == mt_rank ? getxattr(from, "user.mpicrypt.map", map, sizeof(map)) : 0;

    MT_CHECK(0 != mt_rank || (bytes > 0 && 0 == setxattr(to, "user.mpicrypt.map", map, (size_t) bytes, 0)), "the attribute of %s", from);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void fill_bytes(unsigned char *bytes)
{
    for (int i = 0; i < BYTES; i++) {
        bytes[i] = (unsigned char) (7 * i + mt_rank + 1);
    }
}

static int write_it(MPI_File f)
{
    unsigned char bytes[BYTES];

    fill_bytes(bytes);
    return came("write", MPI_File_write_at_all(f, (MPI_Offset) mt_rank * BYTES, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
}

static void read_it(const char *path)
{
    unsigned char bytes[BYTES], wanted[BYTES];
    MPI_File f;
    int rc = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f);

    if (MPI_SUCCESS == rc) {
        memset(bytes, 0, sizeof(bytes));
        fill_bytes(wanted);
        rc = MPI_File_read_at_all(f, (MPI_Offset) mt_rank * BYTES, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE);
        rc = MPI_SUCCESS == rc && 0 != memcmp(bytes, wanted, BYTES) ? -1 : rc;
        MPI_File_close(&f);
    }
    (void) came("read", rc);
}

int main(int argc, char **argv)
{
    MPI_File f;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc >= 4, "usage");
    const char *mode = argv[1], *path = argv[2];
    out = fopen(argv[3], 0 == mt_rank ? "w" : "r");
    MT_CHECK(0 != mt_rank || NULL != out, "%s", argv[3]);
    if (0 == strcmp(mode, "read")) {
        read_it(path);
        return mt_end();
    }
    int rc = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR | MPI_MODE_CREATE, MPI_INFO_NULL, &f);
    if (MPI_SUCCESS == came("open", rc)) {
        if (0 == strcmp(mode, "left")) {
            MT_CHECK(argc >= 5, "usage");
            leave_attribute(argv[4], path);
        }
        if (0 == strcmp(mode, "map") || 0 == strcmp(mode, "left")) {
            (void) came("map", give_map(f));
        }
        (void) write_it(f);
        (void) came("close", MPI_File_close(&f));
        if (0 == strcmp(mode, "use")) {
            read_it(path);
        }
    }
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI-IO: the ranks' lines interleave in the file, so that collective access
 * has something to exchange.  Individual access sends nothing, and Open MPI makes
 * collective access individual when it does not block.
 */
#include "leak.h"

enum { ALL, AT_ALL, IALL, IAT_ALL, BEGIN_END, AT_BEGIN_END, ORDERED, ORDERED_BEGIN_END,
       OWN, AT, INDIVIDUAL_I, IAT, SHARED, ISHARED };
enum { WRITE = 0, READ = 1 };

static MPI_File file;

static bool by_shared_pointer(int how)
{
    return ORDERED == how || ORDERED_BEGIN_END == how || SHARED == how || ISHARED == how;
}

static void io(const leak_op_t *op)
{
    int n = (int) leak_n, reading = op->with;
    unsigned char *p = reading ? leak_in : leak_out;
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Status status;
    if (reading) {      /* what is there may be of another size; everybody's own writing sends nothing */
        MPI_Offset at = by_shared_pointer(op->how) ? (MPI_Offset) mt_rank * n : 0;
        MT_MPI(MPI_File_write_at(file, at, leak_out, n, MPI_BYTE, &status));
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MT_MPI(MPI_File_seek(file, 0, MPI_SEEK_SET));
    if (by_shared_pointer(op->how)) {
        MT_MPI(MPI_File_seek_shared(file, 0, MPI_SEEK_SET));
    }
#define CALL(how, w, r, ...) case how: MT_MPI(reading ? MPI_File_##r(__VA_ARGS__) : MPI_File_##w(__VA_ARGS__)); break
    switch (op->how) {
    CALL(ALL, write_all, read_all, file, p, n, MPI_BYTE, &status);
    CALL(AT_ALL, write_at_all, read_at_all, file, 0, p, n, MPI_BYTE, &status);
    CALL(IALL, iwrite_all, iread_all, file, p, n, MPI_BYTE, &request);
    CALL(IAT_ALL, iwrite_at_all, iread_at_all, file, 0, p, n, MPI_BYTE, &request);
    CALL(BEGIN_END, write_all_begin, read_all_begin, file, p, n, MPI_BYTE);
    CALL(AT_BEGIN_END, write_at_all_begin, read_at_all_begin, file, 0, p, n, MPI_BYTE);
    CALL(ORDERED, write_ordered, read_ordered, file, p, n, MPI_BYTE, &status);
    CALL(ORDERED_BEGIN_END, write_ordered_begin, read_ordered_begin, file, p, n, MPI_BYTE);
    CALL(OWN, write, read, file, p, n, MPI_BYTE, &status);
    CALL(AT, write_at, read_at, file, 0, p, n, MPI_BYTE, &status);
    CALL(INDIVIDUAL_I, iwrite, iread, file, p, n, MPI_BYTE, &request);
    CALL(IAT, iwrite_at, iread_at, file, 0, p, n, MPI_BYTE, &request);
    CALL(SHARED, write_shared, read_shared, file, p, n, MPI_BYTE, &status);
    CALL(ISHARED, iwrite_shared, iread_shared, file, p, n, MPI_BYTE, &request);
    }
    switch (op->how) {
    CALL(BEGIN_END, write_all_end, read_all_end, file, p, &status);
    CALL(AT_BEGIN_END, write_at_all_end, read_at_all_end, file, p, &status);
    CALL(ORDERED_BEGIN_END, write_ordered_end, read_ordered_end, file, p, &status);
    }
#undef CALL
    MT_MPI(MPI_Wait(&request, MPI_STATUS_IGNORE));
    /* With a shared pointer all ranks should have one view; ours differ, so it does not say what they read. */
    LEAK_SAME(leak_in, reading && !by_shared_pointer(op->how));
}

#define BOTH(w, r, ...) {w, io, .with = WRITE, .least = LEAK_CANARY, __VA_ARGS__}, \
                        {r, io, .with = READ, .least = LEAK_CANARY, __VA_ARGS__}

static const leak_op_t ops[] = {
    BOTH("File_write_all", "File_read_all", .how = ALL),
    BOTH("File_write_at_all", "File_read_at_all", .how = AT_ALL),
    BOTH("File_iwrite_all", "File_iread_all", .how = IALL, .bare = true, .most = 65537),
    BOTH("File_iwrite_at_all", "File_iread_at_all", .how = IAT_ALL, .bare = true, .most = 65537),
    BOTH("File_write_all_begin", "File_read_all_begin", .how = BEGIN_END, .bare = true, .most = 65537),
    BOTH("File_write_at_all_begin", "File_read_at_all_begin", .how = AT_BEGIN_END, .bare = true, .most = 65537),
    BOTH("File_write_ordered", "File_read_ordered", .how = ORDERED),
    BOTH("File_write_ordered_begin", "File_read_ordered_begin", .how = ORDERED_BEGIN_END, .bare = true, .most = 65537),
    BOTH("File_write", "File_read", .how = OWN, .bare = true, .most = 65537),
    BOTH("File_write_at", "File_read_at", .how = AT, .bare = true, .most = 65537),
    BOTH("File_iwrite", "File_iread", .how = INDIVIDUAL_I, .bare = true, .most = 65537),
    BOTH("File_iwrite_at", "File_iread_at", .how = IAT, .bare = true, .most = 65537),
    BOTH("File_write_shared", "File_read_shared", .how = SHARED, .bare = true, .most = 65537),
    BOTH("File_iwrite_shared", "File_iread_shared", .how = ISHARED, .bare = true, .most = 65537),
};

void leak_io(size_t largest, const char *directory)
{
    MPI_Datatype line, every_fourth;
    char path[1024];
    snprintf(path, sizeof(path), "%s/leak", directory);
    MT_MPI(MPI_Type_contiguous(LEAK_LINE, MPI_BYTE, &line));
    MT_MPI(MPI_Type_create_resized(line, 0, (MPI_Aint) mt_size * LEAK_LINE, &every_fourth));
    MT_MPI(MPI_Type_commit(&every_fourth));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file));
    MT_MPI(MPI_File_set_view(file, (MPI_Offset) mt_rank * LEAK_LINE, MPI_BYTE, every_fourth, "native", MPI_INFO_NULL));
    leak_run("files", ops, LEAK_COUNT(ops), largest, MPI_COMM_WORLD);
    MT_MPI(MPI_File_close(&file));
    MT_MPI(MPI_Type_free(&every_fourth));
    MT_MPI(MPI_Type_free(&line));
}

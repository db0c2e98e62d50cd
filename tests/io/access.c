/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Processes with different keystores share a file of two regions: rows of label
 * lab, rows of label other.  access DIR LABELS [threads], where LABELS (both, other, none)
 * is what this process's keystore holds.
 */
#include "mt.h"

#include "mpi_crypt.h"

enum { ROW = 1000, ROWS = 40 };         /* rows of lab and of other alternate */

static bool has[2];                     /* lab, other */
static char path[1024];
static unsigned char buffer[2 * ROW * ROWS], filler[ROW];

static void add_region(MPI_File f, int which, bool take_part)
{
    MPI_Datatype row, filetype;
    MPI_Info info;

    MT_MPI(MPI_Type_contiguous(take_part ? ROW : 0, MPI_BYTE, &row));
    MT_MPI(MPI_Type_create_resized(row, 0, 2 * ROW, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", which ? "other" : "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPIX_File_set_encryption_map(f, which * ROW, MPI_BYTE, filetype, "native", info));
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&row));
}

static unsigned char *row_of(int row)
{
    mt_fill(filler, ROW, mt_key(5, row, 0, 0));
    return filler;
}

/* A call must succeed, or, if it is not allowed, be refused without moving a byte. */
static void judge(bool allowed, bool reading, int rc, const unsigned char *bytes, size_t n, const char *what)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(rc, &class);
    MT_CHECK(class == (allowed ? MPI_SUCCESS : MPIX_ERR_CRYPT_NO_KEY), "%s: error class %d", what, class);
    for (size_t i = 0; reading && !allowed && i < n; i++) {
        MT_CHECK(0 == bytes[i], "%s: byte %zu is %d", what, i, bytes[i]);
    }
}

/* Every rank reads rows of one label, by itself and with all others. */
static void read_rows(MPI_File f, int which)
{
    MPI_Datatype row, filetype;
    MPI_Status status;

    MT_MPI(MPI_Type_contiguous(ROW, MPI_BYTE, &row));
    MT_MPI(MPI_Type_create_resized(row, 0, 2 * ROW, &filetype));
    MT_MPI(MPI_Type_commit(&filetype));
    MT_MPI(MPI_File_set_view(f, which * ROW, MPI_BYTE, filetype, "native", MPI_INFO_NULL));
    for (int all = 0; all < 2; all++) {
        memset(buffer, 0xee, sizeof(buffer));
        int rc = all ? MPI_File_read_at_all(f, 0, buffer, ROW * ROWS, MPI_BYTE, &status)
                     : MPI_File_read_at(f, 0, buffer, ROW * ROWS, MPI_BYTE, &status);
        judge(has[which], true, rc, buffer, ROW * ROWS, all ? "read_at_all" : "read_at");
        for (int i = 0; has[which] && i < ROWS; i++) {
            MT_CHECK(0 == memcmp(buffer + i * ROW, row_of(2 * i + which), ROW), "row %d", 2 * i + which);
        }
    }
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MT_MPI(MPI_Type_free(&filetype));
    MT_MPI(MPI_Type_free(&row));
}

/* Rank r writes rows r, r + size ... of both labels. */
static void write_rows(MPI_File f, bool all)
{
    for (int row = mt_rank; row < 2 * ROWS; row += mt_size) {
        int rc = MPI_SUCCESS;
        MPI_Offset at = (MPI_Offset) row * ROW;
        rc = all ? MPI_File_write_at_all(f, at, row_of(row), ROW, MPI_BYTE, MPI_STATUS_IGNORE)
                 : MPI_File_write_at(f, at, row_of(row), ROW, MPI_BYTE, MPI_STATUS_IGNORE);
        judge(has[row % 2], false, rc, NULL, 0, all ? "write_at_all" : "write_at");
    }
}

enum { ALL, AT_ALL, ORDERED, KINDS };

/* The first half of a split call, and the second. */
static int begin(MPI_File f, int kind, bool writing, MPI_Offset at)
{
    switch (kind) {
    case ALL:
        MT_MPI(MPI_File_seek(f, at, MPI_SEEK_SET));
        return writing ? MPI_File_write_all_begin(f, buffer, ROW, MPI_BYTE) : MPI_File_read_all_begin(f, buffer, ROW, MPI_BYTE);
    case AT_ALL:
        return writing ? MPI_File_write_at_all_begin(f, at, buffer, ROW, MPI_BYTE)
                       : MPI_File_read_at_all_begin(f, at, buffer, ROW, MPI_BYTE);
    default:
        return writing ? MPI_File_write_ordered_begin(f, buffer, ROW, MPI_BYTE) : MPI_File_read_ordered_begin(f, buffer, ROW, MPI_BYTE);
    }
}

static int end(MPI_File f, int kind, bool writing)
{
    switch (kind) {
    case ALL:
        return writing ? MPI_File_write_all_end(f, buffer, MPI_STATUS_IGNORE) : MPI_File_read_all_end(f, buffer, MPI_STATUS_IGNORE);
    case AT_ALL:
        return writing ? MPI_File_write_at_all_end(f, buffer, MPI_STATUS_IGNORE)
                       : MPI_File_read_at_all_end(f, buffer, MPI_STATUS_IGNORE);
    default:
        return writing ? MPI_File_write_ordered_end(f, buffer, MPI_STATUS_IGNORE)
                       : MPI_File_read_ordered_end(f, buffer, MPI_STATUS_IGNORE);
    }
}

/* Rank r has rows r and r + 1 of the file, one after the other, by split calls.
 * An error on one rank leaves nothing behind that keeps it from syncing with the others. */
static void split(MPI_File f, bool writing)
{
    for (int i = 0; i < 2 * KINDS; i++) {
        int kind = i % KINDS, row = mt_rank + i / KINDS;
        MT_MPI(MPI_File_seek_shared(f, i / KINDS * ROW, MPI_SEEK_SET));
        memset(buffer, 0xee, ROW);
        if (writing) {
            memcpy(buffer, row_of(row), ROW);
        }
        MT_MPI(begin(f, kind, writing, (MPI_Offset) row * ROW));
        judge(has[row % 2], !writing, end(f, kind, writing), buffer, ROW, writing ? "split write" : "split read");
        MT_CHECK(writing || !has[row % 2] || 0 == memcmp(buffer, row_of(row), ROW), "row %d", row);
        MT_MPI(MPI_File_sync(f));
    }
}

/* What external32 makes of the four bytes of each int. */
static void turn(unsigned char *bytes)
{
    const int one = 1;

    for (int i = 0; *(const char *) &one && i < ROW; i += 4) {
        unsigned char turned[4] = {bytes[i + 3], bytes[i + 2], bytes[i + 1], bytes[i]};
        memcpy(bytes + i, turned, 4);
    }
}

static void is_row(int row, const char *what)
{
    turn(buffer);
    MT_CHECK(0 == memcmp(buffer, row_of(row), ROW), "%s: row %d", what, row);
}

/* Open MPI 5.0 converts in one buffer while another is in flight; 6.0 does so for requests, too, in pieces
 * (io_ompio_pipeline_buffer_size).  A blocking call on another file proceeds meanwhile: each has its own error. */
static void converted(MPI_File f)
{
    static unsigned char others[ROW];
    MPI_Request request;
    MPI_Status status;
    MPI_File g;
    int got;

    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &g));
    MPI_File_set_errhandler(g, MPI_ERRORS_RETURN);
    MT_MPI(MPI_File_set_view(f, 0, MPI_INT, MPI_INT, "external32", MPI_INFO_NULL));
    for (int row = 0; row < 4; row++) {
        bool mine = has[row % 2];
        memset(buffer, 0xee, ROW);
        int rc = MPI_File_read_at(f, row * ROW / 4, buffer, ROW / 4, MPI_INT, MPI_STATUS_IGNORE);
        judge(mine, false, rc, NULL, 0, "read of external32");
        MT_MPI(MPI_File_sync(f));

        memset(buffer, 0xee, ROW);
        MT_MPI(MPI_File_iread_at(f, row * ROW / 4, buffer, ROW / 4, MPI_INT, &request));
        rc = MPI_File_read_at_all(g, (row + 1) * ROW, others, ROW, MPI_BYTE, MPI_STATUS_IGNORE);
        judge(has[(row + 1) % 2], true, rc, others, ROW, "read_at_all beside a request");
        rc = MPI_Wait(&request, &status);
        judge(mine, false, rc, NULL, 0, "request of external32");
        if (mine) {
            is_row(row, "request of external32");
            MT_MPI(MPI_Get_count(&status, MPI_INT, &got));
            MT_CHECK(ROW / 4 == got, "%d of %d ints", got, ROW / 4);
        }
        MT_MPI(MPI_File_sync(f));

        memset(buffer, 0xee, ROW);      /* and of the same file, whose lock it has */
        MT_MPI(MPI_File_iread_at(f, row * ROW / 4, buffer, ROW / 4, MPI_INT, &request));
        rc = MPI_File_read_at_all(f, (row + 1) * ROW / 4, others, ROW / 4, MPI_INT, MPI_STATUS_IGNORE);
        judge(has[(row + 1) % 2], false, rc, NULL, 0, "read_at_all beside a request of the same file");
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        judge(mine, false, rc, NULL, 0, "request of external32 beside a collective call");
        if (mine) {
            is_row(row, "request of external32 beside a collective call");
        }
        MT_MPI(MPI_File_sync(f));

        memset(buffer, 0xee, ROW);
        MT_MPI(MPI_File_iread_at(f, row * ROW / 4, buffer, ROW / 4, MPI_INT, &request));
        MT_MPI(MPI_Request_free(&request));
        if (mine) {                     /* it was done before it was freed */
            is_row(row, "a request that was freed");
        }

        memcpy(buffer, row_of(row), ROW);
        turn(buffer);
        MT_MPI(MPI_File_iwrite_at(f, row * ROW / 4, buffer, ROW / 4, MPI_INT, &request));
        rc = MPI_Wait(&request, MPI_STATUS_IGNORE);
        judge(mine, false, rc, NULL, 0, "request to write external32");
        MT_MPI(MPI_File_sync(f));
    }
    MT_MPI(MPI_File_set_view(f, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL));
    MT_MPI(MPI_File_close(&g));
}

/* The processes that hold the label write what the others could not. */
static void fill_up(MPI_File f)
{
    for (int row = 0; row < 2 * ROWS; row++) {
        if (has[row % 2]) {
            MT_MPI(MPI_File_write_at(f, (MPI_Offset) row * ROW, row_of(row), ROW, MPI_BYTE, MPI_STATUS_IGNORE));
        }
    }
}

static void barrier(MPI_File f)
{
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_sync(f));
}

int main(int argc, char **argv)
{
    MPI_File f;
    MPI_Info info;

    mt_start(&argc, &argv, argc > 3 && 0 == strcmp(argv[3], "threads") ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (argc < 3) {
        mt_skip("no directory, or no labels named");
    }
    has[0] = 0 == strcmp(argv[2], "both");
    has[1] = has[0] || 0 == strcmp(argv[2], "other");
    snprintf(path, sizeof(path), "%s/access", argv[1]);
    /* Made with a label that only the last process holds, which holds none of the map that takes its place. */
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "else"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    for (int which = 0; which < 2; which++) {
        add_region(f, which, 0 == mt_rank);
    }
    mt_group("a map of two labels, sealed by whoever holds them");
    write_rows(f, false);
    write_rows(f, true);
    barrier(f);
    fill_up(f);
    barrier(f);
    mt_group("writing: refused without the label, alone and together");
    read_rows(f, 0);
    read_rows(f, 1);
    mt_group("reading: refused without the label, alone and together; others go on");
    split(f, true);
    split(f, false);
    mt_group("split calls: refused without the label; others go on, and all sync");
    converted(f);
    mt_group("converted: refused without the label, and all sync");
    MT_MPI(MPI_File_close(&f));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    read_rows(f, 0);
    read_rows(f, 1);
    MT_MPI(MPI_File_close(&f));
    mt_group("the same after opening it again");
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Between plain and encrypted files, for comparison with another program:
 *   convert write PLAIN FILE        rows of 1,000 bytes, of label lab and other in
 *                                   turn, and over them once more
 *   convert write-once PLAIN FILE   the same, but not over them
 *   convert over PLAIN FILE         write over an existing file, with its map
 *   convert add:N PLAIN FILE        add a region of as many bytes as PLAIN has, behind N others, and write
 *                                   PLAIN there
 *   convert read PLAIN FILE         FILE must hold what PLAIN holds
 *   convert delete PLAIN FILE       delete FILE
 *   convert ... ROOT                the file's seal must have this root
 */
#include "mt.h"

#include "mpi_crypt.h"

enum { ROW = 1000 };

static unsigned char *plain, *bytes;
static size_t size;
static MPI_Info info = MPI_INFO_NULL;       /* of opening */

static void load(const char *name)
{
    FILE *file = fopen(name, "rb");

    MT_CHECK(NULL != file, "%s", name);
    plain = malloc(1 << 24);
    bytes = malloc(1 << 24);
    size = fread(plain, 1, 1 << 24, file);
    fclose(file);
}

/* Scripts look for the message with the reason, which an abort may overtake. */
static void end_if(int rc)
{
    char text[MPI_MAX_ERROR_STRING];
    int length;

    if (MPI_SUCCESS != rc) {
        MPI_Error_string(rc, text, &length);
        fprintf(stderr, "rank %d: %s\n", mt_rank, text);
        MT_MPI(MPI_Finalize());
        exit(1);
    }
}

static MPI_File open_or_end(const char *name, int mode)
{
    MPI_File f;

    end_if(MPI_File_open(MPI_COMM_WORLD, name, mode, info, &f));
    return f;
}

static void add_region(MPI_File f, MPI_Offset at)
{
    MPI_Datatype run;
    MPI_Info what;

    MT_MPI(MPI_Type_contiguous((int) size, MPI_BYTE, &run));
    MT_MPI(MPI_Type_commit(&run));
    MT_MPI(MPI_Info_create(&what));
    MT_MPI(MPI_Info_set(what, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(what, "crypt_repeat", "once"));
    int rc = MPIX_File_set_encryption_map(f, at, MPI_BYTE, run, "native", what);
    MT_MPI(MPI_Info_free(&what));
    MT_MPI(MPI_Type_free(&run));
    if (MPI_SUCCESS != rc) {
        MT_MPI(MPI_File_close(&f));
    }
    end_if(rc);
}

static void set_map(MPI_File f)
{
    MPI_Datatype row, filetype;
    MPI_Info what;

    for (int i = 0; i < 2; i++) {
        MT_MPI(MPI_Type_contiguous(ROW, MPI_BYTE, &row));
        MT_MPI(MPI_Type_create_resized(row, 0, 2 * ROW, &filetype));
        MT_MPI(MPI_Type_commit(&filetype));
        MT_MPI(MPI_Info_create(&what));
        MT_MPI(MPI_Info_set(what, "crypt_key_label", i ? "other" : "lab"));
        MT_MPI(MPI_Info_set(what, "crypt_algorithm", i ? "aes-256-gcm" : "aes-128-gcm"));
        MT_MPI(MPI_Info_set(what, "crypt_block_size", i ? "512" : "4096"));
        int rc = MPIX_File_set_encryption_map(f, i * ROW, MPI_BYTE, filetype, "native", what);
        if (MPI_SUCCESS != rc) {
            MT_MPI(MPI_File_close(&f));
            MT_MPI(MPI_Finalize());
            exit(1);
        }
        MT_MPI(MPI_Info_free(&what));
        MT_MPI(MPI_Type_free(&filetype));
        MT_MPI(MPI_Type_free(&row));
    }
}

int main(int argc, char **argv)
{
    MPI_File f;
    MPI_Status status;
    int count;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc > 3, "usage");
    if (argc > 4) {
        MT_MPI(MPI_Info_create(&info));
        MT_MPI(MPI_Info_set(info, "crypt_seal_root", argv[4]));
    }
    load(argv[2]);
    if (0 == strcmp(argv[1], "delete")) {
        int rc = MPI_File_delete(argv[3], MPI_INFO_NULL);
        return MPI_SUCCESS == rc ? mt_end() : (MPI_Finalize(), 1);
    }
    if (0 == strncmp(argv[1], "write", 5)) {
        int times = 0 == strcmp(argv[1], "write") ? 2 : 1;
        size_t part = size / (size_t) mt_size, from = part * (size_t) mt_rank;
        f = open_or_end(argv[3], MPI_MODE_CREATE | MPI_MODE_WRONLY);
        set_map(f);
        part = mt_rank == mt_size - 1 ? size - from : part;
        for (int i = 0; i < times; i++) {
            MT_MPI(MPI_File_write_at_all(f, (MPI_Offset) from, plain + from, (int) part, MPI_BYTE, &status));
        }
    } else if (0 == strncmp(argv[1], "add:", 4)) {
        MPI_Offset at = (MPI_Offset) size * atoi(argv[1] + 4);
        f = open_or_end(argv[3], MPI_MODE_CREATE | MPI_MODE_WRONLY);
        add_region(f, at);
        MT_MPI(MPI_File_write_at(f, at, plain, (int) size, MPI_BYTE, &status));
    } else if (0 == strcmp(argv[1], "over")) {
        f = open_or_end(argv[3], MPI_MODE_WRONLY);
        MT_MPI(MPI_File_write_at_all(f, 0, plain, (int) size, MPI_BYTE, &status));
    } else {
        f = open_or_end(argv[3], MPI_MODE_RDONLY);
        MPI_Offset there;
        MT_MPI(MPI_File_get_size(f, &there));
        MT_CHECK((size_t) there == size, "%lld bytes instead of %zu", (long long) there, size);
        MT_MPI(MPI_File_read_at_all(f, 0, bytes, (int) size, MPI_BYTE, &status));
        MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
        MT_CHECK((size_t) count == size && 0 == memcmp(plain, bytes, size), "%d bytes read, which differ from %zu", count, size);
    }
    MT_MPI(MPI_File_close(&f));
    return mt_end();
}

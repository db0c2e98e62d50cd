/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What MPIX_File_set_encryption_map takes, what it refuses with which error, and
 * what MPIX_File_get_encryption_map says: maps DIR.  Labels lab and other are in
 * the keystore.
 */
#include "mt.h"

#include "mpi_crypt.h"

#include <limits.h>
#include <unistd.h>

enum { ROW = 96, REGIONS = 1000 };

static char path[1024];

static MPI_Info info_of(const char *label, const char *algorithm, const char *block_size)
{
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", label));
    MT_MPI(MPI_Info_set(info, "crypt_algorithm", algorithm));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", block_size));
    MT_MPI(MPI_Info_set(info, "crypt_repeat", "once"));
    return info;
}

/* One run of bytes, once; none: takes part only. */
static int set_run(MPI_File f, MPI_Offset at, int bytes, const char *label, const char *algorithm, const char *block_size,
                   const char *datarep)
{
    MPI_Datatype run;
    MPI_Info info = info_of(label, algorithm, block_size);

    MT_MPI(MPI_Type_contiguous(bytes, MPI_BYTE, &run));
    MT_MPI(MPI_Type_commit(&run));
    int rc = MPIX_File_set_encryption_map(f, at, MPI_BYTE, run, datarep, info);
    MT_MPI(MPI_Type_free(&run));
    MT_MPI(MPI_Info_free(&info));
    return rc;
}

/* Only the filetype is odd. */
static int set_type(MPI_File f, MPI_Datatype filetype, const char *datarep)
{
    return MPIX_File_set_encryption_map(f, 2000, MPI_BYTE, filetype, datarep, MPI_INFO_NULL);
}

static void class_is(int rc, int wanted, const char *what)
{
    int class = MPI_SUCCESS;

    if (MPI_SUCCESS != rc) {
        MT_MPI(MPI_Error_class(rc, &class));
    }
    MT_CHECK(class == wanted, "%s: error class %d instead of %d", what, class, wanted);
}

static int regions_of(MPI_File f)
{
    int regions = -1;

    MT_MPI(MPIX_File_get_encryption_regions(f, &regions));
    return regions;
}

static MPI_File open_file(const char *directory, const char *name, int mode)
{
    MPI_File f;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &f));
    return f;
}

/* ---- refused ---- */

static void refused(const char *directory)
{
    MPI_File f = open_file(directory, "refused", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Datatype twelve;
    unsigned char byte = 7;

    MT_CHECK(0 == regions_of(f), "a plain file has regions");
    MT_MPI(set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"));
    MT_MPI(set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"));         /* the same again */
    MT_CHECK(1 == regions_of(f), "a region was added twice");
    class_is(set_run(f, 500, 1000, "lab", "aes-128-gcm", "4096", "native"), MPI_ERR_ARG, "overlapping regions");
    class_is(set_run(f, 0, 1000, "other", "aes-128-gcm", "4096", "native"), MPI_ERR_ARG, "another label");
    class_is(set_run(f, 0, 1000, "lab", "aes-256-gcm", "4096", "native"), MPI_ERR_ARG, "another algorithm");
    class_is(set_run(f, 0, 1000, "lab", "aes-128-gcm", "8192", "native"), MPI_ERR_ARG, "another block size");
    class_is(set_run(f, 0, 1000, "lab", "plain", "4096", "native"), MPI_ERR_ARG, "plain where it is encrypted");
    class_is(set_run(f, 2000, 1000, "lab", "rot13", "4096", "native"), MPI_ERR_INFO_VALUE, "an unknown algorithm");
    class_is(set_run(f, 2000, 1000, "lab", "aes-256-cbc", "4096", "native"), MPI_ERR_INFO_VALUE, "a refused algorithm");
    class_is(set_run(f, 2000, 1000, "lab", "aes-128-gcm", "1000", "native"), MPI_ERR_ARG, "a block size that is none");
    class_is(set_run(f, 2000, 1000, "nobody", "aes-128-gcm", "4096", "native"), MPIX_ERR_CRYPT_NO_KEY, "a label that nobody has");
    class_is(set_run(f, 2000, 1000, "lab", "aes-128-gcm", "4096", "external32"), MPI_ERR_UNSUPPORTED_DATAREP, "external32");
    class_is(set_run(f, -1, 1000, "lab", "aes-128-gcm", "4096", "native"), MPI_ERR_ARG, "before the file");
    MT_MPI(MPI_Type_contiguous(10, MPI_BYTE, &twelve));
    class_is(set_type(f, mt_rank ? MPI_BYTE : twelve, "native"), MPI_ERR_TYPE, "a filetype that is not committed");
    MT_MPI(MPI_Type_commit(&twelve));
    class_is(set_type(f, mt_rank ? MPI_BYTE : MPI_DATATYPE_NULL, "native"), MPI_ERR_ARG, "no filetype, of one process");
    class_is(set_type(f, MPI_BYTE, mt_rank ? "native" : NULL), MPI_ERR_ARG, "no representation, of one process");
    class_is(MPIX_File_set_encryption_map(f, 2000, MPI_INT, twelve, "native", MPI_INFO_NULL), MPI_ERR_TYPE, "a part of an etype");
    MT_MPI(MPI_Type_free(&twelve));
    MT_CHECK(1 == regions_of(f), "what was refused left something");
    class_is(MPI_File_write_at(f, 1500, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE), MPI_ERR_ACCESS, "a byte of no region");
    MT_MPI(MPI_File_write_at(f, mt_rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));

    f = open_file(directory, "refused", MPI_MODE_RDWR);
    class_is(set_run(f, 0, 1000, "lab", "aes-256-gcm", "4096", "native"), MPI_ERR_ARG, "a map that contradicts the stored one");
    MT_MPI(set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"));
    MT_MPI(MPI_File_close(&f));
    mt_group("what is refused, and with which error");
}

/* A map that nobody could verify. */
static void refused_plain(const char *directory)
{
    MPI_File f = open_file(directory, "clear", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Info info = info_of("lab", "plain", "4096");

    class_is(set_run(f, 0, 1000, "lab", "plain", "4096", "native"), MPI_ERR_ARG, "plain regions alone");
    MT_CHECK(0 == regions_of(f), "%d regions", regions_of(f));
    MT_MPI(set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"));
    MT_MPI(set_run(f, 1000, 1000, "lab", "plain", "4096", "native"));
    MT_CHECK(2 == regions_of(f), "%d regions", regions_of(f));
    MT_MPI(MPI_File_close(&f));
    snprintf(path, sizeof(path), "%s/all clear", directory);
    class_is(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f), MPI_ERR_ARG,
             "a label, and plain");
    MT_MPI(MPI_Info_free(&info));
    MT_CHECK(0 != access(path, F_OK), "the file that was refused is there");
    mt_group("no map without an encrypted region");
}

static void refused_modes(const char *directory)
{
    MPI_File f = open_file(directory, "plain", MPI_MODE_CREATE | MPI_MODE_RDWR);
    unsigned char byte = 7;

    MT_MPI(MPI_File_write_at_all(f, mt_rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    class_is(set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"), MPI_ERR_ACCESS, "a file with plain data");
    MT_MPI(MPI_File_close(&f));
    f = open_file(directory, "plain", MPI_MODE_RDONLY);
    MT_CHECK(MPI_SUCCESS != set_run(f, 0, 1000, "lab", "aes-128-gcm", "4096", "native"), "a map of a file that is only read");
    MT_MPI(MPI_File_close(&f));
    mt_group("files that get no map");
}

/* Data in the rest of a file stays there. */
static void rest(const char *directory)
{
    MPI_File f = open_file(directory, "rest", MPI_MODE_CREATE | MPI_MODE_RDWR);
    unsigned char bytes[100], again[100];
    MPI_Info info = info_of("lab", "aes-128-gcm", "4096");

    mt_fill(bytes, sizeof(bytes), mt_key(8, 0, 0, 0));
    MT_MPI(set_run(f, 2000, 1000, "lab", "aes-128-gcm", "4096", "native"));
    MT_MPI(MPI_Info_set(info, "crypt_rest", "plain"));
    MT_MPI(MPIX_File_set_encryption_map(f, 0, MPI_BYTE, MPI_INT, "native", info));
    MT_MPI(MPI_Info_free(&info));
    MT_CHECK(3 == regions_of(f), "%d regions", regions_of(f));
    class_is(set_run(f, 20000, 1000, "lab", "aes-128-gcm", "4096", "native"), MPI_ERR_ARG, "a region of an empty file's rest");
    MT_MPI(set_run(f, 2000, 1000, "lab", "aes-128-gcm", "4096", "native"));       /* which is there */
    MT_MPI(MPI_File_write_at_all(f, 10000, bytes, mt_rank ? 0 : sizeof(bytes), MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_sync(f));
    class_is(set_run(f, 8192, 8192, "lab", "aes-128-gcm", "4096", "native"), MPI_ERR_ARG, "a region over the rest");
    MT_MPI(set_run(f, 2000, 1000, "lab", "aes-128-gcm", "4096", "native"));
    MT_CHECK(3 == regions_of(f), "%d regions", regions_of(f));
    MT_MPI(MPI_File_read_at_all(f, 10000, again, sizeof(again), MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(bytes, again, sizeof(bytes)), "the rest was lost");
    MT_MPI(MPI_File_close(&f));
    mt_group("no region over the rest of a file");
}

/* Runs of more bytes than an int counts, and of just as many. */
static void large(const char *directory)
{
    const MPI_Count sizes[] = {(MPI_Count) 3 << 30, INT_MAX, (MPI_Count) INT_MAX + 1, (MPI_Count) 2 * INT_MAX};
    MPI_File f = open_file(directory, "large", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset at = 0, disp;
    char datarep[MPI_MAX_DATAREP_STRING];

    for (int i = 0; i < 4; i++) {
        MPI_Datatype parts[2], run, etype;
        MPI_Info info = info_of("lab", "aes-128-gcm", "65536");
        int lengths[2] = {1, 1};
        MPI_Aint places[2] = {0, sizes[i] / 2}, lower, extent;
        MPI_Count size;
        MT_MPI(MPI_Type_contiguous((int) (sizes[i] / 2), MPI_BYTE, &parts[0]));
        MT_MPI(MPI_Type_contiguous((int) (sizes[i] - sizes[i] / 2), MPI_BYTE, &parts[1]));
        MT_MPI(MPI_Type_create_struct(2, lengths, places, parts, &run));
        MT_MPI(MPI_Type_commit(&run));
        MT_MPI(MPIX_File_set_encryption_map(f, at, MPI_BYTE, run, "native", info));
        MT_MPI(MPI_Type_free(&run));
        MT_MPI(MPI_Type_free(&parts[0]));
        MT_MPI(MPI_Type_free(&parts[1]));
        MT_MPI(MPI_Info_free(&info));
        MT_MPI(MPIX_File_get_encryption_map(f, i, &disp, &etype, &run, datarep, &info));
        MT_MPI(MPI_Type_size_x(run, &size));
        MT_MPI(MPI_Type_get_true_extent(run, &lower, &extent));
        MT_CHECK(disp == at && size == sizes[i] && 0 == lower && extent == sizes[i], "region %d: %lld bytes at %lld, extent %lld", i,
                 (long long) size, (long long) disp, (long long) extent);
        MT_MPI(MPI_Type_free(&run));
        MT_MPI(MPI_Info_free(&info));
        at += sizes[i];
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("runs of 2 GiB and more");
}

/* ---- many regions ---- */

static const char *label_of(int region) { return region % 3 ? "lab" : "other"; }
static const char *algorithm_of(int region) { return 5 == region % 7 ? "plain" : region % 2 ? "aes-256-gcm" : "aes-128-gcm"; }
static const char *block_of(int region) { return region % 5 ? "512" : "1024"; }

/* In each call, every process adds one region. */
static void many_made(const char *directory, const unsigned char *data)
{
    MPI_File f = open_file(directory, "many", MPI_MODE_CREATE | MPI_MODE_RDWR);

    for (int first = 0; first < REGIONS; first += mt_size) {
        int mine = first + mt_rank;
        MT_MPI(set_run(f, (MPI_Offset) mine * ROW, mine < REGIONS ? ROW : 0, label_of(mine), algorithm_of(mine), block_of(mine), "native"));
    }
    MT_CHECK(REGIONS == regions_of(f), "%d regions", regions_of(f));
    int part = REGIONS * ROW / mt_size;
    MT_MPI(MPI_File_write_at_all(f, (MPI_Offset) part * mt_rank, data + part * mt_rank,
                                 mt_rank == mt_size - 1 ? REGIONS * ROW - part * mt_rank : part, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
}

static void region_is(MPI_File f, int region, bool *seen)
{
    char datarep[MPI_MAX_DATAREP_STRING], text[64];
    MPI_Datatype etype, filetype;
    MPI_Offset disp;
    MPI_Info info;
    int size, flag;

    MT_MPI(MPIX_File_get_encryption_map(f, region, &disp, &etype, &filetype, datarep, &info));
    MT_MPI(MPI_Type_size(filetype, &size));
    int number = (int) (disp / ROW);
    MT_CHECK(MPI_BYTE == etype && 0 == strcmp(datarep, "native") && ROW == size && 0 == disp % ROW && number < REGIONS && !seen[number],
             "region %d: %d bytes at %lld", region, size, (long long) disp);
    seen[number] = true;
    MT_MPI(MPI_Info_get(info, "crypt_algorithm", 63, text, &flag));
    MT_CHECK(flag && 0 == strcmp(text, algorithm_of(number)), "region %d: %s", region, text);
    if (0 != strcmp(text, "plain")) {
        MT_MPI(MPI_Info_get(info, "crypt_key_label", 63, text, &flag));
        MT_CHECK(flag && 0 == strcmp(text, label_of(number)), "region %d: %s", region, text);
        MT_MPI(MPI_Info_get(info, "crypt_block_size", 63, text, &flag));
        MT_CHECK(flag && 0 == strcmp(text, block_of(number)), "region %d: %s", region, text);
    }
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Type_free(&filetype));
}

static void many(const char *directory)
{
    unsigned char *data = malloc(REGIONS * ROW), *again = malloc(REGIONS * ROW);
    bool seen[REGIONS] = {false};

    mt_fill(data, REGIONS * ROW, mt_key(9, 0, 0, 0));
    many_made(directory, data);
    MPI_File f = open_file(directory, "many", MPI_MODE_RDONLY);
    MT_CHECK(REGIONS == regions_of(f), "%d regions", regions_of(f));
    for (int i = 0; i < REGIONS; i++) {
        region_is(f, i, seen);
    }
    MT_MPI(MPI_File_read_at_all(f, 0, again, REGIONS * ROW, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(data, again, REGIONS * ROW), "what was read is not what was written");
    MT_MPI(MPI_File_close(&f));
    free(data);
    free(again);
    mt_group("%d regions, more than an attribute holds", REGIONS);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    refused(argv[1]);
    refused_plain(argv[1]);
    refused_modes(argv[1]);
    rest(argv[1]);
    large(argv[1]);
    many(argv[1]);
    return mt_end();
}

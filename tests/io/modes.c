/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The kinds of calls and modes that roundtrip does not draw, on an encrypted
 * file: modes DIR.  Label lab is in the keystore.  modes DIR individual: with
 * sharedfp/individual.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { PIECE = 1000, BLOCK = 4096 };

static char path[1024];
static unsigned char mine[64 * PIECE], other[64 * PIECE];

static MPI_File open_file(const char *directory, const char *name, int mode)
{
    MPI_Info info;
    MPI_File f;

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, mode, info, &f));
    MT_MPI(MPI_Info_free(&info));
    return f;
}

static void class_is(int wanted, int rc)
{
    int class;

    MT_MPI(MPI_Error_class(rc, &class));
    MT_CHECK(wanted == class, "error class %d instead of %d", class, wanted);
}

static void barrier(MPI_File f)
{
    MT_MPI(MPI_File_sync(f));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_sync(f));
}

static void size_is(MPI_File f, MPI_Offset wanted)
{
    MPI_Offset size;

    MT_MPI(MPI_File_get_size(f, &size));
    MT_CHECK(size == wanted, "%lld bytes instead of %lld", (long long) size, (long long) wanted);
}

/* Every piece is one byte, repeated; each rank's pieces were written once. */
static void pieces_are(MPI_File f, MPI_Offset at, int pieces, bool ordered)
{
    int seen[256] = {0};
    MPI_Status status;
    int count;

    MT_MPI(MPI_File_read_at_all(f, at, other, pieces * PIECE, MPI_BYTE, &status));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK(pieces * PIECE == count, "%d bytes", count);
    for (int i = 0; i < pieces; i++) {
        for (int k = 1; k < PIECE; k++) {
            MT_CHECK(other[i * PIECE + k] == other[i * PIECE], "piece %d, byte %d", i, k);
        }
        MT_CHECK(!ordered || other[i * PIECE] == 1 + i % mt_size, "piece %d is of rank %d", i, other[i * PIECE] - 1);
        seen[other[i * PIECE]]++;
    }
    for (int rank = 0; rank < mt_size; rank++) {
        MT_CHECK(pieces / mt_size == seen[1 + rank], "%d pieces of rank %d", seen[1 + rank], rank);
    }
}

static void shared(const char *directory)
{
    MPI_File f = open_file(directory, "shared", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset at;

    for (int i = 0; i < 4; i++) {
        MT_MPI(MPI_File_write_shared(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    barrier(f);
    pieces_are(f, 0, 4 * mt_size, false);
    MT_MPI(MPI_File_get_position_shared(f, &at));
    MT_CHECK(at == 4 * mt_size * PIECE, "the pointer is at %lld", (long long) at);
    MT_MPI(MPI_File_write_ordered(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier(f);
    pieces_are(f, 4 * mt_size * PIECE, mt_size, true);
    MT_MPI(MPI_File_seek_shared(f, 4 * mt_size * PIECE, MPI_SEEK_SET));
    MT_MPI(MPI_File_read_ordered(f, other, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(mine, other, PIECE), "what was read in order");
    MT_MPI(MPI_File_close(&f));
    mt_group("shared pointers");
}

static void appended(const char *directory)
{
    MPI_Offset at, half = 3 * PIECE;
    MPI_File f = open_file(directory, "appended", MPI_MODE_CREATE | MPI_MODE_RDWR);

    if (0 == mt_rank) {
        memset(other, 99, (size_t) half);
        MT_MPI(MPI_File_write(f, other, (int) half, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_File_close(&f));
    f = open_file(directory, "appended", MPI_MODE_RDWR | MPI_MODE_APPEND);
    MT_MPI(MPI_File_get_position(f, &at));
    MT_CHECK(at == half, "appending begins at %lld", (long long) at);
    MT_MPI(MPI_File_seek(f, (MPI_Offset) mt_rank * PIECE, MPI_SEEK_END));
    MT_MPI(MPI_File_get_position(f, &at));
    MT_CHECK(at == half + mt_rank * PIECE, "the end and a bit is %lld", (long long) at);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_write(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier(f);
    size_is(f, half + mt_size * PIECE);
    pieces_are(f, half, mt_size, true);
    MT_MPI(MPI_File_read_at_all(f, 0, other, (int) half, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < half; i++) {
        MT_CHECK(99 == other[i], "byte %d of what was there is %d", i, other[i]);
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("append, seek to the end");
}

/* Sizes by preallocate and set_size; what nobody wrote is zeros. */
static void sized(const char *directory)
{
    MPI_File f = open_file(directory, "sized", MPI_MODE_CREATE | MPI_MODE_RDWR);

    MT_MPI(MPI_File_preallocate(f, 20 * PIECE));
    size_is(f, 20 * PIECE);
    MT_MPI(MPI_File_write_at_all(f, 30 * PIECE + mt_rank * PIECE, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier(f);
    MT_MPI(MPI_File_read_at_all(f, 0, other, 30 * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 30 * PIECE; i++) {
        MT_CHECK(0 == other[i], "byte %d, which nobody wrote, is %d", i, other[i]);
    }
    pieces_are(f, 30 * PIECE, mt_size, true);
    MT_MPI(MPI_File_set_size(f, 30 * PIECE + PIECE / 2));
    MT_MPI(MPI_File_set_size(f, 32 * PIECE));
    size_is(f, 32 * PIECE);
    MT_MPI(MPI_File_read_at_all(f, 30 * PIECE, other, 2 * PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    for (int i = 0; i < 2 * PIECE; i++) {
        MT_CHECK(other[i] == (i < PIECE / 2 ? 1 : 0), "byte %d, of what was cut off, is %d", i, other[i]);
    }
    MT_MPI(MPI_File_close(&f));
    f = open_file(directory, "sized", MPI_MODE_RDONLY);
    MT_MPI(MPI_File_set_errhandler(f, MPI_ERRORS_RETURN));
    class_is(MPI_ERR_READ_ONLY, MPI_File_preallocate(f, 32 * PIECE));
    class_is(MPI_ERR_READ_ONLY, MPI_File_preallocate(f, 64 * PIECE));
    class_is(MPI_ERR_READ_ONLY, MPI_File_set_size(f, 64 * PIECE));
    size_is(f, 32 * PIECE);
    MT_MPI(MPI_File_close(&f));
    mt_group("preallocate, set_size, holes");
}

/* A file that is a hole has room for its bytes when preallocate has returned. */
static void reserved(const char *directory)
{
    const MPI_Offset bytes = 1 << 20;
    struct stat status;
    char scratch[1024];
    MPI_File f;
    int fd, rc;

    snprintf(scratch, sizeof(scratch), "%s/scratch.%d", directory, mt_rank);
    fd = open(scratch, O_RDWR | O_CREAT, 0600);
    rc = fallocate(fd, 0, 0, bytes);
    MT_CHECK(fd >= 0 && 0 == fstat(fd, &status), "%s: %s", scratch, strerror(errno));
    close(fd);
    unlink(scratch);
    if (0 != rc || (MPI_Offset) status.st_blocks * 512 < bytes) {
        mt_group("preallocate of what is a hole: not tried, this file system reserves nothing");
        return;
    }
    f = open_file(directory, "reserved", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MT_MPI(MPI_File_set_size(f, bytes));
    MT_MPI(MPI_File_preallocate(f, bytes / 2));
    MT_CHECK(0 == stat(path, &status) && (MPI_Offset) status.st_blocks * 512 >= bytes / 2, "%lld blocks", (long long) status.st_blocks);
    MT_MPI(MPI_File_preallocate(f, bytes));
    size_is(f, bytes);
    MT_CHECK(0 == stat(path, &status) && (MPI_Offset) status.st_blocks * 512 >= bytes, "%lld blocks", (long long) status.st_blocks);
    MT_MPI(MPI_File_close(&f));
    mt_group("preallocate of what is a hole");
}

/* A process that reads for others gives them none of its own memory in place of bytes beyond the file's end. */
static void behind_the_end(const char *directory)
{
    MPI_File f = open_file(directory, "short", MPI_MODE_CREATE | MPI_MODE_RDWR);
    const int bytes = 16 * PIECE;

    MT_MPI(MPI_File_write_at_all(f, mt_rank * 10, mine, 10, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier(f);
    MT_CHECK(0 != mallopt(M_PERTURB, 0x55), "mallopt");
    memset(other, 0xEE, (size_t) bytes);
    MT_MPI(MPI_File_read_at_all(f, mt_rank * bytes, other, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 != mallopt(M_PERTURB, 0), "mallopt");
    for (int i = 0; i < bytes; i++) {
        const int at = mt_rank * bytes + i, wanted = at < 10 * mt_size ? 1 + at / 10 : 0;
        MT_CHECK(other[i] == wanted, "byte %d is %d instead of %d", at, other[i], wanted);
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("a collective read behind the end");
}

/* A label is not for a device. */
static void device(void)
{
    MPI_Info info;
    MPI_File f;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    class_is(MPI_ERR_ACCESS, MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, info, &f));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, "/dev/null", MPI_MODE_WRONLY, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_write(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
    MT_MPI(MPI_Info_free(&info));
    mt_group("a device");
}

/* In atomic mode, overlapping writes do not mix. */
static void atomic_mode(const char *directory)
{
    MPI_File f = open_file(directory, "atomic", MPI_MODE_CREATE | MPI_MODE_RDWR);
    const int bytes = 5 * BLOCK + 100;
    MPI_Status status;
    int atomic, count;

    MT_MPI(MPI_File_set_atomicity(f, 1));
    MT_MPI(MPI_File_get_atomicity(f, &atomic));
    MT_CHECK(atomic, "it is not atomic");
    for (int round = 0; round < 30; round++) {
        MT_MPI(MPI_File_write_at(f, 50, mine, bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        MT_MPI(MPI_File_read_at(f, 50, other, bytes, MPI_BYTE, &status));
        MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
        MT_CHECK(bytes == count, "%d bytes", count);
        for (int i = 1; i < bytes; i++) {
            MT_CHECK(other[i] == other[0], "round %d: byte %d is of rank %d, the first of rank %d", round, i, other[i] - 1, other[0] - 1);
        }
    }
    MT_MPI(MPI_File_close(&f));
    mt_group("atomic mode");
}

/* Several requests at a time, completed in another order. */
static void nonblocking(const char *directory)
{
    MPI_File f = open_file(directory, "requests", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Request requests[8];
    MPI_Offset at = (MPI_Offset) mt_rank * 8 * BLOCK;
    static unsigned char blocks[8 * BLOCK], again[8 * BLOCK];

    mt_fill(blocks, sizeof(blocks), mt_key(4, mt_rank, 0, 0));
    for (int i = 0; i < 8; i++) {
        MT_MPI(MPI_File_iwrite_at(f, at + i * BLOCK, blocks + i * BLOCK, BLOCK, MPI_BYTE, &requests[7 - i]));
    }
    MT_MPI(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 8; i++) {
        MT_MPI(MPI_File_iread_at(f, at + i * BLOCK, again + i * BLOCK, BLOCK, MPI_BYTE, &requests[7 - i]));
    }
    MT_MPI(MPI_Waitall(8, requests, MPI_STATUSES_IGNORE));
    MT_CHECK(0 == memcmp(blocks, again, sizeof(blocks)), "what was read is not what was written");
    MT_MPI(MPI_File_close(&f));
    mt_group("several requests at a time");
}

/* A request that was freed is still carried out before the file is closed. */
static void freed(const char *directory)
{
    enum { PARTS = 16, PART = 100 * BLOCK + 1 };
    MPI_File f = open_file(directory, "freed", MPI_MODE_CREATE | MPI_MODE_RDWR);
    MPI_Offset at = (MPI_Offset) mt_rank * PARTS * PART;
    unsigned char *parts = malloc(PARTS * PART), *again = malloc(PARTS * PART);
    MPI_Request request;

    mt_fill(parts, PARTS * PART, mt_key(5, mt_rank, 0, 0));
    for (int i = 0; i < PARTS; i++) {
        MT_MPI(MPI_File_iwrite_at(f, at + i * PART, parts + i * PART, PART, MPI_BYTE, &request));
        MT_MPI(MPI_Request_free(&request));
    }
    MT_MPI(MPI_File_close(&f));
    f = open_file(directory, "freed", MPI_MODE_RDONLY);
    MT_MPI(MPI_File_read_at(f, at, again, PARTS * PART, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(parts, again, PARTS * PART), "what was read is not what was written");
    MT_MPI(MPI_File_close(&f));
    free(parts);
    free(again);
    mt_group("requests that are freed while they go on");
}

/* sharedfp/individual, which puts data into files of its own, was chosen while
 * the file was not encrypted yet. */
static void late_map(const char *directory)
{
    MPI_Info info;
    MPI_File f;
    struct stat status;

    snprintf(path, sizeof(path), "%s/late", directory);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPIX_File_set_encryption_map(f, 0, MPI_BYTE, MPI_BYTE, "native", info));
    MT_MPI(MPI_Info_free(&info));
    MT_CHECK(MPI_SUCCESS != MPI_File_write_shared(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write_shared was not refused");
    MT_CHECK(MPI_SUCCESS != MPI_File_write_ordered(f, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE), "write_ordered was not refused");
    snprintf(path, sizeof(path), "%s/late.data.%d", directory, mt_rank);
    MT_CHECK(0 != stat(path, &status), "%s is there", path);
    MT_MPI(MPI_File_write_at_all(f, mt_rank * PIECE, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    barrier(f);
    pieces_are(f, 0, mt_size, true);
    MT_MPI(MPI_File_close(&f));
    mt_group("a map after sharedfp/individual");
}

static void deleted(const char *directory)
{
    struct stat status;
    MPI_File f = open_file(directory, "deleted", MPI_MODE_CREATE | MPI_MODE_RDWR);

    MT_MPI(MPI_File_close(&f));
    f = open_file(directory, "closed", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE);
    MT_MPI(MPI_File_write_at_all(f, 0, mine, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
    if (0 == mt_rank) {
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof(path), "%s/%s", directory, i ? "deleted" : "closed");
            if (i) {
                MT_CHECK(0 == stat(path, &status) && status.st_size > 0, "%s is not encrypted", path);
                MT_MPI(MPI_File_delete(path, MPI_INFO_NULL));
            }
            MT_CHECK(0 != stat(path, &status), "%s is left", path);
        }
    }
    mt_group("delete, delete on close");
}

int main(int argc, char **argv)
{
    bool individual = argc > 2;

    if (individual) {
        setenv("OMPI_MCA_sharedfp", argv[2], 1);
    }
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    memset(mine, 1 + mt_rank, sizeof(mine));
    if (individual) {
        late_map(argv[1]);
        return mt_end();
    }
    shared(argv[1]);
    appended(argv[1]);
    sized(argv[1]);
    reserved(argv[1]);
    behind_the_end(argv[1]);
    device();
    atomic_mode(argv[1]);
    nonblocking(argv[1]);
    freed(argv[1]);
    deleted(argv[1]);
    return mt_end();
}

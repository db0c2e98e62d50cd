/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Somebody changes the file at rest, then all read it, alone and together:
 * every process that reads what was changed gets an error of class MPIX_ERR_CRYPT_FORGED
 * and zeros, and nobody hangs.  tamper DIR [sealed]: what only a seal catches is
 * an error if there is one.
 */
#include "mt.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { BLOCK = 4096, BLOCKS = 24, BYTES = BLOCK * BLOCKS };
enum { PLACE_0 = 1024, PLACE_1 = 4096, ENTRY = 128 };

static char path[1024];
static unsigned char text[BYTES], buffer[BYTES];

static void poke(off_t at, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY);

    MT_CHECK(fd >= 0 && (ssize_t) count == pwrite(fd, bytes, count, at), "%s cannot be changed", path);
    close(fd);
}

static void peek(off_t at, void *bytes, size_t count)
{
    int fd = open(path, O_RDONLY);

    MT_CHECK(fd >= 0 && (ssize_t) count == pread(fd, bytes, count, at), "%s cannot be read", path);
    close(fd);
}

static uint64_t number(off_t at, size_t bytes)
{
    unsigned char raw[8];
    uint64_t value = 0;

    peek(at, raw, bytes);
    for (int i = (int) bytes - 1; i >= 0; i--) {
        value = value << 8 | raw[i];
    }
    return value;
}

/* Where a byte of the file is, all of which is in the first group; and the entry of a block. */
static off_t data_at(off_t offset) { return (off_t) (number(56, 8) + number(48, 8)) + offset; }

static off_t end_at(off_t bytes) { return data_at(bytes - 1) + 1; }

static off_t entry_at(int block) { return data_at(0) - ENTRY * (off_t) number(68, 4) + ENTRY * block; }

static void write_all(int times)
{
    MPI_File f;
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_MPI(MPI_Info_free(&info));
    for (int i = 0; i < times; i++) {
        MT_MPI(MPI_File_write_at_all(f, (MPI_Offset) mt_rank * (BYTES / mt_size), text + mt_rank * (BYTES / mt_size),
                                     BYTES / mt_size, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_File_close(&f));
}

static void make(int times)
{
    if (0 == mt_rank) {
        unlink(path);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    write_all(times);
}

static void check(int rc, bool good, const char *what, const char *call)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(rc, &class);
    MT_CHECK(class == (good ? MPI_SUCCESS : MPIX_ERR_CRYPT_FORGED), "%s, %s: error class %d", what, call, class);
    for (size_t i = 0; i < BYTES; i++) {
        MT_CHECK(buffer[i] == (good ? text[i] : 0), "%s, %s: byte %zu is %d", what, call, i, buffer[i]);
    }
}

/* All read everything, in one call and through a view of every size-th kilobyte. */
static void read_all(bool good, const char *what)
{
    MPI_File f;
    MPI_Request request;

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    memset(buffer, 0xee, BYTES);
    check(MPI_File_read_at(f, 0, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), good, what, "read_at");
    memset(buffer, 0xee, BYTES);
    check(MPI_File_read_at_all(f, 0, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), good, what, "read_at_all");
    memset(buffer, 0xee, BYTES);
    MT_MPI(MPI_File_iread_at(f, 0, buffer, BYTES, MPI_BYTE, &request));
    check(MPI_Wait(&request, MPI_STATUS_IGNORE), good, what, "iread_at");
    MT_MPI(MPI_File_close(&f));
}

/* What cannot even be opened. */
static void open_fails(int wanted, const char *what)
{
    MPI_File f;
    int class = MPI_SUCCESS;

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Error_class(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f), &class);
    MT_CHECK(wanted == class, "%s: error class %d", what, class);
}

static void flip(off_t at, const char *what)
{
    unsigned char byte;

    if (0 == mt_rank) {
        peek(at, &byte, 1);
        byte ^= 1;
        poke(at, &byte, 1);
    }
    read_all(false, what);
    if (0 == mt_rank) {
        byte ^= 1;
        poke(at, &byte, 1);
    }
    read_all(true, "put right again");
}

static void swap(off_t a, off_t b, size_t count)
{
    unsigned char first[BLOCK], second[BLOCK];

    if (0 == mt_rank) {
        peek(a, first, count);
        peek(b, second, count);
        poke(a, second, count);
        poke(b, first, count);
    }
}

static void blocks(void)
{
    flip(data_at(10 * BLOCK + 5), "a byte of data");
    flip(data_at(BYTES - 1), "the last byte");
    flip(entry_at(3) + 40, "a tag");
    flip(entry_at(3) + 10, "a counter");
    flip(entry_at(3) + 20, "an S");
    mt_group("data, tags, counters and S changed");
    swap(data_at(5 * BLOCK), data_at(6 * BLOCK), BLOCK);
    read_all(false, "two blocks swapped");
    swap(entry_at(5), entry_at(6), ENTRY);
    read_all(false, "two blocks and their entries swapped");
    swap(data_at(5 * BLOCK), data_at(6 * BLOCK), BLOCK);
    swap(entry_at(5), entry_at(6), ENTRY);
    read_all(true, "swapped back");
    mt_group("blocks swapped, with and without their entries");
}

/* By one process, in a call of 64 KiB, which has a room for each block: none is used for another one. */
static void overwrite(void)
{
    MPI_File f;

    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &f));
    if (0 == mt_rank) {
        MT_MPI(MPI_File_write_at(f, 0, text, 65536, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_File_close(&f));
}

/* A block whose last write was an overwrite is in its room, too: changes of the data
 * do not matter then, as only the newest version opens. */
static void overwritten(bool sealed)
{
    unsigned char byte = 0x55;

    make(1);
    overwrite();
    if (0 == mt_rank) {
        poke(data_at(7 * BLOCK), &byte, 1);
    }
    read_all(!sealed, "data changed, the room is there");
    mt_group("an overwritten block is read from its room, but not in a sealed file");
    make(1);
}

/* The same text, sealed again; then an earlier block is put back, which a key
 * holder did write here. */
static void older(bool sealed)
{
    static unsigned char data[BLOCK], entry[ENTRY], zeros[BLOCK];

    make(1);
    peek(data_at(5 * BLOCK), data, BLOCK);
    peek(entry_at(5), entry, sizeof(entry));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    write_all(1);
    read_all(true, "written again");
    if (0 == mt_rank) {
        poke(data_at(5 * BLOCK), data, BLOCK);
        poke(entry_at(5), entry, sizeof(entry));
    }
    read_all(!sealed, "an older version of a block");
    mt_group("an older version of a block is %s", sealed ? "an error" : "not noticed");
    if (sealed) {
        make(1);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        if (0 == mt_rank) {
            poke(data_at(8 * BLOCK), zeros, BLOCK);
            poke(entry_at(8), zeros, ENTRY);
        }
        read_all(false, "a block turned into a hole");
        if (0 == mt_rank) {
            MT_CHECK(0 == truncate(path, end_at(BYTES - BLOCK)), "truncate");
        }
        open_fails(MPIX_ERR_CRYPT_FORGED, "the end cut off");
        mt_group("a hole that was none and the end cut off are errors");
    }
    make(1);
}

/* The storage moves the end of a file that is open. */
static void another_end(off_t end, const char *what)
{
    MPI_File f;
    MPI_Offset size;
    int class = MPI_SUCCESS;

    MT_MPI(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    MT_MPI(MPI_File_get_size(f, &size));
    MT_CHECK(BYTES == size, "the size that was sealed: %lld", (long long) size);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        MT_CHECK(0 == truncate(path, end_at(end)), "truncate");
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MPI_Error_class(MPI_File_get_size(f, &size), &class);
    MT_CHECK(MPIX_ERR_CRYPT_FORGED == class, "%s, get_size: error class %d", what, class);
    MT_CHECK(MPI_SUCCESS != MPI_File_seek(f, 0, MPI_SEEK_END), "%s, seek to the end", what);
    memset(buffer, 0xee, BYTES);
    check(MPI_File_read_at_all(f, 0, buffer, BYTES, MPI_BYTE, MPI_STATUS_IGNORE), false, what, "read_at_all");
    MT_MPI(MPI_File_close(&f));
    make(1);
}

/* A block and its entry as they were before all was written again. */
static struct {
    unsigned char data[BLOCK], entry[ENTRY];
} before;

static void make_twice(void)
{
    make(1);
    if (0 == mt_rank) {
        peek(data_at(5 * BLOCK), before.data, BLOCK);
        peek(entry_at(5), before.entry, sizeof(before.entry));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    write_all(1);
}

static void put_back(void)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        poke(data_at(5 * BLOCK), before.data, BLOCK);
        poke(entry_at(5), before.entry, sizeof(before.entry));
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static int open_to_write(MPI_File *f)
{
    int rc = MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, f), class = MPI_SUCCESS;

    MPI_Error_class(rc, &class);
    return class;
}

/* Processes that open a sealed file for writing seal it again, but not what others put there. */
static void laundered(void)
{
    MPI_File f;

    make_twice();
    put_back();
    int class = open_to_write(&f);
    MT_CHECK(MPIX_ERR_CRYPT_FORGED == class, "an older block, before the file is opened for writing: error class %d", class);
    mt_group("a file that is not as it was sealed is not opened for writing");

    make_twice();
    MT_CHECK(MPI_SUCCESS == open_to_write(&f), "a sealed file is opened for writing");
    put_back();
    MT_MPI(MPI_File_write_at(f, (10 + mt_rank) * BLOCK, text + (10 + mt_rank) * BLOCK, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    (void) MPI_File_close(&f);
    open_fails(MPIX_ERR_CRYPT_FORGED, "an older block, while the file is open: there is no seal");
    mt_group("nothing is sealed that the job did not write, and that the seal before had not");

    make_twice();
    MT_CHECK(MPI_SUCCESS == open_to_write(&f), "a sealed file is opened for writing");
    for (int turn = 0; turn < mt_size; turn++) {        /* bytes of one block, each on top of another process's */
        if (turn == mt_rank) {
            MT_MPI(MPI_File_write_at(f, 5 * BLOCK + 100 * mt_rank, text + 5 * BLOCK + 100 * mt_rank, 100, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    MT_MPI(MPI_File_close(&f));
    read_all(true, "parts of a block, by all processes");
    MT_CHECK(MPI_SUCCESS == open_to_write(&f), "a sealed file is opened for writing");
    MT_MPI(MPI_File_set_size(f, 5 * BLOCK + 50));
    MT_MPI(MPI_File_write_at_all(f, 5 * BLOCK, text + 5 * BLOCK, BYTES - 5 * BLOCK, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
    read_all(true, "cut, and written from there on");
    mt_group("parts of blocks, by all processes, and a cut: sealed again");
    make(1);
}

static void flip_map(off_t at)
{
    unsigned char byte;

    peek(at + 60, &byte, 1);
    byte ^= 4;
    poke(at + 60, &byte, 1);
}

/* The map is in the attribute and in two places of the file. */
static void maps(void)
{
    unsigned char map[4096], byte;
    ssize_t bytes = 0 == mt_rank ? getxattr(path, "user.mpicrypt.map", map, sizeof(map)) : 0;

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        flip_map(PLACE_0);
    }
    read_all(true, "one copy of the map changed");
    if (0 == mt_rank && bytes > 0) {
        map[60] ^= 4;
        MT_CHECK(0 == setxattr(path, "user.mpicrypt.map", map, (size_t) bytes, 0), "setxattr");
    }
    read_all(true, "the attribute changed, too");
    if (0 == mt_rank) {
        flip_map(PLACE_1);
    }
    open_fails(MPIX_ERR_CRYPT_FORGED, "all copies of the map changed");
    if (0 == mt_rank) {
        flip_map(PLACE_0);
    }
    read_all(true, "the first copy put right");
    if (0 == mt_rank) {
        byte = 0xff;
        poke(17, &byte, 1);
    }
    open_fails(MPIX_ERR_CRYPT_FORGED, "another version of the format");       /* under a CRC */
    mt_group("maps changed");
}

int main(int argc, char **argv)
{
    bool sealed = argc > 2 && 0 == strcmp(argv[2], "sealed");

    if (sealed) {
        setenv("OMPI_MCA_fs_crypt_seal", "1", 1);
    }
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    snprintf(path, sizeof(path), "%s/tamper", argv[1]);
    mt_fill(text, BYTES, mt_key(6, 0, 0, 0));
    make(1);
    read_all(true, "as it was written");
    blocks();
    overwritten(sealed);
    older(sealed);
    if (sealed) {
        another_end(BYTES - BLOCK, "cut off while it is open");
        another_end(BYTES + BLOCK, "lengthened while it is open");
        mt_group("the size of a sealed file is the one that was sealed");
        laundered();
    }
    maps();
    return mt_end();
}

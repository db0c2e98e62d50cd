/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Files with something odd about them; a script checks the messages.
 *
 *   odd open FILE      open for reading and writing, close
 *   odd locks FILE     the same, where processes do not see one another's locks
 *   odd AT FILE        one more region, of 1,000 bytes from AT on
 *   odd many FILE      many of them, more than an extended attribute holds
 *   odd label FILE     one of label "else"
 *   odd back FILE      one whose filetype has decreasing offsets
 *   odd runs FILE      one of more runs than a map may have
 *   odd clear FILE     one that is plain
 *   odd rest FILE      none, except that the rest is plain
 *   odd chacha FILE    one under ChaCha20-Poly1305
 *   odd write FILE     open for writing alone, close
 *   odd own FILE       open a new one that must not exist, close
 *   odd once FILE      the same, for writing only, where only rank 0 may read what it made
 *   odd late FILE      open an empty one for reading, with a label: it has no bytes; then plain bytes are put there
 *   odd gone FILE      open to delete it when it is closed
 *   odd root FILE      as own, with a seal to demand, which is refused; one named "taken" is adopted by another maker first
 *   odd reserve FILE   preallocate where the file system cannot, while another job cuts the file
 *
 * Exits with 0 when nothing was refused.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { RUNS = 1048577, MANY = 60 };

enum { BLOCK = 65536, CONTROL = 262144 };      /* as the defaults have it */

static bool blind, no_reader, no_space;

/* Replaces the C library's, also in Open MPI: a query for locks finds none. */
int fcntl(int fd, int command, ...)
{
    va_list list;

    va_start(list, command);
    void *argument = va_arg(list, void *);
    va_end(list);
    int rc = (int) syscall(SYS_fcntl, fd, command, argument);
    if (blind && 0 == rc && F_OFD_GETLK == command) {
        ((struct flock *) argument)->l_type = F_UNLCK;
    }
    return rc;
}

int fcntl64(int fd, int command, ...) __attribute__((alias("fcntl")));

/* The same: nobody may open a file for reading and writing. */
int open(const char *path, int flags, ...)
{
    va_list list;

    va_start(list, flags);
    unsigned mode = 0 != (flags & O_CREAT) ? va_arg(list, unsigned) : 0;
    va_end(list);
    const char *name = strrchr(path, '/');
    if (no_reader && O_RDWR == (flags & O_ACCMODE) && NULL != name && 0 == strcmp(name, "/once")) {
        errno = EACCES;
        return -1;
    }
    int fd = (int) syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && 0 != (flags & O_EXCL) && NULL != name && 0 == strcmp(name, "/taken")) {
        struct flock maker = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (1L << 62) - 2, .l_len = 1};
        int other = (int) syscall(SYS_openat, AT_FDCWD, path, O_RDWR, 0);
        MT_CHECK(0 == fcntl(other, F_OFD_SETLK, &maker), "the maker's lock");
    }
    return fd;
}

/* The same: no space can be reserved, and another job cuts the file to four blocks just then. */
int fallocate(int fd, int mode, off_t at, off_t bytes)
{
    if (no_space && FALLOC_FL_KEEP_SIZE == mode) {
        MT_CHECK(0 == ftruncate(fd, CONTROL + 4 * BLOCK), "ftruncate");
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int) syscall(SYS_fallocate, fd, mode, at, bytes);
}

int fallocate64(int fd, int mode, off_t at, off_t bytes) __attribute__((alias("fallocate")));

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

static MPI_Datatype filetype_of(const char *mode)
{
    const int lengths[] = {10, 10}, places[] = {100, 0};
    MPI_Datatype type;

    if (0 == strcmp(mode, "back")) {
        MT_MPI(MPI_Type_indexed(2, lengths, places, MPI_BYTE, &type));
    } else if (0 == strcmp(mode, "runs")) {
        MT_MPI(MPI_Type_vector(RUNS, 1, 2, MPI_BYTE, &type));
    } else {
        MT_MPI(MPI_Type_contiguous(0 == strcmp(mode, "rest") ? 0 : 1000, MPI_BYTE, &type));
    }
    MT_MPI(MPI_Type_commit(&type));
    return type;
}

static int set_map(MPI_File f, const char *mode, MPI_Offset at)
{
    MPI_Datatype type = filetype_of(mode);
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", 0 == strcmp(mode, "label") ? "else" : "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_repeat", "once"));
    if (0 == strcmp(mode, "clear") || 0 == strcmp(mode, "chacha")) {
        MT_MPI(MPI_Info_set(info, "crypt_algorithm", 0 == strcmp(mode, "clear") ? "plain" : "chacha20-poly1305"));
    } else if (0 == strcmp(mode, "rest")) {
        MT_MPI(MPI_Info_set(info, "crypt_rest", "plain"));
    }
    int rc = MPIX_File_set_encryption_map(f, at, MPI_BYTE, type, "native", info);
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Type_free(&type));
    return rc;
}

static int set_maps(MPI_File f, const char *mode)
{
    int rc = MPI_SUCCESS;

    if (0 != strcmp(mode, "many")) {
        return set_map(f, mode, atoi(mode));
    }
    for (int i = 0; i < MANY && MPI_SUCCESS == rc; i++) {
        rc = set_map(f, mode, 2000 * i);
    }
    return rc;
}

/* 0: a mode for which a map is made. */
static int amode_of(const char *mode)
{
    return 0 == strcmp(mode, "open") || 0 == strcmp(mode, "locks") ? MPI_MODE_RDWR
           : 0 == strcmp(mode, "write") ? MPI_MODE_WRONLY
           : 0 == strcmp(mode, "late") ? MPI_MODE_RDONLY
           : 0 == strcmp(mode, "once") ? MPI_MODE_WRONLY | MPI_MODE_CREATE | MPI_MODE_EXCL
           : 0 == strcmp(mode, "own") || 0 == strcmp(mode, "root") ? MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_EXCL
           : 0 == strcmp(mode, "reserve") ? MPI_MODE_RDWR | MPI_MODE_CREATE
           : 0 == strcmp(mode, "gone") ? MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE : 0;
}

/* The file stays as the other job cut it. */
static void reserve(MPI_File f)
{
    static char bytes[8 * BLOCK];
    MPI_Status status;
    MPI_Offset size;
    int count;

    memset(bytes, 'a', sizeof(bytes));
    MT_MPI(MPI_File_write_at(f, 0, bytes, sizeof(bytes), MPI_BYTE, &status));
    no_space = true;
    MT_MPI(MPI_File_preallocate(f, 12 * BLOCK));
    no_space = false;
    MT_MPI(MPI_File_get_size(f, &size));
    MT_CHECK(4 * BLOCK == size, "%lld bytes", (long long) size);
    MT_MPI(MPI_File_read_at(f, 0, bytes, sizeof(bytes), MPI_BYTE, &status));
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK(4 * BLOCK == count, "%d bytes", count);
}

/* All read: collectively, independently, and nonblocking. */
static void read_each(MPI_File f, int wanted, const char *what)
{
    for (int way = 0; way < 3; way++) {
        char bytes[4] = {0};
        MPI_Request request;
        MPI_Status status;
        int class, count, rc = 0 == way ? MPI_File_read_at(f, 0, bytes, 4, MPI_CHAR, &status)
                               : 1 == way ? MPI_File_read_at_all(f, 0, bytes, 4, MPI_CHAR, &status)
                                          : MPI_File_iread_at(f, 0, bytes, 4, MPI_CHAR, &request);

        rc = 2 == way && MPI_SUCCESS == rc ? MPI_Wait(&request, &status) : rc;
        MT_MPI(MPI_Error_class(rc, &class));
        MT_CHECK(wanted == class && 0 == bytes[0], "%s, way %d: class %d, '%c'", what, way, class, bytes[0]);
        if (MPI_SUCCESS == rc) {
            MT_MPI(MPI_Get_count(&status, MPI_CHAR, &count));
            MT_CHECK(0 == count, "%s, way %d: %d bytes", what, way, count);
        }
    }
}

static void fill_late(MPI_File f, const char *path)
{
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);     /* of MPI_Wait */
    read_each(f, MPI_SUCCESS, "empty");
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        FILE *file = fopen(path, "w");

        MT_CHECK(NULL != file && EOF != fputs("EVIL", file) && 0 == fclose(file), "%s", path);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    read_each(f, MPI_ERR_ACCESS, "filled");
}

int main(int argc, char **argv)
{
    MPI_File f;
    MPI_Info info = MPI_INFO_NULL;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(3 == argc, "usage");
    int amode = amode_of(argv[1]);
    bool made = 0 == amode;
    blind = 0 == strcmp(argv[1], "locks");
    no_reader = 0 == strcmp(argv[1], "once") && 0 != mt_rank;
    if (0 == strcmp(argv[1], "root")) {
        MT_MPI(MPI_Info_create(&info));
        MT_MPI(MPI_Info_set(info, "crypt_seal_root", "00"));
    }
    int rc = MPI_File_open(MPI_COMM_WORLD, argv[2], made ? MPI_MODE_RDWR | MPI_MODE_CREATE : amode, info, &f);
    if (MPI_SUCCESS == rc) {
        rc = made ? set_maps(f, argv[1]) : MPI_SUCCESS;
        if (0 == strcmp(argv[1], "late")) {
            fill_late(f, argv[2]);
        }
        if (0 == strcmp(argv[1], "reserve")) {
            reserve(f);
        }
        int closed = MPI_File_close(&f);
        rc = MPI_SUCCESS == rc ? closed : rc;
    }
    if (MPI_SUCCESS != rc) {
        char said[MPI_MAX_ERROR_STRING];
        int length;

        MPI_Error_string(rc, said, &length);
        printf("rank %d: %s\n", mt_rank, said);
        MPI_Finalize();
        return 1;
    }
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What programs do to the names of their files (life.sh).  The bytes of version V are those of PLAIN, each plus V.
 *
 *   named make PLAIN FILE V          open FILE, make it as long as PLAIN, write version V, close
 *   named steps PLAIN DIR N          N times: write DIR/ck.tmp, close, rename it to DIR/ck.I; then read all of them
 *   named renamed PLAIN FILE TO      rename FILE when half of it is written, write the other half, close, read TO
 *   named unlinked PLAIN FILE        unlink FILE when half of it is written; write, read and close it; nothing is there
 *   named replaced PLAIN FILE OTHER  rename OTHER to FILE when half of FILE is written, write the other half, close
 *   named clobber PLAIN FILE V       truncate(2) by rank 0, if it is there; then as make
 *   named delete PLAIN FILE V        MPI_File_delete by rank 0, then as make
 *   named append PLAIN LOG V         add version V, in MPI_MODE_APPEND
 *   named read PLAIN FILE V          it has version V, or fails
 *   named empty PLAIN FILE           it has no bytes
 */
#include "mt.h"

#include <unistd.h>

static unsigned char *plain, *wanted, *got;
static int total, from, part;                   /* of PLAIN; what this rank writes */

static void load(const char *name)
{
    enum { MOST = 1 << 24 };
    FILE *file = fopen(name, "rb");

    MT_CHECK(NULL != file, "%s", name);
    plain = malloc(MOST);
    wanted = malloc(MOST);
    got = malloc(MOST);
    total = (int) fread(plain, 1, MOST, file);
    fclose(file);
    part = total / mt_size;
    from = part * mt_rank;
    part = mt_rank == mt_size - 1 ? total - from : part;
}

static void want(int version)
{
    for (int i = 0; i < total; i++) {
        wanted[i] = (unsigned char) (plain[i] + version);
    }
}

/* Of a collective call.  Scripts look for the message with the reason, which an abort may overtake; a process that could
 * (the others lack the key) ends with them. */
static void need(int rc, const char *what)
{
    char text[MPI_MAX_ERROR_STRING];
    int length, good = MPI_SUCCESS == rc;

    if (!good) {
        MPI_Error_string(rc, text, &length);
        fprintf(stderr, "rank %d: %s: %s\n", mt_rank, what, text);
    }
    MT_MPI(MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD));
    if (!good) {
        MT_MPI(MPI_Finalize());
        exit(1);
    }
}

static MPI_File open_it(const char *name, int mode)
{
    MPI_File f;

    need(MPI_File_open(MPI_COMM_WORLD, name, mode, MPI_INFO_NULL, &f), "open");
    return f;
}

/* `half`: 0, 1; or 2, all of it. */
static void write_half(MPI_File f, int half)
{
    int at = 1 == half ? part / 2 : 0, count = 0 == half ? part / 2 : part - at;

    need(MPI_File_write_at_all(f, from + at, wanted + from + at, count, MPI_BYTE, MPI_STATUS_IGNORE), "write");
}

static void compare(MPI_File f)
{
    MPI_Offset bytes;
    MPI_Status status;
    int count;

    need(MPI_File_get_size(f, &bytes), "size");
    memset(got, 0, (size_t) total);
    need(MPI_File_read_at_all(f, 0, got, total, MPI_BYTE, &status), "read");
    MT_MPI(MPI_Get_count(&status, MPI_BYTE, &count));
    MT_CHECK(total == bytes && total == count && 0 == memcmp(wanted, got, (size_t) total),
             "%lld bytes, %d of them read, of a file of %d, or others", (long long) bytes, count, total);
}

static void read_it(const char *name)
{
    MPI_File f = open_it(name, MPI_MODE_RDONLY);

    compare(f);
    MT_MPI(MPI_File_close(&f));
}

static void make(const char *name, int version)
{
    MPI_File f = open_it(name, MPI_MODE_CREATE | MPI_MODE_WRONLY);

    want(version);
    need(MPI_File_set_size(f, total), "set_size");
    write_half(f, 2);
    MT_MPI(MPI_File_close(&f));
}

/* By one process, while the others have it open, or closed, and wait. */
static void rename_it(const char *name, const char *to)
{
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_CHECK(0 != mt_rank || 0 == rename(name, to), "%s to %s", name, to);
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static void steps(const char *directory, int count)
{
    char tmp[4096], name[4096];

    snprintf(tmp, sizeof(tmp), "%s/ck.tmp", directory);
    for (int i = 0; i < count; i++) {
        make(tmp, i);
        snprintf(name, sizeof(name), "%s/ck.%d", directory, i);
        rename_it(tmp, name);
    }
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%s/ck.%d", directory, i);
        want(i);
        read_it(name);
    }
}

/* `to`: NULL, unlinked. */
static void while_open(const char *name, const char *source, const char *to)
{
    MPI_File f = open_it(name, MPI_MODE_CREATE | MPI_MODE_RDWR);

    want(1);
    write_half(f, 0);
    if (NULL != to) {
        rename_it(source, to);
    } else {
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_CHECK(0 != mt_rank || 0 == unlink(name), "%s", name);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    }
    write_half(f, 1);
    need(MPI_File_sync(f), "sync");
    compare(f);
    MT_MPI(MPI_File_close(&f));
}

static void append(const char *name, int version)
{
    MPI_File f = open_it(name, MPI_MODE_CREATE | MPI_MODE_WRONLY | MPI_MODE_APPEND);
    MPI_Offset at;

    want(version);
    MT_MPI(MPI_File_get_position(f, &at));
    need(MPI_File_write_at_all(f, at + from, wanted + from, part, MPI_BYTE, MPI_STATUS_IGNORE), "append");
    MT_MPI(MPI_File_close(&f));
}

static void begin_anew(const char *name, bool clobber)
{
    if (0 == mt_rank && 0 == access(name, F_OK)) {
        MT_CHECK(!clobber || 0 == truncate(name, 0), "%s", name);
        MT_MPI(clobber ? MPI_SUCCESS : MPI_File_delete(name, MPI_INFO_NULL));
        MT_CHECK(clobber || 0 != access(name, F_OK), "%s is there", name);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(argc >= 4, "usage");
    const char *verb = argv[1], *name = argv[3], *more = argc > 4 ? argv[4] : "0";

    load(argv[2]);
    if (0 == strcmp(verb, "steps")) {
        steps(name, atoi(more));
    } else if (0 == strcmp(verb, "renamed")) {
        while_open(name, name, more);
        read_it(more);
    } else if (0 == strcmp(verb, "replaced")) {
        while_open(name, more, name);
    } else if (0 == strcmp(verb, "unlinked")) {
        while_open(name, name, NULL);
        MT_CHECK(0 != access(name, F_OK), "%s is there", name);
    } else if (0 == strcmp(verb, "append")) {
        append(name, atoi(more));
    } else if (0 == strcmp(verb, "read")) {
        want(atoi(more));
        read_it(name);
    } else if (0 == strcmp(verb, "empty")) {
        total = 0;
        read_it(name);
    } else {
        if (0 != strcmp(verb, "make")) {
            begin_anew(name, 0 == strcmp(verb, "clobber"));
        }
        make(name, atoi(more));
    }
    return mt_end();
}

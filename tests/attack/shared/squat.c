/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * squat WORD HOW WHAT: neighbors on a node exchange a canary by WHAT (p2p, coll, win, nothing), and another user
 * is quicker than Open MPI.  Whichever file with WORD in its name is to be opened is there
 * already, or was put in the place of the one that was there:
 *
 *     made       of user id 4711, with mode 0666        joined    the same, when a peer's file is opened
 *     open       ours, with mode 0666                   symlink   to a file of ours
 *     twice      ours, under a second name, too         mine      ours, as left by a job that was killed
 *
 * The program stands in for the functions of libc that open files.  Whoever made the file keeps it
 * open, and says at the end whether the canary is in it.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CANARY = 32, BYTES = 30000, FILES = 16, STRANGER = 4711, PIECE = 1 << 20 };

static const char *word, *how;
static int spies[FILES], spy_count;
static unsigned char canary[CANARY], out[BYTES], in[BYTES];

/* ---- the other user ---- */

static void plant(const char *path)
{
    const bool foreign = 0 == strcmp(how, "made") || 0 == strcmp(how, "joined");
    char other[PATH_MAX + 8];
    struct stat old = {0};
    int fd;

    MT_CHECK(spy_count < FILES, "more files than expected");
    (void) stat(path, &old);
    unlink(path);
    snprintf(other, sizeof(other), "%s.target", path);
    fd = (int) syscall(SYS_openat, AT_FDCWD, 0 == strcmp(how, "symlink") ? other : path, O_RDWR | O_CREAT | O_EXCL,
                       0600);
    MT_CHECK(fd >= 0, "%s cannot be made", path);
    MT_CHECK(0 == ftruncate(fd, old.st_size) && 0 == fchmod(fd, foreign || 0 == strcmp(how, "open") ? 0666 : 0600), "%s", path);
    MT_CHECK(!foreign || 0 == fchown(fd, STRANGER, STRANGER), "only root can give a file to another user");
    MT_CHECK(0 != strcmp(how, "twice") || 0 == link(path, other), "%s has no second name", path);
    MT_CHECK(0 != strcmp(how, "symlink") || 0 == symlink(other, path), "no link to %s", other);
    spies[spy_count++] = fd;
}

static bool is_peers(const char *path)
{
    const char *rank = getenv("OMPI_COMM_WORLD_RANK"), *dot = strrchr(path, '.');

    return NULL != rank && NULL != dot && 0 != strcmp(dot + 1, rank);
}

static int opened(int at, const char *path, int flags, mode_t mode)
{
    static char last[PATH_MAX];
    const bool joining = NULL != how && 0 == strcmp(how, "joined");
    char whole[PATH_MAX];

    if (NULL != word && NULL != strstr(path, word) && (joining ? is_peers(path) : 0 != (flags & O_CREAT))) {
        MT_CHECK(snprintf(whole, sizeof(whole), "%s%s", '/' == *path ? "" : "/dev/shm/", path) < (int) sizeof(whole),
                 "too long");
        if (0 != strcmp(last, whole)) {             /* once */
            strcpy(last, whole);
            plant(whole);
        }
    }
    return (int) syscall(SYS_openat, at, path, flags, mode);
}

#define STAND_IN(name, parameters, at)      \
    int name parameters                     \
    {                                       \
        mode_t mode;                        \
        va_list list;                       \
                                            \
        va_start(list, flags);              \
        mode = va_arg(list, mode_t);        \
        va_end(list);                       \
        return opened(at, path, flags, mode); \
    }
STAND_IN(open, (const char *path, int flags, ...), AT_FDCWD)
STAND_IN(open64, (const char *path, int flags, ...), AT_FDCWD)
STAND_IN(openat, (int at, const char *path, int flags, ...), at)
STAND_IN(openat64, (int at, const char *path, int flags, ...), at)

static long seen_by(int fd)
{
    static unsigned char piece[PIECE + CANARY];
    long found = 0;
    ssize_t have;

    for (off_t at = 0; (have = pread(fd, piece, sizeof(piece), at)) > 0; at += PIECE) {
        found += NULL != memmem(piece, (size_t) have, canary, CANARY);
    }
    return found;
}

/* ---- the job ---- */

static void p2p(void)
{
    const int to = (mt_rank + 1) % mt_size, from = (mt_rank + mt_size - 1) % mt_size;

    for (int bytes = CANARY; bytes <= BYTES; bytes *= 5) {
        MT_MPI(MPI_Sendrecv(out, bytes, MPI_BYTE, to, 1, in, bytes, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    }
}

static void coll(void)
{
    for (int root = 0; root < mt_size; root++) {
        for (int bytes = CANARY; bytes <= BYTES; bytes *= 5) {          /* coll/xhc copies what is short into the file */
            MT_MPI(MPI_Bcast(out, bytes, MPI_BYTE, root, MPI_COMM_WORLD));
        }
    }
}

static void win(void)
{
    void *base;
    MPI_Win window;

    MT_MPI(MPI_Win_allocate(BYTES, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window));
    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Put(out, BYTES, MPI_BYTE, (mt_rank + 1) % mt_size, 0, BYTES, MPI_BYTE, window));
    MT_MPI(MPI_Win_fence(0, window));
    MT_MPI(MPI_Win_free(&window));
}

int main(int argc, char **argv)
{
    long found = 0;

    if (argc > 3) {
        how = argv[2];
        word = argv[1];
    }
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    MT_CHECK(NULL != word, "squat WORD HOW WHAT");
    mt_fill(canary, CANARY, mt_key(1, 2, 3, 4));
    for (int at = 0; at < BYTES; at++) {
        out[at] = canary[at % CANARY];
    }
    mt_flag("p2p") ? p2p() : mt_flag("coll") ? coll() : mt_flag("win") ? win() : (void) 0;
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < spy_count; i++) {
        found += seen_by(spies[i]);
    }
    printf("squatted files: %d, seen: %ld\n", spy_count, found);
    return mt_end();
}

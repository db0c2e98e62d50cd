/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Several processes open a file at the same time that does not exist yet: each on
 * its own, or halves of the job, with a map or without.  It is made once; all write
 * pieces of the same blocks, and read everything.  Some rounds begin with the
 * remains of a maker that was killed.  together DIR [rounds=N]
 */
#define _GNU_SOURCE
#include "clear.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "mpi_crypt.h"

enum { PIECE = 1000, PIECES = 12, BYTES = PIECE * PIECES, BLOCK = 4096 };
enum { HEADER = 512, PLACE_1 = 4096, MADE = 8192, LEFT = 6, SECRET = 32 };      /* docs/file-format.rst; H is 0 */
#define MAKER ((off_t) ((UINT64_C(1) << 62) - 2))

static char path[1024];
static unsigned char expected[BYTES];

static void name_file(const char *directory, const char *kind, int round)
{
    snprintf(path, sizeof(path), "%s/%s.%d", directory, kind, round);
    mt_fill(expected, BYTES, mt_key(round, 0, 0, 0));
}

static MPI_Info ask(const char *label, int block)
{
    char number[16];
    MPI_Info info;

    snprintf(number, sizeof(number), "%d", block);
    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", label));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", number));
    return info;
}

static void write_and_close(MPI_File f)
{
    for (int i = mt_rank; i < PIECES; i += mt_size) {
        MT_MPI(MPI_File_write_at(f, (MPI_Offset) i * PIECE, expected + i * PIECE, PIECE, MPI_BYTE, MPI_STATUS_IGNORE));
    }
    MT_MPI(MPI_File_close(&f));
}

/* All read the whole file, of which nothing is on disk in clear. */
static void look(void)
{
    unsigned char bytes[BYTES];
    MPI_File f;

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &f));
    MT_MPI(MPI_File_read_at(f, 0, bytes, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_CHECK(0 == memcmp(bytes, expected, BYTES), "%s", path);
    MT_MPI(MPI_File_close(&f));
    for (int i = 0; i < PIECES; i++) {
        MT_CHECK(!clear_in(path, expected + i * PIECE, SECRET), "piece %d of %s is plain", i, path);
    }
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    if (0 == mt_rank) {
        MT_MPI(MPI_File_delete(path, MPI_INFO_NULL));
    }
}

/* What is left of a maker that was killed: an empty file, one of which only the length survived a power cut, and, in the
 * order in which it writes, the header, a place, the other one, the attribute.  The state would come last. */
static void leave(int kind)
{
    static const off_t ends[LEFT] = {0, HEADER, HEADER, PLACE_1, MADE, MADE};
    MPI_Info info = ask("lab", BLOCK);
    MPI_File f;

    if (0 == mt_rank) {
        MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_EXCL | MPI_MODE_RDWR, info, &f));
        MT_MPI(MPI_File_close(&f));
        int fd = open(path, O_RDWR);
        MT_CHECK(fd >= 0 && MADE == lseek(fd, 0, SEEK_END) && 4 == pwrite(fd, (char[4]){0}, 4, HEADER), "%s", path);
        MT_CHECK(1 != kind || 0 == ftruncate(fd, 0), "%s", path);
        MT_CHECK(0 == ftruncate(fd, ends[kind]), "%s", path);
        MT_CHECK(LEFT - 1 == kind || 0 == fremovexattr(fd, "user.mpicrypt.map") || ENODATA == errno || ENOTSUP == errno, "%s", path);
        close(fd);
    }
    MT_MPI(MPI_Info_free(&info));
    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
}

static MPI_File open_new(MPI_Comm comm, MPI_Info info)
{
    MPI_File f;

    MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
    MT_MPI(MPI_File_open(comm, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    return f;
}

/* With the default map; every fourth file has a killed maker's remains. */
static void by_default(const char *directory, const char *kind, MPI_Comm comm, int rounds)
{
    MPI_Info info = ask("lab", BLOCK);

    for (int round = 0; round < rounds; round++) {
        name_file(directory, kind, round);
        if (3 == round % 4) {
            leave(round / 4 % LEFT);
        }
        write_and_close(open_new(comm, info));
        look();
    }
    MT_MPI(MPI_Info_free(&info));
    mt_group("%s: %d files", kind, rounds);
}

static int set_map(MPI_File f, int at, bool once, int block)
{
    MPI_Info info = ask("other", block);

    if (once) {
        MT_MPI(MPI_Info_set(info, "crypt_repeat", "once"));
    }
    int rc = MPIX_File_set_encryption_map(f, at, MPI_BYTE, MPI_BYTE, "native", info);

    MT_MPI(MPI_Info_free(&info));
    return rc;
}

/* With a map of the program's, the same for all. */
static void by_map(const char *directory, MPI_Comm comm, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        name_file(directory, "map", round);
        if (3 == round % 4) {
            leave(round / 4 % (LEFT - 1));      /* with the attribute, only a label makes it anew */
        }
        MPI_File f = open_new(comm, MPI_INFO_NULL);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_MPI(set_map(f, 0, false, BLOCK));
        write_and_close(f);
        look();
    }
    mt_group("map: %d files", rounds);
}

/* Each process has another map, of the same bytes or of others: one process makes
 * the file, and the others are told. */
static void by_other_maps(const char *directory, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        bool apart = 0 != round % 2;
        int makers[2];
        unsigned char byte = 7;
        name_file(directory, "maps", round);
        MPI_File f = open_new(MPI_COMM_SELF, MPI_INFO_NULL);
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        int rc = set_map(f, apart ? mt_rank : 0, apart, BLOCK << mt_rank), class = MPI_SUCCESS;
        MT_MPI(MPI_Error_class(rc, &class));
        bool made = MPI_SUCCESS == rc;
        int mine[] = {made, made ? mt_rank : 0};
        MT_CHECK(made || MPI_ERR_ARG == class, "%s: error class %d", path, class);
        MT_MPI(MPI_Allreduce(mine, makers, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD));
        MT_CHECK(1 == makers[0], "%d processes made %s", makers[0], path);
        if (made) {
            MT_MPI(MPI_File_write_at(f, mt_rank, &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        byte = 0;
        MT_MPI(MPI_Barrier(MPI_COMM_WORLD));
        MT_MPI(MPI_File_read_at(f, makers[1], &byte, 1, MPI_BYTE, MPI_STATUS_IGNORE));
        MT_CHECK(7 == byte, "%s", path);
        MT_MPI(MPI_File_close(&f));
    }
    mt_group("another map of each: %d files", rounds);
}

/* ---- a maker that is killed while others wait for it ---- */

static bool killed;

static void *kill_it(void *arg)
{
    const pid_t *child = arg;

    usleep(300000);                     /* by then somebody waits */
    __atomic_store_n(&killed, true, __ATOMIC_SEQ_CST);
    kill(*child, SIGKILL);
    return NULL;
}

/* Forked before MPI starts, so MPI does not know it: it holds the maker's lock on a file that is empty, or has a head of
 * zeros, and ends only when it is killed. */
static pid_t start_maker(const char *directory, int rank)
{
    struct flock maker = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = MAKER, .l_len = 1};
    int ready[2];
    char byte = 0;

    snprintf(path, sizeof(path), "%s/killed.%d", directory, rank);
    pid_t child = 0 == pipe(ready) ? fork() : -1;
    if (0 == child) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0 || 0 != fcntl(fd, F_OFD_SETLK, &maker) || 0 != ftruncate(fd, rank % 2 * HEADER) || 1 != write(ready[1], &byte, 1)) {
            _exit(1);
        }
        for (;;) {
            pause();
        }
    }
    close(ready[1]);
    if (child < 0 || 1 != read(ready[0], &byte, 1)) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        exit(1);
    }
    close(ready[0]);
    return child;
}

static void wait_for_it(const char *directory, pid_t child, int rank)
{
    MPI_Info info = ask("lab", BLOCK);
    pthread_t killer;
    MPI_File f;

    name_file(directory, "killed", rank);
    MT_CHECK(0 == pthread_create(&killer, NULL, kill_it, &child), "no thread");
    MT_MPI(MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR, info, &f));
    MT_CHECK(__atomic_load_n(&killed, __ATOMIC_SEQ_CST), "nobody waited for who makes the file");
    MT_MPI(MPI_File_write_at(f, 0, expected, BYTES, MPI_BYTE, MPI_STATUS_IGNORE));
    MT_MPI(MPI_File_close(&f));
    MT_MPI(MPI_Info_free(&info));
    pthread_join(killer, NULL);
    waitpid(child, NULL, 0);
    mt_group("a maker that is killed");
}

int main(int argc, char **argv)
{
    const char *text = getenv("OMPI_COMM_WORLD_RANK");
    int rank = NULL == text ? 0 : atoi(text);
    pid_t child = argc > 1 ? start_maker(argv[1], rank) : 0;
    MPI_Comm across, within;

    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 2) {
        mt_skip("no directory named that all nodes share");
    }
    int rounds = (int) mt_arg("rounds", 200);
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank % 2, 0, &across));
    MT_MPI(MPI_Comm_split(MPI_COMM_WORLD, mt_rank / ((mt_size + 1) / 2), 0, &within));
    by_default(argv[1], "self", MPI_COMM_SELF, rounds);
    by_default(argv[1], "across", across, rounds / 4);
    by_default(argv[1], "within", within, rounds / 4);
    by_map(argv[1], MPI_COMM_SELF, rounds / 4);
    by_map(argv[1], across, rounds / 8);
    by_other_maps(argv[1], rounds / 8);
    wait_for_it(argv[1], child, rank);
    MT_MPI(MPI_Comm_free(&across));
    MT_MPI(MPI_Comm_free(&within));
    return mt_end();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A file is overwritten, piece by piece, over a device that logs its writes
 * (dm-log-writes); then the log is replayed, and at each FLUSH or FUA (a state in
 * which power could have been lost with everything before it on the disk) the file
 * system is mounted and the file is read.
 *
 *     power write FILE DEVICE steps=N          a mark in the log after each sync
 *     power replay LOG DEVICE DIR steps=N      LOG, what it is replayed onto, where that is mounted
 *     power life FILE base=N since=N last=N    for a machine that is killed: if since > 0, check what the
 *                                              previous life left, which began at `last`; then go on from
 *                                              `base`, and print what was synced
 *
 * Every block is as it was at the last mark, or as a later step made it.  Prints how
 * many states were checked and in how many a block was lost.  `lost=1`: it ends
 * at the first such state, and must find one (the barriers were left out), or the test shows nothing.
 */
#define _GNU_SOURCE
#include "mt.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096, HALF = BLOCK / 2, BLOCKS = 8, SYNC_EVERY = 3, STEPS_MAX = 1000 };

static unsigned char text[BLOCK];

/* ---- what is written: step s fills halves of one block with values of its own ---- */

typedef struct piece {
    int block, from, bytes;
} piece_t;

static piece_t piece_of(int step)
{
    uint64_t r = mt_mix((uint64_t) step * 7919 + 5);
    int what = (int) (r >> 8) % 3;

    return (piece_t){(int) (r % BLOCKS), 1 == what ? HALF : 0, 2 == what ? BLOCK : HALF};
}

static unsigned char value_of(int step) { return (unsigned char) (1 + step % 255); }

static int base;                        /* the step that wrote all */

/* Which step's value a half has after `step`. */
static int last_of(int block, int half, int step)
{
    for (; step > base; step--) {
        piece_t p = piece_of(step);
        if (p.block == block && half * HALF >= p.from && half * HALF < p.from + p.bytes) {
            return step;
        }
    }
    return base;
}

static int is_as_of(const unsigned char *seen, int block, int step)
{
    for (int i = 0; i < BLOCK; i++) {
        if (seen[i] != value_of(last_of(block, i / HALF, step))) {
            return 0;
        }
    }
    return 1;
}

static MPI_File opened(const char *path, int mode)
{
    MPI_File f;
    MPI_Info info;

    MT_MPI(MPI_Info_create(&info));
    MT_MPI(MPI_Info_set(info, "crypt_key_label", "lab"));
    MT_MPI(MPI_Info_set(info, "crypt_block_size", "4096"));
    MT_MPI(MPI_File_open(MPI_COMM_SELF, path, mode, info, &f));
    MT_MPI(MPI_Info_free(&info));
    return f;
}

static void mark(const char *device, int step)
{
    char command[256];

    snprintf(command, sizeof(command), "dmsetup message %s 0 mark step%d", device, step);
    MT_CHECK(0 == system(command), "%s", command);
}

/* The kernel writes back the control area or the data whenever it likes, and so does this; and then a state with that. */
static void write_back(const char *path, int step)
{
    char name[1024];
    off_t control;
    bool data = 0 != mt_mix((uint64_t) step) % 2;
    int fd = open(path, O_RDONLY);

    MT_CHECK(fd >= 0 && sizeof(control) == pread(fd, &control, sizeof(control), 48), "%s", path);
    MT_CHECK(0 == sync_file_range(fd, data ? control : 0, data ? 0 : control,
                                  SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER), "%s", path);
    close(fd);
    snprintf(name, sizeof(name), "%s", path);
    int directory = open(dirname(name), O_RDONLY | O_DIRECTORY);
    MT_CHECK(directory >= 0 && 0 == fsync(directory), "%s", name);
    close(directory);
}

/* From `base` on; device NULL: print what was synced instead of marking it. */
static void write_steps(const char *path, int steps, const char *device)
{
    MPI_File f = opened(path, MPI_MODE_CREATE | MPI_MODE_RDWR);

    for (int step = base; step <= steps; step++) {
        piece_t p = piece_of(step);
        memset(text, value_of(step), BLOCK);
        for (int i = 0; i < (base == step ? BLOCKS : 1); i++) {
            MPI_Offset at = base == step ? (MPI_Offset) i * BLOCK : (MPI_Offset) p.block * BLOCK + p.from;
            MT_MPI(MPI_File_write_at(f, at, text, base == step ? BLOCK : p.bytes, MPI_BYTE, MPI_STATUS_IGNORE));
        }
        write_back(path, step);
        if (0 == (step - base) % SYNC_EVERY) {
            MT_MPI(MPI_File_sync(f));
            if (NULL != device) {
                mark(device, step);
            } else {
                printf("synced %d\n", step);
                fflush(stdout);
            }
        }
    }
    MT_MPI(MPI_File_close(&f));
}

/* ---- the log: a head, then entries, each in sectors of its own ---- */

enum { LOG_FLUSH = 1, LOG_FUA = 2, LOG_DISCARD = 4, LOG_MARK = 8 };

typedef struct log_head {
    uint64_t magic, version, entries;
    uint32_t sector;
} log_head_t;

typedef struct log_entry {
    uint64_t at, sectors, flags, data;
} log_entry_t;

static unsigned char *image;
static size_t image_bytes;

/* The number of blocks that do not match any step from `since` to `steps`. */
static int lost_of(const char *path, int since, int steps)
{
    MPI_File f = opened(path, MPI_MODE_RDONLY);
    int class = MPI_SUCCESS, lost = 0;

    MPI_File_set_errhandler(f, MPI_ERRORS_RETURN);
    for (int block = 0; block < BLOCKS; block++) {
        int good = 0;
        MPI_Error_class(MPI_File_read_at(f, (MPI_Offset) block * BLOCK, text, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), &class);
        for (int step = since; step <= steps && MPI_SUCCESS == class && !good; step++) {
            good = is_as_of(text, block, step);
        }
        lost += !good;
    }
    MT_MPI(MPI_File_close(&f));
    return lost;
}

static void look(const char *device, const char *directory, int since, int steps, int *lost)
{
    char path[1024];
    int fd = open(device, O_WRONLY);

    MT_CHECK(fd >= 0 && (ssize_t) image_bytes == write(fd, image, image_bytes) && 0 == fsync(fd), "%s", device);
    close(fd);
    MT_CHECK(0 == mount(device, directory, "ext4", 0, ""), "after step %d the file system cannot be mounted", since);
    snprintf(path, sizeof(path), "%s/file", directory);
    int wrong = lost_of(path, since, steps);
    MT_CHECK(0 == umount(directory), "%s", directory);
    *lost += wrong > 0;
    if (wrong > 0 && *lost < 4) {
        printf("after the sync of step %d: %d blocks are lost\n", since, wrong);
    }
}

static void replay(const char *log, const char *device, const char *directory, int steps, int losing)
{
    log_head_t head;
    log_entry_t entry;
    int fd = open(log, O_RDONLY), since = -1, states = 0, lost = 0;
    off_t at;

    MT_CHECK(fd >= 0 && sizeof(head) == read(fd, &head, sizeof(head)) && 0x6a736677736872 == head.magic && head.sector >= 512,
             "%s is no log", log);
    int target = open(device, O_RDONLY);
    image_bytes = (size_t) lseek(target, 0, SEEK_END);
    close(target);
    image = calloc(1, image_bytes);
    MT_CHECK(NULL != image, "%zu bytes", image_bytes);
    at = head.sector;
    for (uint64_t i = 0; i < head.entries && !(losing && lost > 0); i++) {
        char name[64] = "";
        MT_CHECK(sizeof(entry) == pread(fd, &entry, sizeof(entry), at), "entry %llu", (unsigned long long) i);
        if (0 != (entry.flags & LOG_MARK)) {
            MT_CHECK(pread(fd, name, sizeof(name) - 1, at + (off_t) sizeof(entry)) > 0, "mark");
            since = 0 == strncmp(name, "step", 4) ? atoi(name + 4) : since;
        }
        at += head.sector;
        size_t bytes = (size_t) entry.sectors * head.sector, place = (size_t) entry.at * head.sector;
        MT_CHECK(place <= image_bytes && bytes <= image_bytes - place, "entry %llu lies outside", (unsigned long long) i);
        if (0 != (entry.flags & LOG_DISCARD)) {
            memset(image + place, 0, bytes);
        } else if (bytes > 0) {
            MT_CHECK((ssize_t) bytes == pread(fd, image + place, bytes, at), "data of entry %llu", (unsigned long long) i);
            at += (off_t) bytes;
        }
        if (since >= 0 && 0 != (entry.flags & (LOG_FLUSH | LOG_FUA))) {
            look(device, directory, since, steps, &lost);
            states++;
        }
    }
    printf("%llu entries, %d states, in %d of them blocks are lost\n", (unsigned long long) head.entries, states, lost);
    MT_CHECK(losing || states > steps / 2, "%d states of %d steps", states, steps);
    MT_CHECK(losing ? lost > 0 : 0 == lost, "%d", lost);
    free(image);
    close(fd);
}

/* The previous life may have got further than what it could print. */
static void live(const char *path)
{
    int since = (int) mt_arg("since", 0);

    if (since > 0) {
        base = (int) mt_arg("last", 0);
        int lost = lost_of(path, since, since + 200);
        printf("looked at what was synced at %d: %d blocks are lost\n", since, lost);
        MT_CHECK(0 == lost, "%d", lost);
    }
    base = (int) mt_arg("base", 0);
    write_steps(path, base + STEPS_MAX, NULL);
}

int main(int argc, char **argv)
{
    mt_start(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc < 3) {
        mt_skip("nothing to write or replay");
    }
    int steps = (int) mt_arg("steps", 60);
    MT_CHECK(1 == mt_size && steps <= STEPS_MAX, "%d processes, %d steps", mt_size, steps);
    if (0 == strcmp(argv[1], "life")) {
        live(argv[2]);
    } else if (0 == strcmp(argv[1], "write")) {
        MT_CHECK(argc > 3, "write FILE DEVICE");
        write_steps(argv[2], steps, argv[3]);
    } else {
        MT_CHECK(argc > 4, "replay LOG DEVICE DIR");
        replay(argv[2], argv[3], argv[4], steps, (int) mt_arg("lost", 0));
    }
    mt_group("%s, %d steps", argv[1], steps);
    return mt_end();
}

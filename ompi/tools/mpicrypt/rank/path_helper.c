/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The helper of the verb `path`, and the steps.  All it does is in a directory of its own, below open descriptors, so
 * that no link leads elsewhere.  It locks, reads and writes as jobs do (cryptmpio_posix.h).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "path.h"
#include "opal/mca/common/crypt/base/patience.h"

enum { LOCK_SECONDS = 5, PATIENCE_MS = 3000, PAUSE_MS = 50, LIMIT_SECONDS = 600, PAGE = 4096, REPLACED = 4 };

#define ATTRIBUTE "user.mpicrypt.doctor"
#define RIGHT     OMPI_CRYPTMPIO_SEEN_RIGHT
#define WRONG     MPICRYPT_PATH_WRONG
#define SEEN(condition) ((condition) ? RIGHT : OMPI_CRYPTMPIO_SEEN_ERROR)
#define UNUSED  __attribute__((unused))
#define STEP(name) \
    static int path_##name(ompi_common_cryptmpio_posix_t *file UNUSED, int value UNUSED, const mpicrypt_path_order_t *order UNUSED, \
                           uint64_t *answer UNUSED)

static const char *named;
static char first[16], second[16];      /* names of files */
static int above = -1, inside = -1;     /* the directory that the user named, and ours in it */
static char ours[64];
static ompi_common_cryptmpio_posix_t files[2];      /* of the two sides: the first file */

/* ---- the directory and its files ---- */

/* The first node makes what the others enter. */
STEP(enter)
{
    struct statfs system;
    struct stat status;

    snprintf(ours, sizeof(ours), ".mpicrypt-doctor-%016" PRIx64, order->number);
    above = open(named, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above < 0 || 0 != fstatfs(above, &system) || (0 == order->index && 0 != mkdirat(above, ours, 0700))) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    *answer = (uint64_t) system.f_type;
    inside = openat(above, ours, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inside >= 0 && (0 != fstat(inside, &status) || geteuid() != status.st_uid || 0700 != (status.st_mode & 0777))) {
        close(inside);                  /* another one was put there */
        inside = -1;
        errno = EPERM;
    }
    return SEEN(inside >= 0);
}

static void set_file(ompi_common_cryptmpio_posix_t *file, int fd)
{
    if (file->data_fd >= 0) {
        close(file->data_fd);
    }
    ompi_common_cryptmpio_posix_init(file, fd, true);
    ompi_common_cryptmpio_posix_durable(file);
}

static void delete_all(void)
{
    set_file(&files[0], -1);
    set_file(&files[1], -1);
    (void) unlinkat(inside, first, 0);
    (void) unlinkat(inside, second, 0);
}

STEP(leave)
{
    if (inside < 0) {
        return RIGHT;
    }
    delete_all();
    DIR *directory = fdopendir(inside);
    for (struct dirent *entry; NULL != directory && NULL != (entry = readdir(directory));) {
        (void) unlinkat(inside, entry->d_name, 0);      /* that of a node which is late, too */
    }
    if (NULL != directory) {
        closedir(directory);
    }
    inside = -1;
    return SEEN(0 == unlinkat(above, ours, AT_REMOVEDIR) || ENOENT == errno);
}

/* `how` as for open(2). */
static int open_named(const char *name, int how)
{
    return openat(inside, name, how | O_NOFOLLOW | O_CLOEXEC, 0600);
}

STEP(join)
{
    set_file(file, open_named(first, O_RDWR));
    return SEEN(file->data_fd >= 0);
}

STEP(create)
{
    set_file(file, open_named(first, 0 == order->index ? O_RDWR | O_CREAT | O_EXCL : O_RDWR));
    return SEEN(file->data_fd >= 0);
}

STEP(create_again)
{
    int fd = open_named(first, O_RDWR | O_CREAT | O_EXCL);

    return fd >= 0 ? close(fd), WRONG : SEEN(EEXIST == errno);
}

/* ---- one opens, writes and closes; another opens and reads ---- */

static int pages_of(const char *name, bool writing, int value)
{
    ompi_common_cryptmpio_posix_t file = {.data_fd = -1};
    int fd = open_named(name, writing ? O_RDWR | O_CREAT : O_RDONLY), seen = SEEN(fd >= 0);

    set_file(&file, fd);
    seen = RIGHT == seen ? (int) ompi_common_cryptmpio_posix_pages(&file, writing, (uint8_t) value) : seen;
    return fd >= 0 && 0 != close(fd) ? OMPI_CRYPTMPIO_SEEN_ERROR : seen;
}

STEP(save) { return pages_of(first, true, value); }

STEP(replace)
{
    int seen = pages_of(second, true, value);

    return RIGHT == seen ? SEEN(0 == renameat(inside, second, inside, first)) : seen;
}

/* What another node did may be seen after a while. */
STEP(load)
{
    const struct timespec pause = {0, PAUSE_MS * 1000000L};
    int seen = pages_of(first, false, value);

    for (; RIGHT != seen && *answer < PATIENCE_MS; *answer += PAUSE_MS) {
        (void) nanosleep(&pause, NULL);
        seen = pages_of(first, false, value);
    }
    /* A node may keep a name for longer (NFS: a minute), and then reads the file that was replaced, which is whole. */
    return RIGHT != seen && REPLACED == value && RIGHT == pages_of(first, false, REPLACED - 1) ? RIGHT : seen;
}

/* ---- locks, and what is read under them ---- */

STEP(lock)
{
    bool stays = false;

    return OPAL_CRYPT_OK != file->super.lock(&file->super, OMPI_CRYPTMPIO_LOCK_PROBE, 1, true)
           || OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_stays(file, OMPI_CRYPTMPIO_LOCK_PROBE, &stays)
           ? OMPI_CRYPTMPIO_SEEN_ERROR : stays ? RIGHT : WRONG;
}

/* By the other side's lock: ask, and try. */
STEP(excluded)
{
    bool is_free = false, got = false;

    return OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_test(file, OMPI_CRYPTMPIO_LOCK_PROBE, &is_free)
           || OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_lock_now(file, OMPI_CRYPTMPIO_LOCK_PROBE, true, &got)
           ? OMPI_CRYPTMPIO_SEEN_ERROR : is_free || got ? WRONG : RIGHT;
}

STEP(ranges) { return SEEN(OPAL_CRYPT_OK == ompi_common_cryptmpio_posix_ranges_take(file)); }

STEP(ranges_taken)
{
    bool right = false;

    return OPAL_CRYPT_OK != ompi_common_cryptmpio_posix_ranges_test(file, &right) ? OMPI_CRYPTMPIO_SEEN_ERROR : right ? RIGHT : WRONG;
}

STEP(put) { return (int) ompi_common_cryptmpio_posix_pages_locked(file, true, (uint8_t) value); }
STEP(get) { return (int) ompi_common_cryptmpio_posix_pages_locked(file, false, (uint8_t) value); }

/* In the first of the two pages of value 3; on the storage, too. */
STEP(hole)
{
    opal_cryptfile_storage_t *storage = &file->super;
    uint8_t bytes[2 * PAGE];
    const opal_cryptfile_extent_t extent = {0, bytes, sizeof(bytes)};

    return OPAL_CRYPT_OK != storage->zero(storage, 0, PAGE) || OPAL_CRYPT_OK != storage->barrier(storage)
           || OPAL_CRYPT_OK != storage->read(storage, &extent, 1) ? OMPI_CRYPTMPIO_SEEN_ERROR
           : 0 != bytes[0] || 0 != bytes[PAGE - 1] || 3 != bytes[PAGE] || 3 != bytes[2 * PAGE - 1] ? WRONG : RIGHT;
}

STEP(mark) { return SEEN(0 == fsetxattr(file->data_fd, ATTRIBUTE, "seen", 4, 0)); }

STEP(marked)
{
    char text[8] = "";

    return fgetxattr(file->data_fd, ATTRIBUTE, text, sizeof(text) - 1) < 0 ? OMPI_CRYPTMPIO_SEEN_ERROR
           : 0 == strcmp(text, "seen") ? RIGHT : WRONG;
}

/* The file begins with the rounds of all, and of each node; each round makes it 8 bytes longer.  A node knows how many it
 * has made: if it finds another number, it has read what was there before. */
static int race_round(opal_cryptfile_storage_t *storage, int index, uint64_t round, uint64_t *total)
{
    uint64_t head[1 + MPICRYPT_PATH_RACERS], size;
    opal_cryptfile_extent_t extents[2] = {{0, (uint8_t *) head, sizeof(head)}, {0, (uint8_t *) head, sizeof(*head)}};

    if (OPAL_CRYPT_OK != storage->size(storage, &size) || OPAL_CRYPT_OK != storage->read(storage, extents, 1)) {
        return OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    extents[1].at = sizeof(head) + 8 * head[0];
    if (round != head[1 + index] || size != (0 == head[0] ? 0 : extents[1].at)) {
        return round != head[1 + index] ? OMPI_CRYPTMPIO_SEEN_BYTES : OMPI_CRYPTMPIO_SEEN_SIZE;
    }
    *total = ++head[0];
    ++head[1 + index];
    return SEEN(OPAL_CRYPT_OK == storage->write(storage, extents, 2));
}

STEP(race)
{
    opal_cryptfile_storage_t *storage = &file->super;
    const int64_t until = opal_crypt_milliseconds() + PATIENCE_MS;
    uint64_t round = 0, total = 0;
    int seen = RIGHT;

    for (; RIGHT == seen && round < (uint64_t) order->rounds && opal_crypt_milliseconds() < until; ++round) {
        seen = SEEN(OPAL_CRYPT_OK == storage->lock(storage, OMPI_CRYPTMPIO_LOCK_PROBE, 1, true));
        seen = RIGHT == seen ? race_round(storage, order->index, round, &total) : seen;
        seen = OPAL_CRYPT_OK == storage->unlock(storage, OMPI_CRYPTMPIO_LOCK_PROBE, 1) ? seen : OMPI_CRYPTMPIO_SEEN_ERROR;
    }
    *answer = total << 32 | round;
    return seen;
}

/* ---- the steps ---- */

#define OWN "after its own write, under the lock"
#define OTHER "after %s's write, under the lock"
#define LOST "lost its lock when another descriptor of the file was closed"

const mpicrypt_path_step_t mpicrypt_path_steps[] = {
    {MPICRYPT_PATH_UNUSABLE, 0, path_enter, 0, "make the directory of the test, or enter it", NULL},

    {MPICRYPT_PATH_ONE_WRITER, 0, path_create, 0, "create a file", NULL},
    {MPICRYPT_PATH_ONE_WRITER, 0, path_lock, 0, "lock a file", LOST},
    {MPICRYPT_PATH_ONE_WRITER, 0, path_put, 3, "write under a lock", OWN},
    {MPICRYPT_PATH_ONE_WRITER, 0, path_hole, 0, "punch a hole and sync", "did not read zeros exactly where it had punched a hole"},

    {MPICRYPT_PATH_NODES, 0, path_create, 0, "create a file", NULL},
    {MPICRYPT_PATH_NODES, 1, path_create_again, 0, "try to create a file", "could create a file that %s had created (O_EXCL)"},
    {MPICRYPT_PATH_NODES, 1, path_join, 0, "open a file", NULL},
    {MPICRYPT_PATH_NODES, 0, path_lock, 0, "lock a file", LOST},
    {MPICRYPT_PATH_NODES, 1, path_excluded, 0, "test a lock", "could lock what %s had locked"},
    {MPICRYPT_PATH_NODES, 0, path_put, 1, "write under a lock", OWN},
    {MPICRYPT_PATH_NODES, 1, path_get, 1, "read under a lock", OTHER},
    {MPICRYPT_PATH_NODES, 0, path_put, 2, "write under a lock", OWN},
    {MPICRYPT_PATH_NODES, 1, path_get, 2, "read under a lock", OTHER},
    {MPICRYPT_PATH_NODES, 1, path_put, 3, "write under a lock", OWN},
    {MPICRYPT_PATH_NODES, 0, path_get, 3, "read under a lock", OTHER},

    {MPICRYPT_PATH_RANGES, 0, path_create, 0, "create a file", NULL},
    {MPICRYPT_PATH_RANGES, 1, path_join, 0, "open a file", NULL},
    {MPICRYPT_PATH_RANGES, 0, path_ranges, 0, "lock and unlock ranges", NULL},
    {MPICRYPT_PATH_RANGES, 1, path_ranges_taken, 0, "test locks of ranges",
     "could lock a part of a range that %s had locked, or could not lock what it had unlocked"},

    {MPICRYPT_PATH_READING, 0, path_create, 0, "create a file", NULL},
    {MPICRYPT_PATH_READING, 0, path_save, 1, "write a file", OWN},
    {MPICRYPT_PATH_READING, 1, path_load, 1, "read a file", "after %s had written a file and closed it"},
    {MPICRYPT_PATH_READING, 0, path_save, 3, "write a file", OWN},
    {MPICRYPT_PATH_READING, 1, path_load, 3, "read a file", "after %s had lengthened a file and closed it"},
    {MPICRYPT_PATH_READING, 0, path_replace, REPLACED, "replace a file", OWN},
    {MPICRYPT_PATH_READING, 1, path_load, REPLACED, "read a file", "after %s had renamed another file over it"},

    {MPICRYPT_PATH_ATTRIBUTES, 0, path_create, 0, "create a file", NULL},
    {MPICRYPT_PATH_ATTRIBUTES, 0, path_mark, 0, "set an extended attribute", NULL},
    {MPICRYPT_PATH_ATTRIBUTES, 1, path_join, 0, "open a file", NULL},
    {MPICRYPT_PATH_ATTRIBUTES, 1, path_marked, 0, "read an extended attribute", "read another attribute than %s had set"},

    {MPICRYPT_PATH_START, 0, path_create, 0, "create or open a file", NULL},
    {MPICRYPT_PATH_RACE, 0, path_race, 0, "write while all nodes did", "under the lock, while all nodes wrote"},
    {MPICRYPT_PATH_LEFT, 0, path_leave, 0, "delete the files", NULL},
    {0, 0, NULL, 0, NULL, NULL}
};

/* ---- the helper ---- */

static _Noreturn void helper(int orders)
{
    mpicrypt_path_order_t order;
    int nowhere = open("/dev/null", O_RDWR), pass = 0;

    (void) setsid();                    /* launchers kill a process with its group */
    (void) alarm(LIMIT_SECONDS);
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        (void) dup2(nowhere, fd);       /* launchers wait for the end of these */
    }
    files[0].data_fd = files[1].data_fd = -1;
    ompi_common_cryptmpio_posix_on_wait(NULL, LOCK_SECONDS);
    while (sizeof(order) == recv(orders, &order, sizeof(order), 0)) {
        const mpicrypt_path_step_t *step = &mpicrypt_path_steps[order.step];
        mpicrypt_path_answer_t answer = {.value = 0};
        if (pass != order.pass) {
            delete_all();
            pass = order.pass;
            snprintf(first, sizeof(first), "%d", pass);
            snprintf(second, sizeof(second), "%d.new", pass);
        }
        answer.seen = step->take(&files[step->side], step->value, &order, &answer.value);
        answer.error = errno;
        (void) send(orders, &answer, sizeof(answer), MSG_NOSIGNAL);
    }
    (void) path_leave(NULL, 0, NULL, NULL);
    _exit(0);
}

int mpicrypt_path_helper(const char *directory)
{
    int pair[2];
    pid_t child = -1;

    named = directory;
    if (0 == socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair)) {
        child = fork();
        if (0 == child) {
            close(pair[0]);
            helper(pair[1]);
        }
        close(pair[1]);
    }
    return child < 0 ? -1 : pair[0];
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The status page: a reader finds what its owner wrote, consistent even while it is being
 * written; a page of a process that ended is recognized; and what is not a page is refused,
 * whatever its content.
 */
#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/crypt/base/status.h"
#include "opal/mca/common/crypt/base/thread.h"

static char directory[] = "/tmp/test_status.XXXXXX";
static int at;
static char why[256];
static opal_crypt_status_process_t process;

static opal_crypt_status_who_t somebody(uint32_t rank)
{
    return (opal_crypt_status_who_t){.rank = rank, .job = "job@1/../x", .host = "node1", .method = "psk", .pml = "ob1"};
}

static const char *name_of(uint32_t rank)
{
    static char name[128];

    snprintf(name, sizeof(name), "ompi-crypt-status.%lu.job@1____x.%u.%d", (unsigned long) geteuid(), rank, (int) getpid());
    return name;
}

static opal_crypt_status_rc_t read_page(const char *name)
{
    return opal_crypt_status_read(at, name, &process, why, sizeof(why));
}

static void test_owner(void)
{
    const opal_crypt_status_who_t who = somebody(3);
    opal_crypt_status_snapshot_t *snapshot;
    opal_crypt_status_t *status;
    struct stat file;
    char state;
    int error = 0;

    UNIT_GROUP("a page as its owner wrote it");
    status = opal_crypt_status_make(directory, &who, &error);
    UNIT_REQUIRE(NULL != status);
    UNIT_CHECK(0 == fstatat(at, name_of(3), &file, 0) && 0600 == (file.st_mode & 07777)
               && (off_t) sizeof(opal_crypt_status_page_t) == file.st_size);
    snapshot = opal_crypt_status_next(status);
    snapshot->wait_count = 1;
    snapshot->waits[0] = (opal_crypt_status_wait_t){.kind = OPAL_CRYPT_STATUS_RECEIVE, .tag = 7};
    snapshot->updated = (int64_t) opal_crypt_now();
    opal_crypt_status_publish(status);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name_of(3)));
    UNIT_CHECK(3 == process.who.rank && (uint32_t) getpid() == process.who.pid);
    UNIT_CHECK(0 == strcmp(process.who.job, "job@1/../x"));
    UNIT_CHECK(process.who.ticks > 0 && process.who.ticks == opal_crypt_status_ticks(getpid(), &state));
    UNIT_CHECK(1 == process.snapshot.wait_count && 7 == process.snapshot.waits[0].tag && process.now >= process.snapshot.updated);

    UNIT_GROUP("and while it writes the next one");
    snapshot = opal_crypt_status_next(status);
    snapshot->wait_count = 9999;
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name_of(3)) && 1 == process.snapshot.wait_count);
    snapshot->wait_count = 0;
    opal_crypt_status_publish(status);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name_of(3)) && 0 == process.snapshot.wait_count);
    opal_crypt_status_remove(status);
    UNIT_CHECK(OPAL_CRYPT_STATUS_NONE == read_page(name_of(3)));
}

static void write_file(const char *name, const void *bytes, size_t count, mode_t mode)
{
    int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC, mode);

    UNIT_REQUIRE(fd >= 0 && (ssize_t) count == write(fd, bytes, count) && 0 == fchmod(fd, mode));
    close(fd);
}

static bool refuses(const char *name, const char *reason)
{
    const bool bad = OPAL_CRYPT_STATUS_BAD == read_page(name) && NULL != strstr(why, reason);

    if (!bad) {
        fprintf(stderr, "%s: %s, not: %s\n", name, why, reason);
    }
    unlinkat(at, name, 0);
    return bad;
}

static opal_crypt_status_page_t a_page(void)
{
    opal_crypt_status_page_t page = {.who = somebody(1)};

    page.who.magic = OPAL_CRYPT_STATUS_MAGIC;
    page.who.version = OPAL_CRYPT_STATUS_VERSION;
    page.who.bytes = sizeof(page);
    page.who.pid = 1;
    return page;
}

/* A good page is changed. */
#define CHANGED(reason, ...)                                                                \
    do {                                                                                    \
        opal_crypt_status_page_t lie = a_page();                                            \
        opal_crypt_status_snapshot_t *m = &lie.snapshots[0];                                    \
        opal_crypt_status_wait_t *w = &m->waits[0];                                         \
        m->wait_count = 1;                                                                  \
        w->kind = OPAL_CRYPT_STATUS_RECEIVE;                                                \
        __VA_ARGS__;                                                                        \
        write_file(name, &lie, sizeof(lie), 0600);                                          \
        UNIT_CHECK(refuses(name, reason));                                                  \
    } while (0)

static void test_hostile(void)
{
    opal_crypt_status_page_t page = a_page();
    char name[128], other[128];

    snprintf(name, sizeof(name), "ompi-crypt-status.%lu.x.1.1", (unsigned long) geteuid());
    snprintf(other, sizeof(other), "ompi-crypt-status.%lu.x.1.1", (unsigned long) geteuid() + 1);
    UNIT_GROUP("files that are no page");
    write_file(name, &page, sizeof(page), 0600);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name));
    write_file(name, &page, sizeof(page) - 1, 0600);
    UNIT_CHECK(refuses(name, "bytes, where"));
    write_file(name, &page, sizeof(page), 0640);
    UNIT_CHECK(refuses(name, "its mode is 0640"));
    write_file(other, &page, sizeof(page), 0600);
    UNIT_CHECK(refuses(other, "it belongs to user id"));
    UNIT_CHECK(0 == symlinkat("x", at, name) && refuses(name, "symbolic link"));
    UNIT_CHECK(0 == mkdirat(at, name, 0700) && OPAL_CRYPT_STATUS_BAD == read_page(name) && 0 == unlinkat(at, name, AT_REMOVEDIR));
    UNIT_CHECK(0 == mkfifoat(at, name, 0600) && refuses(name, "not a regular file"));
    write_file(name, &page, sizeof(page), 0600);
    UNIT_CHECK(0 == linkat(at, name, at, "second", 0) && refuses(name, "more names"));
    unlinkat(at, "second", 0);

    UNIT_GROUP("pages that lie");
    CHANGED("no status page", lie.who.magic = 1);
    CHANGED("another version", lie.who.version = OPAL_CRYPT_STATUS_VERSION + 1);
    CHANGED("another version", lie.who.bytes = 8);
    CHANGED("no process", lie.who.rank = UINT32_MAX);
    CHANGED("no process", lie.who.pid = 0);
    CHANGED("no process", lie.who.over_btl = 2);
    CHANGED("no process", memset(lie.who.job, 'x', sizeof(lie.who.job)));
    CHANGED("counts", m->wait_count = OPAL_CRYPT_STATUS_WAITS + 1);
    CHANGED("counts", m->peer_count = OPAL_CRYPT_STATUS_PEERS + 1);
    CHANGED("counts", m->phase = OPAL_CRYPT_STATUS_PHASES);
    CHANGED("counts", m->phase = -1);
    CHANGED("waits for", w->kind = OPAL_CRYPT_STATUS_NOTHING);
    CHANGED("waits for", w->kind = OPAL_CRYPT_STATUS_KINDS);
    CHANGED("waits for", w->protocol = OPAL_CRYPT_STATUS_PROTOCOLS);
    CHANGED("waits for", w->protocol = -1);
    CHANGED("waits for", w->peer = -2);
    CHANGED("waits for", w->process = -3);
    CHANGED("waits for", memset(w->comm, 'x', sizeof(w->comm)));
    CHANGED("waits for", memset(w->text, 'x', sizeof(w->text)));
    CHANGED("state of a peer", m->peer_count = 1, m->peers[0].state = 77);
}

static void test_text(void)
{
    char shown[8];

    UNIT_GROUP("texts for a terminal");
    UNIT_CHECK(0 == strcmp("?[31m?", opal_crypt_status_text("\033[31m\n", shown, sizeof(shown))));
    UNIT_CHECK(0 == strcmp("abcdefg", opal_crypt_status_text("abcdefghij", shown, sizeof(shown))));
    UNIT_CHECK(0 == strcmp("??", opal_crypt_status_text("\xc3\xa9", shown, sizeof(shown))));
}

/* A child has the page, and then is killed; a child of that child stays, without the lock. */
static void test_gone(void)
{
    const opal_crypt_status_who_t who = somebody(5);
    int ready[2], error, status;
    char byte, name[128];
    pid_t child;

    UNIT_GROUP("a process that is gone");
    UNIT_REQUIRE(0 == pipe(ready));
    child = fork();
    if (0 == child) {
        if (NULL == opal_crypt_status_make(directory, &who, &error)) {
            _exit(1);
        }
        if (0 == fork()) {
            alarm(60);
            pause();
            _exit(0);
        }
        (void) !write(ready[1], "x", 1);
        pause();
        _exit(0);
    }
    UNIT_REQUIRE(child > 0 && 1 == read(ready[0], &byte, 1));
    snprintf(name, sizeof(name), "ompi-crypt-status.%lu.job@1____x.5.%d", (unsigned long) geteuid(), (int) child);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name) && !process.gone && (uint32_t) child == process.who.pid);
    kill(child, SIGSTOP);
    waitpid(child, &status, WUNTRACED);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name) && !process.gone && 'T' == process.state);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    do {                                /* a young one may be about to get its lock */
        UNIT_REQUIRE(OPAL_CRYPT_STATUS_GOOD == read_page(name));
    } while (!process.gone);
    UNIT_CHECK(5 == process.who.rank);
    opal_crypt_status_sweep(directory);
    UNIT_CHECK(OPAL_CRYPT_STATUS_GOOD == read_page(name));  /* it is of this hour */
    unlinkat(at, name, 0);
}

static void test_full(void)
{
    const opal_crypt_status_who_t who = somebody(6);
    int error = 0;

    UNIT_GROUP("no page");
    UNIT_CHECK(NULL == opal_crypt_status_make("/nonexistent", &who, &error) && ENOENT == error);
    write_file(name_of(6), "squat", 5, 0600);           /* ours, of an earlier process with this pid */
    opal_crypt_status_t *status = opal_crypt_status_make(directory, &who, &error);
    UNIT_CHECK(NULL != status && OPAL_CRYPT_STATUS_GOOD == read_page(name_of(6)));
    opal_crypt_status_remove(status);
    UNIT_CHECK(0 == mkdirat(at, name_of(6), 0700) && NULL == opal_crypt_status_make(directory, &who, &error));
    unlinkat(at, name_of(6), AT_REMOVEDIR);
}

int main(void)
{
    UNIT_REQUIRE(NULL != mkdtemp(directory));
    at = open(directory, O_RDONLY | O_DIRECTORY);
    test_owner();
    test_hostile();
    test_text();
    test_gone();
    test_full();
    rmdir(directory);
    return unit_done();
}

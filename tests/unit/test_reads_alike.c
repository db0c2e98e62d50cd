/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which process at the other end of a socket could read what this one can.
 */
#include "tests/unit/crypt_fixture.h"

#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "opal/mca/common/crypt/base/reads_alike.h"

enum { OTHER_ID = 4711 };

/* ---- what another process does before it connects ---- */

/* `/` once more, with all that is mounted below.  Not in the fixture's directory, which is removed with all that is in it. */
static char bound[] = "/tmp/ompi-crypt-bound.XXXXXX";

static bool put_ids(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && (ssize_t) strlen(text) == write(fd, text, strlen(text));

    close(fd);
    return good;
}

/* With the same number, and all capabilities in there. */
static bool own_users(void)
{
    char user[32], group[32];

    snprintf(user, sizeof(user), "%lu %lu 1", (unsigned long) geteuid(), (unsigned long) geteuid());
    snprintf(group, sizeof(group), "%lu %lu 1", (unsigned long) getegid(), (unsigned long) getegid());
    return 0 == unshare(CLONE_NEWUSER) && put_ids("/proc/self/setgroups", "deny") && put_ids("/proc/self/uid_map", user)
           && put_ids("/proc/self/gid_map", group);
}

static bool unchanged(void) { return true; }
static bool own_mounts(void) { return 0 == unshare(CLONE_NEWNS); }
static bool other_user(void) { return 0 == setresuid(OTHER_ID, OTHER_ID, OTHER_ID) && 0 == prctl(PR_SET_DUMPABLE, 1); }
static bool other_real_user(void) { return 0 == setresuid(OTHER_ID, 0, 0) && 0 == prctl(PR_SET_DUMPABLE, 1); }
static bool other_group(void) { return 0 == setresgid(OTHER_ID, OTHER_ID, OTHER_ID) && 0 == prctl(PR_SET_DUMPABLE, 1); }
static bool one_more_group(void) { return 0 == setgroups(1, (const gid_t[]){OTHER_ID}); }
static bool other_root(void) { return 0 == chroot(fixture_directory); }
static bool bound_root(void) { return 0 == chroot(bound); }
static bool no_new_rights(void) { return 0 == prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }

static bool filtered(void)
{
    struct sock_filter allow[] = {{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
    const struct sock_fprog all = {1, allow};

    return 0 == prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all);
}

static bool fewer_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}};

    return 0 == syscall(SYS_capget, &header, data) && 0 != (data[0].effective & 1u << CAP_DAC_OVERRIDE)
           && (data[0].effective &= ~(1u << CAP_DAC_OVERRIDE), 0 == syscall(SYS_capset, &header, data));
}

/* ---- both ends ---- */

static int listener;
static struct sockaddr_un address;
static socklen_t address_bytes = sizeof(address);

static void listens(void)
{
    address.sun_family = AF_UNIX;           /* the kernel chooses a name */
    listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    UNIT_REQUIRE(listener >= 0 && 0 == bind(listener, (const struct sockaddr *) &address, sizeof(sa_family_t))
                 && 0 == getsockname(listener, (struct sockaddr *) &address, &address_bytes) && 0 == listen(listener, 4));
}

static void wait_for_tick(void)
{
    const uint64_t now = opal_crypt_since_boot(), tick = UINT64_C(1000000000) / (uint64_t) sysconf(_SC_CLK_TCK);

    while (opal_crypt_since_boot() < now + 2 * tick) {
        sched_yield();
    }
}

/* What it found of us: 0 or 1. */
static int other_process(bool (*changes)(void), int start)
{
    const bool changed = changes();
    uint64_t before = 0;
    char byte;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    if (sizeof(before) != read(start, &before, sizeof(before)) || 0 != connect(fd, (const struct sockaddr *) &address, address_bytes)
        || 1 != write(fd, changed ? "c" : "s", 1) || 1 != read(fd, &byte, 1)) {
        return 99;
    }
    return opal_crypt_reads_alike(fd, before);
}

/* Is a process that does this first like us, for us and for itself?  `young`: it began after the time that counts. */
static void expect_alike(bool wanted, const char *what, bool (*changes)(void), bool young)
{
    uint64_t before = opal_crypt_since_boot();
    int pipes[2], status = 0;
    char changed = 0;

    wait_for_tick();
    UNIT_REQUIRE(0 == pipe2(pipes, O_CLOEXEC));
    pid_t child = fork();
    if (0 == child) {
        _exit(other_process(changes, pipes[0]));
    }
    wait_for_tick();
    before = young ? before : opal_crypt_since_boot();
    UNIT_REQUIRE(child > 0 && sizeof(before) == write(pipes[1], &before, sizeof(before)));
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    UNIT_REQUIRE(fd >= 0 && 1 == read(fd, &changed, 1));
    const bool alike = opal_crypt_reads_alike(fd, before);
    UNIT_REQUIRE(1 == write(fd, "", 1) && child == waitpid(child, &status, 0) && WIFEXITED(status));
    if ('s' == changed) {
        printf("  skipped: %s, which this process may not do\n", what);
    } else if (!UNIT_CHECK(wanted == alike && (wanted || young) == (1 == WEXITSTATUS(status)) && WEXITSTATUS(status) < 2)) {
        fprintf(stderr, "  %s: %d, and %d\n", what, alike, WEXITSTATUS(status));
    }
    UNIT_CHECK(!opal_crypt_reads_alike(fd, before));    /* it has ended */
    close(fd);
    close(pipes[0]);
    close(pipes[1]);
}

/* A process that connects, and leaves the connection to another one. */
static void test_passed_on(void)
{
    char byte;
    int wait[2], status;

    UNIT_GROUP("a connection that outlives the process that made it");
    UNIT_REQUIRE(0 == pipe2(wait, O_CLOEXEC));
    pid_t child = fork();
    if (0 == child) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        bool connected = 0 == connect(fd, (const struct sockaddr *) &address, address_bytes);
        if (0 == fork()) {
            close(wait[1]);
            _exit(read(wait[0], &byte, 1) > 0);         /* until we close our end */
        }
        _exit(connected ? 0 : 1);
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    UNIT_REQUIRE(fd >= 0 && child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
    wait_for_tick();
    UNIT_CHECK(!opal_crypt_reads_alike(fd, opal_crypt_since_boot()));
    close(wait[0]);
    close(wait[1]);
    close(fd);
}

static void bind_root(void)
{
    UNIT_REQUIRE(NULL != mkdtemp(bound));
    if (0 == unshare(CLONE_NEWNS) && 0 == mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        UNIT_CHECK(0 == mount("/", bound, NULL, MS_BIND | MS_REC, NULL));
    }
}

static void unbind_root(void)
{
    (void) umount2(bound, MNT_DETACH);
    (void) rmdir(bound);
}

/* A user without capabilities, as jobs have them: /proc/NUMBER/ns and root can be read of one's own processes. */
static void test_user(void)
{
    int status;
    const pid_t child = 0 == geteuid() ? fork() : -1;

    if (0 == child) {
        if (0 != setgroups(0, NULL) || !other_group() || !other_user()) {
            _exit(0);                       /* which this process may not do */
        }
        listens();                          /* the kernel has the process that does this */
        wait_for_tick();
        UNIT_GROUP("processes of an ordinary user");
        expect_alike(true, "as it is", unchanged, false);
        expect_alike(false, "young", unchanged, true);
        expect_alike(false, "a user namespace", own_users, false);
        expect_alike(false, "no new privileges", no_new_rights, false);
        fflush(stdout);
        _exit(0 != unit_failures);
    }
    UNIT_CHECK(child < 0 || (child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status)));
}

/* What counts is the view of the thread that opens the keystore, not of the first one. */
static void *in_thread(void *fd)
{
    return 0 == unshare(CLONE_FS | CLONE_NEWNS) && opal_crypt_reads_alike(*(int *) fd, opal_crypt_since_boot()) ? fd : NULL;
}

static void test_thread(void)
{
    pthread_t thread;
    char byte;
    int wait[2], status;
    void *found;

    UNIT_GROUP("a thread with mounts of its own");
    UNIT_REQUIRE(0 == pipe2(wait, O_CLOEXEC));
    const pid_t child = fork();
    if (0 == child) {
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        close(wait[1]);
        _exit(0 == connect(fd, (const struct sockaddr *) &address, address_bytes) && 0 == read(wait[0], &byte, 1) ? 0 : 1);
    }
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    wait_for_tick();
    UNIT_REQUIRE(fd >= 0 && 0 == pthread_create(&thread, NULL, in_thread, &fd) && 0 == pthread_join(thread, &found));
    UNIT_CHECK(NULL == found);
    UNIT_CHECK(opal_crypt_reads_alike(fd, opal_crypt_since_boot()));
    close(wait[0]);
    close(wait[1]);
    UNIT_CHECK(child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
    close(fd);
}

int main(void)
{
    fixture_begin();
    bind_root();
    listens();
    wait_for_tick();
    UNIT_GROUP("a process like this one; and one that is too young");
    expect_alike(true, "as it is", unchanged, false);
    expect_alike(false, "young", unchanged, true);
    UNIT_GROUP("a process with other files, or other rights");
    expect_alike(false, "mounts of its own", own_mounts, false);
    expect_alike(false, "a user namespace", own_users, false);
    expect_alike(false, "another user", other_user, false);
    expect_alike(false, "another real user", other_real_user, false);
    expect_alike(false, "another group", other_group, false);
    expect_alike(false, "one more group", one_more_group, false);
    expect_alike(false, "another root", other_root, false);
    expect_alike(false, "the root directory on another mount", bound_root, false);
    expect_alike(false, "fewer capabilities", fewer_capabilities, false);
    expect_alike(false, "no new privileges", no_new_rights, false);
    expect_alike(false, "a filter of system calls", filtered, false);
    test_user();
    test_thread();
    test_passed_on();
    UNIT_GROUP("no connection");
    UNIT_CHECK(!opal_crypt_reads_alike(-1, opal_crypt_since_boot()));
    unbind_root();
    return unit_done();
}

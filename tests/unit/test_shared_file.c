/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory that processes of a node share: which files, directories and System V segments are taken, and each fault.
 */
#include "tests/unit/crypt_fixture.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/shm.h>

#include "opal/mca/common/crypt/base/shared_file.h"

enum { OTHER_USER = 4711, SELF = 4712 };

static opal_crypt_why_t why;
static bool made;

static void refused(int rc, const char *part)
{
    if (!UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == rc && fixture_said(&why, "shared-memory", part))) {
        fprintf(stderr, "  %d, \"%s\": %s\n", rc, part, why.detail);
    }
    why = (opal_crypt_why_t) {0};
}

static void taken(const char *path)
{
    int fd, rc = opal_crypt_shared_file_open(path, 3, &fd, &why);

    if (!UNIT_CHECK(OPAL_CRYPT_OK == rc && fd >= 0)) {
        fprintf(stderr, "  %s\n", why.detail);
    }
    close(fd);
}

/* Refused by each function, and nothing is changed. */
static void refused_file(const char *path, const char *part)
{
    int fd;

    refused(opal_crypt_shared_file_open(path, 3, &fd, &why), part);
    UNIT_CHECK(-1 == fd);
    refused(opal_crypt_shared_file_make(path, &made, &why), part);
    UNIT_CHECK(!made);
}

static void test_files(void)
{
    const char *path = fixture_path("file"), *other = fixture_path("other");
    int fd;

    UNIT_GROUP("a file that is made");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_make(path, &made, &why) && made);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_make(path, &made, &why) && !made);
    refused(opal_crypt_shared_file_open(path, 3, &fd, &why), "is shorter than 3 bytes");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_open(path, 0, &fd, &why) && 0 == close(fd));
    UNIT_GROUP("files that are there");
    taken(fixture_file("file", "abc", 0600));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_make(path, &made, &why) && !made);
    refused_file(fixture_file("file", "abc", 0666), "has the mode 0666");
    refused_file(fixture_file("file", "abc", 0640), "has the mode 0640");
    UNIT_REQUIRE(0 == link(fixture_file("file", "abc", 0600), other));
    refused_file(path, "is one of 2 names");
    UNIT_REQUIRE(0 == unlink(other));
    taken(path);
    UNIT_REQUIRE(0 == symlink(path, other));
    refused_file(other, "is not a regular file");
    UNIT_REQUIRE(0 == unlink(other) && 0 == mkfifo(other, 0600));
    refused_file(other, "is not a regular file");
    UNIT_REQUIRE(0 == unlink(other));
    refused(opal_crypt_shared_file_open(other, 3, &fd, &why), "No such file");
    refused_file(fixture_path("file/file"), "Not a directory");
    if (0 == geteuid()) {
        UNIT_REQUIRE(0 == chown(fixture_file("file", "abc", 0600), OTHER_USER, OTHER_USER));
        refused_file(path, "belongs to user id 4711, this process runs as 0");
        unlink(path);
    } else {
        printf("  skipped: only root can make somebody else's file\n");
    }
}

static void test_directories(void)
{
    static const struct {
        mode_t mode;
        bool good;
    } cases[] = {{0700, true}, {0755, true}, {01777, true}, {0777, false}, {0775, false}};
    const char *directory = fixture_path("dir"), *file = fixture_path("dir/inner/file");
    char mode[16];

    UNIT_REQUIRE(0 == mkdir(directory, 0700) && 0 == mkdir(fixture_path("dir/inner"), 0700));
    (void) fixture_file("dir/inner/file", "abc", 0600);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        UNIT_GROUP("below a directory of the mode 0%o", (unsigned) cases[i].mode);
        UNIT_REQUIRE(0 == chmod(directory, cases[i].mode));
        if (cases[i].good) {
            taken(file);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_directory(fixture_path("dir/inner"), &why));
        } else {
            snprintf(mode, sizeof(mode), "mode 0%o", (unsigned) cases[i].mode);
            refused_file(file, mode);
            refused(opal_crypt_shared_file_directory(fixture_path("dir/inner"), &why), mode);
            refused(opal_crypt_shared_file_directory(fixture_path("dir/not there"), &why), mode);
        }
    }
    UNIT_REQUIRE(0 == chmod(directory, 0700));
    UNIT_GROUP("no directory, and none yet");
    refused(opal_crypt_shared_file_directory(file, &why), "Not a directory");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_directory(fixture_path("dir/not/there"), &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_make(fixture_path("dir/not/there"), &made, &why) && !made);
    if (0 == geteuid()) {
        UNIT_GROUP("another user's directory");
        UNIT_REQUIRE(0 == chmod(directory, 01777) && 0 == chown(directory, OTHER_USER, OTHER_USER));
        refused_file(file, "\"dir\" on the way to it belongs to user id 4711");
        UNIT_REQUIRE(0 == chown(directory, 0, 0));
    }
}

static void test_segments(void)
{
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), open = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0660);
    struct shmid_ds status;

    UNIT_GROUP("System V");
    UNIT_REQUIRE(id >= 0 && open >= 0);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_segment(id, &why));
    refused(opal_crypt_shared_segment(open, &why), "has the mode 0660");
    if (0 == geteuid()) {
        UNIT_REQUIRE(0 == shmctl(id, IPC_STAT, &status));
        status.shm_perm.uid = OTHER_USER;
        UNIT_REQUIRE(0 == shmctl(id, IPC_SET, &status));
        refused(opal_crypt_shared_segment(id, &why), "belongs to user id 4711");
    }
    shmctl(id, IPC_RMID, NULL);
    shmctl(open, IPC_RMID, NULL);
    refused(opal_crypt_shared_segment(-1, &why), "Invalid argument");
}

/* ---- what is mapped ---- */

static int listed(const char *text)
{
    return opal_crypt_shared_mappings(fixture_file("maps", text, 0600), &why);
}

static void test_mappings(void)
{
    const char *path = fixture_file("mapped", "abc", 0600), *open = fixture_file("mapped open", "abc", 0644);
    int id = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0600), shared = shmget(IPC_PRIVATE, 4096, IPC_CREAT | 0640);
    char text[2048];

    UNIT_GROUP("a list of mappings: what is no file, or not to be written to");
    UNIT_CHECK(OPAL_CRYPT_OK == listed(""));
    snprintf(text, sizeof(text),
             "7f00-7f10 rw-p 00000000 00:19 4711       %s\n"
             "7f00-7f10 r--s 00000000 00:19 4711       %s\n"
             "7f00-7f10 rw-s 00000000 00:01 1 \n"
             "7f00-7f10 rw-s 00000000 00:01 1     /memfd:it (deleted)\n"
             "7f00-7f10 rw-s 00000000 00:01 1     /dev/zero (deleted)\n"
             "7f00-7f10 rw-s 00000000 00:01 1     /dev/infiniband/uverbs0\n"
             "7f00-7f10 rw-s 00000000 00:01 1     /tmp/pmix_dstor_ds21_1/smlockseg\n"
             "ff00-ff10 --xp 00000000 00:00 0   [vsyscall]\n", open, open);
    UNIT_CHECK(OPAL_CRYPT_OK == listed(text));
    UNIT_GROUP("files and segments in it");
    UNIT_REQUIRE(id >= 0 && shared >= 0);
    snprintf(text, sizeof(text), "7f00-7f10 rw-s 00000000 00:19 4711       %s\n"
             "7f00-7f10 rw-s 00000000 00:01 %d    /SYSV00000000 (deleted)\n", path, id);
    UNIT_CHECK(OPAL_CRYPT_OK == listed(text));
    snprintf(text, sizeof(text), "7f00-7f10 rw-s 00000000 00:19 4711       %s\n"
             "7f00-7f10 rw-s 00000000 00:19 4712       %s\n", path, open);
    refused(listed(text), "mapped open has the mode 0644");
    snprintf(text, sizeof(text), "7f00-7f10 rw-s 00000000 00:01 %d    /SYSV00000000 (deleted)\n", shared);
    refused(listed(text), "has the mode 0640");
    refused(listed("7f00-7f10 rw-s 00000000 00:19 4711       /dev/shm/gone (deleted)\n"), "No such file");
    refused(listed("not a list\n"), "is not understood");
    UNIT_GROUP("no list, and this process's");
    refused(opal_crypt_shared_mappings(fixture_path("no maps"), &why), "No such file");
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_mappings("/proc/self/maps", &why));
    shmctl(id, IPC_RMID, NULL);
    shmctl(shared, IPC_RMID, NULL);
}

/* ---- in a user namespace with one user ---- */

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && (ssize_t) strlen(text) == write(fd, text, strlen(text));

    close(fd);
    return good;
}

/* Root of the node and the stranger look alike there. */
static int inspect_inside(void)
{
    /* Without this, a process that changed its user may not write to /proc/self. */
    if (0 != setresgid(SELF, SELF, SELF) || 0 != setresuid(SELF, SELF, SELF) || 0 != prctl(PR_SET_DUMPABLE, 1)
        || 0 != unshare(CLONE_NEWUSER) || !put("/proc/self/uid_map", "1000 4712 1") || !put("/proc/self/setgroups", "deny")
        || !put("/proc/self/gid_map", "1000 4712 1")) {
        return 77;
    }
    unit_failures = 0;
    taken(fixture_path("box/mine/file"));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_shared_file_directory("/dev/shm", &why));
    refused_file(fixture_path("box/its/file"), "\"its\" on the way to it belongs to user id");
    UNIT_CHECK(0 == chmod(fixture_path("box/mine"), 01777));
    refused_file(fixture_path("box/mine/other"), "(not mapped in this user namespace), this process runs as 1000");
    /* Inside another one, with nobody: every file looks like ours. */
    UNIT_REQUIRE(0 == unshare(CLONE_NEWUSER));
    refused_file(fixture_path("box/mine/file"), "on the way to it belongs to user id");
    return 0 != unit_failures;
}

static void test_namespace(void)
{
    const char *mine, *its, *other;
    int status = 0;
    pid_t child;

    UNIT_GROUP("in a user namespace with one user");
    if (0 != geteuid()) {
        printf("  skipped: only root can make somebody else's file\n");
        return;
    }
    UNIT_REQUIRE(0 == mkdir(fixture_path("box"), 01777) && 0 == chmod(fixture_path("box"), 01777)
                 && 0 == chown(fixture_directory, SELF, SELF) && 0 == chown(fixture_path("box"), SELF, SELF)
                 && 0 == mkdir(fixture_path("box/mine"), 0755) && 0 == mkdir(fixture_path("box/its"), 01777));
    mine = fixture_file("box/mine/file", "abc", 0600);
    other = fixture_file("box/mine/other", "abc", 0600);
    its = fixture_file("box/its/file", "abc", 0600);
    UNIT_REQUIRE(0 == chown(fixture_path("box/mine"), SELF, SELF) && 0 == chown(mine, SELF, SELF)
                 && 0 == chown(fixture_path("box/its"), OTHER_USER, OTHER_USER) && 0 == chown(its, SELF, SELF)
                 && 0 == chown(other, OTHER_USER, OTHER_USER));
    child = fork();
    UNIT_REQUIRE(child >= 0);
    if (0 == child) {
        _exit(inspect_inside());
    }
    UNIT_REQUIRE(child == waitpid(child, &status, 0) && WIFEXITED(status));
    if (77 == WEXITSTATUS(status)) {
        printf("  skipped: the kernel does not let users make one\n");
    } else {
        UNIT_CHECK(0 == WEXITSTATUS(status));
    }
}

int main(void)
{
    fixture_begin();
    test_files();
    test_directories();
    test_segments();
    test_mappings();
    test_namespace();
    return unit_done();
}

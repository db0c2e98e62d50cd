/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which node is this: one answer for all processes of a user, however they
 * race, and no answer after another user has interfered.
 *
 * As root it works with unused user ids, on objects of their own; else only
 * with the object that this user's jobs share.
 */
#include "tests/unit/crypt_fixture.h"

#define PROCESSES   12

static unsigned user;                   /* an unused id; another one in each run of this test */

typedef struct answer {
    int rc;
    uint8_t boot_id[16], node_nonce[16];
    opal_crypt_why_t why;
    char topic[64];
} answer_t;

static const char *object(unsigned uid)
{
    static char path[64];

    snprintf(path, sizeof(path), "/dev/shm/ompi-crypt-node-%u", uid);
    return path;
}

/* What a process of user `uid` is told, once it has a byte from `gate`. */
static pid_t ask(unsigned uid, int start, int out)
{
    pid_t child = fork();

    if (0 == child) {
        answer_t answer = { .topic = "" };
        char byte;

        if (uid != geteuid() && (0 != setgid(user) || 0 != setuid(uid))) {
            _exit(1);
        }
        if (start >= 0 && 1 != read(start, &byte, 1)) {
            _exit(1);
        }
        answer.rc = opal_crypt_node_identity(answer.boot_id, answer.node_nonce, &answer.why);
        if (0 != answer.rc) {
            snprintf(answer.topic, sizeof(answer.topic), "%s", answer.why.topic);
        }
        _exit((ssize_t) sizeof(answer) == write(out, &answer, sizeof(answer)) ? 0 : 1);
    }
    UNIT_REQUIRE(child > 0);
    return child;
}

/* The answer, good until the next one. */
static answer_t ask_one(unsigned uid)
{
    static answer_t answer;
    int ends[2];
    pid_t child;

    UNIT_REQUIRE(0 == pipe(ends));
    child = ask(uid, -1, ends[1]);
    close(ends[1]);
    UNIT_REQUIRE((ssize_t) sizeof(answer) == read(ends[0], &answer, sizeof(answer)));
    waitpid(child, NULL, 0);
    close(ends[0]);
    answer.why.topic = answer.topic;
    return answer;
}

static void test_own(void)
{
    uint8_t boot[16], nonce[16], boot2[16], nonce2[16], zeros[16] = { 0 };
    opal_crypt_why_t why;

    UNIT_GROUP("the same answer twice, and it is some");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_node_identity(boot, nonce, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_node_identity(boot2, nonce2, &why));
    UNIT_EQUAL_BYTES(boot, boot2, 16);
    UNIT_EQUAL_BYTES(nonce, nonce2, 16);
    UNIT_CHECK(0 != memcmp(boot, zeros, 16) && 0 != memcmp(nonce, zeros, 16) && 0 != memcmp(boot, nonce, 16));
}

static void test_race(void)
{
    uint8_t before[16] = { 0 };

    UNIT_GROUP("processes that start at once agree; a new object has new bytes");
    for (int round = 0; round < 20; ++round) {
        answer_t answers[PROCESSES];
        int start[2], out[2], same = 1;

        unlink(object(user));
        UNIT_REQUIRE(0 == pipe(start) && 0 == pipe(out));
        for (int i = 0; i < PROCESSES; ++i) {
            ask(user, start[0], out[1]);
        }
        close(out[1]);
        UNIT_REQUIRE(PROCESSES == write(start[1], "............", PROCESSES));
        for (int i = 0; i < PROCESSES; ++i) {
            UNIT_REQUIRE((ssize_t) sizeof(answers[i]) == read(out[0], &answers[i], sizeof(answers[i])));
            same = same && 0 == answers[i].rc && 0 == memcmp(answers[i].node_nonce, answers[0].node_nonce, 16);
        }
        while (wait(NULL) > 0) {
        }
        close(start[0]);
        close(start[1]);
        close(out[0]);
        UNIT_CHECK(same && 0 != memcmp(before, answers[0].node_nonce, 16));
        memcpy(before, answers[0].node_nonce, 16);
    }
}

static void put(const char *bytes, size_t count, mode_t mode, unsigned owner)
{
    int fd;

    unlink(object(user));
    fd = open(object(user), O_WRONLY | O_CREAT | O_EXCL, 0600);
    UNIT_REQUIRE(fd >= 0 && (ssize_t) count == write(fd, bytes, count));
    UNIT_REQUIRE(0 == fchmod(fd, mode) && 0 == fchown(fd, owner, owner));
    close(fd);
}

static void test_hijack(void)
{
    static const char bytes[] = "0123456789abcdef";
    answer_t answer;
    struct stat status;
    char others[16];

    snprintf(others, sizeof(others), "%u", user + 1);
    UNIT_GROUP("an object that is as it should be is used as it is");
    put(bytes, 16, 0600, user);
    answer = ask_one(user);
    UNIT_CHECK(0 == answer.rc && 0 == memcmp(answer.node_nonce, bytes, 16));

    UNIT_GROUP("an empty one, whose maker was killed, is filled");
    put(bytes, 0, 0600, user);
    answer = ask_one(user);
    UNIT_CHECK(0 == answer.rc && 0 == stat(object(user), &status) && 16 == status.st_size);
    put(bytes, 7, 0600, user);
    answer = ask_one(user);
    UNIT_CHECK(0 == answer.rc && 0 != memcmp(answer.node_nonce, bytes, 7));

    UNIT_GROUP("one that the umask took everything from is for all processes, still");
    unlink(object(user));
    umask(0777);
    answer = ask_one(user);
    umask(022);
    UNIT_CHECK(0 == answer.rc && 0 == stat(object(user), &status) && 0600 == (status.st_mode & 07777));
    UNIT_CHECK(0 == ask_one(user).rc);
    put(bytes, 16, 0, user);                    /* its maker was killed, or has not changed it yet */
    answer = ask_one(user);
    UNIT_CHECK(0 == answer.rc && 0 == memcmp(answer.node_nonce, bytes, 16));

    UNIT_GROUP("somebody else's is refused, whether it can be opened or not");
    put(bytes, 16, 0666, user + 1);
    answer = ask_one(user);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == answer.rc && fixture_said(&answer.why, "node-hijacked", others));
    put(bytes, 16, 0600, user + 1);
    answer = ask_one(user);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == answer.rc && fixture_said(&answer.why, "node-hijacked", others));

    UNIT_GROUP("our own that others may open, a link and a directory are refused");
    put(bytes, 16, 0660, user);
    answer = ask_one(user);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == answer.rc && fixture_said(&answer.why, "node-object", "0100660"));
    unlink(object(user));
    UNIT_REQUIRE(0 == symlink("/dev/null", object(user)) && 0 == lchown(object(user), user, user));
    answer = ask_one(user);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == answer.rc && fixture_said(&answer.why, "node-object", object(user)));
    unlink(object(user));
    UNIT_REQUIRE(0 == mkdir(object(user), 0700) && 0 == chown(object(user), user, user));
    answer = ask_one(user);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == answer.rc && fixture_said(&answer.why, "node-object", object(user)));
    rmdir(object(user));
}

int main(void)
{
    test_own();
    if (0 != geteuid()) {
        printf("  skipped: only root can be several users\n");
        return unit_done();
    }
    user = 1000000u + (unsigned) getpid();
    test_race();
    test_hijack();
    unlink(object(user));
    return unit_done();
}

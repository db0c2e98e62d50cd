/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_auth=munge where munge is at fault: no library, no daemon, one that makes no
 * credential, clocks that differ.
 */
#include "tests/unit/crypt_fixture.h"

#include "opal/mca/common/crypt/identity/munge.h"

#if OPAL_CRYPT_HAVE_MUNGE

#include <time.h>

#include "tests/unit/munge_daemon.h"

static opal_crypt_options_t with_munge(const char *socket)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_MUNGE);

    options.munge_socket = socket;
    return options;
}

/* A node whose libmunge cannot be loaded: this program once more, which finds an
 * empty file by that name first. */
static int without_library(void)
{
    opal_crypt_options_t options = with_munge(NULL);

    UNIT_GROUP("libmunge cannot be loaded");
    UNIT_CHECK(fixture_local_refused(&options, "munge-library", "libmunge.so.2"));
    return unit_done();
}

static void test_library(void)
{
    const char *others = getenv("LD_LIBRARY_PATH");
    char path[4096];
    int status;
    pid_t child;

    fixture_file("libmunge.so.2", "", 0600);
    snprintf(path, sizeof(path), "%s:%s", fixture_directory, NULL == others ? "" : others);
    fflush(stdout);
    child = fork();
    if (0 == child) {
        setenv("LD_LIBRARY_PATH", path, 1);
        execl("/proc/self/exe", "test_munge_faults", "without-library", (char *) NULL);
        _exit(127);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &status, 0));
    UNIT_CHECK(WIFEXITED(status) && 0 == WEXITSTATUS(status));
}

/* Answers of munged that are hard to bring about stand in for its own: a clock
 * that runs ahead, a daemon that makes no credential. */
static opal_crypt_munge_t real;

static munge_err_t no_credential(char **credential, munge_ctx_t context, const void *payload, int bytes)
{
    (void) context;
    (void) payload;
    (void) bytes;
    *credential = NULL;
    return EMUNGE_SNAFU;
}

static munge_err_t of_the_future(const char *credential, munge_ctx_t context, void **payload, int *bytes, uid_t *uid,
                                 gid_t *gid)
{
    munge_err_t error = real.decode(credential, context, payload, bytes, uid, gid);

    return EMUNGE_SUCCESS == error || EMUNGE_CRED_REPLAYED == error ? EMUNGE_CRED_REWOUND : error;
}

static void test_rare_answers(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    opal_crypt_munge_t *loaded = (opal_crypt_munge_t *) munge;

    real = *munge;
    UNIT_GROUP("munged makes no credential");
    loaded->encode = no_credential;
    UNIT_CHECK(fixture_local_refused(&options, "munge-encode", sockets[0]));
    *loaded = real;

    UNIT_GROUP("of a credential of the future, by munged's clock, the age decides");
    loaded->decode = of_the_future;
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(b, &bytes);
    const opal_crypt_expect_t early = { .needed = (int64_t) time(NULL) - 700 };
    UNIT_CHECK(fixture_record_refused(a, record, bytes, &early, "munge-clock", "seconds after"));
    *loaded = real;
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void test_silent(void)
{
    opal_crypt_options_t options = with_munge(fixture_path("no-socket"));
    opal_crypt_local_t *a, *b;

    UNIT_GROUP("no daemon behind the socket, at the start and later");
    UNIT_CHECK(fixture_local_refused(&options, "munge-socket", "no-socket"));
    options.munge_socket = sockets[1];
    a = fixture_local(&options, 0);
    b = fixture_local(&options, 1);
    kill(daemons[1], SIGTERM);
    waitpid(daemons[1], NULL, 0);
    daemons[1] = -1;
    UNIT_CHECK(fixture_peer_refused(a, b, "munge-socket-later", ""));
    UNIT_CHECK(fixture_local_refused(&options, "munge-socket", ""));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

int main(int argc, char **argv)
{
    const char *reason;

    (void) argv;
    setenv("TMPDIR", "/dev/shm", 1);        /* munged wants everybody to reach its socket */
    fixture_begin();
    if (argc > 1) {
        return without_library();
    }
    test_library();
    reason = daemons_begin();
    if (NULL != reason) {
        return unit_skip(reason);
    }
    test_rare_answers();
    test_silent();
    opal_crypt_secmem_finalize();
    return unit_done();
}

#else

int main(void)
{
    return unit_skip("built without munge.h (Debian: libmunge-dev)");
}

#endif

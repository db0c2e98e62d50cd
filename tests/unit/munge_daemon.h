/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two munged of a test's own, with different keys: daemons_begin.  For one of them
 * set `munge` by opal_crypt_munge_load, and call daemons_end at the end.
 */
#ifndef TESTS_MUNGE_DAEMON_H
#define TESTS_MUNGE_DAEMON_H

#include "tests/unit/crypt_fixture.h"

#include <poll.h>
#include <signal.h>

#include "opal/mca/common/crypt/identity/munge.h"

static const opal_crypt_munge_t *munge;
static pid_t daemons[2] = { -1, -1 };
static const char *sockets[2];

static void daemons_end(void)
{
    for (int i = 0; i < 2; ++i) {
        if (daemons[i] > 0) {
            kill(daemons[i], SIGTERM);
            waitpid(daemons[i], NULL, 0);
        }
    }
    fixture_end();
}

/* Does munged answer, by making a credential? */
static int answers(const char *socket)
{
    munge_ctx_t context = munge->ctx_create();
    char *credential = NULL;
    munge_err_t error;

    munge->ctx_set(context, MUNGE_OPT_SOCKET, socket);
    error = munge->encode(&credential, context, NULL, 0);
    free(credential);
    munge->ctx_destroy(context);
    return EMUNGE_SUCCESS == error;
}

/* Start a munged with a key of its own; 0 when it does not come up. */
static int daemon_start(int which)
{
    char key[600], socket[600], pid[600], log[600], seed[600], name[16];
    uint8_t bytes[128];

    snprintf(name, sizeof(name), "m%d", which);
    if (0 != mkdir(fixture_path(name), 0755)) {
        return 0;
    }
    opal_crypt_random(bytes, sizeof(bytes));
    snprintf(name, sizeof(name), "m%d/key", which);
    snprintf(key, sizeof(key), "--key-file=%s", fixture_file_bytes(name, bytes, sizeof(bytes), 0600));
    snprintf(name, sizeof(name), "m%d/s", which);
    sockets[which] = strdup(fixture_path(name));
    snprintf(socket, sizeof(socket), "--socket=%s", sockets[which]);
    snprintf(name, sizeof(name), "m%d/pid", which);
    snprintf(pid, sizeof(pid), "--pid-file=%s", fixture_path(name));
    snprintf(name, sizeof(name), "m%d/log", which);
    snprintf(log, sizeof(log), "--log-file=%s", fixture_path(name));
    snprintf(name, sizeof(name), "m%d/seed", which);
    snprintf(seed, sizeof(seed), "--seed-file=%s", fixture_path(name));

    daemons[which] = fork();
    if (0 == daemons[which]) {
        int null = open("/dev/null", O_RDWR);

        dup2(null, 1);
        dup2(null, 2);
        execlp("munged", "munged", "--foreground", "--num-threads=1", key, socket, pid, log, seed, (char *) NULL);
        execl("/usr/sbin/munged", "munged", "--foreground", "--num-threads=1", key, socket, pid, log, seed,
              (char *) NULL);
        _exit(127);
    }
    while (0 == waitpid(daemons[which], NULL, WNOHANG)) {
        if (answers(sockets[which])) {
            return 1;
        }
        poll(NULL, 0, 20);
    }
    daemons[which] = -1;
    return 0;
}

/* NULL, or why they cannot be started here. */
static inline const char *daemons_begin(void)
{
    opal_crypt_why_t why;

    if (OPAL_CRYPT_OK != opal_crypt_munge_load(&munge, &why)) {
        return "libmunge.so.2 cannot be loaded (Debian: libmunge2)";
    }
    atexit(daemons_end);
    UNIT_REQUIRE(0 == chmod(fixture_directory, 0755));      /* every user must reach munged's socket */
    return daemon_start(0) && daemon_start(1) ? NULL : "munged cannot be started (Debian: munge)";
}

#endif

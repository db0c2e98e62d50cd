/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What the tests of the key layer share: a directory of their own, files in
 * it, options and identities to begin with, and checks of refusals.
 */
#ifndef TESTS_CRYPT_FIXTURE_H
#define TESTS_CRYPT_FIXTURE_H

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "opal/mca/common/crypt/identity/local.h"
#include "opal/mca/common/crypt/identity/schedule.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/wire/session.h"

#define FIXTURE_PSK "00112233445566778899aabbccddeeff0123456789abcdef0011223344556677"

static char fixture_directory[256];

static int fixture_remove(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    (void) status;
    (void) kind;
    (void) place;
    return remove(path);
}

static inline void fixture_end(void)
{
    nftw(fixture_directory, fixture_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* A fresh directory on a local file system, removed when the test ends. */
static inline void fixture_begin(void)
{
    const char *parent = getenv("TMPDIR");

    snprintf(fixture_directory, sizeof(fixture_directory), "%s/ompi-crypt-test.XXXXXX",
             NULL == parent ? "/tmp" : parent);
    UNIT_REQUIRE(NULL != mkdtemp(fixture_directory));
    atexit(fixture_end);
    setenv("HOME", fixture_directory, 1);
    umask(022);
}

/* NAME in the directory; the result is good until 64 more were asked for. */
static inline const char *fixture_path(const char *name)
{
    static char paths[64][512];
    static unsigned next;
    char *path = paths[next++ % 64];

    snprintf(path, sizeof(paths[0]), "%s/%s", fixture_directory, name);
    return path;
}

static inline const char *fixture_file_bytes(const char *name, const void *bytes, size_t count, mode_t mode)
{
    const char *path = fixture_path(name);
    int fd;

    unlink(path);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    UNIT_REQUIRE(fd >= 0 && (ssize_t) count == write(fd, bytes, count) && 0 == fchmod(fd, mode));
    close(fd);
    return path;
}

static inline const char *fixture_file(const char *name, const char *text, mode_t mode)
{
    return fixture_file_bytes(name, text, strlen(text), mode);
}

static inline opal_crypt_options_t fixture_options(opal_crypt_auth_t auth)
{
    opal_crypt_options_t options = {
        .auth = auth,
        .cipher = OPAL_AEAD_AES_128_GCM,
        .epoch_shift = 20,
        .agreed = "pml_crypt_chunk_size=106400;pml_crypt_chop_min=65536",
    };

    return options;
}

static inline opal_crypt_identity_t fixture_identity(uint32_t rank)
{
    opal_crypt_identity_t identity = { .nspace = "4711", .rank = rank };

    memset(identity.boot_id, 0xb0, sizeof(identity.boot_id));
    memset(identity.node_nonce, 0x0d + (int) rank, sizeof(identity.node_nonce));
    return identity;
}

/* A local object; ends the test if it cannot be made. */
static inline opal_crypt_local_t *fixture_local(const opal_crypt_options_t *options, uint32_t rank)
{
    opal_crypt_identity_t identity = fixture_identity(rank);
    opal_crypt_why_t why = { .topic = "none" };
    opal_crypt_local_t *local = NULL;
    int rc = opal_crypt_local_create(options, &identity, &local, &why);

    if (OPAL_CRYPT_OK != rc) {
        fprintf(stderr, "local_create: %s, %s: %s\n", opal_crypt_strerror(rc), why.topic, why.detail);
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == rc);
    return local;
}

/* First contact: check the record, agree on keys, make a session. */
static inline int fixture_session(const opal_crypt_local_t *local, const uint8_t *record, size_t bytes,
                                  const opal_crypt_expect_t *expect, opal_crypt_session_t **session,
                                  opal_crypt_why_t *why)
{
    opal_crypt_schedule_t *schedule = NULL;
    int rc = opal_crypt_schedule_create(local, record, bytes, expect, &schedule, why);

    *session = NULL;
    rc = OPAL_CRYPT_OK == rc ? opal_crypt_session_create(local, schedule, session, why) : rc;
    opal_crypt_schedule_destroy(schedule);
    return rc;
}

/* `topic` was given as the reason and the detail contains `part`. */
static inline int fixture_said(const opal_crypt_why_t *why, const char *topic, const char *part)
{
    if (NULL == why->topic || 0 != strcmp(why->topic, topic) || NULL == strstr(why->detail, part)) {
        fprintf(stderr, "wanted topic %s with '%s', got %s with '%s'\n", topic, part,
                NULL == why->topic ? "none" : why->topic, why->detail);
        return 0;
    }
    return 1;
}

/* local_create is refused with this topic. */
static inline int fixture_local_refused(const opal_crypt_options_t *options, const char *topic, const char *part)
{
    opal_crypt_identity_t identity = fixture_identity(0);
    opal_crypt_why_t why = { .topic = NULL };
    opal_crypt_local_t *local = NULL;
    int rc = opal_crypt_local_create(options, &identity, &local, &why);

    opal_crypt_local_destroy(local);
    return OPAL_CRYPT_ERR_CONFIG == rc && NULL == local && fixture_said(&why, topic, part);
}

/* `local` takes the record of `peer`. */
static inline opal_crypt_schedule_t *fixture_schedule(const opal_crypt_local_t *local,
                                                      const opal_crypt_local_t *peer)
{
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why = { .topic = "none" };
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);
    int rc = opal_crypt_schedule_create(local, record, bytes, NULL, &schedule, &why);

    if (OPAL_CRYPT_OK != rc) {
        fprintf(stderr, "schedule_create: %s, %s: %s\n", opal_crypt_strerror(rc), why.topic, why.detail);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == rc);
    return schedule;
}

/* `local` refuses these bytes with this topic. */
static inline int fixture_record_refused(const opal_crypt_local_t *local, const uint8_t *record, size_t bytes,
                                         const opal_crypt_expect_t *expect,
                                         const char *topic, const char *part)
{
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why = { .topic = NULL };
    int rc = opal_crypt_schedule_create(local, record, bytes, expect, &schedule, &why);

    opal_crypt_schedule_destroy(schedule);
    return OPAL_CRYPT_ERR_PEER == rc && NULL == schedule && fixture_said(&why, topic, part)
           && NULL != strstr(why.detail, "4711 rank 0");
}

static inline int fixture_peer_refused(const opal_crypt_local_t *local, const opal_crypt_local_t *peer,
                                       const char *topic, const char *part)
{
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);

    return fixture_record_refused(local, record, bytes, NULL, topic, part);
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * crypt_auth=munge against a real munged, on a socket of this test's own.
 */
#include "tests/unit/crypt_fixture.h"

#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/crypt/identity/munge.h"

#if OPAL_CRYPT_HAVE_MUNGE

#include <time.h>

#include "tests/unit/munge_daemon.h"

#define NOBODY 65534

static opal_crypt_options_t with_munge(const char *socket)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_MUNGE);

    options.munge_socket = socket;
    return options;
}

static void test_agreement(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    opal_crypt_schedule_t *at_a, *at_b;
    uint8_t out[32], in[32];

    UNIT_GROUP("two processes of one user agree, also when a credential was seen before");
    for (int round = 0; round < 3; ++round) {
        at_a = fixture_schedule(a, b);
        at_b = fixture_schedule(b, a);
        UNIT_REQUIRE(NULL != at_a && NULL != at_b);
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_a, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_OUT, out, 32));
        UNIT_CHECK(0 == opal_crypt_schedule_expand(at_b, OPAL_CRYPT_LABEL_DIRECTION, OPAL_CRYPT_IN, in, 32));
        UNIT_EQUAL_BYTES(out, in, 32);
        opal_crypt_schedule_destroy(at_a);
        opal_crypt_schedule_destroy(at_b);
    }
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* `peer`'s record with a credential made here over `body`. */
static void forge(opal_crypt_local_t *peer, const uint8_t *body, size_t body_bytes, int restricted, int ttl)
{
    static const char title[] = "ompi-crypt v1 munge";
    opal_crypt_input_t pieces[] = { { title, sizeof(title) - 1 }, { body, body_bytes } };
    munge_ctx_t context = munge->ctx_create();
    char *credential = NULL;
    uint8_t hash[32];

    UNIT_REQUIRE(0 == opal_crypt_sha256(pieces, 2, hash));
    munge->ctx_set(context, MUNGE_OPT_SOCKET, sockets[0]);
    if (restricted) {
        munge->ctx_set(context, MUNGE_OPT_UID_RESTRICTION, geteuid());
    }
    munge->ctx_set(context, MUNGE_OPT_TTL, ttl);
    UNIT_REQUIRE(EMUNGE_SUCCESS == munge->encode(&credential, context, hash, 32));
    opal_crypt_put32(peer->bytes + peer->record.body_bytes, (uint32_t) strlen(credential));
    memcpy(peer->bytes + peer->record.body_bytes + 4, credential, strlen(credential));
    peer->byte_count = peer->record.body_bytes + 4 + strlen(credential);
    munge->ctx_destroy(context);
    free(credential);
}

static munge_err_t decode_error(const opal_crypt_local_t *peer)
{
    munge_ctx_t context = munge->ctx_create();
    char *credential = strndup((const char *) peer->bytes + peer->record.body_bytes + 4,
                               peer->byte_count - peer->record.body_bytes - 4);
    void *payload = NULL;
    int bytes = 0;
    munge_err_t error;

    munge->ctx_set(context, MUNGE_OPT_SOCKET, sockets[0]);
    error = munge->decode(credential, context, &payload, &bytes, NULL, NULL);
    free(payload);
    free(credential);
    munge->ctx_destroy(context);
    return error;
}

static void test_age(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    opal_crypt_expect_t expect = { .needed = b->created + 595 };
    opal_crypt_schedule_t *schedule = NULL;
    opal_crypt_why_t why;

    UNIT_GROUP("a credential from ten minutes before or after it was needed is taken, an older one is not");
    UNIT_CHECK(0 == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    opal_crypt_schedule_destroy(schedule);
    expect.needed = b->created - 590;
    UNIT_CHECK(0 == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    opal_crypt_schedule_destroy(schedule);
    expect.needed = b->created + 3600;
    expect.fresh = (const uint8_t *) "";
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "munge-credential", "no credential"));
    expect.fresh = NULL;
    UNIT_CHECK(OPAL_CRYPT_ERR_OLD
               == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    UNIT_CHECK(fixture_said(&why, "munge-too-old", "3600 seconds before") && NULL == schedule);
    expect.needed = b->created - 610;
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "munge-clock", "seconds after"));

    UNIT_GROUP("crypt_munge_age reaches a day, and no further");
    options.munge_age = 86400;
    opal_crypt_local_destroy(a);
    a = fixture_local(&options, 0);
    expect.needed = b->created + 86390;
    UNIT_CHECK(0 == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    opal_crypt_schedule_destroy(schedule);
    expect.needed = b->created + 86410;
    UNIT_CHECK(OPAL_CRYPT_ERR_OLD
               == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    expect.needed = b->created - 86390;
    UNIT_CHECK(0 == opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, &why));
    opal_crypt_schedule_destroy(schedule);
    expect.needed = b->created - 86410;
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "munge-clock", "seconds after"));
    options.munge_age = 86401;
    UNIT_CHECK(fixture_local_refused(&options, "munge-age", "86401"));
    options.munge_age = 0;

    UNIT_GROUP("first contact after munge's time to live works");
    forge(b, b->bytes, b->record.body_bytes, 1, 1);
    while (EMUNGE_CRED_EXPIRED != decode_error(b)) {
        poll(NULL, 0, 200);
    }
    opal_crypt_schedule_destroy(fixture_schedule(a, b));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* `b` renews the credential of its record at `now`, and `a` needs it at `needed`. */
static int renewed(opal_crypt_local_t *a, opal_crypt_local_t *b, int64_t now, int64_t needed)
{
    opal_crypt_expect_t expect = { .needed = needed };
    opal_crypt_schedule_t *schedule = NULL;
    int rc = opal_crypt_local_renew(b, now, &expect.fresh, &expect.fresh_bytes, NULL);

    UNIT_CHECK(OPAL_CRYPT_OK == rc);
    opal_crypt_local_renewed(b, now);
    rc = opal_crypt_schedule_create(a, b->bytes, b->byte_count, &expect, &schedule, NULL);
    opal_crypt_schedule_destroy(schedule);
    return rc;
}

static void test_renewal(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    opal_crypt_local_t *c = fixture_local(&options, 2);
    opal_crypt_expect_t expect = { .needed = b->created };
    int64_t now = b->created;
    size_t bytes = b->byte_count;
    const uint8_t *fresh;

    UNIT_GROUP("what is fresh is not renewed, what is old is, and is taken for its new age");
    UNIT_CHECK(0 == opal_crypt_local_renew(b, now + 300, &fresh, &bytes, NULL) && 0 == bytes && NULL == fresh);
    b->vouched = now - 7200;
    for (int lost = 0; lost < 2; lost++) {      /* one that could not be published is made again */
        UNIT_CHECK(0 == opal_crypt_local_renew(b, now, &fresh, &bytes, NULL) && 0 != bytes && NULL != fresh);
    }
    UNIT_CHECK(0 == renewed(a, b, now, now));
    UNIT_CHECK(0 == opal_crypt_local_renew(b, now, &fresh, &bytes, NULL) && 0 == bytes);

    /* To simulate an old record, it is needed later than now. */
    options.munge_age = 2;
    opal_crypt_local_destroy(a);
    a = fixture_local(&options, 0);
    forge(b, b->bytes, b->record.body_bytes, 1, 0);
    while (time(NULL) <= now + 3) {
        poll(NULL, 0, 200);
    }
    now = time(NULL);
    UNIT_CHECK(OPAL_CRYPT_ERR_OLD
               == opal_crypt_schedule_create(a, b->bytes, b->byte_count,
                                             &(opal_crypt_expect_t) { .needed = now },
                                             &(opal_crypt_schedule_t *) { NULL }, NULL));
    b->vouched = 0;
    UNIT_CHECK(0 == renewed(a, b, now, now));
    b->vouched = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_OLD == renewed(a, b, now, now + 60));
    while (time(NULL) <= now + 3) {     /* b met others since, and what it renewed for them serves a, too */
        poll(NULL, 0, 200);
    }
    b->vouched = 0;
    UNIT_CHECK(0 == renewed(a, b, time(NULL), now));
    now = time(NULL);

    UNIT_GROUP("a renewal is of its own record, and is no authenticator");
    expect.needed = now;
    c->vouched = 0;
    UNIT_CHECK(0 == opal_crypt_local_renew(c, now, &expect.fresh, &expect.fresh_bytes, NULL));
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "record-authenticator", "another record"));
    expect.fresh = b->bytes + b->record.body_bytes + 4;
    expect.fresh_bytes = b->byte_count - b->record.body_bytes - 4;
    UNIT_CHECK(fixture_record_refused(a, b->bytes, b->byte_count, &expect, "record-authenticator", "another record"));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    opal_crypt_local_destroy(c);
}

static void test_forgeries(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b = fixture_local(&options, 1);
    size_t bytes = b->byte_count, at = b->record.body_bytes + 4;
    uint8_t copy[OPAL_CRYPT_RECORD_MAX];

    UNIT_GROUP("a credential for another record");
    forge(b, a->bytes, a->record.body_bytes, 1, 0);
    UNIT_CHECK(fixture_peer_refused(a, b, "record-authenticator", "another record"));
    b->bytes[25] ^= 1;                                      /* in the boot id */
    UNIT_CHECK(fixture_peer_refused(a, b, "record-authenticator", ""));
    b->bytes[25] ^= 1;

    UNIT_GROUP("no credential at all");
    forge(b, b->bytes, b->record.body_bytes, 1, 0);
    bytes = b->byte_count;
    memcpy(copy, b->bytes, bytes);
    memset(copy + at, 'A', bytes - at);
    UNIT_CHECK(fixture_record_refused(a, copy, bytes, NULL, "munge-credential", ""));
    copy[at + 5] = 0;
    UNIT_CHECK(fixture_record_refused(a, copy, bytes, NULL, "munge-credential", ""));
    opal_crypt_put32(copy + at - 4, 0);
    UNIT_CHECK(fixture_record_refused(a, copy, at, NULL, "munge-credential", ""));

    UNIT_GROUP("every character of a credential changed is refused");
    memcpy(copy, b->bytes, bytes);
    for (size_t i = at; i < bytes; ++i) {
        opal_crypt_schedule_t *schedule = NULL;
        uint8_t was = copy[i];

        copy[i] = 'x' == was ? 'y' : 'x';
        /* The last character before '=' or the final ':' may hold unused bits. */
        if (i + 4 < bytes) {
            UNIT_CHECK(OPAL_CRYPT_ERR_PEER
                       == opal_crypt_schedule_create(a, copy, bytes, NULL, &schedule, NULL));
        }
        copy[i] = was;
    }
    UNIT_CHECK(!fixture_record_refused(a, copy, bytes, NULL, "munge-credential", ""));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void test_other_cluster(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a = fixture_local(&options, 0), *b;

    UNIT_GROUP("a munged with another key");
    options.munge_socket = sockets[1];
    b = fixture_local(&options, 1);
    UNIT_CHECK(fixture_peer_refused(a, b, "munge-credential", ""));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* Another program, as a child of this one has no keys: writes the record of another user. */
static int other_program(const char *socket, bool restricted, int to)
{
    opal_crypt_options_t options = with_munge(socket);
    opal_crypt_identity_t identity = fixture_identity(1);
    opal_crypt_local_t *local = NULL;
    opal_crypt_why_t why;

    sockets[0] = socket;
    if (OPAL_CRYPT_OK != opal_crypt_munge_load(&munge, &why) || 0 != setgid(NOBODY) || 0 != setuid(NOBODY)
        || OPAL_CRYPT_OK != opal_crypt_local_create(&options, &identity, &local, NULL)) {
        return 1;
    }
    if (!restricted) {
        forge(local, local->bytes, local->record.body_bytes, 0, 0);
    }
    return (ssize_t) local->byte_count == write(to, local->bytes, local->byte_count) ? 0 : 1;
}

/* The record of another user, through a pipe; `restricted` as the core does. */
static size_t others_record(uint8_t *record, int restricted)
{
    int ends[2], status;
    char to[16];
    size_t bytes = 0;
    ssize_t got;
    pid_t child;

    UNIT_REQUIRE(0 == pipe(ends));
    snprintf(to, sizeof(to), "%d", ends[1]);
    child = fork();
    if (0 == child) {
        execl("/proc/self/exe", "other", sockets[0], restricted ? "restricted" : "for all", to, (char *) NULL);
        _exit(1);
    }
    close(ends[1]);
    while ((got = read(ends[0], record + bytes, OPAL_CRYPT_RECORD_MAX - bytes)) > 0) {
        bytes += (size_t) got;
    }
    close(ends[0]);
    UNIT_REQUIRE(child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
    return bytes;
}

static void test_other_uid(void)
{
    opal_crypt_options_t options = with_munge(sockets[0]);
    opal_crypt_local_t *a;
    uint8_t record[OPAL_CRYPT_RECORD_MAX];
    size_t bytes;

    UNIT_GROUP("a credential of another user");
    if (0 != geteuid()) {
        printf("  skipped: only root can pose as another user\n");
        return;
    }
    a = fixture_local(&options, 0);
    bytes = others_record(record, 1);
    UNIT_CHECK(fixture_record_refused(a, record, bytes, NULL, "munge-other-uid", ""));
    bytes = others_record(record, 0);
    UNIT_CHECK(fixture_record_refused(a, record, bytes, NULL, "munge-other-uid", "65534"));
    opal_crypt_local_destroy(a);
}

static void test_auto(void)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_AUTO);
    opal_crypt_local_t *local;

    UNIT_GROUP("auto takes munge when there is no psk, and stops when its socket is silent");
    options.munge_socket = sockets[0];
    local = fixture_local(&options, 0);
    UNIT_CHECK(OPAL_CRYPT_AUTH_MUNGE == opal_crypt_local_auth(local));
    opal_crypt_local_destroy(local);
    options.munge_socket = fixture_path("no-socket");
    UNIT_CHECK(fixture_local_refused(&options, "no-method", ""));
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    options.munge_socket = sockets[0];
    local = fixture_local(&options, 0);
    UNIT_CHECK(OPAL_CRYPT_AUTH_PSK == opal_crypt_local_auth(local));
    opal_crypt_local_destroy(local);
}

int main(int argc, char **argv)
{
    const char *reason;

    if (4 == argc) {
        return other_program(argv[1], 0 == strcmp(argv[2], "restricted"), atoi(argv[3]));
    }

    setenv("TMPDIR", "/dev/shm", 1);        /* munged requires that every user can reach its socket */
    fixture_begin();
    reason = daemons_begin();
    if (NULL != reason) {
        return unit_skip(reason);
    }
    test_agreement();
    test_age();
    test_renewal();
    test_forgeries();
    test_other_cluster();
    test_other_uid();
    test_auto();
    opal_crypt_secmem_finalize();
    return unit_done();
}

#else

int main(void)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_MUNGE);

    UNIT_GROUP("built without munge.h: refused by name");
    UNIT_CHECK(fixture_local_refused(&options, "munge-left-out", ""));
    return unit_done();
}

#endif

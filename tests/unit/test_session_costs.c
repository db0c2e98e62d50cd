/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What first contact with a peer costs, by method: the peer's record is
 * checked, keys are agreed on, the first message is sealed.  The processor time
 * of this process is printed (and that of munged, which is another process); the
 * checks are of what was done, not of how long it took.
 *
 *     test_session_costs [PEERS]
 */
#include "tests/unit/crypt_fixture.h"

#include <time.h>

#include "opal/mca/common/crypt/wire/frame.h"
#include "opal/mca/common/crypt/identity/local_object.h"
#include "opal/mca/common/crypt/wire/session.h"

#if __has_include(<munge.h>)
#include "tests/unit/munge_daemon.h"
#else
#define OPAL_CRYPT_HAVE_MUNGE 0
#endif

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);
void opal_aead_openssl_fini(void);

static double microseconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return 1e6 * (double) now.tv_sec + 1e-3 * (double) now.tv_nsec;
}

static double own_time(void)
{
    return microseconds(CLOCK_PROCESS_CPUTIME_ID);
}

/* First contact of `a` with each of `peers` others, and the first message to it. */
static double contacts(opal_crypt_local_t *a, opal_crypt_local_t **others, int peers)
{
    static const opal_crypt_envelope_t envelope = { 0, 1, 1, 2 };
    opal_crypt_session_t **sessions = calloc((size_t) peers, sizeof(*sessions));
    double start = own_time(), took;
    int good = 0;

    UNIT_REQUIRE(NULL != sessions);
    for (int i = 0; i < peers; ++i) {
        uint8_t frame[8 + OPAL_CRYPT_DIRECT_OVERHEAD];

        good += OPAL_CRYPT_OK
                    == fixture_session(a, others[i]->bytes, others[i]->byte_count, NULL, &sessions[i], NULL)
                && OPAL_CRYPT_OK
                    == opal_crypt_direct_seal(sessions[i], &envelope, "message", 8, frame);
    }
    took = own_time() - start;
    UNIT_CHECK(peers == good);
    for (int i = 0; i < peers; ++i) {
        opal_crypt_session_destroy(sessions[i]);
    }
    free(sessions);
    return took / peers;
}

/* A few records with one key pair are enough: checking remembers nothing. */
static void measure(const char *name, opal_crypt_options_t options, int peers)
{
    enum { RECORDS = 16 };
    opal_crypt_local_t *records[RECORDS], *a, **others = calloc((size_t) peers, sizeof(*others));
    double start = own_time(), record, contact;

    UNIT_REQUIRE(NULL != others);
    for (int i = 0; i < RECORDS; ++i) {
        records[i] = fixture_local(&options, (uint32_t) i + 1);
    }
    record = (own_time() - start) / RECORDS;
    for (int i = 0; i < peers; ++i) {
        others[i] = records[i % RECORDS];
    }
    a = fixture_local(&options, 0);
    contacts(a, others, RECORDS);               /* what is fetched or loaded once */
    contact = contacts(a, others, peers);
    UNIT_GROUP("%-14s %6.0f us of processor time for the own record, %6.0f us for first contact with a peer",
               name, record, contact);
    opal_crypt_local_destroy(a);
    for (int i = 0; i < RECORDS; ++i) {
        opal_crypt_local_destroy(records[i]);
    }
    free(others);
}

static opal_crypt_options_t with(opal_crypt_auth_t auth)
{
    opal_crypt_options_t options = fixture_options(auth);

    options.aead = &opal_aead_openssl_module;
    return options;
}

static void measure_x509(int peers)
{
    static const char *const kinds[] = { "ed25519", "p256", "p384", "rsa", "chain" };
    opal_crypt_options_t options = with(OPAL_CRYPT_AUTH_X509);
    const char *source = getenv("srcdir");
    char command[1200], name[64], key[64];

    snprintf(command, sizeof(command), "sh '%s/x509_ca.sh' '%s'", NULL == source ? "." : source, fixture_directory);
    if (0 != system(command)) {
        printf("x509: not measured, no openssl program\n");
        return;
    }
    options.x509_ca = fixture_path("ca.pem");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); ++i) {
        snprintf(name, sizeof(name), "%s.pem", kinds[i]);
        snprintf(key, sizeof(key), "%s.key", kinds[i]);
        if (0 != access(fixture_path(name), R_OK)) {
            continue;
        }
        options.x509_cert = fixture_path(name);
        options.x509_key = fixture_path(key);
        snprintf(name, sizeof(name), "x509 %s", kinds[i]);
        measure(name, options, peers);
    }
}

#if OPAL_CRYPT_HAVE_MUNGE

/* munged's processor time, of all its threads. */
static double daemon_time(void)
{
    clockid_t clock;

    return 0 == clock_getcpuclockid(daemons[0], &clock) ? microseconds(clock) : 0;
}

static void measure_munge(int peers)
{
    opal_crypt_options_t options = with(OPAL_CRYPT_AUTH_MUNGE);
    double start;

    if (OPAL_CRYPT_OK != opal_crypt_munge_load(&munge, NULL)) {
        printf("munge: not measured, no libmunge\n");
        return;
    }
    atexit(daemons_end);
    UNIT_REQUIRE(0 == chmod(fixture_directory, 0755));
    if (!daemon_start(0)) {
        printf("munge: not measured, no munged\n");
        return;
    }
    options.munge_socket = sockets[0];
    start = daemon_time();
    measure("munge", options, peers);
    printf("               %6.0f us of munged for each of them\n", (daemon_time() - start) / (peers + 33));
}

#else

static void measure_munge(int peers)
{
    (void) peers;
    printf("munge: not measured, built without munge.h\n");
}

#endif

int main(int argc, char **argv)
{
    opal_crypt_options_t options;
    const int peers = argc > 1 ? atoi(argv[1]) : 64;

    setenv("TMPDIR", "/dev/shm", 1);        /* munged wants everybody to reach its socket */
    fixture_begin();
    UNIT_REQUIRE(peers > 0 && OPAL_AEAD_OK == opal_aead_openssl_init());
    options = with(OPAL_CRYPT_AUTH_PSK);
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    measure("psk", options, peers);
    measure("none", with(OPAL_CRYPT_AUTH_NONE), peers);
    measure_munge(peers);
    measure_x509(peers);
    opal_crypt_finalize();
    opal_aead_openssl_fini();
    return unit_done();
}

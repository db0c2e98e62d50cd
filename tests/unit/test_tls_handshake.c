/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Good handshakes: every suite and group, bytes in any pieces, what follows in the same
 * bytes, the PSK of a pair, what waits and what stays behind, several threads.  The last lines say
 * what a handshake takes; they assert nothing about time.
 */
#include "tests/unit/crypt_fixture.h"
#include "tests/unit/memory_search.h"
#include "tests/unit/tls_ends.h"

#include <malloc.h>
#include <pthread.h>
#include <time.h>

#include "opal/mca/common/crypt/tls/handshake_object.h"
#include "opal/mca/common/crypt/tls/records_object.h"

static const opal_aead_cipher_t ciphers[] = {OPAL_AEAD_AES_128_GCM, OPAL_AEAD_AES_256_GCM, OPAL_AEAD_CHACHA20_POLY1305};
static const opal_crypt_tls_group_t groups[] = {OPAL_CRYPT_TLS_X25519, OPAL_CRYPT_TLS_P256, OPAL_CRYPT_TLS_X25519MLKEM768};

/* Both directions carry data. */
static void talk(opal_crypt_handshake_t *client, opal_crypt_handshake_t *server)
{
    opal_crypt_tls_records_t *a = NULL, *b = NULL, *again = NULL;
    uint8_t data[40000];

    memset(data, 'd', sizeof(data));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_records(client, &opal_aead_openssl_module, &a));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_records(server, &opal_aead_openssl_module, &b));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_handshake_records(server, &opal_aead_openssl_module, &again));
    for (int i = 0; i < 3; ++i) {
        UNIT_CHECK(tls_carry(a, b, data, sizeof(data)));
        UNIT_CHECK(tls_carry(b, a, data, 1));
    }
    opal_crypt_tls_records_destroy(a);
    opal_crypt_tls_records_destroy(b);
}

static void good(const opal_crypt_tls_t *tls, size_t piece)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client = tls_connect(tls, &job.psk), *server = tls_accept(tls, &job);
    const opal_crypt_tls_identity_t identity = tls_identity();

    UNIT_CHECK(5 == opal_crypt_handshake_wants(server) && TLS_STATE(server, RUNNING));
    UNIT_CHECK(tls_shake(client, server, piece));
    UNIT_CHECK(1 == job.asked && 0 == opal_crypt_handshake_wants(client) && 0 == opal_crypt_handshake_wants(server));
    UNIT_CHECK(opal_crypt_tls_name_equal(&opal_crypt_handshake_identity(server)->claimed, &identity.claimed));
    UNIT_CHECK(NULL == client->ssl && NULL == server->ssl);
    talk(client, server);
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
}

static void every_suite(void)
{
    for (size_t c = 0; c < 3; ++c) {
        for (size_t g = 0; g < 3; ++g) {
            UNIT_GROUP("%s, %s", opal_crypt_tls_suite(ciphers[c])->name, opal_crypt_tls_group(groups[g])->name);
            opal_crypt_tls_t *tls = tls_of(ciphers[c], groups[g]);

            if (NULL != tls) {
                good(tls, 8192);
                good(tls, 1);
                good(tls, 7);
            } else {
                UNIT_CHECK(OPAL_CRYPT_TLS_X25519MLKEM768 == groups[g]);
            }
            opal_crypt_tls_destroy(tls);
        }
    }
    UNIT_CHECK(NULL == tls_of(OPAL_AEAD_AES_192_GCM, OPAL_CRYPT_TLS_X25519));
    UNIT_CHECK(NULL == tls_of(OPAL_AEAD_AES_128_GCM, (opal_crypt_tls_group_t) 24));
}

/* One tls object serves all groups; a pair has one. */
static void one_group(opal_crypt_tls_t *tls)
{
    opal_crypt_handshake_t *client, *server, *none = NULL;
    const opal_crypt_tls_identity_t identity = tls_identity();
    const opal_crypt_tls_psk_t psk = tls_psk(7);

    UNIT_GROUP("another group than the pair's is refused before OpenSSL sees it");
    for (size_t ours = 0; ours < 3; ++ours) {
        for (size_t theirs = 0; theirs < 3; ++theirs) {
            job_t job = {.psk = psk};
            flight_t flight;

            tls_group = groups[ours];
            if (0 == (opal_crypt_tls_groups(tls) & opal_crypt_tls_group_bit(groups[ours]))) {
                UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_handshake_connect(tls, tls_group, &identity, &psk, &none)
                           && NULL == none);
                continue;
            }
            client = tls_connect(tls, &psk);
            server = tls_accept(tls, &job);
            flight = tls_output(client);
            tls_group = groups[theirs];
            (void) tls_input(server, &flight, 8192);
            UNIT_CHECK(ours == theirs ? TLS_STATE(server, RUNNING) : tls_refused(server));
            UNIT_CHECK(1 == job.asked && (ours == theirs) == (NULL != server->ssl));
            opal_crypt_handshake_destroy(client);
            opal_crypt_handshake_destroy(server);
        }
    }
    tls_group = OPAL_CRYPT_TLS_X25519;
}

/* A caller that reads only what is wanted never holds a byte of the records; one that reads more gets it back. */
static void what_follows(const opal_crypt_tls_t *tls)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client = tls_connect(tls, &job.psk), *server = tls_accept(tls, &job);
    flight_t flight = tls_output(client);
    size_t at = 0, taken;

    UNIT_GROUP("what follows a handshake stays outside");
    while (at < flight.bytes) {
        const size_t wants = opal_crypt_handshake_wants(server);
        UNIT_REQUIRE(wants > 0 && wants <= flight.bytes - at);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_handshake_feed(server, flight.data + at, wants, &taken) && taken == wants);
        at += wants;
    }
    flight = tls_output(server);
    UNIT_CHECK(0 == tls_input(client, &flight, 100));
    flight = tls_output(client);
    memset(flight.data + flight.bytes, 23, 100);
    flight.bytes += 100;
    UNIT_CHECK(100 == tls_input(server, &flight, 8192) && TLS_STATE(server, DONE));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_handshake_feed(server, "x", 1, &taken) && 0 == taken);
    talk(client, server);
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
}

/* From two records to one PSK: the same at both ends, and another one for the other direction. */
static void from_schedules(const opal_crypt_tls_t *tls)
{
    opal_crypt_options_t options = fixture_options(OPAL_CRYPT_AUTH_PSK);
    opal_crypt_tls_psk_t *psk = opal_crypt_secmem_alloc(3 * sizeof(*psk));
    opal_crypt_local_t *a, *b;
    opal_crypt_schedule_t *to_b, *to_a;

    UNIT_GROUP("the PSK of a pair");
    options.psk_file = fixture_file("psk", FIXTURE_PSK, 0600);
    a = fixture_local(&options, 0);
    b = fixture_local(&options, 1);
    to_b = fixture_schedule(a, b);
    to_a = fixture_schedule(b, a);
    UNIT_REQUIRE(NULL != psk && NULL != to_a && NULL != to_b);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_psk(tls, to_b, OPAL_CRYPT_OUT, &psk[0]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_psk(tls, to_a, OPAL_CRYPT_IN, &psk[1]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_tls_psk(tls, to_b, OPAL_CRYPT_IN, &psk[2]));
    UNIT_EQUAL_BYTES(psk[0].bytes, psk[1].bytes, 32);
    UNIT_CHECK(0 != memcmp(psk[0].bytes, psk[2].bytes, 32));
    for (int i = 1; i < 3; ++i) {
        job_t job = {.psk = psk[i]};
        opal_crypt_handshake_t *client = tls_connect(tls, &psk[0]), *server = tls_accept(tls, &job);
        UNIT_CHECK((1 == i) == tls_shake(client, server, 8192));
        UNIT_CHECK(1 == i || tls_refused(server));
        opal_crypt_handshake_destroy(client);
        opal_crypt_handshake_destroy(server);
    }
    opal_crypt_secmem_free(psk);
    opal_crypt_schedule_destroy(to_a);
    opal_crypt_schedule_destroy(to_b);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* Nothing of what was agreed is anywhere in this process once it has ended.  OpenSSL does not wipe an SSL object
 * that it frees; contexts.c does, as far as malloc lets it: here, where one thread runs, always. */
static inline void forgets(const opal_crypt_tls_t *tls)
{
    static job_t job;
    opal_crypt_handshake_t *client, *server;
    opal_crypt_tls_records_t *a = NULL, *b = NULL;
    uint8_t data[100] = {1};
    int psks;

    UNIT_GROUP("secrets are gone with their connection");
    search_begin(-1);
    opal_crypt_random(job.psk.bytes, sizeof(job.psk.bytes));
    client = tls_connect(tls, &job.psk);
    server = tls_accept(tls, &job);
    search_add("psk", job.psk.bytes);
    psks = search_self(0);
    if (psks < 0) {
        printf("  skipped: this process cannot read /proc/self/mem\n");
        return;
    }
    UNIT_CHECK(psks >= 2);                      /* it finds them while they are there */
    UNIT_CHECK(tls_shake(client, server, 8192));
    search_add("client's secret", client->secrets->client);
    search_add("server's secret", client->secrets->server);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_records(client, &opal_aead_openssl_module, &a));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_handshake_records(server, &opal_aead_openssl_module, &b));
    opal_crypt_handshake_destroy(client);
    opal_crypt_handshake_destroy(server);
    UNIT_CHECK(tls_carry(a, b, data, sizeof(data)) && tls_carry(b, a, data, sizeof(data)));
    opal_crypt_tls_records_destroy(a);
    opal_crypt_tls_records_destroy(b);
    opal_crypt_wipe(&job, sizeof(job));
    UNIT_CHECK(0 == search_self(1));
}

/* Nothing is left of records that OpenSSL has never seen. */
static inline void records_forget(void)
{
    uint8_t *secrets = opal_crypt_secmem_alloc(96), *data = calloc(1, 100);
    opal_crypt_tls_records_t *a = NULL, *b = NULL;

    UNIT_GROUP("secrets of records are gone with them");
    UNIT_REQUIRE(NULL != secrets && NULL != data);
    opal_crypt_random(secrets, 96);
    search_begin(-1);
    search_add("secret", secrets);
    search_add("other secret", secrets + 48);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_256_GCM, 2,
                                                                secrets, secrets + 48, &a));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_tls_records_create(&opal_aead_openssl_module, OPAL_AEAD_AES_256_GCM, 2,
                                                                secrets + 48, secrets, &b));
    opal_crypt_secmem_free(secrets);
    UNIT_CHECK(search_self(0) != 0);
    search_add("IV", a->out.iv - 4);
    UNIT_CHECK(tls_carry(a, b, data, 100) && tls_carry(b, a, data, 100));
    UNIT_CHECK(search_self(0) != 0);
    UNIT_CHECK(tls_carry(a, b, data, 100) && tls_carry(b, a, data, 100));
    UNIT_CHECK(search_self(1) <= 0);            /* renewed: the old ones are gone already */
    search_add("new secret", a->out.secret);
    opal_crypt_tls_records_destroy(a);
    opal_crypt_tls_records_destroy(b);
    UNIT_CHECK(search_self(1) <= 0);
    free(data);
}

/* A listener's waiting connections: only those have an OpenSSL object whose name was known. */
static void idle(const opal_crypt_tls_t *tls)
{
    enum { MANY = 256 };
    static opal_crypt_handshake_t *waiting[MANY];
    job_t job = {.psk = tls_psk(7)};
    size_t before = mallinfo2().uordblks, each;

    UNIT_GROUP("memory of waiting connections");
    for (int i = 0; i < MANY; ++i) {
        const flight_t part = {3, {22, 3, 1}};
        waiting[i] = tls_accept(tls, &job);
        UNIT_CHECK(0 == tls_input(waiting[i], &part, 3));
    }
    each = (mallinfo2().uordblks - before) / MANY;
    printf("  %zu bytes each before a hello\n", each);
    UNIT_CHECK(each <= 6144 && 0 == job.asked);
    for (int i = 0; i < MANY; ++i) {
        opal_crypt_handshake_destroy(waiting[i]);
    }
    before = mallinfo2().uordblks;
    for (int i = 0; i < MANY; ++i) {
        opal_crypt_handshake_t *client = tls_connect(tls, &job.psk);
        const flight_t hello = tls_output(client);
        waiting[i] = tls_accept(tls, &job);
        UNIT_CHECK(0 == tls_input(waiting[i], &hello, 8192) && TLS_STATE(waiting[i], RUNNING));
        opal_crypt_handshake_destroy(client);
    }
    printf("  %zu bytes each after the hello of a member\n", (mallinfo2().uordblks - before) / MANY);
    for (int i = 0; i < MANY; ++i) {
        opal_crypt_handshake_destroy(waiting[i]);
    }
}

static flight_t taken_output(opal_crypt_handshake_t *handshake)
{
    flight_t flight = {0};
    const uint8_t *bytes = opal_crypt_handshake_output(handshake, &flight.bytes);

    memcpy(flight.data, bytes, flight.bytes);
    opal_crypt_handshake_sent(handshake, flight.bytes);
    return flight;
}

static int any_find(void *arg, const opal_crypt_tls_identity_t *identity, opal_crypt_tls_group_t *group, opal_crypt_tls_psk_t *psk)
{
    (void) arg;
    (void) identity;
    *group = OPAL_CRYPT_TLS_X25519;
    *psk = tls_psk(7);
    return OPAL_CRYPT_OK;
}

typedef struct shaker {
    const opal_crypt_tls_t *tls;
    pthread_t thread;
    unsigned good;
} shaker_t;

static void *shake_on(void *arg)
{
    shaker_t *shaker = arg;

    for (int i = 0; i < 20; ++i) {
        const opal_crypt_tls_identity_t identity = {.claimed = {.rank = 1}};
        const opal_crypt_tls_psk_t psk = tls_psk(7);
        opal_crypt_handshake_t *client = NULL;

        /* without checks: those count for one thread */
        if (OPAL_CRYPT_OK == opal_crypt_handshake_connect(shaker->tls, OPAL_CRYPT_TLS_X25519, &identity, &psk, &client)) {
            opal_crypt_handshake_t *server = NULL;
            const flight_t hello = taken_output(client);
            size_t taken;
            flight_t flight;

            if (OPAL_CRYPT_OK == opal_crypt_handshake_accept(shaker->tls, &identity.wanted, any_find, NULL, &server)
                && OPAL_CRYPT_OK == opal_crypt_handshake_feed(server, hello.data, hello.bytes, &taken)) {
                flight = taken_output(server);
                (void) opal_crypt_handshake_feed(client, flight.data, flight.bytes, &taken);
                flight = taken_output(client);
                (void) opal_crypt_handshake_feed(server, flight.data, flight.bytes, &taken);
                shaker->good += TLS_STATE(client, DONE) && TLS_STATE(server, DONE);
            }
            opal_crypt_handshake_destroy(server);
        }
        opal_crypt_handshake_destroy(client);
    }
    return NULL;
}

/* One tls object, several threads. */
static void threads(const opal_crypt_tls_t *tls)
{
    shaker_t shakers[4];

    UNIT_GROUP("four threads share a tls object");
    for (int i = 0; i < 4; ++i) {
        shakers[i] = (shaker_t) {.tls = tls};
        UNIT_REQUIRE(0 == pthread_create(&shakers[i].thread, NULL, shake_on, &shakers[i]));
    }
    for (int i = 0; i < 4; ++i) {
        pthread_join(shakers[i].thread, NULL);
        UNIT_CHECK(20 == shakers[i].good);
    }
}

static double cpu_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e6 * (double) now.tv_sec + (double) now.tv_nsec / 1e3;
}

enum { ROUNDS = 51 };

static int by_size(const void *a, const void *b)
{
    return *(const double *) a < *(const double *) b ? -1 : *(const double *) a > *(const double *) b;
}

/* What each end takes of one handshake. */
static void timed(const opal_crypt_tls_t *tls, double *connects, double *listens)
{
    job_t job = {.psk = tls_psk(7)};
    opal_crypt_handshake_t *client, *server;
    flight_t hello, answer, finished;
    double at[7];

    at[0] = cpu_us();
    client = tls_connect(tls, &job.psk);
    hello = tls_output(client);
    at[1] = cpu_us();
    server = tls_accept(tls, &job);
    (void) tls_input(server, &hello, 8192);
    answer = tls_output(server);
    at[2] = cpu_us();
    (void) tls_input(client, &answer, 8192);
    finished = tls_output(client);
    at[3] = cpu_us();
    (void) tls_input(server, &finished, 8192);
    at[4] = cpu_us();
    UNIT_CHECK(TLS_STATE(client, DONE) && TLS_STATE(server, DONE));
    at[5] = cpu_us();
    opal_crypt_handshake_destroy(client);
    at[6] = cpu_us();
    opal_crypt_handshake_destroy(server);
    *connects = at[1] - at[0] + at[3] - at[2] + at[6] - at[5];
    *listens = at[2] - at[1] + at[4] - at[3] + cpu_us() - at[6];
}

/* For docs/transport-format.rst: medians of CPU time, and the least. */
static void what_it_takes(void)
{
    UNIT_GROUP("what it takes");
    for (size_t g = 0; g < 3; ++g) {
        opal_crypt_tls_t *tls = tls_of(OPAL_AEAD_AES_128_GCM, groups[g]);
        double connects[ROUNDS], listens[ROUNDS];

        if (NULL == tls) {
            continue;
        }
        for (int i = 0; i < ROUNDS; ++i) {
            timed(tls, &connects[i], &listens[i]);
        }
        qsort(connects, ROUNDS, sizeof(double), by_size);
        qsort(listens, ROUNDS, sizeof(double), by_size);
        printf("  %s: %.0f us of CPU (least %.0f) to connect, %.0f (%.0f) to listen\n", opal_crypt_tls_group(groups[g])->name,
               connects[ROUNDS / 2], connects[0], listens[ROUNDS / 2], listens[0]);
        opal_crypt_tls_destroy(tls);
    }
}

int main(void)
{
    opal_crypt_tls_t *tls;

    fixture_begin();
    tls = tls_of(OPAL_AEAD_AES_128_GCM, OPAL_CRYPT_TLS_X25519);
    UNIT_REQUIRE(NULL != tls);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    printf("memory is not searched: the run time of sanitizers keeps what is freed\n");
#else
    forgets(tls);
    records_forget();
#endif
    every_suite();
    one_group(tls);
    what_follows(tls);
    from_schedules(tls);
    idle(tls);
    threads(tls);
    opal_crypt_tls_destroy(tls);
    what_it_takes();
    return unit_done();
}

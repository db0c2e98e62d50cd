/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Sessions from real records, under the build that aborts when a (key, nonce)
 * pair seals twice: traffic in both directions, thousands of connects and
 * disconnects, re-initialized processes, eight threads at first contact.
 */
#include "crypt_fixture.h"
#include "sessions.h"

#include <pthread.h>
#include <sys/resource.h>

#include <openssl/crypto.h>

#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/nonce_log.h"
#include "opal/mca/common/crypt/base/thread.h"

#define ROUNDS  1000
#define THREADS 8
#define SHIFT   2               /* four messages an epoch */

static const opal_crypt_envelope_t here = {1, 2, 1, 3};

static opal_crypt_options_t options;

static opal_crypt_local_t *process(uint32_t rank, uint32_t instance)
{
    opal_crypt_identity_t identity = fixture_identity(rank);
    opal_crypt_why_t why = {.topic = "none"};
    opal_crypt_local_t *local = NULL;

    identity.instance = instance;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_local_create(&options, &identity, &local, &why));
    return local;
}

/* Without UNIT_CHECK: threads call it too. */
static opal_crypt_session_t *contact(const opal_crypt_local_t *local,
                                     const opal_crypt_local_t *peer)
{
    opal_crypt_session_t *session = NULL;
    opal_crypt_why_t why = {.topic = "none"};
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(peer, &bytes);

    return OPAL_CRYPT_OK == fixture_session(local, record, bytes, NULL, &session, &why)
           ? session : NULL;
}

/* One direct message; 0 when it arrived. */
static int direct(opal_crypt_session_t *from, opal_crypt_session_t *to)
{
    uint8_t plain[40], frame[64], back[40];
    uint64_t seen;

    fill(plain, sizeof(plain), (uintptr_t) from);
    return OPAL_CRYPT_OK != opal_crypt_direct_seal(from, &here, plain, sizeof(plain), frame)
           || OPAL_CRYPT_OK != opal_crypt_direct_open(to, &here, frame, sizeof(frame), back, SIZE_MAX, &seen)
           || seen != opal_crypt_get48(frame + 2) || 0 != memcmp(plain, back, sizeof(plain));
}

/* One chopped message of three segments; 0 when it arrived. */
static int chopped(opal_crypt_session_t *from, opal_crypt_session_t *to)
{
    opal_crypt_shape_t shape, seen_shape;
    opal_crypt_chop_t *sealing = NULL, *opening = NULL;
    uint8_t plain[100], first[70], segment[40], back[100];
    uint64_t counter = 0, seen = UINT64_MAX;

    fill(plain, sizeof(plain), (uintptr_t) from);
    int bad = OPAL_CRYPT_OK != opal_crypt_shape_make(100, 30, 24, &shape)
              || OPAL_CRYPT_OK != opal_crypt_first_seal(from, &here, &shape, plain, first, &counter, &sealing)
              || OPAL_CRYPT_OK != opal_crypt_first_open(to, &here, first, sizeof(first), back, SIZE_MAX, &seen_shape,
                                                        &seen, &opening);
    for (uint32_t i = 1; !bad && i <= shape.count; ++i) {
        uint64_t at = opal_crypt_segment_offset(&shape, i);
        size_t wire = opal_crypt_segment_bytes(&shape, i) + OPAL_CRYPT_SEGMENT_OVERHEAD;
        bad = OPAL_CRYPT_OK != opal_crypt_segment_seal(sealing, i, plain + at, segment)
              || OPAL_CRYPT_OK != opal_crypt_segment_open(opening, i, segment, wire, back + at);
    }
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
    return bad || seen != counter || 0 != memcmp(plain, back, sizeof(plain));
}

static void alone(void)
{
    opal_crypt_local_t *a = process(0, 0);
    opal_crypt_session_t *one, *other;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_session_alone(a, &one)
                 && OPAL_CRYPT_OK == opal_crypt_session_alone(a, &other));
    for (int i = 0; i < 20; ++i) {
        UNIT_CHECK(0 == direct(one, one) && 0 == chopped(one, one));
    }
    UNIT_CHECK(0 != direct(one, other));                        /* each has keys of its own */
    opal_crypt_session_destroy(one);
    opal_crypt_session_destroy(other);
    opal_crypt_local_destroy(a);
}

static void both_ways(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0);
    opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);

    UNIT_REQUIRE(NULL != ab && NULL != ba);
    UNIT_CHECK(1 == opal_crypt_session_peer(ab)->rank && 0 == opal_crypt_session_peer(ba)->rank);
    UNIT_EQUAL_BYTES(opal_crypt_session_peer(ab)->key_hash, opal_crypt_local_key_hash(b), 32);
    for (int i = 0; i < 20; ++i) {
        UNIT_CHECK(0 == direct(ab, ba) && 0 == direct(ba, ab));
        UNIT_CHECK(0 == chopped(ab, ba) && 0 == chopped(ba, ab));
    }
    UNIT_CHECK(0 != direct(ab, ab));                            /* what we seal is not for us */
    UNIT_EQUAL_BYTES(opal_crypt_token_out(ab)->bytes, opal_crypt_token_in(ba)->bytes, 16);
    UNIT_EQUAL_BYTES(opal_crypt_token_out(ba)->bytes, opal_crypt_token_in(ab)->bytes, 16);
    UNIT_CHECK(opal_crypt_token_out(ab)->base == opal_crypt_token_in(ba)->base);
    UNIT_CHECK(0 != memcmp(opal_crypt_token_out(ab)->bytes, opal_crypt_token_in(ab)->bytes, 16));
    opal_crypt_session_destroy(ab);
    opal_crypt_session_destroy(ba);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

static void refusals(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0);
    const opal_crypt_expect_t rank2 = {.nspace = "4711", .rank = 2};
    opal_crypt_session_t *session = (opal_crypt_session_t *) a;
    opal_crypt_why_t why = {.topic = NULL};
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(b, &bytes);

    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == fixture_session(a, record, bytes, &rank2, &session, &why));
    UNIT_CHECK(NULL == session && fixture_said(&why, "record-other-process", "rank 2"));
    session = (opal_crypt_session_t *) a;
    UNIT_CHECK(OPAL_CRYPT_ERR_PEER == fixture_session(a, record, bytes - 1, NULL, &session, &why));
    UNIT_CHECK(NULL == session);
    UNIT_CHECK(NULL == contact(a, a));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* There is no session without a provider, and one as soon as there is one. */
static void provider_comes_later(void)
{
    options.aead = NULL;
    opal_crypt_local_t *a = process(0, 0);
    options.aead = &opal_aead_openssl_module;
    opal_crypt_local_t *b = process(1, 0);

    UNIT_CHECK(NULL == contact(a, b));
    opal_crypt_local_provide(a, &opal_aead_openssl_module);
    opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);
    UNIT_REQUIRE(NULL != ab && NULL != ba);
    UNIT_CHECK(0 == direct(ab, ba) && 0 == direct(ba, ab));
    opal_crypt_session_destroy(ab);
    opal_crypt_session_destroy(ba);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* A disconnect keeps the session; only the pair of keys ends it. */
static void reconnects(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0);
    opal_crypt_session_t *kept_a = NULL, *kept_b = NULL;

    for (int i = 0; i < ROUNDS; ++i) {
        opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);
        UNIT_REQUIRE(NULL != ab && NULL != ba);
        if (NULL == kept_a) {
            kept_a = ab;
            kept_b = ba;
        } else {                                                /* as the loser of a compare-and-swap */
            opal_crypt_session_destroy(ab);
            opal_crypt_session_destroy(ba);
        }
        UNIT_CHECK(0 == direct(kept_a, kept_b) && 0 == chopped(kept_b, kept_a));
    }
    UNIT_CHECK(ROUNDS == opal_crypt_session_sent(kept_a) && ROUNDS == opal_crypt_session_sent(kept_b));
    opal_crypt_session_destroy(kept_a);
    opal_crypt_session_destroy(kept_b);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* The same ranks again and again, with a key pair a life: counters start at 0
 * in each, and no key is an old one. */
static void instances(void)
{
    opal_crypt_local_t *b = process(1, 0);

    for (uint32_t i = 0; i < ROUNDS; ++i) {
        opal_crypt_local_t *a = process(0, i);
        opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);
        UNIT_REQUIRE(NULL != ab && NULL != ba);
        UNIT_CHECK(i == opal_crypt_session_peer(ba)->instance);
        UNIT_CHECK(0 == direct(ab, ba) && 0 == direct(ba, ab) && 0 == chopped(ab, ba));
        opal_crypt_session_destroy(ab);
        opal_crypt_session_destroy(ba);
        opal_crypt_local_destroy(a);
        if (0 == i % 3) {
            opal_crypt_local_destroy(b);
            b = process(1, i + 1);
        }
    }
    opal_crypt_local_destroy(b);
}

/* A peer that was initialized again cannot be taken for its earlier self. */
static void old_instance(void)
{
    opal_crypt_local_t *a = process(0, 0), *b0 = process(1, 0), *b1 = process(1, 1);
    opal_crypt_session_t *old = contact(a, b0), *new = contact(b1, a);

    UNIT_REQUIRE(NULL != old && NULL != new);
    UNIT_CHECK(0 != direct(old, new));
    UNIT_CHECK(0 != direct(new, old));
    opal_crypt_session_destroy(old);
    opal_crypt_session_destroy(new);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b0);
    opal_crypt_local_destroy(b1);
}

/* Whatever keeps a session from being made, a reason is given: callers show it. */
static void why_there_is_none(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0);
    opal_crypt_session_t *session = NULL;
    opal_crypt_why_t why = {0};
    size_t bytes;
    const uint8_t *record = opal_crypt_local_record(b, &bytes);

    opal_crypt_local_provide(a, NULL);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == fixture_session(a, record, bytes, NULL, &session, &why));
    UNIT_CHECK(NULL == session && fixture_said(&why, "library", "keys of a session"));
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
}

/* Finalize, and begin again: what a re-initialization does. */
static void start_again(void)
{
    const uint64_t before = opal_crypt_recorded();

    for (uint32_t i = 0; i < 20; ++i) {
        opal_crypt_local_t *a = process(0, i), *b = process(1, i);
        opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);
        UNIT_REQUIRE(NULL != ab && NULL != ba);
        UNIT_CHECK(0 == direct(ab, ba) && 0 == chopped(ba, ab));
        opal_crypt_session_destroy(ab);
        opal_crypt_session_destroy(ba);
        opal_crypt_local_destroy(a);
        opal_crypt_local_destroy(b);
        opal_crypt_finalize();
    }
    UNIT_CHECK(20 * 5 == opal_crypt_recorded() - before);
}

/* ---- threads at first contact ---- */

static struct {
    const opal_crypt_local_t *a, *b;
    opal_crypt_session_t *ab, *ba;              /* published */
    pthread_barrier_t start;
    int wrong[THREADS];
} race;

static opal_crypt_session_t *publish(opal_crypt_session_t **place, opal_crypt_session_t *own)
{
    opal_crypt_session_t *first = NULL;

    if (NULL == own || __atomic_compare_exchange_n(place, &first, own, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        return own;
    }
    opal_crypt_session_destroy(own);
    return first;
}

static void *first_contact(void *argument)
{
    int *wrong = &race.wrong[(intptr_t) argument];

    pthread_barrier_wait(&race.start);
    opal_crypt_session_t *ab = publish(&race.ab, contact(race.a, race.b));
    opal_crypt_session_t *ba = publish(&race.ba, contact(race.b, race.a));
    if (NULL == ab || NULL == ba) {
        ++*wrong;
        return NULL;
    }
    for (int i = 0; i < 20; ++i) {
        *wrong += direct(ab, ba) + chopped(ba, ab);
    }
    return NULL;
}

static void threads_at_first_contact(void)
{
    pthread_barrier_init(&race.start, NULL, THREADS);
    for (uint32_t round = 0; round < 20; ++round) {
        opal_crypt_local_t *a = process(0, round), *b = process(1, round);
        pthread_t threads[THREADS];

        race.a = a;
        race.b = b;
        race.ab = race.ba = NULL;
        for (intptr_t t = 0; t < THREADS; ++t) {
            UNIT_REQUIRE(0 == pthread_create(&threads[t], NULL, first_contact, (void *) t));
        }
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[t], NULL);
            UNIT_CHECK(0 == race.wrong[t]);
        }
        UNIT_CHECK(THREADS * 20 == opal_crypt_session_sent(race.ab));
        UNIT_CHECK(THREADS * 20 == opal_crypt_session_sent(race.ba));
        opal_crypt_session_destroy(race.ab);
        opal_crypt_session_destroy(race.ba);
        opal_crypt_local_destroy(a);
        opal_crypt_local_destroy(b);
    }
    pthread_barrier_destroy(&race.start);
}

/* ---- the record itself ---- */

/* Two sessions of one pair of keys, both used: what must never happen. */
static void seal_twice(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0);
    opal_crypt_session_t *one = contact(a, b), *two = contact(a, b), *ba = contact(b, a);

    UNIT_CHECK(0 == direct(one, ba));
    UNIT_CHECK(0 == direct(two, ba));
}

/* How this program ends, told to do something else: in a process of its own (not a
 * fork'd child: such a one refuses to seal). */
/* `late` leaves memory of libcrypto, which nothing may free after its end. */
static int run_as(const char *program, const char *what)
{
    int status = 0;
    pid_t child = fork();

    if (0 == child) {
        setrlimit(RLIMIT_CORE, &(struct rlimit) {0, 0});
        setenv("TMPDIR", fixture_directory, 1);
        setenv("ASAN_OPTIONS", 0 == strcmp(what, "late") ? "abort_on_error=1:detect_leaks=0" : "abort_on_error=1", 1);
        fclose(stderr);
        execl(program, program, what, (char *) NULL);
        _exit(99);
    }
    UNIT_REQUIRE(child > 0 && child == waitpid(child, &status, 0));
    return status;
}

static void the_record_notices(const char *program)
{
    const int status = run_as(program, "twice");

    UNIT_CHECK(WIFSIGNALED(status) && SIGABRT == WTERMSIG(status));
}

/* ---- MPI_Finalize in a function of atexit ---- */

/* libcrypto is asked to clean up before its own function of atexit does. */
static void end_late(void)
{
    opal_crypt_local_t *a = process(0, 0), *b = process(1, 0), *c = process(2, 0);
    opal_crypt_session_t *ab = contact(a, b), *ba = contact(b, a);
    uint8_t blocks[2][16] = {{1}, {2}};

    UNIT_REQUIRE(NULL != ab && NULL != ba);
    UNIT_CHECK(0 == direct(ab, ba) && 0 == chopped(ba, ab));
    OPENSSL_cleanup();
    UNIT_CHECK(NULL == opal_crypt_library());
    UNIT_CHECK(NULL == contact(a, c));
    UNIT_CHECK(OPAL_CRYPT_OK != opal_crypt_thread_aes(opal_crypt_thread(), blocks[0], 16,
                                                      blocks[1], blocks[1], 1));
    opal_crypt_session_destroy(ab);
    opal_crypt_session_destroy(ba);
    opal_crypt_local_destroy(a);
    opal_crypt_local_destroy(b);
    opal_crypt_local_destroy(c);
    opal_crypt_finalize();
}

int main(int count, char **arguments)
{
    fixture_begin();
    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    fixture_file("psk", FIXTURE_PSK "\n", 0600);
    options = fixture_options(OPAL_CRYPT_AUTH_PSK);
    options.psk_file = strdup(fixture_path("psk"));
    options.aead = &opal_aead_openssl_module;
    options.epoch_shift = SHIFT;

    if (count > 1 && 0 == strcmp(arguments[1], "twice")) {
        seal_twice();
        return 0;
    }
    if (count > 1) {
        end_late();
        return unit_done();
    }
    UNIT_GROUP("the record of nonces notices a pair that seals twice");
    the_record_notices(arguments[0]);
    UNIT_GROUP("records to sessions to messages, both ways");
    both_ways();
    UNIT_GROUP("a process with itself");
    alone();
    UNIT_GROUP("after libcrypto's end");
    UNIT_CHECK(0 == run_as(arguments[0], "late"));
    UNIT_GROUP("a reason for each session that is not made");
    why_there_is_none();
    UNIT_GROUP("refusals leave no session");
    refusals();
    UNIT_GROUP("a provider that comes later");
    provider_comes_later();
    UNIT_GROUP("%d reconnects of one pair of keys", ROUNDS);
    reconnects();
    UNIT_GROUP("%d lives of one rank", ROUNDS);
    instances();
    UNIT_GROUP("an earlier instance");
    old_instance();
    UNIT_GROUP("%d threads at first contact", THREADS);
    threads_at_first_contact();
    UNIT_GROUP("finalize, and again");
    start_again();
    free((char *) (uintptr_t) options.psk_file);
    return unit_done();
}

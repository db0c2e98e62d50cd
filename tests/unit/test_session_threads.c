/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Eight threads on one session: each seals, opens and offers for acceptance,
 * from first contact on, over many epochs, rests and threads that come and go.  The
 * core is the one that aborts when a (key, nonce) pair seals twice; under
 * ThreadSanitizer this test shows that nothing races.
 */
#include "unit.h"

#include "sessions.h"

#include "opal/mca/common/crypt/base/nonce_log.h"

#define THREADS  8
#define SHIFT    4
#define MESSAGES 600            /* a thread and round */
#define ROUNDS   3

static ends_t ends;
static opal_crypt_session_t *published;
static pthread_barrier_t start;
static unsigned long wrong[THREADS];

/* First contact: every thread makes the session, one is published, the rest destroyed.
 * (No UNIT_CHECK in threads: it counts without a lock.) */
static opal_crypt_session_t *contact(void)
{
    opal_crypt_session_t *expected = NULL, *own;
    opal_crypt_secrets_t *secrets = opal_crypt_secmem_alloc(sizeof(*secrets));

    if (NULL == secrets) {
        return NULL;
    }
    fill(secrets, sizeof(*secrets), 99);
    if (OPAL_CRYPT_OK != opal_crypt_session_from_secrets(secrets, &opal_aead_openssl_module,
                                                         OPAL_AEAD_AES_128_GCM, SHIFT, &own)) {
        return NULL;
    }
    if (!__atomic_compare_exchange_n(&published, &expected, own, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        opal_crypt_session_destroy(own);
        return expected;
    }
    return own;
}

static int direct(opal_crypt_session_t *from, uint64_t seed, const opal_crypt_envelope_t *envelope, uint64_t *counter)
{
    uint8_t plain[64], frame[64 + OPAL_CRYPT_DIRECT_OVERHEAD], back[64];

    fill(plain, sizeof(plain), seed);
    return !(OPAL_CRYPT_OK == opal_crypt_direct_seal(from, envelope, plain, sizeof(plain), frame)
             && OPAL_CRYPT_OK == opal_crypt_direct_open(ends.b, envelope, frame, sizeof(frame), back, SIZE_MAX, counter)
             && 0 == memcmp(plain, back, sizeof(plain)));
}

static int chopped(opal_crypt_session_t *from, uint64_t seed, const opal_crypt_envelope_t *envelope, uint64_t *counter)
{
    opal_crypt_shape_t shape, seen_shape;
    opal_crypt_chop_t *sealing = NULL, *opening = NULL;
    uint8_t plain[100], first[70], segment[40], back[100];
    uint64_t seen = UINT64_MAX;

    fill(plain, sizeof(plain), seed);
    int bad = OPAL_CRYPT_OK != opal_crypt_shape_make(100, 30, 24, &shape)
              || OPAL_CRYPT_OK != opal_crypt_first_seal(from, envelope, &shape, plain, first, counter, &sealing)
              || OPAL_CRYPT_OK != opal_crypt_first_open(ends.b, envelope, first, sizeof(first), back, SIZE_MAX,
                                                        &seen_shape, &seen, &opening);
    for (uint32_t i = 1; !bad && i <= shape.count; ++i) {
        uint64_t at = opal_crypt_segment_offset(&shape, i);
        size_t wire = opal_crypt_segment_bytes(&shape, i) + OPAL_CRYPT_SEGMENT_OVERHEAD;
        bad = OPAL_CRYPT_OK != opal_crypt_segment_seal(sealing, i, plain + at, segment)
              || OPAL_CRYPT_OK != opal_crypt_segment_open(opening, i, segment, wire, back + at);
    }
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
    return bad || seen != *counter || 0 != memcmp(plain, back, sizeof(plain));
}

static void *work(void *argument)
{
    const int me = (int) (intptr_t) argument;
    const opal_crypt_envelope_t envelope = {1, 2, 1, me};              /* a tag of its own: order holds */
    opal_crypt_stats_t stats;

    pthread_barrier_wait(&start);
    opal_crypt_session_t *from = contact();
    wrong[me] += NULL == from;
    for (int i = 0; NULL != from && i < MESSAGES; ++i) {
        uint64_t counter = UINT64_MAX, seed = (uint64_t) me << 32 | (unsigned) i;
        const unsigned long bad = (unsigned long) (0 == i % 8 ? chopped(from, seed, &envelope, &counter)
                                                              : direct(from, seed, &envelope, &counter));
        if (0 != bad) {
            ++wrong[me];
            continue;
        }
        uint64_t serial = opal_crypt_serial_take(ends.serials);
        wrong[me] += OPAL_CRYPT_OK != opal_crypt_accept(ends.b, ends.serials, serial, &envelope, counter, 0);
        if (0 == i % 50) {
            serial = opal_crypt_serial_take(ends.serials);
            wrong[me] += OPAL_CRYPT_ERR_REPLAY
                         != opal_crypt_accept(ends.b, ends.serials, serial, &envelope, counter, 0);
            opal_crypt_serial_drop(ends.serials, opal_crypt_serial_take(ends.serials));
            opal_crypt_stats(&stats);
            opal_crypt_session_rest(from);
            opal_crypt_session_rest(ends.b);
        }
    }
    return NULL;
}

int main(void)
{
    const uint64_t total = (uint64_t) ROUNDS * THREADS * MESSAGES;
    opal_crypt_stats_t stats;
    uint64_t highest, accepted;
    pthread_t threads[THREADS];

    ends = ends_make(OPAL_AEAD_AES_128_GCM, SHIFT, 99);
    pthread_barrier_init(&start, NULL, THREADS);
    UNIT_GROUP("%d threads, %d rounds, %llu messages over %llu epochs", THREADS, ROUNDS,
               (unsigned long long) total, (unsigned long long) (total >> SHIFT));
    for (int round = 0; round < ROUNDS; ++round) {
        for (intptr_t t = 0; t < THREADS; ++t) {
            UNIT_REQUIRE(0 == pthread_create(&threads[t], NULL, work, (void *) t));
        }
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[t], NULL);
            UNIT_CHECK(0 == wrong[t]);
        }
    }
    UNIT_CHECK(total == opal_crypt_session_sent(published));
    opal_crypt_session_gap(ends.b, &highest, &accepted);
    UNIT_CHECK(total == highest && total == accepted);
    UNIT_CHECK(0 == ends.b->replay.count || ends.b->replay.mark == total);

    /* a chopped message is one call for each of its four parts */
    opal_crypt_stats(&stats);
    UNIT_CHECK(total + 3 * total / 8 == stats.sealed_calls && stats.sealed_calls == stats.opened_calls);
    UNIT_CHECK(stats.sealed_calls == opal_crypt_recorded());
    UNIT_CHECK(0 == stats.failed_opens);

    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {          /* no seat is held */
        UNIT_CHECK(0 == (published->out.seats[i].word & 0x7fff) && 0 == (ends.b->in.seats[i].word & 0x7fff));
    }
    opal_crypt_session_destroy(published);
    ends_free(&ends);
    opal_crypt_finalize();
    return unit_done();
}

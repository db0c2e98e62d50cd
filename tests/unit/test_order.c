/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * MPI's order and the replay set together, through opal_crypt_accept:
 * single cases, random traffic against an oracle that remembers everything,
 * and a million messages in bounded memory.
 */
#include "unit.h"

#include "sessions.h"

static int accept_at(ends_t *ends, uint64_t serial, int32_t tag, uint64_t counter)
{
    const opal_crypt_envelope_t envelope = {1, 2, 1, tag};

    return opal_crypt_accept(ends->b, ends->serials, serial, &envelope, counter, 0);
}

static int accept_any(ends_t *ends, uint64_t serial, int32_t tag, uint64_t counter)
{
    const opal_crypt_envelope_t envelope = {1, 2, 1, tag};

    return opal_crypt_accept(ends->b, ends->serials, serial, &envelope, counter, OPAL_CRYPT_ANY_TAG);
}

static uint64_t post_any(ends_t *ends)
{
    return opal_crypt_serial_take_any(ends->serials);
}

static uint64_t post(ends_t *ends)
{
    return opal_crypt_serial_take(ends->serials);
}

static void single_cases(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 1);
    uint64_t s[8];

    for (int i = 0; i < 8; ++i) {
        s[i] = post(&ends);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[2], 5, 10));
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_at(&ends, s[1], 5, 11));       /* swapped */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[3], 6, 9));               /* another tag */
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == accept_at(&ends, s[4], 6, 9));
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_at(&ends, s[5], 5, 8));
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[0], 5, 7));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == accept_at(&ends, s[6], 7, 7));       /* under another tag */

    /* refused ones left no trace: their counters may still be accepted correctly */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[7], 5, 11));

    uint64_t highest, accepted;
    opal_crypt_session_gap(ends.b, &highest, &accepted);
    UNIT_CHECK(12 == highest && 4 == accepted);
    ends_free(&ends);
}

/* The same tag in another communicator, in the other half of its id, or in an earlier one that had
 * the id, is another envelope. */
static void envelopes_are_apart(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 1);
    const opal_crypt_envelope_t envelopes[] = {{1, 2, 1, 3}, {1, 3, 1, 3}, {2, 2, 1, 3}, {1, 2, 1, 4}, {1, 2, 2, 3}, {1, 2, 1, -3}};

    (void) post(&ends);                         /* outstanding: nothing settles */
    for (unsigned i = 0; i < 6; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_accept(ends.b, ends.serials, post(&ends),
                                                      &envelopes[i], 10 - i, 0));
    }
    for (unsigned i = 0; i < 6; ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == opal_crypt_accept(ends.b, ends.serials, post(&ends),
                                                             &envelopes[i], 4 - i % 5, 0));
    }
    ends_free(&ends);
}

static void overtaking_allowed(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 1);
    const opal_crypt_envelope_t envelope = {1, 2, 1, 3};
    uint64_t counters[] = {5, 3, 4, 3};

    for (int i = 0; i < 4; ++i) {
        UNIT_CHECK((3 == i ? OPAL_CRYPT_ERR_REPLAY : OPAL_CRYPT_OK)
                   == opal_crypt_accept(ends.b, ends.serials, post(&ends), &envelope,
                                        counters[i], OPAL_CRYPT_ALLOW_OVERTAKING));
    }
    ends_free(&ends);
}

/* A communicator is freed, its context id comes back under the next generation: what was
 * accepted before does not count there, and is forgotten. */
static void context_id_comes_back(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 1);
    opal_crypt_serials_t *again;
    opal_crypt_envelope_t envelope = {1, 2, 1, 0};

    (void) post(&ends);
    for (int32_t tag = 0; tag < 10; ++tag) {
        UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, post(&ends), tag, 20 + (uint64_t) tag));
    }
    opal_crypt_serials_destroy(ends.serials);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_serials_create(&again));
    ends.serials = again;
    (void) post(&ends);
    envelope.generation = 2;
    for (envelope.tag = 0; envelope.tag < 7; ++envelope.tag) {      /* the seventh finds the table full */
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_accept(ends.b, ends.serials, post(&ends), &envelope,
                                                      (uint64_t) envelope.tag, 0));
    }
    UNIT_CHECK(7 == ends.b->order.count);
    ends_free(&ends);
}

/* A receive for any tag gets the first message of all tags. */
static void any_tag(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 1);
    uint64_t s[12];

    for (int i = 0; i < 12; ++i) {
        s[i] = 2 == i || 3 == i || 7 == i || 9 == i ? post_any(&ends) : post(&ends);
    }
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[0], 5, 10));
    UNIT_CHECK(OPAL_CRYPT_OK == accept_any(&ends, s[2], 6, 8));             /* its tag was another */
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_any(&ends, s[3], 7, 7));      /* s[2] should have got it */
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_at(&ends, s[4], 8, 7));       /* also this one */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[1], 7, 7));              /* posted before */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[5], -9, 4));             /* any tag does not include these */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[11], 9, 21));
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[10], 5, 30));            /* not in order with s[11] */
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_any(&ends, s[7], 3, 22));     /* s[11] got an earlier one */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_any(&ends, s[9], 3, 20));
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[6], 2, 40));             /* a tag of its own, posted early */
    UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, s[8], 2, 41));

    /* another communicator */
    const opal_crypt_envelope_t other = {1, 3, 1, 5};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_accept(ends.b, ends.serials, post_any(&ends), &other, 1,
                                                  OPAL_CRYPT_ANY_TAG));
    ends_free(&ends);
}

/* ---- against an oracle ---- */

#define LIMIT 3000

static uint64_t with_ranges;        /* acceptances decided while there were some */

typedef struct {
    bool used, any;
    int tag;
    uint64_t counter;
} seen_t;

/* The receive that was posted first must not get the later of two messages that
 * both match it. */
static int oracle(const seen_t *seen, uint64_t next_serial, uint64_t serial, bool any, int tag, uint64_t counter)
{
    int rc = OPAL_CRYPT_OK;

    for (uint64_t s = 1; s < next_serial; ++s) {
        if (seen[s].used && seen[s].counter == counter) {
            return OPAL_CRYPT_ERR_REPLAY;
        }
        bool first_is_any = s < serial ? seen[s].any : any;
        if (seen[s].used && (seen[s].tag == tag || first_is_any) && (s < serial) != (seen[s].counter < counter)) {
            rc = OPAL_CRYPT_ERR_ORDER;
        }
    }
    return rc;
}

/* Posts, acceptances of honest and of wrong counters, drops, in random order;
 * one in `any_of` posts is for any tag (0: none). */
static void against_oracle(int tags, uint64_t window, unsigned outstanding_most, uint64_t any_of, uint64_t seed)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, seed);
    seen_t *seen = calloc(LIMIT + 2, sizeof(seen_t));
    uint64_t *outstanding = calloc(outstanding_most + 1, sizeof(uint64_t)), next = 1, refused = 0;
    unsigned count = 0;
    bool good = true;

    UNIT_REQUIRE(NULL != seen && NULL != outstanding);
    while (next <= LIMIT || count > 0) {
        if (next <= LIMIT && count < outstanding_most && 0 != random_below(&seed, 3)) {
            bool any = any_of > 0 && 0 == random_below(&seed, any_of);
            outstanding[count++] = any ? post_any(&ends) : post(&ends);
            seen[next].any = any;
            good = good && next == outstanding[count - 1];
            ++next;
            continue;
        }
        if (0 == count) {
            continue;
        }
        unsigned i = (unsigned) random_below(&seed, count);
        uint64_t serial = outstanding[i];
        outstanding[i] = outstanding[--count];
        if (0 == random_below(&seed, 16)) {
            opal_crypt_serial_drop(ends.serials, serial);
            continue;
        }
        /* mostly what fits the serial, give or take the window */
        uint64_t counter = serial + random_below(&seed, window);
        int tag = (int) random_below(&seed, (uint64_t) tags);
        bool any = seen[serial].any;
        int expected = oracle(seen, next, serial, any, tag, counter);
        int rc = any ? accept_any(&ends, serial, tag, counter) : accept_at(&ends, serial, tag, counter);
        good = good && expected == rc;
        refused += OPAL_CRYPT_OK != rc;
        if (OPAL_CRYPT_OK == rc) {
            seen[serial] = (seen_t) {true, any, tag, counter};
        }
        with_ranges += ends.b->order.range_count > 0;
    }
    UNIT_CHECK(good);
    UNIT_CHECK(refused > 0 && refused < LIMIT);
    free(seen);
    free(outstanding);
    ends_free(&ends);
}

/* ---- bounded memory ---- */

#define MILLION 1000000

static uint64_t *shuffled(uint64_t count, uint64_t window, uint64_t seed)
{
    uint64_t *order = malloc(count * sizeof(uint64_t));

    UNIT_REQUIRE(NULL != order);
    for (uint64_t i = 0; i < count; ++i) {
        order[i] = i;
    }
    for (uint64_t i = 0; i < count; ++i) {
        uint64_t span = count - i < window ? count - i : window;
        uint64_t j = i + random_below(&seed, span), swap = order[i];
        order[i] = order[j];
        order[j] = swap;
    }
    return order;
}

static size_t memory(const ends_t *ends)
{
    return opal_crypt_replay_memory(&ends->b->replay)
           + opal_crypt_order_memory(&ends->b->order)
           + opal_crypt_replay_memory(&ends->serials->given_back);
}

/* A million messages over `tags` tags: the sender's order is 0, 1, 2 ..., message
 * i has tag of i; they are received tag by tag in the order of `order`. */
static void million(int32_t tags, uint64_t window, bool listener, bool any, size_t most_bytes)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 5);
    uint64_t *order = shuffled(MILLION, window, 77);
    uint64_t *next_of_tag = malloc((size_t) tags * sizeof(uint64_t)), waiting = 0;
    size_t most = 0;
    bool good = true;

    UNIT_REQUIRE(NULL != next_of_tag);
    for (int32_t t = 0; t < tags; ++t) {
        next_of_tag[t] = (uint64_t) t;
    }
    if (listener) {
        waiting = post(&ends);
    }
    for (uint64_t i = 0; i < MILLION; ++i) {
        int32_t tag = (int32_t) (order[i] % (uint64_t) tags);       /* the turn of this tag */
        if (any && 0 == i) {        /* from here on the order of all is remembered */
            opal_crypt_serial_drop(ends.serials, post_any(&ends));
        }
        good = good && OPAL_CRYPT_OK == accept_at(&ends, post(&ends), tag, next_of_tag[tag]);
        if (next_of_tag[tag] >= (uint64_t) tags) {                  /* an older one again */
            if (0 == i % 64) {
                good = good && OPAL_CRYPT_ERR_REPLAY == accept_at(&ends, post(&ends), tag,
                                                                  next_of_tag[tag] - (uint64_t) tags);
            }
        }
        next_of_tag[tag] += (uint64_t) tags;
        if (0 == i % 1024) {
            size_t now = memory(&ends);
            most = now > most ? now : most;
        }
    }
    UNIT_CHECK(good);
    UNIT_CHECK(most <= most_bytes);
    UNIT_CHECK(MILLION == ends.b->replay.accepted && MILLION == ends.b->replay.mark);
    printf("    tags %d, window %llu%s%s: at most %zu bytes\n", tags, (unsigned long long) window,
           listener ? ", one receive outstanding throughout" : "", any ? ", one for any tag" : "", most);
    if (listener) {
        opal_crypt_serial_drop(ends.serials, waiting);
    }
    free(order);
    free(next_of_tag);
    ends_free(&ends);
}

/* `count` messages, each on the next tag below the last, like those of non-blocking collectives.
 * listener: a receive that was posted before all of them stays outstanding.  missing: the first
 * message is received last.  `stray`: one in this many tags is not used. */
static void fresh_tags(uint64_t count, bool listener, bool missing, uint64_t stray, size_t most_bytes)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 6);
    const uint64_t waiting = listener ? post(&ends) : 0, first = missing ? 1 : 0;
    size_t most = 0;
    int32_t tag = -27;
    bool good = true;

    for (uint64_t i = 0; i < count; ++i, --tag) {
        tag -= stray > 0 && 0 == i % stray;
        good = good && OPAL_CRYPT_OK == accept_at(&ends, post(&ends), tag, first + i);
        if (0 == i % 100003) {
            /* the one that is missing came too late for this tag, and for some earlier one */
            const int32_t used = (int32_t) (-28 - (int64_t) (i / 2) - (stray > 0 ? (int64_t) (i / 2 / stray) : 0));
            good = good && (!missing || (OPAL_CRYPT_ERR_ORDER == accept_at(&ends, post(&ends), tag, 0)
                                         && (i < 10 || OPAL_CRYPT_ERR_ORDER == accept_at(&ends, post(&ends), used, 0))));
            most = memory(&ends) > most ? memory(&ends) : most;
        }
    }
    UNIT_CHECK(good);
    UNIT_CHECK(most <= most_bytes);
    printf("    %llu tags%s%s: at most %zu bytes, %u ranges\n", (unsigned long long) count,
           listener ? ", one receive outstanding" : "", missing ? ", one message missing" : "", most,
           ends.b->order.range_count);
    UNIT_CHECK((listener || missing) == (ends.b->order.range_count > 0));
    /* What is valid is taken: the missing message on a tag of its own, even among the others. */
    UNIT_CHECK(!missing || OPAL_CRYPT_OK == accept_at(&ends, post(&ends), stray > 0 ? -27 : 5, 0));
    UNIT_CHECK(!listener || OPAL_CRYPT_OK == accept_at(&ends, waiting, 6, first + count));
    ends_free(&ends);
}

/* The receive that was posted first must not get what is later than a message of its tag. */
static void listener_is_late(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 7);
    const uint64_t waiting = post(&ends);

    for (int32_t i = 0; i < 10000; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == accept_at(&ends, post(&ends), i, (uint64_t) i));
    }
    UNIT_CHECK(ends.b->order.range_count > 0);
    UNIT_CHECK(OPAL_CRYPT_ERR_ORDER == accept_at(&ends, waiting, 4000, 10000));
    ends_free(&ends);
}

int main(void)
{
    static const bool no = false;

    UNIT_GROUP("single cases");
    single_cases();
    UNIT_GROUP("envelopes are kept apart");
    envelopes_are_apart();
    UNIT_GROUP("overtaking allowed: replays are still refused");
    overtaking_allowed();
    UNIT_GROUP("a context id that comes back");
    context_id_comes_back();
    UNIT_GROUP("receives for any tag");
    any_tag();
    UNIT_GROUP("random traffic against an oracle");
    for (uint64_t seed = 1; seed <= 6; ++seed) {
        opal_crypt_threads(0 == seed % 2 ? &no : NULL);             /* one thread, or any */
        for (uint64_t any_of = 0; any_of <= 4; ++any_of) {
            against_oracle(1, 3, 4, any_of, seed);
            against_oracle(2, 8, 20, any_of, seed + 100);
            against_oracle(7, 30, 200, any_of, seed + 200);
            against_oracle(40, 200, 1000, any_of, seed + 300);
            against_oracle(500, 20, 30, any_of, seed + 400);
            against_oracle(1500, 3, 8, any_of, seed + 500);
            against_oracle(3000, 400, 2, any_of, seed + 600);
        }
    }
    UNIT_CHECK(with_ranges > 100);
    opal_crypt_threads(NULL);
    UNIT_GROUP("fresh tags");
    listener_is_late();
    fresh_tags(MILLION / 3, false, false, 0, 0);
    fresh_tags(MILLION / 3, true, false, 0, 60 << 10);
    fresh_tags(MILLION / 3, false, true, 0, 60 << 10);
    fresh_tags(10 * MILLION, true, true, 0, 60 << 10);
    fresh_tags(MILLION / 3, true, true, 10000, 80 << 10);
    UNIT_GROUP("a million messages in random order across tags");
    million(1, 1, false, false, 0);
    million(1, 1, false, true, 0);
    million(1000, 1000, false, false, 300 << 10);
    million(1000, MILLION, false, false, 600 << 10);
    million(1000, MILLION, true, false, 600 << 10);
    million(1000, MILLION, true, true, 600 << 10);
    million(20000, MILLION, true, false, 8 << 20);
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The set of accepted counters: against a plain array, and its memory.
 */
#include "unit.h"

#include "opal/mca/common/crypt/wire/replay.h"
#include "sessions.h"

#define PAGE OPAL_CRYPT_REPLAY_PAGE

/* Everything that the set says, against the array `in`, `limit` counters from `base`. */
static void compare(const opal_crypt_replay_t *set, const bool *in, uint64_t base, uint64_t limit)
{
    uint64_t missing = base + limit, top = base, accepted = 0;
    bool good = true;

    for (uint64_t i = limit; i-- > 0;) {
        missing = in[i] ? missing : base + i;
        top = in[i] && top == base ? base + i + 1 : top;
        accepted += in[i];
        good = good && in[i] == opal_crypt_replay_has(set, base + i)
               && missing == opal_crypt_replay_missing(set, base + i);
    }
    UNIT_CHECK(good);
    UNIT_CHECK(missing == set->mark);
    UNIT_CHECK(top == set->top && accepted == set->accepted);
}

static void random_against_array(uint64_t base, uint64_t limit, uint64_t window, uint64_t seed)
{
    bool *in = calloc(limit + 1, sizeof(bool));
    opal_crypt_replay_t set;
    bool good = true;

    UNIT_REQUIRE(NULL != in);
    opal_crypt_replay_init(&set, base);
    for (uint64_t step = 0; step < 2 * limit; ++step) {
        uint64_t low = step / 2 < window ? 0 : step / 2 - window;
        uint64_t high = low + 2 * window < limit ? low + 2 * window : limit;
        uint64_t i = low + random_below(&seed, high - low);
        int rc = opal_crypt_replay_insert(&set, base + i);
        good = good && rc == (in[i] ? OPAL_CRYPT_ERR_REPLAY : OPAL_CRYPT_OK);
        in[i] = true;
        if (0 == step % (limit / 3)) {
            compare(&set, in, base, limit);
        }
    }
    compare(&set, in, base, limit);
    for (uint64_t i = 0; i < limit; ++i) {      /* what is left, and then nothing is held */
        good = good && (in[i] ? OPAL_CRYPT_ERR_REPLAY : OPAL_CRYPT_OK)
                       == opal_crypt_replay_insert(&set, base + i);
    }
    UNIT_CHECK(good);
    UNIT_CHECK(base + limit == set.mark && limit == set.accepted);
    UNIT_CHECK(set.count <= 1);
    opal_crypt_replay_fini(&set);
    free(in);
}

static void in_order_is_free(void)
{
    opal_crypt_replay_t set;
    bool good = true;

    opal_crypt_replay_init(&set, 0);
    for (uint64_t c = 0; c < 5 * PAGE; ++c) {
        good = good && OPAL_CRYPT_OK == opal_crypt_replay_insert(&set, c)
               && OPAL_CRYPT_ERR_REPLAY == opal_crypt_replay_insert(&set, c);
    }
    UNIT_CHECK(good);
    UNIT_CHECK(0 == opal_crypt_replay_memory(&set));
    opal_crypt_replay_fini(&set);
}

/* One message never comes: its page and one run, however many follow. */
static void one_hole(void)
{
    opal_crypt_replay_t set;
    const uint64_t hole = 3 * PAGE + 5, end = 100 * PAGE;
    bool good = true;

    opal_crypt_replay_init(&set, 0);
    for (uint64_t c = 0; c < end; ++c) {
        good = good && (c == hole || OPAL_CRYPT_OK == opal_crypt_replay_insert(&set, c));
        good = good && opal_crypt_replay_memory(&set) <= 3 * PAGE / 8 + 4 * sizeof(opal_crypt_replay_run_t);
    }
    UNIT_CHECK(good);
    UNIT_CHECK(hole == set.mark && 2 == set.count);
    UNIT_CHECK(end == opal_crypt_replay_missing(&set, hole + 1));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_replay_insert(&set, hole));
    UNIT_CHECK(end == set.mark && 0 == set.count);
    opal_crypt_replay_fini(&set);
}

static void far_end(void)
{
    opal_crypt_replay_t set;
    const uint64_t last = (UINT64_C(1) << 48) - 1;

    opal_crypt_replay_init(&set, 0);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_replay_insert(&set, last));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_replay_insert(&set, 0));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_replay_insert(&set, last));
    UNIT_CHECK(1 == set.mark && last + 1 == set.top && 2 == set.accepted);
    UNIT_CHECK(last + 1 == opal_crypt_replay_missing(&set, last));
    UNIT_CHECK(last - 1 == opal_crypt_replay_missing(&set, last - 1));
    opal_crypt_replay_fini(&set);
}

int main(void)
{
    UNIT_GROUP("counters in order cost nothing");
    in_order_is_free();
    UNIT_GROUP("one that never comes");
    one_hole();
    UNIT_GROUP("the last counter of all");
    far_end();
    UNIT_GROUP("random orders against an array");
    random_against_array(0, 3 * PAGE, 3 * PAGE, 1);
    random_against_array(1, 4 * PAGE, 50, 2);
    random_against_array(7 * PAGE - 3, 6 * PAGE + 100, PAGE, 3);
    random_against_array((UINT64_C(1) << 47) + 11, 2 * PAGE, 3 * PAGE / 2, 4);
    return unit_done();
}

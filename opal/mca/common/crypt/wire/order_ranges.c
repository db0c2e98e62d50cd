/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * State of many tags at once.  See crypt/wire/order.h.
 *
 * For an envelope with one span it matters only between which outstanding serials it lies, and between which missing
 * counters: no other serial or counter will ever be compared with it.  Neighboring tags that agree in this form one
 * range.  Whatever is outstanding or missing later lies above all of them, so a range never has to be split for that.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

typedef opal_crypt_order_t order_t;
typedef opal_crypt_order_range_t range_t;
typedef opal_crypt_span_t span_t;

static int compare_envelopes(const opal_crypt_envelope_t *a, const opal_crypt_envelope_t *b)
{
    return a->context_high != b->context_high ? (a->context_high < b->context_high ? -1 : 1)
         : a->context_low != b->context_low   ? (a->context_low < b->context_low ? -1 : 1)
         : a->generation != b->generation     ? (a->generation < b->generation ? -1 : 1)
         : a->tag != b->tag                   ? (a->tag < b->tag ? -1 : 1)
                                              : 0;
}

static int by_first(const void *a, const void *b)
{
    return compare_envelopes(&((const range_t *) a)->first, &((const range_t *) b)->first);
}

/* Ignores their tags. */
static bool same_communicator(const range_t *a, const range_t *b)
{
    return a->first.context_high == b->first.context_high && a->first.context_low == b->first.context_low
           && a->first.generation == b->first.generation;
}

const range_t *opal_crypt_ranges_find(const order_t *order, const opal_crypt_envelope_t *envelope)
{
    uint32_t low = 0, high = order->range_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (compare_envelopes(&order->ranges[middle].first, envelope) > 0) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    if (0 == low) {
        return NULL;
    }
    const range_t *range = &order->ranges[low - 1], wanted = {.first = *envelope};
    return same_communicator(range, &wanted) && envelope->tag <= range->last ? range : NULL;
}

/* ---- joining ---- */

static inline uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t most(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static bool nothing_missing(const opal_crypt_replay_t *set, uint64_t a, uint64_t b)
{
    return opal_crypt_replay_missing(set, least(a, b)) > most(a, b);
}

/* No serial and no counter that can still come will distinguish these two. */
static bool alike(const span_t *a, const span_t *b, const opal_crypt_replay_t *replay,
                  const opal_crypt_serials_t *serials)
{
    return nothing_missing(&serials->given_back, least(a->serial_low, b->serial_low),
                           most(a->serial_high, b->serial_high))
           && nothing_missing(replay, a->counter_low, b->counter_low)
           && nothing_missing(replay, a->counter_high, b->counter_high);
}

static void join(span_t *into, const span_t *span)
{
    into->serial_low = least(into->serial_low, span->serial_low);
    into->serial_high = most(into->serial_high, span->serial_high);
    into->counter_low = least(into->counter_low, span->counter_low);
    into->counter_high = most(into->counter_high, span->counter_high);
}

typedef struct {
    range_t *ranges;
    uint32_t count;
    const opal_crypt_replay_t *replay;
    const opal_crypt_serials_t *serials;            /* those whose lock is held */
} result_t;

/* Takes over the range's reference, or releases it. */
static void append(result_t *result, const range_t *range)
{
    range_t *before = 0 == result->count ? NULL : &result->ranges[result->count - 1];

    if (opal_crypt_span_final(&range->span, result->replay, range->serials)) {
        opal_crypt_serials_unref(range->serials);
    } else if (NULL != before && range->serials == result->serials && before->serials == range->serials
               && same_communicator(before, range) && before->last == range->first.tag - 1
               && alike(&before->span, &range->span, result->replay, range->serials)) {
        before->last = range->last;
        join(&before->span, &range->span);
        opal_crypt_serials_unref(range->serials);
    } else {
        result->ranges[result->count++] = *range;
    }
}

/* Append what is left of an old range, parts of which newer ones (of one tag each) replace. */
static void append_without(result_t *result, range_t old, const range_t *newer, uint32_t count, uint32_t *used)
{
    for (; *used < count && same_communicator(&newer[*used], &old) && newer[*used].first.tag <= old.last; ++*used) {
        const range_t *one = &newer[*used];

        if (one->first.tag > old.first.tag) {
            range_t part = old;
            part.last = one->first.tag - 1;
            __atomic_fetch_add(&part.serials->references, 1, __ATOMIC_RELAXED);
            append(result, &part);
        }
        append(result, one);
        if (one->first.tag == old.last) {
            ++*used;
            opal_crypt_serials_unref(old.serials);
            return;
        }
        old.first.tag = one->first.tag + 1;
    }
    append(result, &old);
}

int opal_crypt_ranges_merge(order_t *order, const opal_crypt_replay_t *replay,
                            const opal_crypt_serials_t *serials, range_t *newer, uint32_t count)
{
    /* each new one can split an old one */
    const uint32_t capacity = order->range_count + 2 * count;
    result_t result = {.ranges = malloc(capacity * sizeof(range_t)), .replay = replay, .serials = serials};
    uint32_t used = 0;

    if (NULL == result.ranges) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    qsort(newer, count, sizeof(range_t), by_first);
    for (uint32_t i = 0; i < order->range_count; ++i) {
        while (used < count && compare_envelopes(&newer[used].first, &order->ranges[i].first) < 0) {
            append(&result, &newer[used++]);
        }
        append_without(&result, order->ranges[i], newer, count, &used);
    }
    while (used < count) {
        append(&result, &newer[used++]);
    }
    free(order->ranges);
    order->ranges = result.ranges;
    order->range_count = result.count;
    order->range_capacity = capacity;
    range_t *less = realloc(result.ranges, (result.count + 1) * sizeof(range_t));
    if (NULL != less) {
        order->ranges = less;
        order->range_capacity = result.count + 1;
    }
    return OPAL_CRYPT_OK;
}

void opal_crypt_ranges_free(order_t *order)
{
    for (uint32_t i = 0; i < order->range_count; ++i) {
        opal_crypt_serials_unref(order->ranges[i].serials);
    }
    free(order->ranges);
    order->ranges = NULL;
    order->range_count = order->range_capacity = 0;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The order of accepted messages per envelope.  See crypt/wire/order.h.
 *
 * Entries are dense in one array, chained by hash.  They are only removed when the array is full: then all that may be
 * forgotten go at once; from FOLD_FROM entries on, those with one span become ranges (crypt/wire/order_ranges.c); and
 * the array doubles if more than half stayed.
 */
#include "order.h"

#include <stdlib.h>
#include <string.h>

#define CAPACITY_FIRST 16
#define FOLD_FROM  256

typedef opal_crypt_order_t order_t;
typedef opal_crypt_order_entry_t entry_t;
typedef opal_crypt_span_t span_t;
typedef opal_crypt_order_range_t range_t;

/* Entries of a communicator for wildcards, under tags that no message has. */
enum { TAG_WILD = INT32_MIN, TAG_ALL = INT32_MIN + 1 };

/* ---- spans of one envelope ---- */

static inline span_t *spans_of(entry_t *entry)
{
    return 0 == entry->capacity ? &entry->one : entry->more;
}

static inline bool outstanding_between(const opal_crypt_serials_t *serials,
                                       uint64_t after, uint64_t before)
{
    return opal_crypt_replay_missing(&serials->given_back, after + 1) < before;
}

static inline void counters_join(span_t *span, const span_t *more)
{
    if (more->counter_low < span->counter_low) {
        span->counter_low = more->counter_low;
    }
    if (more->counter_high > span->counter_high) {
        span->counter_high = more->counter_high;
    }
}

static inline void span_join(span_t *low, const span_t *high)
{
    low->serial_high = high->serial_high;
    counters_join(low, high);
}

/* The position for a span of this serial. */
static uint32_t span_position(const span_t *spans, uint32_t count, uint64_t serial)
{
    uint32_t low = 0, high = count;

    if (count > 0 && spans[count - 1].serial_high < serial) {
        return count;
    }
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (spans[middle].serial_low > serial) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* Join neighbors that no outstanding serial separates. */
static void spans_compress(entry_t *entry)
{
    span_t *spans = spans_of(entry);
    uint32_t kept = 0;

    for (uint32_t i = 1; i < entry->count; ++i) {
        if (outstanding_between(entry->serials, spans[kept].serial_high, spans[i].serial_low)) {
            spans[++kept] = spans[i];
        } else {
            span_join(&spans[kept], &spans[i]);
        }
    }
    entry->count = kept + 1;
}

/* Room for one more span. */
static int spans_reserve(order_t *order, entry_t *entry)
{
    uint32_t have = 0 == entry->capacity ? 1 : entry->capacity;

    if (entry->count < have) {
        return OPAL_CRYPT_OK;
    }
    spans_compress(entry);
    if (entry->count < have && entry->count <= have / 2) {
        return OPAL_CRYPT_OK;
    }
    span_t *more = realloc(entry->more, 2 * (size_t) have * sizeof(span_t));
    if (NULL == more) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (0 == entry->capacity) {
        more[0] = entry->one;
    }
    order->spans += 2 * have - entry->capacity;
    entry->more = more;
    entry->capacity = 2 * have;
    return OPAL_CRYPT_OK;
}

static int spans_add(order_t *order, entry_t *entry, const span_t *new_span)
{
    span_t *spans = spans_of(entry);
    uint32_t i = span_position(spans, entry->count, new_span->serial_low);

    if (i > 0 && !outstanding_between(entry->serials, spans[i - 1].serial_high, new_span->serial_low)) {
        span_join(&spans[i - 1], new_span);
        return OPAL_CRYPT_OK;
    }
    if (i < entry->count
        && !outstanding_between(entry->serials, new_span->serial_high, spans[i].serial_low)) {
        spans[i].serial_low = new_span->serial_low;
        counters_join(&spans[i], new_span);
        return OPAL_CRYPT_OK;
    }
    int rc = spans_reserve(order, entry);
    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    spans = spans_of(entry);
    i = span_position(spans, entry->count, new_span->serial_low);
    memmove(&spans[i + 1], &spans[i], (entry->count - i) * sizeof(span_t));
    spans[i] = *new_span;
    ++entry->count;
    return OPAL_CRYPT_OK;
}

/* ---- the table ---- */

static uint32_t hash_of(const opal_crypt_envelope_t *envelope)
{
    uint64_t h = envelope->context_high * UINT64_C(0x9e3779b97f4a7c15);

    h = (h ^ envelope->context_low) * UINT64_C(0xbf58476d1ce4e5b9);
    h ^= h >> 29;
    h = (h ^ (uint64_t) envelope->generation << 32 ^ (uint32_t) envelope->tag) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t) (h >> 32);
}

static inline bool envelope_equal(const opal_crypt_envelope_t *a,
                                  const opal_crypt_envelope_t *b)
{
    return a->tag == b->tag && a->generation == b->generation && a->context_low == b->context_low
           && a->context_high == b->context_high;
}

OPAL_CRYPT_OFTEN
static entry_t *entry_find(const order_t *order, const opal_crypt_envelope_t *envelope)
{
    if (0 == order->count) {
        return NULL;
    }
    uint32_t at = order->heads[hash_of(envelope) & (order->capacity - 1)];
    while (0 != at && !envelope_equal(&order->entries[at - 1].envelope, envelope)) {
        at = order->entries[at - 1].chain;
    }
    return 0 == at ? NULL : &order->entries[at - 1];
}

bool opal_crypt_span_final(const span_t *last, const opal_crypt_replay_t *replay,
                           const opal_crypt_serials_t *serials)
{
    return (last->counter_high < replay->mark && last->serial_high < __atomic_load_n(&serials->oldest, __ATOMIC_RELAXED))
           || __atomic_load_n(&serials->dead, __ATOMIC_ACQUIRE);
}

static void entry_clear(order_t *order, entry_t *entry)
{
    order->spans -= entry->capacity;
    free(entry->more);
    opal_crypt_serials_unref(entry->serials);
}

static void entry_link(order_t *order, uint32_t i)
{
    uint32_t *head = &order->heads[hash_of(&order->entries[i].envelope) & (order->capacity - 1)];

    order->entries[i].chain = *head;
    *head = i + 1;
}

static void order_sweep(order_t *order, const opal_crypt_replay_t *replay)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < order->count; ++i) {
        entry_t *entry = &order->entries[i];
        if (opal_crypt_span_final(&spans_of(entry)[entry->count - 1], replay, entry->serials)) {
            entry_clear(order, entry);
        } else {
            order->entries[kept++] = *entry;
        }
    }
    order->count = kept;
}

static bool becomes_range(entry_t *entry, const opal_crypt_serials_t *serials)
{
    if (entry->serials != serials || entry->envelope.tag <= TAG_ALL) {
        return false;
    }
    spans_compress(entry);
    return 1 == entry->count;
}

/* Turn entries with one span into ranges, if most entries are such, and they are enough to justify a pass over all
 * ranges. */
static void order_fold(order_t *order, const opal_crypt_replay_t *replay,
                       const opal_crypt_serials_t *serials)
{
    range_t *newer = malloc(order->count * sizeof(range_t));
    uint32_t count = 0, kept = 0;

    for (uint32_t i = 0; NULL != newer && i < order->count; ++i) {
        entry_t *entry = &order->entries[i];
        if (becomes_range(entry, serials)) {
            newer[count++] = (range_t) {entry->envelope, entry->envelope.tag, entry->serials, *spans_of(entry)};
        }
    }
    if (count > order->count / 2 && OPAL_CRYPT_OK == opal_crypt_ranges_merge(order, replay, serials, newer, count)) {
        for (uint32_t i = 0; i < order->count; ++i) {
            entry_t *entry = &order->entries[i];
            if (becomes_range(entry, serials)) {
                order->spans -= entry->capacity;
                free(entry->more);
            } else {
                order->entries[kept++] = *entry;
            }
        }
        order->count = kept;
    }
    free(newer);
}

static int order_resize(order_t *order, uint32_t capacity)
{
    uint32_t *heads = calloc(capacity, sizeof(uint32_t));
    entry_t *entries = NULL == heads ? NULL : realloc(order->entries, capacity * sizeof(entry_t));

    if (NULL == entries) {
        free(heads);
        return OPAL_CRYPT_ERR_MEMORY;
    }
    free(order->heads);
    order->heads = heads;
    order->entries = entries;
    order->capacity = capacity;
    return OPAL_CRYPT_OK;
}

/* Room for one more entry. */
static int order_reserve(order_t *order, const opal_crypt_replay_t *replay,
                         const opal_crypt_serials_t *serials)
{
    int rc = OPAL_CRYPT_OK;

    if (order->count < order->capacity) {
        return OPAL_CRYPT_OK;
    }
    order_sweep(order, replay);
    if (order->count > order->capacity / 2 && order->count >= FOLD_FROM && order->count >= order->range_count / 4) {
        order_fold(order, replay, serials);
    }
    if (0 == order->capacity) {
        rc = order_resize(order, CAPACITY_FIRST);
    } else if (order->count > order->capacity / 2) {
        rc = order_resize(order, 2 * order->capacity);
    } else if (order->capacity > CAPACITY_FIRST && order->count < order->capacity / 8) {
        rc = order_resize(order, order->capacity / 4 < CAPACITY_FIRST ? CAPACITY_FIRST : order->capacity / 4);
    }
    if (order->capacity > 0) {
        memset(order->heads, 0, order->capacity * sizeof(uint32_t));
    }
    for (uint32_t i = 0; i < order->count; ++i) {
        entry_link(order, i);
    }
    return OPAL_CRYPT_OK != rc && order->count == order->capacity ? rc : OPAL_CRYPT_OK;
}

void opal_crypt_order_init(order_t *order)
{
    memset(order, 0, sizeof(*order));
}

void opal_crypt_order_fini(order_t *order)
{
    for (uint32_t i = 0; i < order->count; ++i) {
        entry_clear(order, &order->entries[i]);
    }
    opal_crypt_ranges_free(order);
    free(order->entries);
    free(order->heads);
    memset(order, 0, sizeof(*order));
}

/* ---- what is refused ---- */

static opal_crypt_envelope_t under(const opal_crypt_envelope_t *envelope, int32_t tag)
{
    return (opal_crypt_envelope_t) {envelope->context_high, envelope->context_low, envelope->generation, tag};
}

static inline bool concerns_wildcards(const opal_crypt_serials_t *serials,
                                      const opal_crypt_envelope_t *envelope)
{
    return envelope->tag >= 0 && __atomic_load_n(&serials->any_tag, __ATOMIC_RELAXED);
}

/* The position of `serial` among the spans of this entry: `position` are before it. */
static const span_t *spans_around(const order_t *order, const opal_crypt_envelope_t *envelope, uint64_t serial,
                                  uint32_t *position, uint32_t *count)
{
    entry_t *entry = entry_find(order, envelope);
    const range_t *range = NULL == entry ? opal_crypt_ranges_find(order, envelope) : NULL;
    const span_t *spans = NULL != entry ? spans_of(entry) : NULL != range ? &range->span : NULL;

    *count = NULL != entry ? entry->count : NULL != range;
    *position = span_position(spans, *count, serial);
    return spans;
}

/* An earlier receive got a later message, or a later receive an earlier one. */
static bool out_of_turn(const order_t *order, const opal_crypt_envelope_t *envelope, uint64_t serial,
                        uint64_t counter, bool look_behind)
{
    uint32_t i, count;
    const span_t *spans = spans_around(order, envelope, serial, &i, &count);

    return (i > 0 && spans[i - 1].counter_high >= counter)
           || (look_behind && i < count && spans[i].counter_low <= counter);
}

/* A later receive got an earlier message; these spans are not sorted by counter. */
static bool earlier_behind(const order_t *order, const opal_crypt_envelope_t *envelope, uint64_t serial,
                           uint64_t counter)
{
    uint32_t i, count;
    const span_t *spans = spans_around(order, envelope, serial, &i, &count);

    for (; i < count; ++i) {
        if (spans[i].counter_low < counter) {
            return true;
        }
    }
    return false;
}

int opal_crypt_order_check(order_t *order, const opal_crypt_serials_t *serials,
                           uint64_t serial, bool any_tag,
                           const opal_crypt_envelope_t *envelope, uint64_t counter)
{
    if (0 == (order->count | order->range_count)) {
        return OPAL_CRYPT_OK;
    }
    if (out_of_turn(order, envelope, serial, counter, true)) {
        return OPAL_CRYPT_ERR_ORDER;
    }
    if (concerns_wildcards(serials, envelope)) {
        const opal_crypt_envelope_t wild = under(envelope, TAG_WILD), all = under(envelope, TAG_ALL);

        if (out_of_turn(order, &wild, serial, counter, any_tag)
            || (any_tag && earlier_behind(order, &all, serial, counter))) {
            return OPAL_CRYPT_ERR_ORDER;
        }
    }
    return OPAL_CRYPT_OK;
}

/* ---- what is remembered ---- */

/* In a new entry, which starts with what a range knows. */
__attribute__((noinline))
static int remember_entry(order_t *order, const opal_crypt_replay_t *replay, opal_crypt_serials_t *serials,
                          const opal_crypt_envelope_t *envelope, const span_t *span)
{
    const range_t *range;
    entry_t *entry;
    int rc = order_reserve(order, replay, serials);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    range = opal_crypt_ranges_find(order, envelope);
    entry = &order->entries[order->count];
    *entry = (entry_t) {.envelope = *envelope, .serials = serials, .count = 1, .one = NULL != range ? range->span : *span};
    __atomic_fetch_add(&serials->references, 1, __ATOMIC_RELAXED);
    entry_link(order, order->count++);
    return NULL != range ? spans_add(order, entry, span) : OPAL_CRYPT_OK;
}

OPAL_CRYPT_OFTEN
static inline int remember(order_t *order, const opal_crypt_replay_t *replay,
                           opal_crypt_serials_t *serials, uint64_t serial,
                           const opal_crypt_envelope_t *envelope, uint64_t counter)
{
    const span_t span = {serial, serial, counter, counter};
    entry_t *entry = 0 == order->count ? NULL : entry_find(order, envelope);

    return NULL != entry ? spans_add(order, entry, &span)
         : opal_crypt_span_final(&span, replay, serials) ? OPAL_CRYPT_OK
                                                           : remember_entry(order, replay, serials, envelope, &span);
}

int opal_crypt_order_add(order_t *order, const opal_crypt_replay_t *replay,
                         opal_crypt_serials_t *serials, uint64_t serial, bool any_tag,
                         const opal_crypt_envelope_t *envelope, uint64_t counter)
{
    int rc = remember(order, replay, serials, serial, envelope, counter);

    if (OPAL_CRYPT_OK == rc && concerns_wildcards(serials, envelope)) {
        const opal_crypt_envelope_t wild = under(envelope, TAG_WILD), all = under(envelope, TAG_ALL);

        rc = remember(order, replay, serials, serial, &all, counter);
        if (OPAL_CRYPT_OK == rc && any_tag) {
            rc = remember(order, replay, serials, serial, &wild, counter);
        }
    }
    return rc;
}

size_t opal_crypt_order_memory(const order_t *order)
{
    return order->capacity * (sizeof(entry_t) + sizeof(uint32_t)) + order->spans * sizeof(span_t)
           + order->range_capacity * sizeof(range_t);
}

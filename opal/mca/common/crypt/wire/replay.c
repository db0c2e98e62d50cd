/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The set of accepted counters.  See crypt/wire/replay.h.
 */
#include "replay.h"

#include <stdlib.h>
#include <string.h>

#define WORDS      (OPAL_CRYPT_REPLAY_PAGE / 64)
#define PAGE_BYTES (WORDS * sizeof(uint64_t))
#define FULL       ((uint32_t) OPAL_CRYPT_REPLAY_PAGE)

typedef opal_crypt_replay_t set_t;
typedef opal_crypt_replay_run_t run_t;

static inline uint64_t page_of(uint64_t counter)
{
    return counter >> OPAL_CRYPT_REPLAY_PAGE_BITS;
}

static inline uint64_t page_start(uint64_t page)
{
    return page << OPAL_CRYPT_REPLAY_PAGE_BITS;
}

static inline unsigned within(uint64_t counter)
{
    return (unsigned) (counter & (OPAL_CRYPT_REPLAY_PAGE - 1));
}

static inline bool bit_get(const uint64_t *bits, unsigned bit)
{
    return 0 != (bits[bit / 64] & (UINT64_C(1) << (bit % 64)));
}

static inline void bit_set(uint64_t *bits, unsigned bit)
{
    bits[bit / 64] |= UINT64_C(1) << (bit % 64);
}

/* The first clear bit from `bit` on, or the page's size. */
static unsigned bit_clear(const uint64_t *bits, unsigned bit)
{
    unsigned word = bit / 64;
    uint64_t clear = ~bits[word] & (~UINT64_C(0) << (bit % 64));

    while (0 == clear) {
        if (++word == WORDS) {
            return (unsigned) OPAL_CRYPT_REPLAY_PAGE;
        }
        clear = ~bits[word];
    }
    return 64 * word + (unsigned) __builtin_ctzll(clear);
}

void opal_crypt_replay_init(set_t *set, uint64_t mark)
{
    memset(set, 0, sizeof(*set));
    set->mark = set->top = mark;
}

void opal_crypt_replay_fini(set_t *set)
{
    for (size_t i = 0; i < set->count; ++i) {
        free(set->runs[i].bits);
    }
    free(set->runs);
    free(set->spare);
    memset(set, 0, sizeof(*set));
}

/* Index of the first run that ends after `page`. */
static size_t run_behind(const set_t *set, uint64_t page)
{
    size_t low = 0, high = set->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (set->runs[middle].page + set->runs[middle].pages > page) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

static inline bool run_has_page(const set_t *set, size_t i, uint64_t page)
{
    return i < set->count && set->runs[i].page <= page;
}

bool opal_crypt_replay_has(const set_t *set, uint64_t counter)
{
    if (counter < set->mark || counter >= set->top) {   /* in order, it equals the top */
        return counter < set->mark;
    }
    size_t i = run_behind(set, page_of(counter));
    return run_has_page(set, i, page_of(counter))
           && (NULL == set->runs[i].bits || bit_get(set->runs[i].bits, within(counter)));
}

uint64_t opal_crypt_replay_missing(const set_t *set, uint64_t from)
{
    if (from <= set->mark) {
        return set->mark;
    }
    for (size_t i = run_behind(set, page_of(from)); run_has_page(set, i, page_of(from)); ++i) {
        const run_t *run = &set->runs[i];
        if (NULL != run->bits) {
            unsigned bit = bit_clear(run->bits, within(from));
            if (bit < OPAL_CRYPT_REPLAY_PAGE) {
                return page_start(run->page) + bit;
            }
        }
        from = page_start(run->page + run->pages);
    }
    return from;
}

static void runs_remove(set_t *set, size_t i)
{
    --set->count;
    memmove(&set->runs[i], &set->runs[i + 1], (set->count - i) * sizeof(run_t));
}

static void page_retire(set_t *set, uint64_t *bits)
{
    if (NULL == set->spare) {
        set->spare = bits;
    } else {
        free(bits);
    }
}

/* Insert an empty page at index i. */
static int page_add(set_t *set, size_t i, uint64_t page)
{
    if (set->count == set->capacity) {
        size_t capacity = 0 == set->capacity ? 4 : 2 * set->capacity;
        run_t *runs = realloc(set->runs, capacity * sizeof(run_t));
        if (NULL == runs) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        set->runs = runs;
        set->capacity = capacity;
    }
    uint64_t *bits = NULL != set->spare ? set->spare : malloc(PAGE_BYTES);
    if (NULL == bits) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    set->spare = NULL;
    memset(bits, 0, PAGE_BYTES);

    memmove(&set->runs[i + 1], &set->runs[i], (set->count - i) * sizeof(run_t));
    ++set->count;
    set->runs[i] = (run_t) {.page = page, .pages = 1, .bits = bits};
    if (page == page_of(set->mark)) {
        for (unsigned bit = 0; bit < within(set->mark); ++bit) {
            bit_set(bits, bit);
        }
        set->runs[i].present = within(set->mark);
    }
    return OPAL_CRYPT_OK;
}

/* Page i is full: free its bitmap, and merge it with full neighbors. */
static void page_collapse(set_t *set, size_t i)
{
    run_t *run = &set->runs[i];

    page_retire(set, run->bits);
    run->bits = NULL;
    if (i + 1 < set->count && NULL == run[1].bits && run[1].page == run->page + run->pages) {
        run->pages += run[1].pages;
        runs_remove(set, i + 1);
    }
    if (i > 0 && NULL == run[-1].bits && run[-1].page + run[-1].pages == run->page) {
        run[-1].pages += run->pages;
        runs_remove(set, i);
    }
}

/* The mark itself was inserted: find the next one, drop what is below it. */
static void mark_advance(set_t *set)
{
    ++set->mark;
    while (set->count > 0 && set->runs[0].page <= page_of(set->mark)) {
        run_t *run = &set->runs[0];
        if (NULL != run->bits) {
            set->mark = page_start(run->page) + bit_clear(run->bits, within(set->mark));
            return;
        }
        set->mark = page_start(run->page + run->pages);
        runs_remove(set, 0);
    }
}

OPAL_CRYPT_OFTEN
int opal_crypt_replay_insert(set_t *set, uint64_t counter)
{
    if (counter < set->mark) {
        return OPAL_CRYPT_ERR_REPLAY;
    }
    if (counter == set->mark && 0 == set->count) {
        ++set->mark;
        goto inserted;
    }

    size_t i = run_behind(set, page_of(counter));
    if (!run_has_page(set, i, page_of(counter))) {
        int rc = page_add(set, i, page_of(counter));
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    } else if (NULL == set->runs[i].bits || bit_get(set->runs[i].bits, within(counter))) {
        return OPAL_CRYPT_ERR_REPLAY;
    }
    bit_set(set->runs[i].bits, within(counter));
    if (FULL == ++set->runs[i].present) {
        page_collapse(set, i);
    }
    if (counter == set->mark) {
        mark_advance(set);
    }
inserted:
    if (counter >= set->top) {
        set->top = counter + 1;
    }
    ++set->accepted;
    return OPAL_CRYPT_OK;
}

size_t opal_crypt_replay_memory(const set_t *set)
{
    size_t bytes = set->capacity * sizeof(run_t) + (NULL != set->spare ? PAGE_BYTES : 0);

    for (size_t i = 0; i < set->count; ++i) {
        bytes += NULL != set->runs[i].bits ? PAGE_BYTES : 0;
    }
    return bytes;
}

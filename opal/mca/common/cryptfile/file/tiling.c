/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Bringing a filetype into the one canonical form that a map stores, and
 * telling whether two regions share a byte.  Used when a map is made or read,
 * never on the data path.
 */
#include "region.h"

#include <stdlib.h>
#include <string.h>

typedef struct span {
    uint64_t from, to;
} span_t;

/* ---- canonical form ---- */

/* Copy runs without bytes left out and touching ones joined. */
static int join_runs(opal_cryptfile_tiling_t *tiling, const opal_cryptfile_run_t *runs,
                     uint32_t run_count, opal_crypt_why_t *why)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < run_count; ++i) {
        if (0 == runs[i].bytes) {
            continue;
        }
        if (runs[i].offset > OPAL_CRYPTFILE_OFFSET_MAX ||
            runs[i].bytes > OPAL_CRYPTFILE_OFFSET_MAX - runs[i].offset) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                     "it reaches beyond 2^63 bytes");
        }
        opal_cryptfile_run_t *last = 0 == count ? NULL : &tiling->runs[count - 1];
        if (NULL != last && runs[i].offset < opal_cryptfile_run_end(last)) {
            return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                     "its filetype falls back to offset %llu",
                                     (unsigned long long) runs[i].offset);
        }
        if (NULL != last && runs[i].offset == opal_cryptfile_run_end(last)) {
            last->bytes += runs[i].bytes;
        } else {
            tiling->runs[count++] = runs[i];
        }
    }
    tiling->run_count = count;
    return 0 != count ? OPAL_CRYPT_OK
                      : opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                          "its filetype has no bytes");
}

/* On the circle of the extent, where the last run may go on into the first:
 * does a turn by extent/parts map every run onto another one? */
static bool repeats(const opal_cryptfile_tiling_t *tiling, bool wraps, uint32_t parts)
{
    const opal_cryptfile_run_t *runs = tiling->runs;
    uint32_t count = tiling->run_count - wraps, step = count / parts;
    uint64_t period = tiling->extent / parts;

    /* Circular run j: j >= 1 is run j; 0 is run 0, or the last joined with it. */
    for (uint32_t j = 0; j < count; ++j) {
        uint32_t other = (j + step) % count;
        uint64_t start[2], bytes[2];
        const uint32_t index[2] = {j, other};
        for (int side = 0; side < 2; ++side) {
            bool joined = wraps && 0 == index[side];
            const opal_cryptfile_run_t *run = joined ? &runs[count] : &runs[index[side]];
            start[side] = run->offset;
            bytes[side] = run->bytes + (joined ? runs[0].bytes : 0);
        }
        if (start[1] != (start[0] + period) % tiling->extent || bytes[0] != bytes[1]) {
            return false;
        }
    }
    return true;
}

/* How many equal parts the tile has: 1 for a canonical one. */
static uint64_t equal_parts(const opal_cryptfile_tiling_t *tiling)
{
    bool wraps = opal_cryptfile_run_end(&tiling->runs[tiling->run_count - 1]) == tiling->extent;
    uint32_t count = tiling->run_count - wraps;

    if (0 == count) {
        return tiling->extent;          /* one run that fills the extent */
    }
    for (uint32_t parts = count; parts > 1; --parts) {
        if (0 == count % parts && 0 == tiling->extent % parts && repeats(tiling, wraps, parts)) {
            return parts;
        }
    }
    return 1;
}

static void cut_to(opal_cryptfile_tiling_t *tiling, uint64_t extent)
{
    uint32_t count = 0;

    while (count < tiling->run_count && tiling->runs[count].offset < extent) {
        if (opal_cryptfile_run_end(&tiling->runs[count]) > extent) {
            tiling->runs[count].bytes = extent - tiling->runs[count].offset;
        }
        ++count;
    }
    tiling->run_count = count;
    tiling->extent = extent;
}

static void sum_up(opal_cryptfile_tiling_t *tiling)
{
    tiling->tile_bytes = 0;
    for (uint32_t i = 0; i < tiling->run_count; ++i) {
        tiling->runs[i].packed = tiling->tile_bytes;
        tiling->tile_bytes += tiling->runs[i].bytes;
    }
}

/* The first run moves to offset 0, and the displacement takes up the rest. */
static int shift_to_zero(opal_cryptfile_tiling_t *tiling, uint64_t displacement,
                         opal_crypt_why_t *why)
{
    uint64_t first = tiling->runs[0].offset;

    if (displacement > OPAL_CRYPTFILE_OFFSET_MAX - first) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                 "it reaches beyond 2^63 bytes");
    }
    tiling->displacement = displacement + first;
    for (uint32_t i = 0; i < tiling->run_count; ++i) {
        tiling->runs[i].offset -= first;
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_tiling_make(opal_cryptfile_tiling_t *tiling, uint64_t displacement,
                               uint64_t extent, bool once,
                               const opal_cryptfile_run_t *runs, uint32_t run_count,
                               opal_crypt_why_t *why)
{
    memset(tiling, 0, sizeof(*tiling));
    tiling->runs = calloc(0 == run_count ? 1 : run_count, sizeof(*tiling->runs));
    if (NULL == tiling->runs) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    int rc = join_runs(tiling, runs, run_count, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = shift_to_zero(tiling, displacement, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_cryptfile_tiling_free(tiling);
        return rc;
    }
    uint64_t end = opal_cryptfile_run_end(&tiling->runs[tiling->run_count - 1]);
    tiling->once = once;
    tiling->extent = once ? end : extent;
    if (end > tiling->extent || tiling->extent > OPAL_CRYPTFILE_OFFSET_MAX - tiling->displacement) {
        opal_cryptfile_tiling_free(tiling);
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-region",
                                 end > extent ? "the extent of its filetype is less than its "
                                                       "bytes span, so that tiles would overlap"
                                                     : "it reaches beyond 2^63 bytes");
    }
    if (!once) {
        cut_to(tiling, tiling->extent / equal_parts(tiling));
    }
    sum_up(tiling);
    return OPAL_CRYPT_OK;
}

bool opal_cryptfile_tiling_check(opal_cryptfile_tiling_t *tiling)
{
    uint64_t end = 0;

    if (0 == tiling->run_count || 0 != tiling->runs[0].offset ||
        tiling->displacement > OPAL_CRYPTFILE_OFFSET_MAX || 0 == tiling->extent ||
        tiling->extent > OPAL_CRYPTFILE_OFFSET_MAX - tiling->displacement) {
        return false;
    }
    for (uint32_t i = 0; i < tiling->run_count; ++i) {
        const opal_cryptfile_run_t *run = &tiling->runs[i];
        if (0 == run->bytes || (i > 0 && run->offset <= end) || run->offset > tiling->extent ||
            run->bytes > tiling->extent - run->offset) {
            return false;
        }
        end = opal_cryptfile_run_end(run);
    }
    sum_up(tiling);
    return tiling->once ? end == tiling->extent : 1 == equal_parts(tiling);
}

/* ---- overlap ---- */

/* One tile against anything: ask for each of its runs. */
static bool overlap_once(const opal_cryptfile_tiling_t *one, const opal_cryptfile_tiling_t *other)
{
    for (uint32_t i = 0; i < one->run_count; ++i) {
        uint64_t from = one->displacement + one->runs[i].offset;
        if (opal_cryptfile_tiling_before(other, from) !=
            opal_cryptfile_tiling_before(other, from + one->runs[i].bytes)) {
            return true;
        }
    }
    return false;
}

uint64_t opal_cryptfile_gcd(uint64_t a, uint64_t b) { return 0 == b ? a : opal_cryptfile_gcd(b, a % b); }

static int by_start(const void *a, const void *b)
{
    const span_t *left = a, *right = b;

    return left->from < right->from ? -1 : left->from > right->from;
}

/* The region's runs on a circle of `turn` bytes, sorted.  Returns their number;
 * one that fills the circle is all of it. */
static size_t on_circle(const opal_cryptfile_tiling_t *tiling, uint64_t turn, span_t *spans)
{
    size_t count = 0;

    for (uint32_t i = 0; i < tiling->run_count; ++i) {
        uint64_t from = (tiling->displacement % turn + tiling->runs[i].offset % turn) % turn;
        uint64_t bytes = tiling->runs[i].bytes;
        if (bytes >= turn) {
            spans[0] = (span_t){0, turn};
            return 1;
        }
        uint64_t straight = turn - from < bytes ? turn - from : bytes;
        spans[count++] = (span_t){from, from + straight};
        if (straight < bytes) {
            spans[count++] = (span_t){0, bytes - straight};
        }
    }
    qsort(spans, count, sizeof(*spans), by_start);
    return count;
}

/* Two endless regions.  Tiles t and u of a and b lie t*extent_a - u*extent_b
 * apart, and for t, u >= 0 that takes every multiple of the extents' greatest
 * common divisor: so they share a byte exactly when they do on its circle. */
static int overlap_endless(const opal_cryptfile_tiling_t *a, const opal_cryptfile_tiling_t *b)
{
    uint64_t turn = opal_cryptfile_gcd(a->extent, b->extent);
    span_t *left = malloc(2 * (size_t) a->run_count * sizeof(*left));
    span_t *right = malloc(2 * (size_t) b->run_count * sizeof(*right));
    int rc = OPAL_CRYPT_ERR_MEMORY;

    if (NULL != left && NULL != right) {
        size_t left_count = on_circle(a, turn, left), right_count = on_circle(b, turn, right);
        rc = 0;
        for (size_t i = 0, j = 0; i < left_count && j < right_count && 0 == rc;) {
            if (left[i].to <= right[j].from) {
                ++i;
            } else if (right[j].to <= left[i].from) {
                ++j;
            } else {
                rc = 1;
            }
        }
    }
    free(left);
    free(right);
    return rc;
}

int opal_cryptfile_tiling_overlap(const opal_cryptfile_tiling_t *a,
                                  const opal_cryptfile_tiling_t *b)
{
    if (!a->once && !b->once) {
        return overlap_endless(a, b);
    }
    if (a->once && (!b->once || a->run_count <= b->run_count)) {
        return overlap_once(a, b);
    }
    return overlap_once(b, a);
}

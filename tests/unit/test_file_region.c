/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The arithmetic of regions against enumeration, byte by byte: canonical form,
 * packed positions both ways, blocks, overlap.
 */
#include "opal/mca/common/cryptfile/file/region.h"
#include "tests/unit/unit.h"

#define LIMIT 4000u     /* bytes of the file that are enumerated */

static uint64_t state = 1;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (state >> 11) % below;
}

/* position[i]: packed position of file byte i, or -1. */
typedef struct truth {
    int64_t position[LIMIT];
} truth_t;

static void enumerate(truth_t *truth, uint64_t displacement, uint64_t extent, bool once,
                      const opal_cryptfile_run_t *runs, uint32_t count)
{
    int64_t packed = 0;

    for (unsigned i = 0; i < LIMIT; ++i) {
        truth->position[i] = -1;
    }
    for (uint64_t tile = 0; displacement + tile * extent < LIMIT && (0 == tile || !once); ++tile) {
        for (uint32_t r = 0; r < count; ++r) {
            for (uint64_t b = 0; b < runs[r].bytes; ++b, ++packed) {
                uint64_t at = displacement + tile * extent + runs[r].offset + b;
                if (at < LIMIT) {
                    truth->position[at] = packed;
                }
            }
        }
    }
}

static uint32_t random_runs(opal_cryptfile_run_t *runs, uint64_t *extent, uint64_t unit)
{
    uint32_t count = 1 + (uint32_t) draw(6);
    uint64_t at = draw(3) * unit, first;

    first = at;
    for (uint32_t i = 0; i < count; ++i) {
        runs[i].offset = at;
        runs[i].bytes = draw(5) * unit + (0 == i ? unit : 0);
        at += runs[i].bytes + (draw(3) ? draw(4) * unit : 0);
    }
    uint64_t end = runs[count - 1].offset + runs[count - 1].bytes;
    *extent = end - first + (draw(3) ? draw(7) * unit : 0);
    return count;
}

static bool agrees(const opal_cryptfile_tiling_t *tiling, const truth_t *truth)
{
    uint64_t before = 0;

    for (unsigned at = 0; at < LIMIT; ++at) {
        uint64_t plain = 0, same = 0, offset = 0, bytes = 0;
        bool in = opal_cryptfile_tiling_find(tiling, at, &plain, &same);
        if (in != (truth->position[at] >= 0) || 0 == same || before != opal_cryptfile_tiling_before(tiling, at)) {
            return false;
        }
        for (uint64_t i = 0; i < same && at + i < LIMIT; ++i) {
            if (truth->position[at + i] != (in ? (int64_t) (plain + i) : -1)) {
                return false;
            }
        }
        if (in) {
            if (plain != before || !opal_cryptfile_tiling_locate(tiling, plain, &offset, &bytes) || offset != at) {
                return false;
            }
            for (uint64_t i = 0; i < bytes && at + i < LIMIT; ++i) {
                if (truth->position[at + i] != (int64_t) (plain + i)) {
                    return false;
                }
            }
            ++before;
        }
    }
    return true;
}

static void test_random(void)
{
    static truth_t truth;
    opal_cryptfile_run_t runs[8];
    opal_cryptfile_tiling_t tiling, again;
    unsigned wrong = 0, not_canonical = 0, contiguous = 0;

    UNIT_GROUP("2,000 random filetypes against enumeration");
    for (int i = 0; i < 2000; ++i) {
        uint64_t extent, displacement = draw(200);
        bool once = 0 == draw(4);
        uint32_t count = random_runs(runs, &extent, 1 + draw(3));
        enumerate(&truth, displacement, extent, once, runs, count);
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, displacement, extent, once, runs, count, NULL));
        wrong += !agrees(&tiling, &truth);
        again = tiling;
        not_canonical += !opal_cryptfile_tiling_check(&again);
        contiguous += 1 == tiling.extent;
        opal_cryptfile_tiling_free(&tiling);
    }
    UNIT_CHECK(0 == wrong);
    UNIT_CHECK(0 == not_canonical);
    UNIT_CHECK(contiguous > 20 && contiguous < 1000);
}

/* The same bytes, described as `copies` tiles in one. */
static void test_canonical(void)
{
    opal_cryptfile_run_t runs[8], many[64];
    opal_cryptfile_tiling_t one, other;
    unsigned different = 0;

    UNIT_GROUP("one form for all descriptions of the same bytes");
    for (int i = 0; i < 2000; ++i) {
        uint64_t extent, displacement = draw(100);
        uint32_t count = random_runs(runs, &extent, 1 + draw(3)), copies = 1 + (uint32_t) draw(6), n = 0;
        for (uint32_t c = 0; c < copies; ++c) {
            for (uint32_t r = 0; r < count; ++r, ++n) {
                many[n] = runs[r];
                many[n].offset += c * extent;
            }
        }
        UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&one, displacement, extent, false, runs, count, NULL));
        UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&other, displacement, copies * extent, false, many, n, NULL));
        different += !opal_cryptfile_tiling_same(&one, &other);
        opal_cryptfile_tiling_free(&one);
        opal_cryptfile_tiling_free(&other);
    }
    UNIT_CHECK(0 == different);

    const opal_cryptfile_run_t whole[] = {{0, 10, 0}, {10, 0, 0}, {10, 90, 0}};
    UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&one, 7, 100, false, whole, 3, NULL));
    UNIT_CHECK(1 == one.run_count && 1 == one.extent && 1 == one.tile_bytes && 7 == one.displacement);
    opal_cryptfile_tiling_free(&one);
    UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&one, 7, 5, true, whole, 3, NULL));
    UNIT_CHECK(1 == one.run_count && 100 == one.extent && 100 == one.tile_bytes);
    opal_cryptfile_tiling_free(&one);
}

static void test_refused(void)
{
    const opal_cryptfile_run_t none[] = {{5, 0, 0}}, back[] = {{10, 5, 0}, {8, 1, 0}}, twice[] = {{0, 5, 0}, {4, 5, 0}},
                                  far[] = {{UINT64_MAX - 3, 2, 0}}, wide[] = {{0, UINT64_MAX, 0}}, fine[] = {{0, 4, 0}, {8, 4, 0}};
    opal_cryptfile_tiling_t tiling;
    opal_crypt_why_t why;

    UNIT_GROUP("what cannot be a region");
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 10, false, none, 1, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "no bytes"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 10, false, none, 0, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 100, false, back, 2, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 100, false, twice, 2, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "falls back"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 100, false, far, 1, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 100, true, wide, 1, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, 0, 11, false, fine, 2, &why));
    UNIT_CHECK(NULL != strstr(why.detail, "overlap"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_tiling_make(&tiling, INT64_MAX, 12, false, fine, 2, &why));
    UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&tiling, 0, 12, false, fine, 2, &why));

    UNIT_GROUP("fields from storage that no tiling has");
    opal_cryptfile_tiling_t good = tiling;
    opal_cryptfile_run_t kept[2];
    memcpy(kept, tiling.runs, sizeof(kept));
#define BAD(change) \
    do { \
        tiling = good; \
        memcpy(tiling.runs, kept, sizeof(kept)); \
        change; \
        UNIT_CHECK(!opal_cryptfile_tiling_check(&tiling)); \
    } while (0)
    BAD(tiling.runs[0].offset = 1);
    BAD(tiling.runs[0].bytes = 0);
    BAD(tiling.runs[1].offset = 4);
    BAD(tiling.runs[1].bytes = 5);
    BAD(tiling.runs[1].bytes = UINT64_MAX);
    BAD(tiling.extent = 0);
    BAD(tiling.extent = UINT64_MAX);
    BAD(tiling.displacement = UINT64_MAX);
    BAD(tiling.extent = 16);                                    /* (0,4) every 8 bytes, told twice */
    BAD((tiling.once = true, tiling.extent = 13));
    BAD((tiling.run_count = 1, tiling.extent = 4));             /* contiguous, but not as (0,1) */
    BAD(tiling.run_count = 0);
    tiling = good;
    memcpy(tiling.runs, kept, sizeof(kept));
    UNIT_CHECK(opal_cryptfile_tiling_check(&tiling));
    opal_cryptfile_tiling_free(&good);
}

static void test_overlap(void)
{
    static truth_t left, right;
    opal_cryptfile_run_t runs[8];
    opal_cryptfile_tiling_t a, b;
    unsigned wrong = 0, shared = 0;

    UNIT_GROUP("overlap of 4,000 random pairs against enumeration");
    for (int i = 0; i < 4000; ++i) {
        uint64_t extent, unit = 1 + draw(3), displacement = draw(20) * unit;
        bool once = 0 == draw(4);
        uint32_t count = random_runs(runs, &extent, unit);
        enumerate(&left, displacement, extent, once, runs, count);
        UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&a, displacement, extent, once, runs, count, NULL));
        displacement = draw(20) * unit;
        once = 0 == draw(4);
        count = random_runs(runs, &extent, unit);
        enumerate(&right, displacement, extent, once, runs, count);
        UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&b, displacement, extent, once, runs, count, NULL));
        int truth = 0;
        for (unsigned at = 0; at < LIMIT; ++at) {
            truth |= left.position[at] >= 0 && right.position[at] >= 0;
        }
        wrong += truth != opal_cryptfile_tiling_overlap(&a, &b) || truth != opal_cryptfile_tiling_overlap(&b, &a);
        shared += (unsigned) truth;
        opal_cryptfile_tiling_free(&a);
        opal_cryptfile_tiling_free(&b);
    }
    UNIT_CHECK(0 == wrong);
    UNIT_CHECK(shared > 500 && shared < 3900);
}

static void test_far(void)
{
    UNIT_GROUP("a contiguous region goes on to the end of all offsets");
    const opal_cryptfile_run_t run[] = {{0, 1, 0}};
    opal_cryptfile_tiling_t tiling;
    uint64_t plain, bytes, offset;
    UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&tiling, 100, 1, false, run, 1, NULL));
    UNIT_CHECK(opal_cryptfile_tiling_find(&tiling, INT64_MAX, &plain, &bytes) && INT64_MAX - 100 == plain && UINT64_MAX == bytes);
    UNIT_CHECK(opal_cryptfile_tiling_locate(&tiling, INT64_MAX - 100, &offset, &bytes) && INT64_MAX == offset);
    UNIT_CHECK(!opal_cryptfile_tiling_find(&tiling, 99, &plain, &bytes) && 1 == bytes);
    opal_cryptfile_tiling_free(&tiling);
}

int main(void)
{
    test_random();
    test_canonical();
    test_refused();
    test_overlap();
    test_far();
    return unit_done();
}

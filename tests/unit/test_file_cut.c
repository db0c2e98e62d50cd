/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A process is killed while it writes; the next one gives the file a size, and writes on.
 * Until then each block is the old or the new one.  From then on the file is what a plain
 * one would be: nothing of the killed write comes back beyond the size that was set, and
 * only writes make the file longer.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, SIZE = 8192, BLOCKS_MAX = SIZE / B + 2, PAGE = 256 };


typedef struct layout {
    const char *name;
    unsigned count;
    uint32_t part_bytes;
    region_spec_t regions[2];
} layout_t;

static const layout_t layouts[] = {
    {"one region", 1, 0, {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}}},
    {"a run in parts of one block", 1, B, {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}}},
    {"stripes of two regions", 2, B, {{1, OPAL_AEAD_AES_128_GCM, B, 0, 700, false, 1, {{0, 300, 0}}},
                                      {1, OPAL_AEAD_AES_128_GCM, B, 300, 700, false, 1, {{0, 400, 0}}}}},
    {"a region and plain bytes", 2, 0, {{1, OPAL_AEAD_AES_128_GCM, B, 0, 900, false, 1, {{0, 600, 0}}},
                                        {0, OPAL_AEAD_AES_128_GCM, 0, 600, 900, false, 1, {{0, 300, 0}}}}},
};

/* What the file should be.  A block that was never written to the end may be torn, and reads as
 * zeros for a writer. */
typedef struct model {
    const layout_t *of;
    uint8_t bytes[SIZE];
    size_t size;
    bool written[2][BLOCKS_MAX];
} model_t;

static uint64_t seed;

static size_t random_below(size_t limit)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t) (seed >> 33) % limit;
}

static size_t size_of(const memory_t *memory)
{
    return memory->size <= GROUP_CONTROL ? 0 : memory->size - GROUP_CONTROL;
}

static opal_cryptfile_t *opened(memory_t *memory, const layout_t *of)
{
    file_part_bytes = of->part_bytes;
    return open_file(&memory->super, of->regions, of->count, NULL);
}

/* Which region has this byte?  *block: its block there; *bytes: for how many bytes the answer holds. */
static unsigned owner(const opal_cryptfile_t *file, const layout_t *of, size_t at, uint64_t *block, size_t *bytes)
{
    uint64_t plain, together = 0;
    unsigned region = 0;

    while (region < of->count &&
           !opal_cryptfile_tiling_find(&opal_cryptfile_map_of(file)->regions[region].tiling, at, &plain, &together)) {
        ++region;
    }
    UNIT_REQUIRE(region < of->count);
    *block = plain / B;
    together = of->regions[region].encrypted && B - plain % B < together ? B - plain % B : together;
    *bytes = together < SIZE - at ? (size_t) together : SIZE - at;
    return region;
}

static void mark_written(const opal_cryptfile_t *file, model_t *model, size_t from, size_t bytes)
{
    for (size_t at = from, step; at < from + bytes; at += step) {
        uint64_t block;
        unsigned region = owner(file, model->of, at, &block, &step);
        model->written[region][block] = true;
    }
}

static int put(memory_t *memory, model_t *model, size_t from, const uint8_t *bytes, size_t count, long writes_left)
{
    opal_cryptfile_t *file = opened(memory, model->of);

    memory->writes_left = writes_left;
    int rc = put_bytes(file, from, bytes, count);
    memory->writes_left = -1;
    if (OPAL_CRYPT_OK == rc) {
        memcpy(model->bytes + from, bytes, count);
        model->size = from + count > model->size ? from + count : model->size;
        mark_written(file, model, from, count);
    }
    opal_cryptfile_destroy(file);
    return rc;
}

static int resize(memory_t *memory, model_t *model, size_t size, long writes_left)
{
    opal_cryptfile_t *file = opened(memory, model->of);
    opal_cryptfile_outcome_t outcome;

    memory->writes_left = writes_left;
    int rc = opal_cryptfile_resize(file, size, &outcome);
    memory->writes_left = -1;
    if (OPAL_CRYPT_OK == rc) {
        size_t kept = size < model->size ? size : model->size;
        memset(model->bytes + kept, 0, SIZE - kept);
        model->size = size;
        for (unsigned i = 0; i < model->of->count; ++i) {
            for (uint64_t k = opal_cryptfile_block_count(file, i, size); k < BLOCKS_MAX; ++k) {
                model->written[i][k] = false;
            }
        }
    }
    opal_cryptfile_destroy(file);
    return rc;
}

/* Does the file read as the model? */
static unsigned compare(memory_t *memory, const model_t *model)
{
    opal_cryptfile_t *file = opened(memory, model->of);
    unsigned wrong = size_of(memory) != model->size;
    uint8_t out[SIZE];

    for (size_t at = 0, step; at < model->size; at += step) {
        uint64_t block, got;
        unsigned region = owner(file, model->of, at, &block, &step);
        step = step < model->size - at ? step : model->size - at;
        int rc = get_bytes(file, at, out, step, &got);
        wrong += OPAL_CRYPT_OK == rc ? got != step || 0 != memcmp(out, model->bytes + at, step)
                                     : OPAL_CRYPT_ERR_TORN != rc || model->written[region][block];
    }
    opal_cryptfile_destroy(file);
    return wrong;
}

/* After a killed write of `fresh`: which blocks are new?  The model becomes what is there. */
static unsigned observe(memory_t *memory, model_t *model, size_t from, const uint8_t *fresh, size_t count)
{
    opal_cryptfile_t *file = opened(memory, model->of);
    enum { UNKNOWN, OLD, NEW } is[2][BLOCKS_MAX] = {{UNKNOWN}};
    uint8_t out[SIZE], after[SIZE];
    size_t size = size_of(memory);
    unsigned wrong = size < model->size || (size > model->size && size > from + count);

    UNIT_REQUIRE(size <= SIZE);
    memcpy(after, model->bytes, SIZE);
    memcpy(after + from, fresh, count);
    for (size_t at = 0, step; at < size; at += step) {
        uint64_t block, got;
        unsigned region = owner(file, model->of, at, &block, &step);
        step = step < size - at ? step : size - at;
        int rc = get_bytes(file, at, out, step, &got);
        if (OPAL_CRYPT_OK != rc) {
            wrong += OPAL_CRYPT_ERR_TORN != rc || model->written[region][block];
            continue;
        }
        int old = 0 == memcmp(out, model->bytes + at, step), new = 0 == memcmp(out, after + at, step);
        if (!model->of->regions[region].encrypted) {
            memcpy(model->bytes + at, out, step);
        } else if (old != new) {
            wrong += UNKNOWN != is[region][block] && is[region][block] != (new ? NEW : OLD);
            is[region][block] = new ? NEW : OLD;
            model->written[region][block] = model->written[region][block] || new;
        } else {
            wrong += !old;
        }
    }
    for (size_t at = 0, step; at < size; at += step) {
        uint64_t block;
        unsigned region = owner(file, model->of, at, &block, &step);
        step = step < size - at ? step : size - at;
        if (NEW == is[region][block]) {
            memcpy(model->bytes + at, after + at, step);
        }
    }
    model->size = size;
    opal_cryptfile_destroy(file);
    return wrong;
}

static void begin(memory_t *memory, model_t *model, const layout_t *of)
{
    memory_init(memory);
    memory->page = PAGE;
    *model = (model_t){.of = of};
}

/* ---- an append to a block that is partly there, killed at every piece ---- */

static unsigned wrong_after(const memory_t *start, const model_t *before, size_t size, size_t then, size_t count)
{
    uint8_t bytes[SIZE];
    memory_t memory;
    model_t model = *before;

    memory_init(&memory);
    memory_copy(&memory, start);
    fill(bytes, SIZE, 3);
    unsigned wrong = OPAL_CRYPT_OK != resize(&memory, &model, size, -1);
    wrong += compare(&memory, &model);
    wrong += OPAL_CRYPT_OK != put(&memory, &model, then, bytes, count, -1);
    wrong += compare(&memory, &model);
    memory_free(&memory);
    return wrong;
}

static void test_append(const layout_t *of, size_t old, size_t count)
{
    uint8_t bytes[SIZE], more[SIZE];
    memory_t start, memory;
    model_t base, model;
    unsigned wrong[5] = {0};
    long n = 0;

    fill(bytes, SIZE, 1);
    fill(more, SIZE, 2);
    begin(&start, &base, of);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put(&start, &base, 0, bytes, old, -1));
    memory_init(&memory);
    for (int rc = -1; OPAL_CRYPT_OK != rc; ++n) {
        memory_copy(&memory, &start);
        model = base;
        rc = put(&memory, &model, old, more, count, n);
        wrong[0] += OPAL_CRYPT_OK == rc ? compare(&memory, &model) : observe(&memory, &model, old, more, count);
        wrong[1] += wrong_after(&memory, &model, old, old, 40);         /* as long as it was before */
        wrong[1] += wrong_after(&memory, &model, old, old + 1000, 40);
        wrong[2] += wrong_after(&memory, &model, model.size, old, 40);  /* as long as it is */
        wrong[2] += wrong_after(&memory, &model, model.size, model.size, 40);
        wrong[3] += wrong_after(&memory, &model, model.size + 30, old, 40);
        wrong[3] += wrong_after(&memory, &model, model.size + 3000, old, 40);
        wrong[4] += wrong_after(&memory, &model, old - 90, old - 90, 40);
        wrong[4] += wrong_after(&memory, &model, old + count / 2, 0, 40);
    }
    printf("  %s, %zu bytes and %zu more: %ld points of death\n", of->name, old, count, n);
    UNIT_CHECK(0 == wrong[0]);
    UNIT_CHECK(0 == wrong[1]);
    UNIT_CHECK(0 == wrong[2]);
    UNIT_CHECK(0 == wrong[3]);
    UNIT_CHECK(0 == wrong[4]);
    UNIT_CHECK(n > 5);
    memory_free(&start);
    memory_free(&memory);
}

/* ---- emptied by another program ---- */

/* The data is emptied: by another program, or by storage when power fails.  Setting any size repairs that. */
static unsigned emptied(memory_t *memory, model_t *model, size_t size)
{
    unsigned wrong = 0 != memory->super.resize(&memory->super, 8192);

    wrong += OPAL_CRYPT_OK != resize(memory, model, 0, -1);
    wrong += OPAL_CRYPT_OK != resize(memory, model, size, -1);
    return wrong + compare(memory, model);
}

static void test_emptied(const layout_t *of, unsigned times)
{
    uint8_t bytes[SIZE];
    memory_t memory;
    model_t model;

    begin(&memory, &model, of);
    for (unsigned i = 0; i < times; ++i) {
        fill(bytes, SIZE, 10 + i);
        UNIT_REQUIRE(OPAL_CRYPT_OK == put(&memory, &model, 0, bytes, SIZE / 2, -1));
    }
    UNIT_CHECK(0 == emptied(&memory, &model, SIZE / 2));
    UNIT_CHECK(OPAL_CRYPT_OK == put(&memory, &model, 100, bytes, 50, -1));      /* less than a block */
    UNIT_CHECK(0 == compare(&memory, &model));
    memory_free(&memory);
}

/* Blocks that can be read although another program's cut at `end` took `least` or more bytes of them, or that read
 * wrong. */
static unsigned come_back(memory_t *memory, const model_t *model, size_t end, size_t least)
{
    opal_cryptfile_t *file = opened(memory, model->of);
    uint8_t out[SIZE];
    unsigned wrong = 0;

    for (size_t at = 0, step; at < model->size; at += step) {
        uint64_t block, got;
        unsigned region = owner(file, model->of, at, &block, &step);
        step = step < model->size - at ? step : model->size - at;
        int rc = get_bytes(file, at, out, step, &got);
        wrong += OPAL_CRYPT_OK == rc && model->of->regions[region].encrypted && got > 0 && at + step >= end + least;
        wrong += OPAL_CRYPT_OK == rc && at + step <= end && (got != step || 0 != memcmp(out, model->bytes + at, step));
    }
    opal_cryptfile_destroy(file);
    return wrong;
}

/* A program without MPI-IO cuts the data, and perhaps lengthens it again: no overwrite's room brings anything back. */
static void test_cut_by_others(const layout_t *of, unsigned times)
{
    unsigned wrong[2] = {0, 0};
    uint8_t bytes[SIZE];
    memory_t whole, memory;
    model_t model;

    begin(&whole, &model, of);
    for (unsigned i = 0; i < times; ++i) {
        fill(bytes, SIZE, 10 + i);
        UNIT_REQUIRE(OPAL_CRYPT_OK == put(&whole, &model, 0, bytes, SIZE / 2, -1));
    }
    memory_init(&memory);
    for (size_t end = 0; end < SIZE / 2; end += 97) {
        memory_copy(&memory, &whole);
        UNIT_REQUIRE(0 == memory.super.resize(&memory.super, place_of(end)));
        wrong[0] += come_back(&memory, &model, end, 1);
        UNIT_REQUIRE(0 == memory.super.resize(&memory.super, place_of(SIZE)));
        wrong[1] += come_back(&memory, &model, end, 8);         /* fewer zeros may be ciphertext */
    }
    UNIT_CHECK(0 == wrong[0]);
    UNIT_CHECK(0 == wrong[1]);
    memory_free(&whole);
    memory_free(&memory);
}

/* ---- random runs ---- */

static void any_write(memory_t *memory, model_t *model, unsigned *wrong)
{
    uint8_t bytes[SIZE];
    size_t from = 0 == random_below(2) ? model->size : random_below(model->size + B), count = 1 + random_below(3 * B);

    if (from + count > SIZE) {
        return;
    }
    fill(bytes, count, (unsigned) random_below(1000));
    *wrong += OPAL_CRYPT_OK != put(memory, model, from, bytes, count, -1);
}

static size_t any_size(size_t now)
{
    switch (random_below(4)) {
    case 0: return now;
    case 1: return now + random_below(SIZE - now + 1) / 2;
    default: return random_below(now + 1);
    }
}

/* One round: some writes, one that is killed, a size, and some writes. */
static unsigned killed_round(memory_t *memory, model_t *model, unsigned *new_size)
{
    uint8_t bytes[SIZE];
    unsigned wrong = 0;

    for (size_t i = random_below(3); i > 0; --i) {
        any_write(memory, model, &wrong);
    }
    if (0 == random_below(10)) {
        wrong += emptied(memory, model, random_below(SIZE / 2));
    }
    size_t from = 0 == random_below(2) ? model->size : random_below(model->size + 1), count = 1 + random_below(5 * B);
    const size_t old = model->size;
    if (from + count > SIZE) {
        wrong += OPAL_CRYPT_OK != resize(memory, model, random_below(SIZE / 4), -1);
        return wrong + compare(memory, model);
    }
    fill(bytes, count, (unsigned) random_below(1000));
    if (OPAL_CRYPT_OK != put(memory, model, from, bytes, count, (long) random_below(60))) {
        wrong += observe(memory, model, from, bytes, count);
    }
    size_t size = 0 == random_below(3) ? old : any_size(model->size);
    if (size <= model->size && 0 == random_below(3)) {          /* the next one is killed, too */
        model_t same = *model;
        if (OPAL_CRYPT_OK == resize(memory, &same, size, (long) random_below(20))) {
            *model = same;
        }
    }
    *new_size += size > model->size;
    wrong += OPAL_CRYPT_OK != resize(memory, model, size, -1);
    wrong += compare(memory, model);
    any_write(memory, model, &wrong);
    any_write(memory, model, &wrong);
    return wrong + compare(memory, model);
}

static void test_anything(const layout_t *of, uint64_t from)
{
    enum { FILES = 40, ROUNDS = 40 };
    unsigned wrong = 0, longer = 0;

    for (seed = from; seed < from + FILES && 0 == wrong;) {
        uint64_t which = seed;
        memory_t memory;
        model_t model;
        begin(&memory, &model, of);
        for (int i = 0; i < ROUNDS && 0 == wrong; ++i) {
            wrong = killed_round(&memory, &model, &longer);
            if (0 != wrong) {
                printf("  %s: seed %llu, round %d\n", of->name, (unsigned long long) which, i);
            }
        }
        memory_free(&memory);
        seed = which + 1;
    }
    printf("  %s: %d files, %d rounds each, %u of them with a larger size\n", of->name, FILES, ROUNDS, longer);
    UNIT_CHECK(0 == wrong && longer > 50);
}

int main(void)
{
    providers_init();
    UNIT_GROUP("a killed append, a size, and a write");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        test_append(&layouts[i], B + 100, 2 * B);
        test_append(&layouts[i], 3 * B + 210, 60);
    }
    UNIT_GROUP("emptied by others");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        test_emptied(&layouts[i], 1);
        test_emptied(&layouts[i], 2);
    }
    UNIT_GROUP("cut by others");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        for (unsigned times = 1; times <= 3; ++times) {
            test_cut_by_others(&layouts[i], times);
        }
    }
    UNIT_GROUP("random writes, kills and sizes");
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); ++i) {
        test_anything(&layouts[i], 1000 * (i + 1));
    }
    providers_fini();
    return unit_done();
}

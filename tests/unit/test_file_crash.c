/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A process dies at every single piece that it writes to storage, and the next
 * one, which goes on from there, at every piece again.  Afterwards every block
 * reads as the old or the new one, or, if it was its first write, as torn.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, BLOCKS = 8, SIZE = B * BLOCKS, PAGE = 256 };


static const region_spec_t contiguous[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static const region_spec_t strided[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 100, false, 2, {{0, 30, 0}, {50, 10, 0}}}};
static const region_spec_t *spec;

/* The packed stream as one request list, for any layout of the region. */
static int transfer(opal_cryptfile_t *file, int writing, uint64_t plain, uint8_t *bytes, size_t count)
{
    static opal_cryptfile_request_t requests[SIZE];
    opal_cryptfile_outcome_t outcome;
    const opal_cryptfile_tiling_t *tiling = &opal_cryptfile_map_of(file)->regions[0].tiling;
    size_t n = 0;

    while (count > 0) {
        uint64_t at, together;
        UNIT_REQUIRE(opal_cryptfile_tiling_locate(tiling, plain, &at, &together));
        size_t part = together < count ? (size_t) together : count;
        requests[n++] = (opal_cryptfile_request_t){bytes, at, part};
        plain += part;
        bytes += part;
        count -= part;
    }
    return writing ? opal_cryptfile_write(file, requests, n, false, &outcome)
                   : opal_cryptfile_read(file, requests, n, false, &outcome);
}

typedef struct texts {
    uint8_t bytes[SIZE];
} texts_t;

typedef struct range {
    size_t from, bytes;
} range_t;

typedef struct step {
    range_t range;                      /* of the packed stream */
    uint64_t cut;                       /* > 0: instead, cut the file to this length */
} step_t;

/* A process that can write `writes_left` pieces takes the step; returns its result. */
static int take(memory_t *memory, const step_t *step, texts_t *text, long writes_left)
{
    opal_cryptfile_t *file = open_file(&memory->super, spec, 1, NULL);
    opal_cryptfile_outcome_t outcome;

    memory->writes_left = writes_left;
    int rc = step->cut > 0 ? opal_cryptfile_resize(file, step->cut, &outcome)
                           : transfer(file, 1, step->range.from, text->bytes + step->range.from, step->range.bytes);
    memory->writes_left = -1;
    memory->locks = 0;
    opal_cryptfile_destroy(file);
    return rc;
}

/* Every block is one of `count` versions, up to the end of the file: a process
 * that dies before it lengthened the file leaves the new block in its room, at
 * the old size.  Blocks that `torn` names may be torn. */
static unsigned judge(memory_t *memory, texts_t *const *versions, int count, const int *torn)
{
    opal_cryptfile_t *file = open_file(&memory->super, spec, 1, NULL);
    uint64_t plain_size = opal_cryptfile_tiling_before(&opal_cryptfile_map_of(file)->regions[0].tiling,
                                                       opal_cryptfile_geometry_size(&opal_cryptfile_map_of(file)->geometry, memory->size));
    unsigned wrong = 0;

    for (uint64_t block = 0; block < BLOCKS; ++block) {
        uint32_t bytes = memory_block_length(plain_size, block, B);
        uint8_t out[B] = {0};
        opal_cryptfile_block_condition_t condition = OPAL_CRYPTFILE_BLOCK_BAD;
        uint32_t plain_bytes;
        int rc = transfer(file, 0, block * B, out, B), fits = 0;
        for (int i = 0; i < count; ++i) {
            fits = fits || 0 == memcmp(out, versions[i]->bytes + block * B, bytes);
        }
        wrong += OPAL_CRYPT_OK != opal_cryptfile_check(file, 0, block, &condition, &plain_bytes);
        if (OPAL_CRYPT_OK == rc) {
            wrong += !fits || OPAL_CRYPTFILE_BLOCK_TORN == condition || OPAL_CRYPTFILE_BLOCK_BAD == condition;
        } else {
            wrong += OPAL_CRYPT_ERR_TORN != rc || NULL == torn || !torn[block] || OPAL_CRYPTFILE_BLOCK_TORN != condition;
        }
    }
    opal_cryptfile_destroy(file);
    return wrong;
}

static void base_file(memory_t *memory, texts_t *text, const range_t *range)
{
    memory_init(memory);
    memory->page = PAGE;
    if (range->bytes > 0) {
        const step_t step = {*range, 0};
        UNIT_REQUIRE(OPAL_CRYPT_OK == take(memory, &step, text, -1));
    }
}

static void patch(texts_t *to, const texts_t *from, const texts_t *text, const range_t *range)
{
    *to = *from;
    memcpy(to->bytes + range->from, text->bytes + range->from, range->bytes);
}

/* `first` dies at every piece; then `second` dies at every piece; then a third
 * process writes everything. */
static void test_pair(const char *name, const range_t *before, range_t first, range_t second)
{
    static texts_t base, one, two, a, b, ab;
    memory_t start, memory, after;
    unsigned wrong = 0;
    int torn[BLOCKS];
    long n, points = 0, pairs = 0;
    texts_t *const all[4] = {&base, &a, &b, &ab};
    const step_t steps[2] = {{first, 0}, {second, 0}};

    fill(base.bytes, SIZE, 1);
    fill(one.bytes, SIZE, 2);
    fill(two.bytes, SIZE, 3);
    base_file(&start, &base, before);
    memset(base.bytes + before->bytes, 0, SIZE - before->bytes);       /* all start at 0 */
    patch(&a, &base, &one, &first);
    patch(&b, &base, &two, &second);
    patch(&ab, &a, &two, &second);
    for (size_t i = 0; i < BLOCKS; ++i) {
        torn[i] = i * B >= before->from + before->bytes || (i + 1) * B <= before->from;
    }
    memory_init(&memory);
    memory_init(&after);
    for (n = 0;; ++n) {
        memory_copy(&memory, &start);
        int rc = take(&memory, &steps[0], &one, n);
        wrong += judge(&memory, all, 2, torn);
        if (OPAL_CRYPT_OK == rc) {
            break;
        }
        ++points;
        for (long m = 0;; ++m) {
            memory_copy(&after, &memory);
            rc = take(&after, &steps[1], &two, m);
            wrong += judge(&after, all, 4, torn);
            ++pairs;
            if (OPAL_CRYPT_OK == rc || OPAL_CRYPT_ERR_TORN == rc) {
                break;
            }
            UNIT_REQUIRE(m < 1000);
        }
        const step_t everything = {{0, SIZE}, 0};
        wrong += OPAL_CRYPT_OK != take(&after, &everything, &one, -1);
        texts_t *const last[1] = {&one};
        wrong += judge(&after, last, 1, NULL);
    }
    printf("  %s: %ld points of death, %ld pairs\n", name, points, pairs);
    UNIT_CHECK(0 == wrong && points > 5);
    memory_free(&start);
    memory_free(&memory);
    memory_free(&after);
}

static void test_overwrites(void)
{
    const range_t all = {0, SIZE}, none = {0, 0}, half = {0, SIZE / 2 + 100};

    test_pair("whole blocks, then parts of them", &all, (range_t){B, 3 * B}, (range_t){B + 50, 2 * B + 70});
    test_pair("parts, then whole blocks", &all, (range_t){B + 100, B}, (range_t){0, 3 * B});
    test_pair("first writes, then overwrites", &none, (range_t){0, 2 * B + 77}, (range_t){B, 2 * B});
    test_pair("lengthening the last block, then a gap", &half, (range_t){SIZE / 2 + 100, B}, (range_t){SIZE / 2 + 300, 40});
}

static void test_cut(void)
{
    const range_t all = {0, SIZE};
    static texts_t base, cut;
    memory_t start, memory;
    unsigned wrong = 0;
    long n = 0;
    int torn[BLOCKS] = {0, 0, 0, 1, 1, 1, 1, 1};    /* an entry is gone, its data not yet */

    fill(base.bytes, SIZE, 1);
    base_file(&start, &base, &all);
    uint64_t bytes = 0, together;
    memory_init(&memory);
    opal_cryptfile_t *file = open_file(&start.super, spec, 1, NULL);
    UNIT_REQUIRE(opal_cryptfile_tiling_locate(&opal_cryptfile_map_of(file)->regions[0].tiling, 2 * B + 100, &bytes, &together));
    opal_cryptfile_destroy(file);
    const step_t step = {all, bytes};
    memset(&cut, 0, sizeof(cut));
    memcpy(cut.bytes, base.bytes, 2 * B + 100);
    texts_t *const versions[2] = {&base, &cut};
    for (int rc = -1; OPAL_CRYPT_OK != rc; ++n) {
        memory_copy(&memory, &start);
        rc = take(&memory, &step, NULL, n);
        wrong += judge(&memory, versions, 2, torn);
        wrong += OPAL_CRYPT_OK != take(&memory, &step, NULL, -1);
        wrong += judge(&memory, versions + 1, 1, NULL);
    }
    printf("  cutting: %ld points of death\n", n);
    UNIT_CHECK(0 == wrong && n > 3);
    memory_free(&start);
    memory_free(&memory);
}

int main(void)
{
    providers_init();
    UNIT_GROUP("a contiguous region");
    spec = contiguous;
    test_overwrites();
    test_cut();
    UNIT_GROUP("a strided region");
    spec = strided;
    test_overwrites();
    test_cut();
    UNIT_GROUP("a run in parts of two blocks");
    file_part_bytes = 2 * B;
    test_overwrites();
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A node loses power.  The storage keeps writes in a cache: of the pieces written since
 * the last barrier, any may be there afterwards, and others are lost.  A run is some
 * writes, cuts and syncs, of blocks at the border of two groups; it ends with a loss of
 * power or a kill, and the next one goes on with what it finds.
 *
 * With the engine's barriers nothing is lost that was synced: each block reads as it
 * was at the last sync, or as a later step made it.  Without them the same runs lose
 * blocks: else the test would show nothing.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, BLOCKS = 70, SIZE = B * BLOCKS, SECTOR = 256, VERSIONS = 64, RUNS = 6, STEPS = 8 };
enum { BASE = GROUP_DATA - BLOCKS / 2 * B };     /* where the first block is in the file */

static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};

/* ---- the storage ---- */

typedef struct pending {
    enum { WRITE, ZERO, RESIZE } kind;
    uint64_t at, count;
    uint8_t bytes[SECTOR];
} pending_t;

typedef struct power {
    memory_t now;                       /* as processes see it; first, for memory_of() */
    memory_t stable;
    pending_t *pending;
    size_t count, capacity;
    bool heeds;                         /* the engine's barriers */
    unsigned long barriers;
} power_t;

static void remember(power_t *power, const pending_t *op)
{
    if (power->count == power->capacity) {
        power->capacity = 2 * power->capacity + 64;
        power->pending = realloc(power->pending, power->capacity * sizeof(*op));
        UNIT_REQUIRE(NULL != power->pending);
    }
    power->pending[power->count++] = *op;
}

static int apply(memory_t *memory, const pending_t *op)
{
    const opal_cryptfile_extent_t extent = {op->at, (void *) (uintptr_t) op->bytes, (size_t) op->count};
    opal_cryptfile_storage_t *storage = &memory->super;

    return WRITE == op->kind ? memory_write(storage, &extent, 1)
           : ZERO == op->kind ? memory_zero(storage, op->at, op->count)
                              : memory_resize(storage, op->at);
}

static int take_op(opal_cryptfile_storage_t *storage, pending_t *op)
{
    power_t *power = (power_t *) storage;

    int rc = apply(&power->now, op);

    if (OPAL_CRYPT_OK == rc) {
        remember(power, op);
    }
    return rc;
}

static int power_write(opal_cryptfile_storage_t *storage,
                       const opal_cryptfile_extent_t *extents, size_t extent_count)
{
    int rc = OPAL_CRYPT_OK;

    for (size_t i = 0; i < extent_count; ++i) {
        const uint8_t *bytes = extents[i].bytes;
        for (uint64_t at = extents[i].at, end = at + extents[i].count; at < end && OPAL_CRYPT_OK == rc;) {
            uint64_t to = (at / SECTOR + 1) * SECTOR;
            pending_t op = {.kind = WRITE, .at = at, .count = (to < end ? to : end) - at};
            memcpy(op.bytes, bytes, (size_t) op.count);
            rc = take_op(storage, &op);
            bytes += op.count;
            at += op.count;
        }
    }
    return rc;
}

static int power_zero(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    pending_t op = {.kind = ZERO, .at = at, .count = bytes};

    return take_op(storage, &op);
}

static int power_resize(opal_cryptfile_storage_t *storage, uint64_t bytes)
{
    pending_t op = {.kind = RESIZE, .at = bytes};

    return take_op(storage, &op);
}

/* `percent` of the pieces reach the storage; the others are lost. */
static void write_back_cache(power_t *power, unsigned percent, uint64_t *random)
{
    for (size_t i = 0; i < power->count; ++i) {
        *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if ((*random >> 33) % 100 < percent) {
            UNIT_REQUIRE(OPAL_CRYPT_OK == apply(&power->stable, &power->pending[i]));
        }
    }
    power->count = 0;
}

static int power_barrier(opal_cryptfile_storage_t *storage)
{
    power_t *power = (power_t *) storage;
    uint64_t unused = 0;

    if (memory_dead(&power->now)) {
        return OPAL_CRYPT_ERR_STORAGE;
    }
    ++power->barriers;
    if (power->heeds) {
        write_back_cache(power, 100, &unused);
    }
    return OPAL_CRYPT_OK;
}

/* ---- what each block may be ---- */

typedef struct model {
    uint8_t version[BLOCKS][VERSIONS][B];
    int versions[BLOCKS];
    bool hole[BLOCKS];                  /* also possible: then it may be torn, too */
} model_t;

static model_t model;

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*random >> 33) % below;
}

static opal_cryptfile_t *opened(power_t *power)
{
    return open_file(&power->now.super, spec, 1, NULL);
}

/* How many bytes there are from the first block on. */
static uint64_t bytes_of(power_t *power, const opal_cryptfile_t *file)
{
    uint64_t bytes = opal_cryptfile_geometry_size(&opal_cryptfile_map_of(file)->geometry, power->now.size);

    return bytes < BASE ? 0 : bytes - BASE;
}

/* The block's contents now; false: it is torn, which is zeros to a writer. */
static int read_block(opal_cryptfile_t *file, uint64_t block, uint8_t *out)
{
    uint64_t got;

    memset(out, 0, B);
    return get_bytes(file, BASE + block * B, out, B, &got);
}

/* A process that died before it lengthened the file left the new block in its room, at the
 * old size.  That is finished first, so that versions are whole. */
static void see_all(power_t *power)
{
    opal_cryptfile_t *file = opened(power);
    opal_cryptfile_block_condition_t condition = OPAL_CRYPTFILE_BLOCK_HOLE;
    uint32_t bytes;

    for (uint64_t i = 0; i < BLOCKS; ++i) {
        (void) opal_cryptfile_check(file, 0, BASE / B + i, &condition, &bytes);
        UNIT_REQUIRE(OPAL_CRYPTFILE_BLOCK_BEHIND != condition || OPAL_CRYPT_OK == opal_cryptfile_finish_block(file, 0, BASE / B + i));
    }
    opal_cryptfile_destroy(file);
}

/* Or the block is cut at the file's size, and the file gets another size. */
static void lengthen(power_t *power)
{
    opal_cryptfile_t *file = opened(power);
    opal_cryptfile_outcome_t outcome;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_resize(file, BASE + SIZE, &outcome));
    opal_cryptfile_destroy(file);
}

/* After a loss of power or a sync, only the present data counts. */
static void only_now(power_t *power)
{
    opal_cryptfile_t *file = opened(power);

    for (uint64_t i = 0; i < BLOCKS; ++i) {
        opal_cryptfile_block_condition_t condition = OPAL_CRYPTFILE_BLOCK_BAD;
        uint32_t bytes;
        (void) read_block(file, i, model.version[i][0]);
        (void) opal_cryptfile_check(file, 0, BASE / B + i, &condition, &bytes);
        model.versions[i] = 1;
        model.hole[i] = OPAL_CRYPTFILE_BLOCK_HOLE == condition || OPAL_CRYPTFILE_BLOCK_TORN == condition || i * B >= bytes_of(power, file);
    }
    opal_cryptfile_destroy(file);
}

static void add_version(uint64_t block, const uint8_t *bytes, bool hole)
{
    UNIT_REQUIRE(model.versions[block] < VERSIONS);
    memcpy(model.version[block][model.versions[block]++], bytes, B);
    model.hole[block] = model.hole[block] || hole;
}

static unsigned wrong_blocks(power_t *power)
{
    opal_cryptfile_t *file = opened(power);
    unsigned wrong = 0;

    for (uint64_t i = 0; i < BLOCKS; ++i) {
        uint8_t out[B];
        uint32_t bytes = memory_block_length(bytes_of(power, file), i, B);
        int rc = read_block(file, i, out), fits = 0;
        for (int k = 0; k < model.versions[i]; ++k) {
            fits = fits || 0 == memcmp(out, model.version[i][k], bytes);
        }
        wrong += OPAL_CRYPT_OK == rc ? !fits : OPAL_CRYPT_ERR_TORN != rc || !model.hole[i];
    }
    opal_cryptfile_destroy(file);
    return wrong;
}

/* ---- runs ---- */

static void expect_write(opal_cryptfile_t *file, uint64_t from, const uint8_t *bytes, size_t count)
{
    for (uint64_t i = from / B; i * B < from + count; ++i) {
        uint8_t image[B];
        uint64_t a = i * B > from ? i * B : from, b = (i + 1) * B < from + count ? (i + 1) * B : from + count;
        if (OPAL_CRYPT_OK != read_block(file, i, image)) {
            memset(image, 0, B);
        }
        memcpy(image + a % B, bytes + (a - from), (size_t) (b - a));
        add_version(i, image, false);
    }
}

static void expect_cut(opal_cryptfile_t *file, uint64_t size)
{
    for (uint64_t i = size / B; i < BLOCKS; ++i) {
        uint8_t image[B];
        size_t keep = i == size / B ? (size_t) (size % B) : 0;
        (void) read_block(file, i, image);
        memset(image + keep, 0, B - keep);
        add_version(i, image, 0 == keep);
    }
}

static int step(power_t *power, opal_cryptfile_t *file, uint64_t *random)
{
    static uint8_t text[SIZE];
    opal_cryptfile_outcome_t outcome;
    uint64_t what = draw(random, 10), from = draw(random, 2) ? draw(random, 4 * B) : 62 * B + draw(random, 4 * B);
    long writes_left = power->now.writes_left;

    power->now.writes_left = -1;        /* the model looks, too */
    if (0 == what) {
        uint64_t unused = 0;
        write_back_cache(power, 100, &unused);
        UNIT_REQUIRE(power->now.size == power->stable.size);
        only_now(power);
        power->now.writes_left = writes_left;
        return OPAL_CRYPT_OK;
    }
    if (1 == what) {
        expect_cut(file, from);
        power->now.writes_left = writes_left;
        return opal_cryptfile_resize(file, BASE + from, &outcome);
    }
    size_t count = 1 + (size_t) draw(random, 4 * B);
    fill(text, (int) count, (int) draw(random, 1000000));
    expect_write(file, from, text, count);
    power->now.writes_left = writes_left;
    return opal_cryptfile_write(file, &(opal_cryptfile_request_t){text, BASE + from, count}, 1, false, &outcome);
}

static void lose_power(power_t *power, uint64_t *random)
{
    static const unsigned percents[] = {0, 30, 60, 90, 100};

    write_back_cache(power, percents[draw(random, 5)], random);
    memory_copy(&power->now, &power->stable);
}

/* Blocks that are wrong after any of the runs; *ends counts runs. */
static unsigned crash_runs(uint64_t seed, bool heeds, unsigned *ends)
{
    power_t power = {.heeds = heeds};
    uint64_t random = seed * 2654435761u + 1, unused = 0;
    unsigned wrong = 0;

    memory_init(&power.now);
    memory_init(&power.stable);
    power.now.super = (opal_cryptfile_storage_t){memory_read, power_write, memory_size, power_resize, power_zero,
                                                    memory_lock, memory_unlock, memory_try_lock, power_barrier, power_barrier, NULL};
    group_redo_rooms = 1 + (uint32_t) draw(&random, 3);
    UNIT_REQUIRE(OPAL_CRYPT_OK == power_resize(&power.now.super, 8192));
    write_back_cache(&power, 100, &unused);
    memset(&model, 0, sizeof(model));
    only_now(&power);
    for (int run = 0; run < RUNS && 0 == wrong; ++run) {
        opal_cryptfile_t *file = opened(&power);
        power.now.writes_left = (long) draw(&random, 0 == draw(&random, 2) ? 40 : 400);
        for (int i = 0; i < STEPS && OPAL_CRYPT_OK == step(&power, file, &random); ++i) {
        }
        power.now.writes_left = -1;
        power.now.locks = 0;
        opal_cryptfile_destroy(file);
        if (draw(&random, 4) > 1) {
            lose_power(&power, &random);
            wrong = wrong_blocks(&power);
            (0 == draw(&random, 2) ? see_all : lengthen)(&power);
            only_now(&power);
        } else {
            see_all(&power);
        }
        ++*ends;
    }
    UNIT_REQUIRE(power.barriers > 0 || wrong > 0);
    free(power.pending);
    memory_free(&power.now);
    memory_free(&power.stable);
    return wrong;
}

static void test_crash_runs(const char *name, bool heeds, unsigned seeds)
{
    unsigned lost = 0, ends = 0;

    UNIT_GROUP("%s", name);
    for (unsigned seed = 1; seed <= seeds; ++seed) {
        unsigned wrong = crash_runs(seed, heeds, &ends);
        if (wrong > 0 && heeds) {
            printf("  seed %u: %u blocks are lost\n", seed, wrong);
        }
        lost += wrong;
    }
    printf("  %u blocks lost in %u runs\n", lost, ends);
    UNIT_CHECK(heeds == (0 == lost));
}

int main(int argc, char **argv)
{
    providers_init();
    test_crash_runs("with barriers nothing is lost", true, argc > 1 ? (unsigned) atoi(argv[1]) : 500);
    test_crash_runs("without them blocks are lost", false, 60);
    providers_fini();
    return unit_done();
}

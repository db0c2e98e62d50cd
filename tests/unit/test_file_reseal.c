/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Seals after seals: regions of two seals do not make one, and opening a sealed
 * file for writing and sealing it again does not make an attacker's data valid.
 * Each attack has a control, without the check that prevents it.
 */
#include "opal/mca/common/cryptfile/file/seal.h"
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/file/seal_tree.h"
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { BLOCK = 512, BLOCKS = 800, HALF = BLOCKS * BLOCK, BYTES = 2 * HALF };

/* Two regions, one half of the file each. */
static const region_spec_t specs[] = {
    {1, OPAL_AEAD_AES_128_GCM, BLOCK, 0, HALF, true, 1, {{0, HALF, 0}}},
    {1, OPAL_AEAD_AES_128_GCM, BLOCK, HALF, HALF, true, 1, {{0, HALF, 0}}}};
static uint8_t text[BYTES];
static const opal_cryptfile_map_t *map;         /* of all files here */

static opal_cryptfile_t *open_it(memory_t *memory) { return open_file(&memory->super, specs, 2, NULL); }

static uint64_t bytes_in(const memory_t *memory) { return opal_cryptfile_geometry_size(&map->geometry, memory->size); }

static bool is_sealed(const memory_t *memory)
{
    return OPAL_CRYPTFILE_STATE_SEALED == opal_crypt_le_get32(memory->bytes + opal_cryptfile_geometry_seal_at(&map->geometry));
}

static void unseal(memory_t *memory)
{
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_state_put(&memory->super, &map->geometry, OPAL_CRYPTFILE_STATE_OPEN));
}

static void write_version(memory_t *memory, uint64_t number)
{
    opal_cryptfile_t *file = open_it(memory);

    fill(text, sizeof(text), number);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, sizeof(text)));
    opal_cryptfile_destroy(file);
}

static int seal_with(opal_cryptfile_t *file, uint8_t number, uint64_t bytes, bool watched, opal_crypt_why_t *why)
{
    opal_cryptfile_tree_t tree = {.size = bytes, .id = {number}};
    opal_cryptfile_outcome_t outcome;
    int rc = OPAL_CRYPT_OK;

    for (uint32_t i = 0; watched && i < 2 && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_tree_accept(file, i, bytes, &outcome, why);
    }
    for (uint32_t i = 0; i < 2 && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_tree_fields(file, i, bytes, &outcome);
    }
    rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_make(file, &tree, true) : rc;
    for (uint32_t i = 0; i < 2 && OPAL_CRYPT_OK == rc; ++i) {
        rc = opal_cryptfile_tree_root(file, i, &tree);
    }
    return OPAL_CRYPT_OK == rc ? opal_cryptfile_tree_finish(file, &tree) : rc;
}

static void seal(memory_t *memory, uint8_t number)
{
    opal_cryptfile_t *file = open_it(memory);
    opal_crypt_why_t why = {.topic = NULL};

    UNIT_CHECK(OPAL_CRYPT_OK == seal_with(file, number, BYTES, false, &why));
    opal_cryptfile_destroy(file);
}

static bool demanded(memory_t *memory)
{
    opal_cryptfile_t *file = open_it(memory);
    opal_crypt_why_t why = {.topic = NULL};
    static uint8_t out[BYTES];
    uint64_t got;
    bool good = OPAL_CRYPT_OK == opal_cryptfile_seal_demand(file, NULL, &why) &&
                OPAL_CRYPT_OK == get_bytes(file, 0, out, sizeof(out), &got);

    opal_cryptfile_destroy(file);
    return good;
}

static void put_back(memory_t *memory, const memory_t *old, uint64_t at, size_t bytes) { memcpy(memory->bytes + at, old->bytes + at, bytes); }

/* Where the entry of a block in the first group is. */
static uint64_t entry_of(uint32_t region, uint64_t block)
{
    return opal_cryptfile_geometry_entry_at(&map->geometry, 0, opal_cryptfile_geometry_entry(map, region, block));
}

/* All of region 1 as it was in `old`, in both groups; its root, too. */
static void put_region_back(memory_t *memory, const memory_t *old)
{
    enum { FIRST = (GROUP_DATA - HALF) / BLOCK, ENTRY = OPAL_CRYPTFILE_ENTRY_BYTES };

    put_back(memory, old, place_of(HALF), GROUP_DATA - HALF);
    put_back(memory, old, place_of(GROUP_DATA), BYTES - GROUP_DATA);
    put_back(memory, old, entry_of(1, 0), FIRST * ENTRY);
    put_back(memory, old, opal_cryptfile_geometry_entry_at(&map->geometry, 1, 0), (BLOCKS - FIRST) * ENTRY);
    put_back(memory, old, opal_cryptfile_geometry_seal_at(&map->geometry) + 80 + OPAL_CRYPT_HASH_BYTES, OPAL_CRYPT_HASH_BYTES);
}

static void test_mixed(void)
{
    memory_t memory, old;

    UNIT_GROUP("one region of this seal, one of the last, even if both seals have one id");
    for (uint8_t same = 0; same < 2; ++same) {
        memory_init(&memory);
        memory_init(&old);
        write_version(&memory, 1);
        seal(&memory, 1);
        memory_copy(&old, &memory);
        write_version(&memory, 2);
        seal(&memory, same ? 1 : 2);
        UNIT_CHECK(demanded(&memory));
        put_region_back(&memory, &old);
        UNIT_CHECK(!demanded(&memory));
        memory_copy(&memory, &old);     /* the control: all of the last */
        UNIT_CHECK(demanded(&memory));
        memory_free(&memory);
        memory_free(&old);
    }
}

/* ---- opening for writing, and sealing again ---- */

typedef enum { JOB_SEALS, JOB_IS_REFUSED, JOB_CANNOT_SEAL } job_t;

typedef struct plan {
    void (*before)(memory_t *memory, const memory_t *old);      /* the job opens the file */
    void (*during)(memory_t *memory, const memory_t *old);      /* it is open */
    void (*work)(opal_cryptfile_t *file, opal_cryptfile_t *other);                      /* of two processes */
    uint64_t cut;                       /* 0: no cut */
    bool unwatched;                     /* the control */
} plan_t;

static void exchange_witnesses(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    uint8_t *bytes[2], *all;
    size_t count[2];

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_seal_witnesses(file, &bytes[0], &count[0]));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_seal_witnesses(other, &bytes[1], &count[1]));
    all = malloc(count[0] + count[1] + 1);
    memcpy(all, bytes[0], count[0]);
    memcpy(all + count[0], bytes[1], count[1]);
    for (uint32_t i = 0; i < 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_seal_witnessed(file, i, all, count[0] + count[1]));
    }
    free(bytes[0]);
    free(bytes[1]);
    free(all);
}

static memory_t *hiding;                /* what the job works on */

/* A job of two processes, the first of which seals. */
static job_t job(memory_t *memory, const memory_t *old, const plan_t *plan)
{
    opal_cryptfile_t *file, *other;
    opal_cryptfile_outcome_t outcome;
    opal_crypt_why_t why = {.topic = NULL};
    job_t result = JOB_SEALS;

    hiding = memory;
    if (NULL != plan->before) {
        plan->before(memory, old);
    }
    file = open_it(memory);
    other = open_it(memory);
    if (is_sealed(memory) && !plan->unwatched) {
        opal_cryptfile_tree_t tree;
        uint8_t hash[OPAL_CRYPT_HASH_BYTES];
        result = OPAL_CRYPT_OK == opal_cryptfile_tree_check(file, &tree, hash, &why) ? result : JOB_IS_REFUSED;
    }
    if (JOB_SEALS == result) {
        unseal(memory);
        if (!plan->unwatched) {
            opal_cryptfile_seal_watch(file, bytes_in(memory));
            opal_cryptfile_seal_watch(other, bytes_in(memory));
        }
        if (NULL != plan->during) {
            plan->during(memory, old);
        }
        if (NULL != plan->work) {
            plan->work(file, other);
        }
        if (0 != plan->cut) {
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(other, plan->cut, &outcome));
            opal_cryptfile_seal_cut(file, plan->cut, true);
            opal_cryptfile_seal_cut(other, plan->cut, true);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(other, BYTES, &outcome));
        }
        exchange_witnesses(file, other);
        if (OPAL_CRYPT_OK != seal_with(file, 9, bytes_in(memory), !plan->unwatched, &why)) {
            UNIT_CHECK(NULL != why.topic && 0 == strcmp(why.topic, "file-seal-foreign"));
            result = JOB_CANNOT_SEAL;
        }
    } else {
        UNIT_CHECK(NULL != why.topic && 0 == strcmp(why.topic, "file-seal"));
    }
    opal_cryptfile_destroy(file);
    opal_cryptfile_destroy(other);
    return result;
}

static void older_block(memory_t *memory, const memory_t *old)
{
    put_back(memory, old, place_of(HALF + 140 * BLOCK), BLOCK);
    put_back(memory, old, entry_of(1, 140), OPAL_CRYPTFILE_SLOTS_BYTES);
}

static void hole(memory_t *memory, const memory_t *old)
{
    (void) old;
    memset(memory->bytes + place_of(HALF + 140 * BLOCK), 0, BLOCK);
    memset(memory->bytes + entry_of(1, 140), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
}

static void shorter(memory_t *memory, const memory_t *old)
{
    (void) old;
    memory->size -= BLOCK;
}

/* The entry is cleared, the data is not: to a writer a hole. */
static void torn(memory_t *memory, const memory_t *old)
{
    (void) old;
    memset(memory->bytes + entry_of(1, 140), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
}

static void unsealed(memory_t *memory, const memory_t *old)
{
    (void) old;
    unseal(memory);
}

static void sealed_field(memory_t *memory, const memory_t *old)
{
    (void) old;
    memory->bytes[entry_of(1, 7) + OPAL_CRYPTFILE_SLOTS_BYTES + 5] ^= 1;
}

static void nothing_much(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 7 * BLOCK, text, 3 * BLOCK));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(other, HALF + 20 * BLOCK, text, BLOCK));
    for (int turn = 0; turn < 500; ++turn) {            /* each on top of the other's */
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, HALF + 20 * BLOCK + 10, "x", 1));
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(other, HALF + 20 * BLOCK + 20, "y", 1));
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(other, 200 * BLOCK + 20, "z", 1));
    }
    uint8_t *bytes;
    size_t count;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_seal_witnesses(file, &bytes, &count));
    UNIT_CHECK(count < 32 * 64);                        /* however often they do it */
    free(bytes);
}

static void on_top(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    (void) file;
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(other, HALF + 140 * BLOCK, "abc", 3));
}

static int short_size(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    int rc = memory_size(storage, bytes);

    *bytes = opal_cryptfile_geometry_end(&map->geometry, HALF + 140 * BLOCK + 3);
    return rc;
}

/* While a part of a block is written, storage says that the file ends there. */
static void on_top_of_hidden(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    int (*size)(opal_cryptfile_storage_t *, uint64_t *) = hiding->super.size;

    hiding->super.size = short_size;
    on_top(file, other);
    hiding->super.size = size;
}

static void over(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    (void) other;
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, HALF + 140 * BLOCK, text, BLOCK));
}

static void everything(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, 100 * BLOCK));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(other, 100 * BLOCK, text, BYTES - 100 * BLOCK));
}

static void longer(opal_cryptfile_t *file, opal_cryptfile_t *other)
{
    opal_cryptfile_outcome_t outcome;

    everything(file, other);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, BYTES, &outcome));
}

static void test_reseal(const memory_t *sealed, const memory_t *old)
{
    static const struct {
        const char *what;
        plan_t plan;
        job_t job, control;             /* the same without the check */
    } cases[] = {
        {"nothing wrong, nothing written", {NULL}, JOB_SEALS, JOB_SEALS},
        {"nothing wrong, two processes write", {.work = nothing_much}, JOB_SEALS, JOB_SEALS},
        {"an older block, when the file is opened", {.before = older_block}, JOB_IS_REFUSED, JOB_SEALS},
        {"a hole, when the file is opened", {.before = hole}, JOB_IS_REFUSED, JOB_SEALS},
        {"the end cut off, when the file is opened", {.before = shorter}, JOB_IS_REFUSED, JOB_SEALS},
        {"an older block, meanwhile", {.during = older_block}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"an older block, and a part is written on top", {.during = older_block, .work = on_top}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"an older block, whose rest storage hides", {.during = older_block, .work = on_top_of_hidden}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"the end cut off, meanwhile", {.during = shorter}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a torn block, and a part is written on top", {.during = torn, .work = on_top}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a hole, meanwhile", {.during = hole}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a hole, and a part is written on top", {.during = hole, .work = on_top}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"an older block, and all of it is written", {.during = older_block, .work = over}, JOB_SEALS, JOB_SEALS},
        {"an older block of a file that is called open", {.before = unsealed, .during = older_block}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a file that was not sealed, a part is written", {.before = unsealed, .work = nothing_much}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a file that was not sealed, all is written", {.before = unsealed, .work = everything}, JOB_SEALS, JOB_SEALS},
        {"a sealed field changed", {.during = sealed_field}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"a sealed field changed, all is written", {.during = sealed_field, .work = longer}, JOB_CANNOT_SEAL, JOB_SEALS},
        {"cut through a block, and lengthened", {.cut = HALF + 20 * BLOCK + 100}, JOB_SEALS, JOB_SEALS},
        {"cut between blocks, and lengthened", {.cut = 3 * BLOCK}, JOB_SEALS, JOB_SEALS},
        {"a part is written on top of a block that is cut off", {.work = on_top, .cut = HALF}, JOB_SEALS, JOB_SEALS},
        {"an older block, cut off", {.during = older_block, .cut = HALF + 140 * BLOCK}, JOB_SEALS, JOB_SEALS},
        {"an older block, cut through", {.during = older_block, .cut = HALF + 140 * BLOCK + 5}, JOB_CANNOT_SEAL, JOB_SEALS}};
    memory_t memory;

    memory_init(&memory);
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
        plan_t control = cases[i].plan;
        UNIT_GROUP("opened for writing and sealed: %s", cases[i].what);
        memory_copy(&memory, sealed);
        UNIT_CHECK(cases[i].job == job(&memory, old, &cases[i].plan));
        UNIT_CHECK(demanded(&memory) == (JOB_SEALS == cases[i].job));
        control.unwatched = true;
        memory_copy(&memory, sealed);
        UNIT_CHECK(cases[i].control == job(&memory, old, &control) && demanded(&memory));
    }
    memory_free(&memory);
}

/* Once the newer version is accepted, storage shows an older one, with its sealed field. */
static void test_between(const memory_t *sealed, const memory_t *old)
{
    memory_t memory;

    UNIT_GROUP("an older block, after what may be sealed was looked at");
    memory_init(&memory);
    for (int watched = 0; watched < 2; ++watched) {
        opal_cryptfile_tree_t tree;
        opal_cryptfile_outcome_t outcome;
        opal_crypt_why_t why = {.topic = NULL};
        uint8_t hash[OPAL_CRYPT_HASH_BYTES];
        memory_copy(&memory, sealed);
        opal_cryptfile_t *file = open_it(&memory);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_check(file, &tree, hash, &why));
        opal_cryptfile_seal_watch(file, BYTES);
        exchange_witnesses(file, file);
        for (uint32_t i = 0; i < 2; ++i) {
            UNIT_CHECK(!watched || OPAL_CRYPT_OK == opal_cryptfile_tree_accept(file, i, BYTES, &outcome, &why));
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_tree_fields(file, i, BYTES, &outcome));
        }
        put_back(&memory, old, entry_of(1, 140), OPAL_CRYPTFILE_ENTRY_BYTES);
        UNIT_CHECK((watched ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK) == opal_cryptfile_tree_make(file, &tree, true));
        opal_cryptfile_destroy(file);
    }
    memory_free(&memory);
}

int main(void)
{
    memory_t memory, old;

    providers_init();
    memory_init(&memory);
    memory_init(&old);
    opal_cryptfile_t *file = open_it(&memory);
    map = opal_cryptfile_map_of(file);
    test_mixed();
    write_version(&memory, 1);
    seal(&memory, 1);
    memory_copy(&old, &memory);
    write_version(&memory, 2);
    unseal(&memory);
    seal(&memory, 2);
    test_reseal(&memory, &old);
    test_between(&memory, &old);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    memory_free(&old);
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Several processes write to one file with a random map, whose groups have few rooms; some lack keys, and some
 * die.  Each runs as a thread, but only one at a time: after a call to the storage the next one is drawn, so
 * that a seed determines everything.  Surviving processes can go on, and every block reads as last written, or
 * as written at the same time; what a dead process was writing counts as written at any time, or never.
 * The same with new sizes of the file, byte by byte.
 *
 *     test_file_rounds [FIRST [SEEDS]]
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

#include <pthread.h>

enum { REGIONS = 3, PROCESSES = 3, CALLS = 6, HALF = 6, BLOCKS = 2 * HALF, B_MOST = 4096, LOCKS = 256, OPS = PROCESSES * CALLS + 8 };
enum { CALLS_MOST = 400000 };           /* to the storage, by one process; more: a process waits for ever */

/* ---- a draw ---- */

static uint64_t state;

static uint64_t draw(uint64_t below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (state >> 33) % below;
}

/* ---- whose turn it is ---- */

static pthread_mutex_t turn_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static bool runs[PROCESSES];
static int turn = -1;                   /* -1: no process, or only the test itself */
static uint64_t now;                    /* calls to the storage */

/* Under turn_lock. */
static void pass_on(void)
{
    int left = 0;

    for (int i = 0; i < PROCESSES; ++i) {
        left += runs[i];
    }
    turn = -1;
    for (uint64_t k = left > 0 ? draw((uint64_t) left) + 1 : 0; k > 0;) {
        k -= runs[++turn];
    }
    pthread_cond_broadcast(&turn_changed);
}

static void wait_for_turn(int me)
{
    while (me != turn) {
        pthread_cond_wait(&turn_changed, &turn_lock);
    }
}

/* ---- a process ---- */

typedef struct process {
    opal_cryptfile_storage_t super;
    int number;                         /* PROCESSES: the test itself */
    long writes_left;                   /* pieces that it may write; < 0: for ever */
    opal_cryptfile_grant_t grants[REGIONS + 1];
} process_t;

static memory_t memory;                 /* the file */

static struct {
    uint64_t first, last;
    int owner;
    bool exclusive;
} locks[LOCKS];
static unsigned lock_count;

static void unlock_all(int owner)
{
    for (unsigned i = 0; i < lock_count;) {
        if (owner == locks[i].owner) {
            locks[i] = locks[--lock_count];
        } else {
            ++i;
        }
    }
}

static pthread_mutex_t file_lock = PTHREAD_MUTEX_INITIALIZER;       /* threads of one process need no turns */

/* False: the process is dead, with an errno.  Returns with file_lock held. */
static bool enter(opal_cryptfile_storage_t *storage)
{
    process_t *process = (process_t *) storage;

    if (process->number < PROCESSES) {
        pthread_mutex_lock(&turn_lock);
        pass_on();
        wait_for_turn(process->number);
        pthread_mutex_unlock(&turn_lock);
    }
    pthread_mutex_lock(&file_lock);
    UNIT_REQUIRE(++now < CALLS_MOST);
    errno = EIO;
    return 0 != process->writes_left;
}

static int leave(int rc)
{
    pthread_mutex_unlock(&file_lock);
    return rc;
}

static int process_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t count)
{
    return leave(enter(storage) ? memory_read(&memory.super, extents, count) : OPAL_CRYPT_ERR_STORAGE);
}

static int process_write(opal_cryptfile_storage_t *storage, const opal_cryptfile_extent_t *extents, size_t count)
{
    process_t *process = (process_t *) storage;

    if (!enter(storage)) {
        return leave(OPAL_CRYPT_ERR_STORAGE);
    }
    memory.writes_left = process->writes_left;
    int rc = memory_write(&memory.super, extents, count);
    process->writes_left = memory.writes_left;
    memory.writes_left = -1;
    if (0 == process->writes_left) {
        unlock_all(process->number);
    }
    return leave(rc);
}

static int process_size(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    return leave(enter(storage) ? memory_size(&memory.super, bytes) : OPAL_CRYPT_ERR_STORAGE);
}

static int process_resize(opal_cryptfile_storage_t *storage, uint64_t bytes)
{
    return leave(enter(storage) ? memory_resize(&memory.super, bytes) : OPAL_CRYPT_ERR_STORAGE);
}

static int process_try(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    int me = ((process_t *) storage)->number;

    *got = false;
    if (!enter(storage)) {
        return leave(OPAL_CRYPT_ERR_STORAGE);
    }
    for (unsigned i = 0; i < lock_count; ++i) {
        if (me != locks[i].owner && locks[i].first <= at + bytes - 1 && at <= locks[i].last && (exclusive || locks[i].exclusive)) {
            return leave(OPAL_CRYPT_OK);
        }
    }
    UNIT_REQUIRE(lock_count < LOCKS);
    locks[lock_count].first = at;
    locks[lock_count].last = at + bytes - 1;
    locks[lock_count].owner = me;
    locks[lock_count++].exclusive = exclusive;
    *got = true;
    return leave(OPAL_CRYPT_OK);
}

static int process_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    bool got = false;
    int rc = OPAL_CRYPT_OK;

    while (OPAL_CRYPT_OK == rc && !got) {
        rc = process_try(storage, at, bytes, exclusive, &got);
    }
    return rc;
}

static int process_unlock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes)
{
    unsigned i = 0;

    if (!enter(storage)) {
        return leave(OPAL_CRYPT_ERR_STORAGE);
    }
    while (i < lock_count && (((process_t *) storage)->number != locks[i].owner || at != locks[i].first || at + bytes - 1 != locks[i].last)) {
        ++i;
    }
    UNIT_REQUIRE(i < lock_count);
    locks[i] = locks[--lock_count];
    return leave(OPAL_CRYPT_OK);
}

static process_t process_of(int number)
{
    process_t process = {.super = {process_read, process_write, process_size, process_resize, NULL, process_lock, process_unlock, process_try},
                         .number = number, .writes_left = -1};

    for (int i = 0; i <= REGIONS; ++i) {
        process.grants[i] = OPAL_CRYPTFILE_GRANT_SEAL;
    }
    return process;
}

/* ---- a random map: regions alternate, and the rest is plain ---- */

static region_spec_t specs[REGIONS + 1];

static void draw_map(void)
{
    static const opal_aead_cipher_t ciphers[3] = {OPAL_AEAD_AES_128_GCM, OPAL_AEAD_AES_256_GCM, OPAL_AEAD_CHACHA20_POLY1305};
    uint64_t at[REGIONS + 2] = {0}, unit = 1 + draw(40);

    for (int i = 0; i <= REGIONS; ++i) {        /* each has some blocks in a group */
        at[i + 1] = at[i] + unit * (200 + draw(1000));
    }
    for (int i = 0; i < REGIONS; ++i) {
        specs[i] = (region_spec_t){1, ciphers[draw(3)], 512u << draw(4), 0, at[REGIONS + 1], false, 1, {{at[i], at[i + 1] - at[i], 0}}};
    }
    specs[REGIONS] = (region_spec_t){0, 0, 0, 0, at[REGIONS + 1], false, 1, {{at[REGIONS], at[REGIONS + 1] - at[REGIONS], 0}}};
    group_redo_rooms = 1 + (uint32_t) draw(4);
}

/* The blocks of a region that are written: the last ones of group 0, and the first ones of group 1. */
static uint64_t number_of_block(opal_cryptfile_t *file, uint32_t region, unsigned i)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    uint32_t block_bytes = specs[region].block_bytes;

    return i < HALF ? opal_cryptfile_geometry_blocks(&map->geometry, &map->regions[region].tiling, block_bytes, 0) - HALF + i
                    : GROUP_DATA / block_bytes + i - HALF;
}

/* Requests for all bytes of a block, which are in `bytes`; returns the block's length. */
static size_t requests_of(opal_cryptfile_t *file, uint32_t region, unsigned i, uint8_t *bytes, opal_cryptfile_request_t *requests, size_t *count)
{
    const opal_cryptfile_map_t *map = opal_cryptfile_map_of(file);
    uint64_t from = number_of_block(file, region, i) * specs[region].block_bytes, offset, together;
    size_t done = 0;

    while (done < specs[region].block_bytes &&
           opal_cryptfile_geometry_locate(&map->geometry, &map->regions[region].tiling, from + done, &offset, &together)) {
        size_t left = specs[region].block_bytes - done;
        left = together < left ? (size_t) together : left;
        requests[(*count)++] = (opal_cryptfile_request_t){bytes + done, offset, left};
        done += left;
    }
    return done;
}

/* ---- what was written, and when ---- */

typedef struct op {
    uint32_t region;                    /* REGIONS: a new size, `end` */
    unsigned first, count;
    uint64_t end;
    uint8_t tag;                        /* what each byte becomes */
    uint64_t begun, done;               /* UINT64_MAX: never: a dead process's, or still going on */
} op_t;

static op_t ops[OPS];
static unsigned op_count;

/* Does it change this byte of a block, which is at `offset`? */
static bool is_of(const op_t *op, uint32_t region, unsigned block, uint64_t offset)
{
    return REGIONS == op->region ? offset >= op->end : region == op->region && block >= op->first && block - op->first < op->count;
}

/* May a read from `begun` to `done` return what the operation wrote?  Not if a later one was done before the read. */
static bool may_be_of(const op_t *op, uint32_t region, unsigned block, uint64_t offset, uint64_t begun, uint64_t done)
{
    bool may = is_of(op, region, block, offset) && op->begun < done;

    for (unsigned i = 0; i < op_count && may; ++i) {
        may = !is_of(&ops[i], region, block, offset) || op->done > ops[i].begun || ops[i].done > begun;
    }
    return may;
}

static bool may_be(uint32_t region, unsigned block, uint64_t offset, uint8_t tag, uint64_t begun, uint64_t done)
{
    bool may = false;

    for (unsigned i = 0; i < op_count && !may; ++i) {
        may = tag == ops[i].tag && may_be_of(&ops[i], region, block, offset, begun, done);
    }
    return may;
}

/* A process died during the block's first write. */
static bool may_be_torn(uint32_t region, unsigned block, uint64_t offset, uint64_t now_is)
{
    bool may = false;

    for (unsigned i = 0; i < op_count && !may; ++i) {
        may = UINT64_MAX == ops[i].done && REGIONS != ops[i].region && may_be_of(&ops[i], region, block, offset, now_is, now_is + 1);
    }
    return may;
}

/* ---- calls ---- */

static uint8_t tags;
static bool sizes;                      /* the file gets other sizes, too: every process has all keys */

typedef struct call {
    uint8_t bytes[BLOCKS * B_MOST];
    opal_cryptfile_request_t requests[BLOCKS * B_MOST];
} call_t;

/* A write of some blocks of a region; false: it failed. */
static bool write_some(opal_cryptfile_t *file, call_t *call, uint32_t region, unsigned first, unsigned count, bool atomic)
{
    op_t *op = &ops[op_count++];
    opal_cryptfile_outcome_t outcome;
    size_t requests = 0;
    uint8_t tag = ++tags;

    UNIT_REQUIRE(op_count <= OPS);
    *op = (op_t){region, first, count, 0, tag, now, UINT64_MAX};
    memset(call->bytes, tag, sizeof(call->bytes));
    for (unsigned i = first; i < first + count; ++i) {
        (void) requests_of(file, region, i, call->bytes, call->requests, &requests);
    }
    bool good = OPAL_CRYPT_OK == opal_cryptfile_write(file, call->requests, requests, atomic, &outcome);
    op->done = good ? now : UINT64_MAX;
    return good;
}

static bool read_one(opal_cryptfile_t *file, call_t *call, uint32_t region, unsigned block)
{
    opal_cryptfile_outcome_t outcome;
    size_t requests = 0, bytes = requests_of(file, region, block, call->bytes, call->requests, &requests);
    uint64_t begun = now;

    memset(call->bytes, 0, bytes);      /* for bytes beyond the end */
    int rc = opal_cryptfile_read(file, call->requests, requests, false, &outcome);
    if (OPAL_CRYPT_ERR_TORN == rc) {
        return may_be_torn(region, block, call->requests[0].offset, now);
    }
    for (size_t i = 0; i < requests && OPAL_CRYPT_OK == rc; ++i) {
        const opal_cryptfile_request_t *request = &call->requests[i];
        for (size_t k = 0; k < request->bytes; ++k) {
            if (!may_be(region, block, request->offset + k, ((uint8_t *) request->memory)[k], begun, now)) {
                return false;
            }
        }
    }
    return OPAL_CRYPT_OK == rc;
}

/* A new size, which ends in the blocks that are written. */
static bool set_size(opal_cryptfile_t *file, call_t *call)
{
    op_t *op = &ops[op_count++];
    opal_cryptfile_outcome_t outcome;
    size_t requests = 0;

    UNIT_REQUIRE(op_count <= OPS);
    (void) requests_of(file, (uint32_t) draw(REGIONS), (unsigned) draw(BLOCKS), call->bytes, call->requests, &requests);
    *op = (op_t){REGIONS, 0, 0, call->requests[draw(requests)].offset + draw(3), 0, now, UINT64_MAX};
    bool good = OPAL_CRYPT_OK == opal_cryptfile_resize(file, op->end, &outcome);
    op->done = good ? now : UINT64_MAX;
    return good;
}

static void *live(void *arg)
{
    process_t *process = arg;
    call_t *call = malloc(sizeof(*call));
    bool good = true;

    pthread_mutex_lock(&turn_lock);
    wait_for_turn(process->number);
    pthread_mutex_unlock(&turn_lock);
    opal_cryptfile_t *file = open_file(&process->super, specs, REGIONS + 1, process->grants);
    for (int i = 0; i < CALLS && good; ++i) {
        uint32_t region = (uint32_t) draw(REGIONS);
        unsigned first = (unsigned) draw(BLOCKS);
        if (OPAL_CRYPTFILE_GRANT_SEAL != process->grants[region]) {
            continue;
        }
        good = sizes && 0 == draw(4) ? set_size(file, call)
               : 0 == draw(4) ? read_one(file, call, region, first)
                              : write_some(file, call, region, first, 1 + (unsigned) draw(BLOCKS - first), 0 == draw(3));
    }
    UNIT_CHECK(good || 0 == process->writes_left);
    opal_cryptfile_destroy(file);
    free(call);
    pthread_mutex_lock(&turn_lock);
    runs[process->number] = false;
    pass_on();
    pthread_mutex_unlock(&turn_lock);
    return NULL;
}

/* ---- a seed ---- */

static void check_all(opal_cryptfile_t *file, call_t *call, unsigned seed)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < REGIONS * BLOCKS; ++i) {
        wrong += !read_one(file, call, i % REGIONS, i / REGIONS);
    }
    if (!UNIT_CHECK(0 == wrong)) {
        printf("  seed %u: %u blocks are wrong\n", seed, wrong);
    }
}

static unsigned run_all(bool one_key)
{
    process_t processes[PROCESSES];
    pthread_t threads[PROCESSES];
    unsigned dead = 0;

    for (int i = 0; i < PROCESSES; ++i) {
        processes[i] = process_of(i);
        processes[i].writes_left = 0 == draw(2) ? -1 : (long) draw(200);
        for (int k = 0; k < REGIONS && one_key; ++k) {
            processes[i].grants[k] = i == k ? OPAL_CRYPTFILE_GRANT_SEAL : OPAL_CRYPTFILE_GRANT_NONE;
        }
        runs[i] = true;
    }
    for (int i = 0; i < PROCESSES; ++i) {
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, live, &processes[i]));
    }
    pthread_mutex_lock(&turn_lock);
    pass_on();
    pthread_mutex_unlock(&turn_lock);
    for (int i = 0; i < PROCESSES; ++i) {
        pthread_join(threads[i], NULL);
        dead += 0 == processes[i].writes_left;
    }
    return dead;
}

static call_t call;

/* A file with all of these blocks written. */
static opal_cryptfile_t *start(process_t *test, unsigned seed)
{
    state = seed * UINT64_C(2654435761) + 1;
    op_count = lock_count = 0;
    tags = 0;
    now = 0;
    draw_map();
    memory_init(&memory);
    memory.page = 512;
    UNIT_REQUIRE(OPAL_CRYPT_OK == memory_resize(&memory.super, 8192));
    opal_cryptfile_t *file = open_file(&test->super, specs, REGIONS + 1, NULL);
    ops[op_count++] = (op_t){.region = REGIONS};        /* it was empty */
    for (uint32_t i = 0; i < REGIONS; ++i) {
        UNIT_REQUIRE(write_some(file, &call, i, 0, BLOCKS, false));
    }
    return file;
}

static unsigned one_seed(unsigned seed)
{
    process_t test = process_of(PROCESSES);
    opal_cryptfile_t *file = start(&test, seed);

    sizes = 0 == draw(2);
    unsigned dead = run_all(!sizes && 0 == draw(2));
    UNIT_CHECK(0 == lock_count);
    check_all(file, &call, seed);
    for (uint32_t i = 0; i < REGIONS; ++i) {
        UNIT_CHECK(write_some(file, &call, i, 0, BLOCKS, 0 == draw(2)));
    }
    check_all(file, &call, seed);
    UNIT_CHECK(0 == lock_count);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    return dead;
}

/* ---- threads of one process ---- */

typedef struct thread {
    opal_cryptfile_t *file;
    uint32_t region;
    call_t call;
    bool good;
} thread_t;

static void *overwrite_often(void *arg)
{
    thread_t *thread = arg;
    opal_cryptfile_outcome_t outcome;
    size_t requests = 0;

    for (unsigned i = 0; i < BLOCKS; ++i) {
        (void) requests_of(thread->file, thread->region, i, thread->call.bytes, thread->call.requests, &requests);
    }
    for (int i = 1; i <= 100 && thread->good; ++i) {
        memset(thread->call.bytes, i, sizeof(thread->call.bytes));
        thread->good = OPAL_CRYPT_OK == opal_cryptfile_write(thread->file, thread->call.requests, requests, false, &outcome);
    }
    return NULL;
}

static void test_threads(void)
{
    static thread_t threads[REGIONS];
    pthread_t ids[REGIONS];
    process_t test = process_of(PROCESSES);
    opal_cryptfile_outcome_t outcome;
    opal_cryptfile_t *file = start(&test, 1);

    UNIT_GROUP("threads that overwrite in the same groups");
    for (uint32_t i = 0; i < REGIONS; ++i) {
        threads[i].file = file;
        threads[i].region = i;
        threads[i].good = true;
        UNIT_REQUIRE(0 == pthread_create(&ids[i], NULL, overwrite_often, &threads[i]));
    }
    for (uint32_t i = 0; i < REGIONS; ++i) {
        size_t requests = 0;
        pthread_join(ids[i], NULL);
        UNIT_CHECK(threads[i].good);
        size_t bytes = requests_of(file, i, 0, call.bytes, call.requests, &requests);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(file, call.requests, requests, false, &outcome));
        UNIT_CHECK(100 == call.bytes[0] && 0 == memcmp(call.bytes, call.bytes + 1, bytes - 1));
    }
    UNIT_CHECK(0 == lock_count);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

int main(int argc, char **argv)
{
    unsigned first = argc > 1 ? (unsigned) atoi(argv[1]) : 1, seeds = argc > 2 ? (unsigned) atoi(argv[2]) : 300, dead = 0;

    providers_init();
    UNIT_GROUP("processes that overwrite in the same groups, and die");
    for (unsigned seed = first; seed < first + seeds; ++seed) {
        dead += one_seed(seed);
    }
    printf("  %u seeds, %u deaths\n", seeds, dead);
    UNIT_CHECK(dead > 0 || seeds < 10);
    test_threads();
    providers_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The block engine against a plain array: random maps, offsets, request lists,
 * sizes; holes; missing keys; many threads in one block.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

#include <pthread.h>

static uint64_t state = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

/* ---- against a plain array ---- */

enum { SPAN = 60000, BASE = GROUP_DATA - SPAN / 2, STEPS = 1500 };      /* of the array, and where it is in the file */

static const struct {
    const char *name;
    unsigned count;
    region_spec_t specs[4];
} worlds[] = {
    {"one region, all bytes", 1, {{1, OPAL_AEAD_AES_128_GCM, 4096, 0, 1, false, 1, {{0, 1, 0}}}}},
    {"one region, small blocks", 1, {{1, OPAL_AEAD_AES_256_GCM, 512, 0, 1, false, 1, {{0, 1, 0}}}}},
    {"odd and even rows, a plain head", 3,
     {{1, OPAL_AEAD_AES_128_GCM, 1024, 1000, 200, false, 1, {{0, 100, 0}}},
      {1, OPAL_AEAD_AES_256_GCM, 512, 1100, 200, false, 1, {{0, 100, 0}}},
      {0, 0, 0, 0, 1000, true, 1, {{0, 1000, 0}}}}},
    {"three columns, the rest plain", 4,
     {{1, OPAL_AEAD_AES_128_GCM, 512, 3, 64, false, 2, {{0, 5, 0}, {20, 3, 0}}},
      {1, OPAL_AEAD_AES_128_GCM, 2048, 10, 64, false, 1, {{0, 12, 0}}},
      {1, OPAL_AEAD_AES_192_GCM, 1024, 40, 64, false, 1, {{0, 24, 0}}},
      {0, 0, 0, 0, 0, false, 0, {{0, 0, 0}}}}},
    {"one tile, and behind it another region", 2,
     {{1, OPAL_AEAD_AES_128_GCM, 512, 0, 0, true, 2, {{0, 700, 0}, {800, 10001, 0}}},
      {1, OPAL_AEAD_AES_256_GCM, 4096, 10801, 1, false, 1, {{0, 1, 0}}}}},
};

/* Bytes of no region are left out. */
static bool covered(const region_spec_t *specs, unsigned count, uint64_t at)
{
    for (unsigned i = 0; i < count; ++i) {
        const region_spec_t *s = &specs[i];
        if (0 == s->run_count) {
            return true;
        }
        if (at < s->displacement || (s->once && at >= s->displacement + 20000)) {
            continue;
        }
        uint64_t within = s->once ? at - s->displacement : (at - s->displacement) % s->extent;
        for (unsigned k = 0; k < s->run_count; ++k) {
            if (within >= s->runs[k].offset && within < s->runs[k].offset + s->runs[k].bytes) {
                return true;
            }
        }
    }
    return false;
}

/* Up to 5 disjoint requests in any order, with memory in other pieces. */
static size_t draw_requests(opal_cryptfile_request_t *requests, uint8_t *memory, const uint8_t *mask)
{
    size_t count = 1 + draw(5), used = 0;

    for (size_t i = 0; i < count; ++i) {
        uint64_t part = SPAN / count, from = i * part + draw(part / 2);
        uint64_t bytes = 0 == draw(3) ? 1 + draw(40) : 1 + draw(part / 2);
        while (from < SPAN - 1 && !mask[from]) {
            ++from;
        }
        uint64_t end = from;
        while (end < from + bytes && end < (i + 1) * part && mask[end]) {
            ++end;
        }
        requests[i] = (opal_cryptfile_request_t){memory + used, BASE + from, end - from};
        used += end - from;
    }
    for (size_t i = count; i > 1; --i) {
        size_t k = draw(i);
        opal_cryptfile_request_t t = requests[i - 1];
        requests[i - 1] = requests[k];
        requests[k] = t;
    }
    return count;
}

typedef struct shadow {
    uint8_t bytes[SPAN];
    uint64_t size;
} shadow_t;

static void step_write(opal_cryptfile_t *file, shadow_t *shadow, const uint8_t *mask, bool atomic)
{
    static uint8_t memory[SPAN], before[SPAN];
    opal_cryptfile_request_t requests[5];
    opal_cryptfile_outcome_t outcome;
    size_t count = draw_requests(requests, memory, mask);
    uint64_t total = 0;

    fill(memory, sizeof(memory), draw(1000000));
    memcpy(before, memory, sizeof(memory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_write(file, requests, count, atomic, &outcome));
    UNIT_EQUAL_BYTES(before, memory, sizeof(memory));
    for (size_t i = 0; i < count; ++i) {
        uint64_t from = requests[i].offset - BASE, end = from + requests[i].bytes;
        memcpy(shadow->bytes + from, requests[i].memory, requests[i].bytes);
        shadow->size = requests[i].bytes > 0 && end > shadow->size ? end : shadow->size;
        total += requests[i].bytes;
    }
    UNIT_CHECK(total == outcome.bytes);
}

static void step_read(opal_cryptfile_t *file, const shadow_t *shadow, const uint8_t *mask, bool atomic)
{
    static uint8_t memory[SPAN];
    opal_cryptfile_request_t requests[5];
    opal_cryptfile_outcome_t outcome;
    size_t count = draw_requests(requests, memory, mask);
    uint64_t total = 0, wrong = 0;

    memset(memory, 0xaa, sizeof(memory));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(file, requests, count, atomic, &outcome));
    for (size_t i = 0; i < count; ++i) {
        for (uint64_t k = 0; k < requests[i].bytes; ++k) {
            uint64_t at = requests[i].offset - BASE + k;
            wrong += ((uint8_t *) requests[i].memory)[k] != (at < shadow->size ? shadow->bytes[at] : 0xaa);
            total += at < shadow->size;
        }
    }
    UNIT_CHECK(0 == wrong && total == outcome.bytes);
}

static void test_world(unsigned w)
{
    static shadow_t shadow;
    static uint8_t mask[SPAN];
    region_spec_t specs[4];
    memory_t memory;
    opal_cryptfile_outcome_t outcome;

    UNIT_GROUP("%s", worlds[w].name);
    file_part_bytes = w % 2 ? 1024 : 0;
    memory_init(&memory);
    memset(&shadow, 0, sizeof(shadow));
    for (uint64_t at = 0; at < SPAN; ++at) {
        mask[at] = covered(worlds[w].specs, worlds[w].count, at);
    }
    memcpy(specs, worlds[w].specs, sizeof(specs));
    for (unsigned i = 0; i < worlds[w].count; ++i) {
        specs[i].displacement += BASE;
    }
    opal_cryptfile_t *files[2] = {open_file(&memory.super, specs, worlds[w].count, NULL), open_file(&memory.super, specs, worlds[w].count, NULL)};
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(files[0], BASE, &outcome));
    for (int i = 0; i < STEPS; ++i) {
        opal_cryptfile_t *file = files[draw(2)];
        uint64_t what = draw(20);
        if (what < 9) {
            step_write(file, &shadow, mask, 0 == draw(4));
        } else if (what < 19) {
            step_read(file, &shadow, mask, 0 == draw(4));
        } else {
            uint64_t size = draw(SPAN);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(file, BASE + size, &outcome));
            if (size < shadow.size) {
                memset(shadow.bytes + size, 0, shadow.size - size);
            }
            shadow.size = size;
        }
        uint64_t size;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_size(file, &size) && BASE + shadow.size == size && 0 == memory.locks);
    }
    for (int i = 0; i < 2; ++i) {
        opal_cryptfile_destroy(files[i]);
    }
    memory_free(&memory);
}

/* ---- what is on storage ---- */

static const region_spec_t two[2] = {{1, OPAL_AEAD_AES_128_GCM, 512, 0, 1000, false, 1, {{0, 500, 0}}},
                                     {1, OPAL_AEAD_AES_128_GCM, 512, 500, 1000, false, 1, {{0, 500, 0}}}};

static void test_canary(void)
{
    memory_t memory;
    uint8_t text[4000];
    unsigned found = 0;

    UNIT_GROUP("no plaintext on storage, also after overwrites");
    file_part_bytes = 0;
    memory_init(&memory);
    opal_cryptfile_t *file = open_file(&memory.super, two, 2, NULL);
    for (int turn = 0; turn < 3; ++turn) {
        for (size_t i = 0; i < sizeof(text); i += 8) {
            memcpy(text + i, "canary!!", 8);
        }
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, (uint64_t) turn * 100, text, sizeof(text)));
    }
    for (size_t i = 0; i + 8 <= memory.size; ++i) {
        found += 0 == memcmp(memory.bytes + i, "canary!!", 8);
    }
    UNIT_CHECK(0 == found);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

static void test_tampering(void)
{
    memory_t memory, good;
    uint8_t text[2048], out[2048];
    uint64_t got;
    unsigned opened = 0;

    UNIT_GROUP("every byte of data and of entries changed, blocks and entries swapped: an error, and zeros");
    memory_init(&memory);
    memory_init(&good);
    opal_cryptfile_t *file = open_file(&memory.super, two, 2, NULL);
    fill(text, sizeof(text), 3);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, sizeof(text)));
    memory_copy(&good, &memory);
    for (size_t at = 0; at < sizeof(text); ++at) {
        memory.bytes[place_of(at)] ^= 0x40;
        memset(out, 0xee, sizeof(out));
        opened += OPAL_CRYPT_ERR_AUTH != get_bytes(file, 0, out, sizeof(out), &got) || !zeros_only(out, sizeof(out)) || 0 != got;
        memory.bytes[place_of(at)] ^= 0x40;
    }
    UNIT_CHECK(0 == opened);
    for (size_t at = entry_place(0, 512); at < GROUP_CONTROL; ++at) {
        if (0 != memory.bytes[at] && 0 != at % OPAL_CRYPTFILE_ENTRY_BYTES) {      /* the generation bit is free */
            memory.bytes[at] ^= 0x40;
            int rc = get_bytes(file, 0, out, sizeof(out), &got);
            opened += OPAL_CRYPT_ERR_AUTH != rc;
            memory.bytes[at] ^= 0x40;
        }
    }
    UNIT_CHECK(0 == opened);
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, sizeof(out), &got) && sizeof(out) == got);
    UNIT_EQUAL_BYTES(text, out, sizeof(out));
    memcpy(memory.bytes + place_of(0), good.bytes + place_of(1000), 500);       /* a block of the same region */
    memcpy(memory.bytes + place_of(1000), good.bytes + place_of(0), 500);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == get_bytes(file, 0, out, 600, &got));
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    memory_free(&good);
}

static void test_access(void)
{
    static const opal_cryptfile_grant_t grants[] = {OPAL_CRYPTFILE_GRANT_SEAL, OPAL_CRYPTFILE_GRANT_NONE}, expired[] = {
        OPAL_CRYPTFILE_GRANT_OPEN, OPAL_CRYPTFILE_GRANT_OPEN};
    static const region_spec_t gap[1] = {{1, OPAL_AEAD_AES_128_GCM, 512, 100, 1000, false, 1, {{0, 500, 0}}}};
    memory_t memory;
    uint8_t text[2000], out[2000];
    uint64_t got;
    opal_cryptfile_outcome_t outcome;

    UNIT_GROUP("missing and expired labels, bytes of no region");
    memory_init(&memory);
    fill(text, sizeof(text), 9);
    opal_cryptfile_t *all = open_file(&memory.super, two, 2, NULL);
    opal_cryptfile_t *half = open_file(&memory.super, two, 2, grants);
    opal_cryptfile_t *old = open_file(&memory.super, two, 2, expired);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(all, 0, text, sizeof(text)));
    unsigned long written = memory.written;
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == put_bytes(half, 0, text, sizeof(text)));
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == put_bytes(half, 600, text, 10));
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == put_bytes(old, 0, text, 10));
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == opal_cryptfile_resize(half, 700, &outcome) && 1 == outcome.region);
    UNIT_CHECK(written == memory.written);
    memset(out, 0xee, sizeof(out));
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == get_bytes(half, 400, out, 200, &got) && zeros_only(out, 200));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(half, 1000, out, 500, &got));
    UNIT_EQUAL_BYTES(text + 1000, out, 500);
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(old, 0, out, sizeof(out), &got));
    UNIT_EQUAL_BYTES(text, out, sizeof(out));
    opal_cryptfile_destroy(all);
    opal_cryptfile_destroy(half);
    opal_cryptfile_destroy(old);
    all = open_file(&memory.super, gap, 1, NULL);
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == put_bytes(all, 0, text, 10) && OPAL_CRYPT_ERR_ACCESS == get_bytes(all, 595, out, 10, &got));
    opal_cryptfile_destroy(all);
    memory_free(&memory);
}

/* Aggregators pass the requests of several processes, which may overlap. */
static void test_overlap(void)
{
    static const region_spec_t one[1] = {{1, OPAL_AEAD_AES_128_GCM, 512, 0, 1, false, 1, {{0, 1, 0}}}};
    enum { BYTES = 9 << 20, ASKS = 12 };
    static uint8_t text[BYTES], out[ASKS][BYTES];
    memory_t memory;
    opal_cryptfile_request_t requests[ASKS];
    opal_cryptfile_outcome_t outcome;
    unsigned wrong = 0;

    UNIT_GROUP("requests that overlap, longer than a run");
    memory_init(&memory);
    opal_cryptfile_t *file = open_file(&memory.super, one, 1, NULL);
    fill(text, sizeof(text), 12);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, sizeof(text)));
    for (int turn = 0; turn < 4; ++turn) {
        uint64_t total = 0;
        for (int i = 0; i < ASKS; ++i) {
            uint64_t from = i < 3 ? 0 : draw(BYTES), bytes = i < 3 ? BYTES : draw(BYTES - from);
            requests[i] = (opal_cryptfile_request_t){out[i], from, bytes};
            memset(out[i], 0xee, BYTES);
            total += bytes;
        }
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(file, requests + turn, ASKS - (size_t) turn, false, &outcome));
        for (int i = turn; i < ASKS; ++i) {
            wrong += 0 != memcmp(out[i], text + requests[i].offset, requests[i].bytes);
        }
        for (int i = 0; i < turn; ++i) {
            total -= requests[i].bytes;
        }
        UNIT_CHECK(total == outcome.bytes);
    }
    UNIT_CHECK(0 == wrong);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

/* ---- threads ---- */

enum { THREADS = 8, PIECE = 100, ROUNDS = 60 };

typedef struct worker {
    pthread_t thread;
    opal_cryptfile_t *file;
    unsigned number, bad;
} worker_t;

static void *work(void *arg)
{
    worker_t *worker = arg;
    uint8_t text[PIECE], out[PIECE];
    uint64_t got;

    for (unsigned i = 0; i < ROUNDS; ++i) {
        uint64_t offset = (uint64_t) (i % 7) * 4096 + worker->number * PIECE;
        memset(text, (int) (i + 31 * worker->number), sizeof(text));
        worker->bad += OPAL_CRYPT_OK != put_bytes(worker->file, offset, text, sizeof(text));
        worker->bad += OPAL_CRYPT_OK != get_bytes(worker->file, offset, out, sizeof(out), &got) || 0 != memcmp(text, out, PIECE);
    }
    return NULL;
}

static void test_threads(void)
{
    static const region_spec_t one[1] = {{1, OPAL_AEAD_AES_128_GCM, 4096, 0, 1, false, 1, {{0, 1, 0}}}};
    worker_t workers[THREADS];
    memory_t memory;
    unsigned bad = 0;

    UNIT_GROUP("disjoint pieces of the same blocks, written by %d threads: none lost", THREADS);
    memory_init(&memory);
    memory_grow(&memory, place_of(65536));      /* memory storage does not grow while others read it */
    opal_cryptfile_t *file = open_file(&memory.super, one, 1, NULL);
    for (unsigned i = 0; i < THREADS; ++i) {
        workers[i] = (worker_t){.file = file, .number = i};
        UNIT_REQUIRE(0 == pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (unsigned i = 0; i < THREADS; ++i) {
        pthread_join(workers[i].thread, NULL);
        bad += workers[i].bad;
    }
    for (unsigned i = 0; i < THREADS * 7; ++i) {
        uint8_t out[PIECE], text[PIECE];
        uint64_t got;
        unsigned last = ROUNDS - 1 - (ROUNDS - 1 - i % 7) % 7;
        memset(text, (int) (last + 31 * (i / 7)), sizeof(text));
        bad += OPAL_CRYPT_OK != get_bytes(file, (uint64_t) (i % 7) * 4096 + i / 7 * PIECE, out, PIECE, &got) ||
               0 != memcmp(text, out, PIECE);
    }
    UNIT_CHECK(0 == bad && 0 == memory.locks);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

int main(void)
{
    providers_init();
    for (unsigned w = 0; w < sizeof(worlds) / sizeof(*worlds); ++w) {
        test_world(w);
    }
    test_canary();
    test_tampering();
    test_access();
    test_overlap();
    test_threads();
    providers_fini();
    return unit_done();
}

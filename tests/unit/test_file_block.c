/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Blocks: vectors through every provider, every bit of ciphertext, tag, slot
 * and place flipped, S and counters never repeated, threads, a fork'd child.
 */
#include "opal/mca/common/cryptfile/file/block.h"
#include "opal/mca/common/crypt/base/nonce_log.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "tests/unit/aead_providers.h"
#include "tests/unit/file_vectors.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES] = "0123456789abcde";
static const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES] = "thirty-two bytes of a data key!";

static opal_cryptfile_blocks_t *make(const provider_t *p, opal_aead_cipher_t cipher, uint32_t block_bytes, uint64_t limit)
{
    const opal_cryptfile_blocks_of_t of = {p->module, cipher, block_bytes, 3, uuid, data_key, limit};
    opal_cryptfile_blocks_t *blocks;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_blocks_create(&of, &blocks));
    return blocks;
}

/* ---- vectors ---- */

static void check_vector(const provider_t *p, const vector_block_t *vector)
{
    uint8_t vector_uuid[16], key[32], plain[2048], cipher[2048], out[2048], bytes[OPAL_CRYPTFILE_SLOT_BYTES];
    opal_cryptfile_slot_t slot;
    opal_cryptfile_blocks_t *blocks;
    opal_cryptfile_blocks_of_t of = {.aead = p->module, .cipher = (opal_aead_cipher_t) (number_of(vector, "algorithm") - 1),
                                        .block_bytes = (uint32_t) number_of(vector, "block_bytes"),
                                        .region = (uint32_t) number_of(vector, "region"), .uuid = vector_uuid, .data_key = key};

    if (!can(p, of.cipher)) {
        return;
    }
    vector_bytes(vector, "uuid", vector_uuid, 16);
    vector_bytes(vector, "data_key", key, 32);
    vector_bytes(vector, "slot", bytes, sizeof(bytes));
    size_t count = vector_bytes(vector, "plain", plain, sizeof(plain));
    UNIT_CHECK(count == vector_bytes(vector, "cipher", cipher, sizeof(cipher)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_slot_parse(bytes, of.block_bytes, &slot) && count == slot.plain_bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_blocks_create(&of, &blocks));
    /* twice: the second time the key is known */
    for (int i = 0; i < 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_block_open(blocks, (uint64_t) number_of(vector, "block"), &slot, cipher, out));
        UNIT_EQUAL_BYTES(out, plain, count);
    }
    opal_cryptfile_blocks_destroy(blocks);
}

static void test_vectors(void)
{
    for (int i = 0; i < provider_count; ++i) {
        FILE *file = vector_file("block-v1.txt");
        vector_block_t vector = {.count = 0};
        unsigned count = 0;
        UNIT_GROUP("vectors, opened by %s", providers[i]->module->name);
        while (vector_next(file, &vector)) {
            check_vector(providers[i], &vector);
            ++count;
        }
        UNIT_CHECK(24 == count);
        vector_clear(&vector);
        fclose(file);
    }
}

/* ---- what opens and what does not ---- */

typedef struct sealed {
    uint8_t plain[512], cipher[512];
    opal_cryptfile_slot_t slot;
} sealed_t;

static bool refused(opal_cryptfile_blocks_t *blocks, uint64_t block, const sealed_t *sealed)
{
    uint8_t out[512];

    memset(out, 0xee, sizeof(out));
    return OPAL_CRYPT_ERR_AUTH == opal_cryptfile_block_open(blocks, block, &sealed->slot, sealed->cipher, out) &&
           zeros_only(out, sealed->slot.plain_bytes);
}

static void test_flips(const provider_t *p)
{
    opal_cryptfile_blocks_t *blocks = make(p, OPAL_AEAD_AES_256_GCM, 512, 0);
    sealed_t good, bad;
    uint8_t out[512];
    unsigned opened = 0;

    UNIT_GROUP("%s: every bit of ciphertext, tag, S, counter, length, and every other place", p->module->name);
    fill(good.plain, sizeof(good.plain), 5);
    memset(&good.slot, 0, sizeof(good.slot));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_block_seal(blocks, 9, good.plain, 500, good.cipher, &good.slot));
    UNIT_CHECK(good.slot.used && 500 == good.slot.plain_bytes && 0 == good.slot.counter);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_block_open(blocks, 9, &good.slot, good.cipher, out));
    UNIT_EQUAL_BYTES(out, good.plain, 500);
    for (unsigned bit = 0; bit < 500 * 8; ++bit) {
        bad = good;
        bad.cipher[bit / 8] ^= (uint8_t) (1u << bit % 8);
        opened += !refused(blocks, 9, &bad);
    }
    for (unsigned bit = 0; bit < 128; ++bit) {
        bad = good;
        bad.slot.tag[bit / 8] ^= (uint8_t) (1u << bit % 8);
        opened += !refused(blocks, 9, &bad);
        bad = good;
        bad.slot.salt[bit / 8] ^= (uint8_t) (1u << bit % 8);
        opened += !refused(blocks, 9, &bad);
    }
    for (unsigned bit = 0; bit < 64; ++bit) {
        bad = good;
        bad.slot.counter ^= UINT64_C(1) << bit;
        opened += !refused(blocks, 9, &bad);
        opened += !refused(blocks, 9 ^ (UINT64_C(1) << bit), &good);
    }
    for (unsigned length = 1; length <= 512; ++length) {
        bad = good;
        bad.slot.plain_bytes = length;
        opened += 500 != length && !refused(blocks, 9, &bad);
    }
    UNIT_CHECK(0 == opened);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_block_open(blocks, 9, &good.slot, good.cipher, good.cipher));
    UNIT_EQUAL_BYTES(good.cipher, good.plain, 500);

    UNIT_GROUP("%s: another file, region, block size, data key or algorithm opens nothing", p->module->name);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_block_seal(blocks, 9, good.plain, 500, good.cipher, &good.slot));
    for (int i = 0; i < 6; ++i) {
        uint8_t other_uuid[16], other_key[32];
        memcpy(other_uuid, uuid, 16);
        memcpy(other_key, data_key, 32);
        opal_cryptfile_blocks_of_t of = {p->module, OPAL_AEAD_AES_256_GCM, 512, 3, other_uuid, other_key, 0};
        opal_cryptfile_blocks_t *other;
        other_uuid[15] ^= 1 == i;
        of.region += 2 == i;
        of.block_bytes *= 3 == i ? 2 : 1;
        other_key[31] ^= 4 == i;
        of.cipher = 5 == i && can(p, OPAL_AEAD_AES_128_GCM) ? OPAL_AEAD_AES_128_GCM : of.cipher;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_blocks_create(&of, &other));
        bool expected = 0 != i && !(5 == i && OPAL_AEAD_AES_256_GCM == of.cipher);
        UNIT_CHECK(refused(other, 9, &good) == expected);
        opal_cryptfile_blocks_destroy(other);
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_cryptfile_block_seal(blocks, 9, good.plain, 0, good.cipher, &good.slot));
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_cryptfile_block_seal(blocks, 9, good.plain, 513, good.cipher, &good.slot));
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_cryptfile_block_seal(blocks, OPAL_CRYPTFILE_BLOCKS_END, good.plain, 1, good.cipher, &good.slot));
    opal_cryptfile_blocks_destroy(blocks);
}

/* ---- S and counters ---- */

static int by_nonce(const void *a, const void *b)
{
    const opal_cryptfile_slot_t *left = a, *right = b;
    int salt = memcmp(left->salt, right->salt, sizeof(left->salt));

    return 0 != salt ? salt : left->counter < right->counter ? -1 : left->counter > right->counter;
}

/* Sort them; returns how many are there twice, and counts the S. */
static unsigned repeats(opal_cryptfile_slot_t *slots, unsigned count, unsigned *salts, uint64_t *highest)
{
    unsigned found = 0;

    qsort(slots, count, sizeof(*slots), by_nonce);
    *salts = 1;
    *highest = slots[0].counter;
    for (unsigned i = 1; i < count; ++i) {
        found += 0 == by_nonce(&slots[i - 1], &slots[i]);
        *salts += 0 != memcmp(slots[i - 1].salt, slots[i].salt, sizeof(slots[i].salt));
        *highest = slots[i].counter > *highest ? slots[i].counter : *highest;
    }
    return found;
}

enum { THREADS = 4, EACH = 2000 };

typedef struct share {
    opal_cryptfile_blocks_t *blocks;
    unsigned number, failed;
    opal_cryptfile_slot_t slots[EACH];
} share_t;

static void *seal_many(void *arg)
{
    share_t *share = arg;
    uint8_t plain[512], cipher[512], out[512];

    fill(plain, sizeof(plain), share->number);
    for (unsigned i = 0; i < EACH; ++i) {
        share->failed += OPAL_CRYPT_OK != opal_cryptfile_block_seal(share->blocks, i, plain, 1 + i % 512, cipher, &share->slots[i]) ||
                         OPAL_CRYPT_OK != opal_cryptfile_block_open(share->blocks, i, &share->slots[i], cipher, out) ||
                         0 != memcmp(out, plain, 1 + i % 512);
    }
    return NULL;
}

static void test_threads(void)
{
    static share_t shares[THREADS];
    static opal_cryptfile_slot_t all[THREADS * EACH];
    opal_cryptfile_blocks_t *blocks = make(providers[0], OPAL_AEAD_AES_256_GCM, 512, 100 * 512);
    pthread_t threads[THREADS];
    unsigned salts;
    uint64_t highest;

    UNIT_GROUP("four threads, a new S after every 100 blocks: no nonce stands twice");
    for (unsigned i = 0; i < THREADS; ++i) {
        shares[i].blocks = blocks;
        shares[i].number = i;
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, seal_many, &shares[i]));
    }
    for (unsigned i = 0; i < THREADS; ++i) {
        pthread_join(threads[i], NULL);
        UNIT_CHECK(0 == shares[i].failed);
        memcpy(all + i * EACH, shares[i].slots, sizeof(shares[i].slots));
    }
    UNIT_CHECK(0 == repeats(all, THREADS * EACH, &salts, &highest));
    UNIT_CHECK(THREADS * EACH / 100 == salts && 99 == highest);
    UNIT_CHECK(THREADS * EACH <= opal_crypt_recorded());
    opal_cryptfile_blocks_destroy(blocks);
}

static void test_opens(void)
{
    const provider_t *p = providers[0];
    opal_cryptfile_slot_t slots[2];
    uint8_t plain[512] = "twice", ciphers[2][512], out[512];
    unsigned failed = 0;

    UNIT_GROUP("the same block at two opens of the file: another S, other ciphertext");
    for (int i = 0; i < 2; ++i) {
        opal_cryptfile_blocks_t *blocks = make(p, OPAL_AEAD_AES_256_GCM, 512, 0);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_block_seal(blocks, 0, plain, 512, ciphers[i], &slots[i]));
        opal_cryptfile_blocks_destroy(blocks);
    }
    UNIT_CHECK(0 != memcmp(slots[0].salt, slots[1].salt, 16) && 0 != memcmp(ciphers[0], ciphers[1], 512));

    UNIT_GROUP("more S than the table of known ones holds");
    opal_cryptfile_blocks_t *reader = make(p, OPAL_AEAD_AES_256_GCM, 512, 0), *writer = make(p, OPAL_AEAD_AES_256_GCM, 512, 512);
    for (unsigned i = 0; i < 1200; ++i) {
        failed += OPAL_CRYPT_OK != opal_cryptfile_block_seal(writer, i, plain, 512, ciphers[0], &slots[0]) ||
                  OPAL_CRYPT_OK != opal_cryptfile_block_open(reader, i, &slots[0], ciphers[0], out) || 0 != memcmp(out, plain, 512);
    }
    UNIT_CHECK(0 == failed);
    opal_cryptfile_blocks_destroy(writer);
    opal_cryptfile_blocks_destroy(reader);

    UNIT_GROUP("a fork'd child seals nothing");
    opal_cryptfile_blocks_t *blocks = make(p, OPAL_AEAD_AES_256_GCM, 512, 0);
    fflush(NULL);
    pid_t child = fork();
    if (0 == child) {
        _exit(OPAL_CRYPT_ERR_FORKED == opal_cryptfile_block_seal(blocks, 0, plain, 512, ciphers[0], &slots[0]) ? 0 : 1);
    }
    int status = -1;
    UNIT_CHECK(child == waitpid(child, &status, 0) && WIFEXITED(status) && 0 == WEXITSTATUS(status));
    opal_cryptfile_blocks_destroy(blocks);
}

int main(void)
{
    providers_init();
    test_vectors();
    for (int i = 0; i < provider_count; ++i) {
        test_flips(providers[i]);
    }
    test_threads();
    test_opens();
    providers_fini();
    opal_crypt_secmem_finalize();
    return unit_done();
}

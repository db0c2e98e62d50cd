/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What is assumed about a file before anything in it has opened: how long its
 * blocks are, where it ends, which blocks a cut goes through; and what remains
 * of its old data.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

enum { B = 512, SIZE = 3 * B };

static const region_spec_t one[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};

static opal_cryptfile_t *written(memory_t *memory, const uint8_t *text, size_t bytes)
{
    memory_init(memory);
    opal_cryptfile_t *file = open_file(&memory->super, one, 1, NULL);
    UNIT_REQUIRE(0 == bytes || OPAL_CRYPT_OK == put_bytes(file, 0, text, bytes));
    return file;
}

/* The first slot of a block. */
static uint8_t *slot_of(memory_t *memory, unsigned block) { return memory->bytes + entry_place(block, B); }

/* Whatever length a forged entry gives, the old text is not lost. */
static void test_forged_length(void)
{
    memory_t memory, good;
    uint8_t text[SIZE], out[SIZE], patch[100];
    uint64_t got;

    UNIT_GROUP("writing the first bytes of a block whose entry has another length");
    fill(text, sizeof(text), 1);
    fill(patch, sizeof(patch), 2);
    opal_cryptfile_t *file = written(&memory, text, SIZE);
    memory_init(&good);
    memory_copy(&good, &memory);
    for (unsigned block = 0; block < 3; ++block) {
        UNIT_REQUIRE(0 == slot_of(&memory, block)[4] && 2 == slot_of(&memory, block)[5]);      /* 512 */
        slot_of(&memory, block)[4] = 1;
        slot_of(&memory, block)[5] = 0;
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == get_bytes(file, block * B, out, B, &got));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == put_bytes(file, block * B, patch, sizeof(patch)));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == get_bytes(file, block * B, out, B, &got));
        UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, block * B, text + block * B, B));           /* a whole block may */
    }
    memset(slot_of(&memory, 1), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, B, patch, sizeof(patch)));     /* deleted: a hole, to a writer */
    memory_copy(&memory, &good);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, B, patch, sizeof(patch)));
    memcpy(text + B, patch, sizeof(patch));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, SIZE, &got) && SIZE == got);
    UNIT_EQUAL_BYTES(text, out, SIZE);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    memory_free(&good);
}

/* A torn block: data, and no entry. */
static void test_torn(void)
{
    memory_t memory;
    uint8_t text[SIZE], out[SIZE];
    uint64_t got;

    UNIT_GROUP("writing the first bytes of a torn block, which is a hole to a writer, and of a hole");
    fill(text, sizeof(text), 3);
    opal_cryptfile_t *file = written(&memory, text, SIZE);
    memset(slot_of(&memory, 1), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    memset(slot_of(&memory, 2), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, B, text + B, 100));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 2 * B, text, B - 1));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, B, text + B, B));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 2 * B, text + 2 * B, B));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, SIZE, &got));
    UNIT_EQUAL_BYTES(text, out, SIZE);
    opal_cryptfile_destroy(file);
    memory_free(&memory);

    file = written(&memory, text, 100);                 /* up to the end of the file */
    memset(slot_of(&memory, 0), 0, OPAL_CRYPTFILE_SLOTS_BYTES);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, 99));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, text, 100));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 2 * B, text + 2 * B, B));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, B, text + B, 7));       /* into a hole */
    memset(text + 100, 0, B - 100);
    memset(text + B + 7, 0, B - 7);
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, 0, out, SIZE, &got) && SIZE == got);
    UNIT_EQUAL_BYTES(text, out, SIZE);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

/* ---- an atomic read, and an earlier holder of the lock ---- */

static struct {
    opal_cryptfile_t *file;             /* NULL: the holder is done */
    const uint8_t *text;
    uint64_t size;                      /* of the file then */
} before;

static int lock_after(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    opal_cryptfile_t *file = before.file;
    opal_cryptfile_outcome_t outcome;

    before.file = NULL;
    if (NULL != file) {
        uint64_t now = opal_cryptfile_geometry_size(&opal_cryptfile_map_of(file)->geometry, memory_of(storage)->size);
        UNIT_REQUIRE(OPAL_CRYPT_OK == (before.size < now ? opal_cryptfile_resize(file, before.size, &outcome)
                                                         : put_bytes(file, 0, before.text, before.size)));
    }
    return memory_lock(storage, at, bytes, exclusive);
}

static void test_atomic_end(void)
{
    memory_t memory;
    uint8_t text[SIZE], longer[SIZE], out[SIZE];
    opal_cryptfile_outcome_t outcome;
    opal_cryptfile_request_t whole = {out, 0, SIZE};

    UNIT_GROUP("an atomic read has all of a write that lengthened the file, and nothing that was cut off");
    fill(text, sizeof(text), 4);
    fill(longer, sizeof(longer), 5);
    opal_cryptfile_t *reader = written(&memory, text, 200);
    opal_cryptfile_t *writer = open_file(&memory.super, one, 1, NULL);
    memory.super.lock = lock_after;
    before.file = writer;
    before.text = longer;
    before.size = SIZE;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(reader, &whole, 1, true, &outcome) && SIZE == outcome.bytes);
    UNIT_EQUAL_BYTES(longer, out, SIZE);
    before.file = writer;
    before.size = 700;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(reader, &whole, 1, true, &outcome) && 700 == outcome.bytes);
    UNIT_EQUAL_BYTES(longer, out, 700);
    UNIT_CHECK(0 == memory.locks);
    opal_cryptfile_destroy(reader);
    opal_cryptfile_destroy(writer);
    memory_free(&memory);
}

/* A cut needs only the keys of blocks that it goes through. */
static void test_cut_without_key(void)
{
    static const region_spec_t split[2] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1000, true, 1, {{0, 1000, 0}}},
                                           {1, OPAL_AEAD_AES_128_GCM, B, 1000, 1000, false, 1, {{0, 1000, 0}}}};
    static const opal_cryptfile_grant_t grants[] = {OPAL_CRYPTFILE_GRANT_NONE, OPAL_CRYPTFILE_GRANT_SEAL};
    memory_t memory;
    uint8_t text[4000], out[4000];
    uint64_t got;
    opal_cryptfile_outcome_t outcome;

    UNIT_GROUP("cutting and lengthening without the key of a region that stays as it is");
    fill(text, sizeof(text), 6);
    memory_init(&memory);
    opal_cryptfile_t *all = open_file(&memory.super, split, 2, NULL);
    opal_cryptfile_t *half = open_file(&memory.super, split, 2, grants);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(all, 0, text, sizeof(text)));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(half, 2100, &outcome));
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == opal_cryptfile_resize(half, 900, &outcome) && 0 == outcome.region);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_resize(half, 3000, &outcome));
    memset(text + 2100, 0, 900);
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(all, 0, out, sizeof(out), &got) && 3000 == got);
    UNIT_EQUAL_BYTES(text, out, 3000);
    opal_cryptfile_destroy(all);
    opal_cryptfile_destroy(half);
    memory_free(&memory);
}

/* ---- ends ---- */

static void test_last_byte(void)
{
    memory_t memory;
    uint8_t text[SIZE];
    opal_cryptfile_request_t request = {text, OPAL_CRYPTFILE_OFFSET_MAX, 1};
    opal_cryptfile_outcome_t outcome;
    uint64_t got;

    UNIT_GROUP("writing where no file goes");
    fill(text, sizeof(text), 7);
    opal_cryptfile_t *file = written(&memory, text, SIZE);
    UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == opal_cryptfile_write(file, &request, 1, false, &outcome));
    UNIT_CHECK(EFBIG == outcome.error && 0 == outcome.bytes);
    request.offset = OPAL_CRYPTFILE_OFFSET_MAX - 1;
    request.bytes = 2;
    UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == opal_cryptfile_write(file, &request, 1, false, &outcome));
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, OPAL_CRYPTFILE_OFFSET_MAX, text, 0));
    UNIT_CHECK(OPAL_CRYPT_OK == get_bytes(file, OPAL_CRYPTFILE_OFFSET_MAX, text, 1, &got) && 0 == got);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
}

int main(void)
{
    providers_init();
    test_forged_length();
    test_torn();
    test_atomic_end();
    test_cut_without_key();
    test_last_byte();
    providers_fini();
    return unit_done();
}

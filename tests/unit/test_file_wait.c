/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * One file: a call that gets no room, because another process has locked the block that needs it, waits in
 * steps; the storage reports that and ends it; the call goes on when the lock is released.  And a call leaves rooms to others.
 */
#include "tests/unit/file_memory.h"
#include "tests/unit/file_open.h"

#include <errno.h>

enum { B = 4096, BLOCKS = 8 };

static const region_spec_t spec[1] = {{1, OPAL_AEAD_AES_128_GCM, B, 0, 1, false, 1, {{0, 1, 0}}}};
static uint8_t before[B * BLOCKS], after[B * BLOCKS], out[B * BLOCKS];

static uint64_t held;                   /* by another process; 0: nothing is */
static unsigned waits, patient;         /* wait number `patient` fails; 0: the lock is released in the third */

static uint64_t first_redo, most_redo; /* locks that a call got at once */

static int try_lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive, bool *got)
{
    *got = 0 == held || held < at || held >= at + bytes;
    if (*got && at >= UINT64_C(5) << 60) {
        first_redo = 0 == first_redo ? at : first_redo;
        most_redo = bytes > most_redo ? bytes : most_redo;
    }
    return *got ? memory_lock(storage, at, bytes, exclusive) : OPAL_CRYPT_OK;
}

static uint64_t most_locked;            /* by one call */

static int lock(opal_cryptfile_storage_t *storage, uint64_t at, uint64_t bytes, bool exclusive)
{
    most_locked = bytes > most_locked ? bytes : most_locked;
    return memory_lock(storage, at, bytes, exclusive);
}

static uint64_t size_once;              /* before another process wrote; 0: as it is now */

static int size_before(opal_cryptfile_storage_t *storage, uint64_t *bytes)
{
    int rc = memory_size(storage, bytes);

    *bytes = 0 == size_once ? *bytes : size_once;
    size_once = 0;
    return rc;
}

static int wait_once(opal_cryptfile_storage_t *storage, uint64_t at, opal_cryptfile_wait_t *wait)
{
    (void) storage;
    UNIT_CHECK(at == held && (0 == waits) == (0 == wait->since));
    wait->since = ++waits;
    if (patient == waits) {
        errno = ETIMEDOUT;
        return OPAL_CRYPT_ERR_STORAGE;
    }
    held = 0 == patient && 3 == waits ? 0 : held;
    return OPAL_CRYPT_OK;
}

/* Overwrite block 5, as another process than the one that died in block 0. */
static int overwrite(memory_t *memory, const memory_t *left, unsigned until_wait)
{
    memory_copy(memory, left);
    opal_cryptfile_t *file = open_file(&memory->super, spec, 1, NULL);
    held = opal_cryptfile_geometry_entry_lock(opal_cryptfile_geometry_entry_at(&opal_cryptfile_map_of(file)->geometry, 0, 0));
    waits = 0;
    patient = until_wait;
    int rc = put_bytes(file, 5 * B, after + 5 * B, B);
    int error = errno;

    held = 0;
    opal_cryptfile_destroy(file);
    errno = error;
    return rc;
}

static bool reads(memory_t *memory, const uint8_t *fifth)
{
    opal_cryptfile_t *file = open_file(&memory->super, spec, 1, NULL);
    uint64_t got;
    bool good = OPAL_CRYPT_OK == get_bytes(file, 0, out, sizeof(out), &got) && 0 == memcmp(out + 5 * B, fifth + 5 * B, B) &&
                (0 == memcmp(out, before, B) || 0 == memcmp(out, after, B));

    opal_cryptfile_destroy(file);
    return good;
}

/* The rooms that an overwrite of all blocks takes at once, while another process has the first of ten, or none. */
static uint64_t redo_taken(memory_t *memory, const memory_t *whole, bool first_is_held, int (*barrier)(opal_cryptfile_storage_t *))
{
    memory_copy(memory, whole);
    memory->super.barrier = barrier;
    opal_cryptfile_t *file = open_file(&memory->super, spec, 1, NULL);
    const uint64_t first = opal_cryptfile_geometry_head_lock(opal_cryptfile_geometry_head_at(&opal_cryptfile_map_of(file)->geometry, 0, 1));

    held = first_is_held ? first : 0;
    first_redo = most_redo = 0;
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, 0, after, sizeof(after)));
    UNIT_CHECK(first_redo == first + (first_is_held ? NULL == barrier ? 4 : 1 : 0));
    held = 0;
    opal_cryptfile_destroy(file);
    memory->super.barrier = NULL;
    return most_redo;
}

static int no_barrier(opal_cryptfile_storage_t *storage)
{
    (void) storage;
    return OPAL_CRYPT_OK;
}

int main(void)
{
    memory_t whole, left, memory;
    unsigned needed = 0;
    bool died = true;

    providers_init();
    UNIT_GROUP("the only room is needed by a block that others have locked");
    group_redo_rooms = 1;
    fill(before, sizeof(before), 1);
    fill(after, sizeof(after), 2);
    memory_init(&whole);
    memory_init(&left);
    memory_init(&memory);
    memory.super.try_lock = try_lock;
    memory.super.wait_once = wait_once;
    opal_cryptfile_t *file = open_file(&whole.super, spec, 1, NULL);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, before, sizeof(before)));
    opal_cryptfile_destroy(file);
    for (long writes_left = 1; died; ++writes_left) {
        memory_copy(&left, &whole);
        left.writes_left = writes_left;
        file = open_file(&left.super, spec, 1, NULL);
        died = OPAL_CRYPT_OK != put_bytes(file, 0, after, B);
        opal_cryptfile_destroy(file);
        left.writes_left = -1;
        if (OPAL_CRYPT_OK == overwrite(&memory, &left, 0) && 0 == waits) {
            UNIT_CHECK(reads(&memory, after));
            continue;
        }
        UNIT_CHECK(3 == waits && reads(&memory, after));
        UNIT_CHECK(OPAL_CRYPT_ERR_STORAGE == overwrite(&memory, &left, 7) && ETIMEDOUT == errno && 7 == waits && reads(&memory, before));
        ++needed;
    }
    printf("  the room was needed after %u deaths\n", needed);
    UNIT_CHECK(needed > 0);

    UNIT_GROUP("a call takes rooms for 64 KiB, or all if each round has barriers");
    group_redo_rooms = 10;
    group_redo_bytes = 16384;
    group_entries = 512;
    memory_free(&whole);
    memory_init(&whole);
    file = open_file(&whole.super, spec, 1, NULL);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, 0, before, sizeof(before)));
    opal_cryptfile_destroy(file);
    UNIT_CHECK(4 == redo_taken(&memory, &whole, false, NULL));
    UNIT_CHECK(4 == redo_taken(&memory, &whole, true, NULL));
    UNIT_CHECK(8 == redo_taken(&memory, &whole, false, no_barrier));
    UNIT_CHECK(1 == redo_taken(&memory, &whole, true, no_barrier));

    UNIT_GROUP("entries of blocks that others write meanwhile are not void");
    memory_copy(&left, &whole);
    file = open_file(&left.super, spec, 1, NULL);
    UNIT_REQUIRE(OPAL_CRYPT_OK == put_bytes(file, BLOCKS * B, after, 2 * B));
    opal_cryptfile_destroy(file);
    memory_copy(&memory, &left);
    memory.super.lock = lock;
    memory.super.size = size_before;
    size_once = whole.size;
    most_locked = 0;
    file = open_file(&memory.super, spec, 1, NULL);
    UNIT_CHECK(OPAL_CRYPT_OK == put_bytes(file, (BLOCKS + 2) * B, after, B) && 0 == size_once && 1 == most_locked);
    opal_cryptfile_destroy(file);
    memory_free(&whole);
    memory_free(&left);
    memory_free(&memory);
    providers_fini();
    return unit_done();
}

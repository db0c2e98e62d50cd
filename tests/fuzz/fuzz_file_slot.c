/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as slots and a room's head, a wrapped key, or the record of a key.  What is
 * accepted is written back as the same bytes.
 */
#include "fuzz.h"

#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/cryptfile/file/slot.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

static void entry(const uint8_t *data)
{
    opal_cryptfile_slot_t slots[2];
    uint8_t again[OPAL_CRYPTFILE_SLOTS_BYTES];
    bool generation;

    if (OPAL_CRYPT_OK == opal_cryptfile_slot_parse(data, 65536, &slots[0]) &&
        OPAL_CRYPT_OK == opal_cryptfile_slot_parse(data + OPAL_CRYPTFILE_SLOT_BYTES, 65536, &slots[1])) {
        opal_cryptfile_slot_write(&slots[0], again);
        opal_cryptfile_slot_write(&slots[1], again + OPAL_CRYPTFILE_SLOT_BYTES);
        FUZZ_CHECK(0 == memcmp(again, data, sizeof(again)));
        int newer = opal_cryptfile_entry_newer(slots), next = opal_cryptfile_entry_next(slots, &generation);
        FUZZ_CHECK(newer != next);
        slots[next] = (opal_cryptfile_slot_t){.used = true, .generation = generation, .plain_bytes = 1};
        FUZZ_CHECK(next == opal_cryptfile_entry_newer(slots));
    }
}

static void redo(const uint8_t *data)
{
    opal_cryptfile_redo_room_t read;
    uint8_t again[OPAL_CRYPTFILE_REDO_HEAD_BYTES];

    if (opal_cryptfile_redo_parse(data, opal_crypt_le_get32(data), 65536, &read)) {
        opal_cryptfile_redo_write(&read, again);
        FUZZ_CHECK(0 == memcmp(again, data, sizeof(again)));
    }
}

static void key(const uint8_t *data, size_t size)
{
    opal_cryptfile_wrapped_t wrapped = {.bytes = (uint16_t) size};
    opal_cryptfile_keystore_record_t record;
    opal_cryptfile_wrapped_by_t by;
    size_t used;
    char again[2 * OPAL_CRYPTFILE_RECORD_TEXT_MAX];

    if (size <= sizeof(wrapped.blob)) {
        memcpy(wrapped.blob, data, size);
        (void) opal_cryptfile_wrapped_parse(&wrapped, &by);
    }
    if (OPAL_CRYPT_OK == opal_cryptfile_keystore_record_parse((const char *) data, size, &used, &record)) {
        int bytes = opal_cryptfile_keystore_record_write(&record, again, sizeof(again));
        FUZZ_CHECK(bytes > 0 && (size_t) bytes == used && 0 == memcmp(again, data, used));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= OPAL_CRYPTFILE_SLOTS_BYTES) {
        entry(data);
    }
    if (size >= OPAL_CRYPTFILE_REDO_HEAD_BYTES) {
        redo(data);
    }
    key(data, size);
    return 0;
}

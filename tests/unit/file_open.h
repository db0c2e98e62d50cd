/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An encrypted file over some storage, of groups of 1 MiB, with data keys from nowhere, for tests
 * of the block engine.
 */
#ifndef TESTS_FILE_OPEN_H
#define TESTS_FILE_OPEN_H

#include "opal/mca/common/cryptfile/file/file.h"
#include "opal/mca/common/cryptfile/file/unlock.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "tests/unit/aead_providers.h"

enum { GROUP = 1 << 20, GROUP_CONTROL = 311296, GROUP_DATA = GROUP - GROUP_CONTROL };

typedef struct region_spec {
    int encrypted;
    opal_aead_cipher_t cipher;
    uint32_t block_bytes;
    uint64_t displacement, extent;
    bool once;
    unsigned run_count;                 /* 0: the rest */
    opal_cryptfile_run_t runs[4];
} region_spec_t;

static inline opal_cryptfile_map_t *map_of(const region_spec_t *specs, unsigned count)
{
    opal_cryptfile_map_t *map;
    opal_crypt_why_t why = {.topic = NULL};

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    for (unsigned i = 0; i < count; ++i) {
        opal_cryptfile_tiling_t tiling;
        uint32_t number;
        bool added;
        if (specs[i].run_count > 0) {
            UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, specs[i].displacement, specs[i].extent, specs[i].once,
                                                                     specs[i].runs, specs[i].run_count, &why));
        }
        const opal_cryptfile_region_ask_t ask = {specs[i].encrypted, specs[i].cipher, specs[i].block_bytes, "lab",
                                                    specs[i].run_count > 0 ? &tiling : NULL};
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &ask, &number, &added, &why) && added && i == number);
        if (specs[i].run_count > 0) {
            opal_cryptfile_tiling_free(&tiling);
        }
    }
    return map;
}

static inline const opal_aead_module_t *first_provider(void *arg, opal_aead_cipher_t cipher)
{
    (void) arg;
    for (int i = 0; i < provider_count; ++i) {
        if (can(providers[i], cipher)) {
            return providers[i]->module;
        }
    }
    return NULL;
}

static uint32_t file_part_bytes;        /* of those that are opened; 0: the default */
static uint32_t group_redo_rooms = 4, group_redo_bytes = 4096, group_entries = 2048;

/* Another process opens the file: same UUID and data keys, fresh S. */
static inline opal_cryptfile_t *open_file(opal_cryptfile_storage_t *storage, const region_spec_t *specs, unsigned count,
                                          const opal_cryptfile_grant_t *grants)
{
    opal_cryptfile_map_t *map = map_of(specs, count);
    opal_cryptfile_key_t *keys = calloc(count, sizeof(*keys));
    const opal_cryptfile_of_t of = {storage, first_provider, NULL, file_part_bytes};
    uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES];
    opal_cryptfile_t *file;

    memcpy(map->uuid, "a file all by it", sizeof(map->uuid));
    map->generation = 1;
    map->geometry = (opal_cryptfile_geometry_t){GROUP, GROUP_CONTROL, 0, 3072, group_entries, group_redo_rooms, group_redo_bytes};
    opal_cryptfile_geometry_write(&map->geometry, bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_parse(bytes, &map->geometry));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_fits(map, 1000));
    for (unsigned i = 0; i < count; ++i) {
        keys[i].grant = NULL == grants ? OPAL_CRYPTFILE_GRANT_SEAL : grants[i];
        keys[i].data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
        memset(keys[i].data_key, (int) (17 * i + 3), OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_create(&of, &file));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_use(file, map, keys));
    opal_cryptfile_keys_free(keys, count);
    return file;
}

/* Where a byte of such a file is, and the entry of a block of a region that is all of the file. */
static inline uint64_t place_of(uint64_t offset) { return offset / GROUP_DATA * GROUP + GROUP_CONTROL + offset % GROUP_DATA; }

static inline uint64_t entry_place(uint64_t block, uint32_t block_bytes)
{
    uint64_t in_group = GROUP_DATA / block_bytes;

    return block / in_group * GROUP + GROUP_CONTROL + (block % in_group) * OPAL_CRYPTFILE_ENTRY_BYTES -
           2048 * OPAL_CRYPTFILE_ENTRY_BYTES;
}

/* Where a room of the first group has its head, and its ciphertext. */
static inline uint64_t redo_head_place(uint32_t redo) { return 24576 + (redo - 1) * OPAL_CRYPTFILE_REDO_HEAD_BYTES; }
static inline uint64_t redo_place(uint32_t redo) { return entry_place(0, 4096) - (group_redo_rooms - redo + 1) * 4096; }

static inline int put_bytes(opal_cryptfile_t *file, uint64_t offset, const void *bytes, size_t count)
{
    const opal_cryptfile_request_t request = {(void *) (uintptr_t) bytes, offset, count};
    opal_cryptfile_outcome_t outcome;

    return opal_cryptfile_write(file, &request, 1, false, &outcome);
}

static inline int get_bytes(opal_cryptfile_t *file, uint64_t offset, void *bytes, size_t count, uint64_t *got)
{
    const opal_cryptfile_request_t request = {bytes, offset, count};
    opal_cryptfile_outcome_t outcome;
    int rc = opal_cryptfile_read(file, &request, 1, false, &outcome);

    *got = outcome.bytes;
    return rc;
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An encrypted file over some storage, with data keys from nowhere, for tests
 * of the block engine.
 */
#ifndef TESTS_FILE_OPEN_H
#define TESTS_FILE_OPEN_H

#include "opal/mca/common/cryptfile/file/file.h"
#include "opal/mca/common/cryptfile/file/store.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "tests/unit/aead_providers.h"

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

/* Another process opens the file: same UUID and data keys, fresh S. */
static inline opal_cryptfile_t *open_file(opal_cryptfile_storage_t *storage, const region_spec_t *specs, unsigned count,
                                          const uint8_t uuid[16], const opal_cryptfile_grant_t *grants)
{
    opal_cryptfile_map_t *map = map_of(specs, count);
    opal_cryptfile_key_t *keys = calloc(count, sizeof(*keys));
    const opal_cryptfile_of_t of = {storage, first_provider, NULL, file_part_bytes};
    opal_cryptfile_t *file;

    memcpy(map->uuid, uuid, 16);
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

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A program without MPI writes a block of an encrypted file and reads it again: it
 * brings a provider's table of functions and storage of its own, and takes the rest
 * from the two libraries.
 */
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/cryptfile/file/file.h"
#include "tests/unit/file_memory.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);

static const opal_aead_module_t *provider(void *arg, opal_aead_cipher_t cipher)
{
    (void) arg, (void) cipher;
    return &opal_aead_openssl_module;
}

static opal_cryptfile_t *open_it(memory_t *memory, const uint8_t uuid[16])
{
    const opal_cryptfile_run_t all = {0, 1, 0};
    const opal_cryptfile_of_t of = {&memory->super, provider, NULL, 0};
    opal_cryptfile_key_t key = {.grant = OPAL_CRYPTFILE_GRANT_SEAL};
    opal_cryptfile_tiling_t tiling;
    opal_cryptfile_map_t *map;
    opal_cryptfile_t *file;
    opal_crypt_why_t why;
    uint32_t number;
    bool added;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, 0, 1, false, &all, 1, &why));
    const opal_cryptfile_region_ask_t ask = {true, OPAL_AEAD_AES_256_GCM, 4096, "label", &tiling};
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &ask, &number, &added, &why));
    opal_cryptfile_tiling_free(&tiling);
    memcpy(map->uuid, uuid, 16);
    map->generation = 1;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_choose(map, 300));
    key.data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
    UNIT_REQUIRE(NULL != key.data_key);
    memset(key.data_key, 7, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_create(&of, &file));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_use(file, map, &key));
    opal_crypt_secmem_free(key.data_key);
    return file;
}

int main(void)
{
    static const uint8_t uuid[16] = "one of programs";
    static uint8_t text[4096], back[4096];
    opal_cryptfile_outcome_t outcome;
    opal_cryptfile_request_t request = {text, 0, sizeof(text)};
    opal_cryptfile_t *file;
    memory_t memory;

    UNIT_REQUIRE(OPAL_AEAD_OK == opal_aead_openssl_init());
    memory_init(&memory);
    memset(text, 'x', sizeof(text));
    file = open_it(&memory, uuid);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_write(file, &request, 1, false, &outcome));
    opal_cryptfile_destroy(file);
    UNIT_CHECK(memory.size > sizeof(text));

    request.memory = back;
    file = open_it(&memory, uuid);
    uint8_t *stored = memory.bytes + opal_cryptfile_geometry_place(&opal_cryptfile_map_of(file)->geometry, 0);
    UNIT_CHECK(memory.size == (size_t) (stored - memory.bytes) + sizeof(text) && 0 != memcmp(stored, text, 16));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_read(file, &request, 1, false, &outcome));
    UNIT_CHECK(sizeof(back) == outcome.bytes && 0 == memcmp(back, text, sizeof(text)));
    stored[99] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_read(file, &request, 1, false, &outcome) && 0 == back[99]);
    opal_cryptfile_destroy(file);
    memory_free(&memory);
    return unit_done();
}

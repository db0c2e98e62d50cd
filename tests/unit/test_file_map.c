/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Maps: the vectors of tests/vectors/make_map_v1.py byte for byte, every byte
 * flipped, every length, and what may and may not be added.
 */
#include "opal/mca/common/crypt/base/le.h"
#include "opal/mca/common/cryptfile/file/map.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "tests/unit/unit.h"
#include "tests/unit/file_vectors.h"

typedef struct sample {
    uint8_t bytes[4096], digest[OPAL_CRYPTFILE_MAP_DIGEST_BYTES];
    size_t count;
    opal_cryptfile_map_t *map;
    uint8_t *data_keys[8];          /* by region; NULL: plain */
} sample_t;

static uint32_t read_runs(const char *text, opal_cryptfile_run_t *runs, uint32_t most)
{
    uint32_t count = 0;

    for (char *end; '\0' != *text; text = end + (' ' == *end)) {
        UNIT_REQUIRE(count < most);
        runs[count].offset = strtoull(text, &end, 10);
        UNIT_REQUIRE('+' == *end);
        runs[count++].bytes = strtoull(end + 1, &end, 10);
    }
    return count;
}

/* Build the region of a vector as a caller would, and compare. */
static void check_region(sample_t *sample, opal_cryptfile_map_t *built, const vector_block_t *vector)
{
    opal_cryptfile_run_t runs[16];
    opal_cryptfile_tiling_t tiling;
    uint32_t number = (uint32_t) number_of(vector, "number"), region, count;
    const opal_cryptfile_region_t *read = &sample->map->regions[number];
    opal_cryptfile_region_ask_t ask = {.encrypted = 1 == number_of(vector, "encrypted"), .tiling = &tiling};
    uint8_t mac[32], wrapped_key[32], fingerprint[OPAL_CRYPTFILE_FINGERPRINT_BYTES];
    opal_cryptfile_wrapped_by_t by;
    bool added;

    count = read_runs(vector_text(vector, "runs"), runs, 16);
    if (0 == count) {
        ask.tiling = NULL;
    } else {
        UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&tiling, (uint64_t) number_of(vector, "displacement"),
                                                     (uint64_t) number_of(vector, "extent"),
                                                     1 == number_of(vector, "once"), runs, count, NULL));
        UNIT_CHECK(opal_cryptfile_tiling_same(&tiling, &read->tiling));
    }
    if (ask.encrypted) {
        ask.cipher = (opal_aead_cipher_t) (number_of(vector, "algorithm") - 1);
        ask.block_bytes = (uint32_t) number_of(vector, "block");
        ask.label = vector_text(vector, "label");
        sample->data_keys[number] = opal_crypt_secmem_alloc(32);
        vector_bytes(vector, "data_key", sample->data_keys[number], 32);
        vector_bytes(vector, "mac", mac, 32);
        UNIT_EQUAL_BYTES(mac, read->mac, 32);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_check(sample->map, number, sample->data_keys[number]));
        vector_bytes(vector, "key", wrapped_key, 32);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_rfc3394_unwrap(wrapped_key, read->wrapped->blob + OPAL_CRYPTFILE_BLOB_WRAPPED_AT, mac));
        UNIT_EQUAL_BYTES(mac, sample->data_keys[number], 32);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_wrapped_parse(read->wrapped, &by) && 1 == by.version && 1772323200 == by.created);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_fingerprint_of_key(wrapped_key, fingerprint));
        UNIT_EQUAL_BYTES(fingerprint, by.fingerprint, sizeof(fingerprint));
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_add(built, &ask, &region, &added, NULL));
    UNIT_CHECK(added && region == number);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_add(built, &ask, &region, &added, NULL));
    UNIT_CHECK(!added && region == number);
    if (0 != count) {
        opal_cryptfile_tiling_free(&tiling);
    }
}

static void check_bytes(sample_t *sample, opal_cryptfile_map_t *built)
{
    opal_cryptfile_map_digest_t digest;
    uint8_t *bytes = malloc(sample->count), written[OPAL_CRYPTFILE_MAP_DIGEST_BYTES];
    size_t body = opal_cryptfile_map_body_bytes(sample->map);

    UNIT_CHECK(sample->count == opal_cryptfile_map_bytes(sample->map));
    opal_cryptfile_map_write(sample->map, bytes);
    UNIT_EQUAL_BYTES(bytes, sample->bytes, sample->count);

    /* the one built from descriptions has the same body, and the same MACs */
    memcpy(built->uuid, sample->map->uuid, 16);
    built->generation = sample->map->generation;
    built->geometry = sample->map->geometry;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_extensions_set(built, sample->map->extensions, sample->map->extension_bytes));
    UNIT_REQUIRE(body == opal_cryptfile_map_body_bytes(built));
    opal_cryptfile_map_body_write(built, bytes);
    opal_crypt_le_put32(sample->bytes + 44, 0);
    UNIT_EQUAL_BYTES(bytes, sample->bytes, body);
    opal_crypt_le_put32(sample->bytes + 44, (uint32_t) sample->count);
    for (uint32_t i = 0; i < built->region_count; ++i) {
        if (NULL != sample->data_keys[i]) {
            UNIT_CHECK(0 == opal_cryptfile_map_mac(built, i, sample->data_keys[i], built->regions[i].mac));
            UNIT_EQUAL_BYTES(built->regions[i].mac, sample->map->regions[i].mac, 32);
        }
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_digest(sample->map, &digest));
    opal_cryptfile_map_digest_write(&digest, written);
    UNIT_EQUAL_BYTES(written, sample->digest, sizeof(written));
    free(bytes);
}

/* Whichever byte is changed: the map is refused by its form, or by the MAC of
 * every region, or (in a wrapped key) the MACs are still right and the key
 * does not unwrap. */
static void check_flips(const sample_t *sample)
{
    uint8_t *bytes = malloc(sample->count);
    unsigned form = 0, mac = 0, own_mac = 0, wrapped = 0, total = 0;
    size_t body = opal_cryptfile_map_body_bytes(sample->map);

    for (size_t at = 0; at < sample->count; ++at) {
        for (unsigned bit = 0; bit < 8; ++bit, ++total) {
            opal_cryptfile_map_t *map;
            unsigned good = 0, bad = 0;
            memcpy(bytes, sample->bytes, sample->count);
            bytes[at] ^= (uint8_t) (1u << bit);
            if (OPAL_CRYPT_OK != opal_cryptfile_map_parse(bytes, sample->count, &map)) {
                ++form;
                continue;
            }
            for (uint32_t i = 0; i < map->region_count; ++i) {
                if (NULL != sample->data_keys[i]) {
                    int rc = opal_cryptfile_map_check(map, i, sample->data_keys[i]);
                    good += OPAL_CRYPT_OK == rc;
                    bad += OPAL_CRYPT_ERR_AUTH == rc;
                }
            }
            if (at < body) {
                mac += 0 == good && bad > 0;
            } else {
                own_mac += 1 == bad;
                wrapped += 0 == bad;
            }
            opal_cryptfile_map_destroy(map);
        }
    }
    UNIT_CHECK(total == form + mac + own_mac + wrapped);
    UNIT_CHECK(form > 0 && mac > 0 && own_mac >= 256 && wrapped >= 48 * 8);
    free(bytes);
}

static void check_lengths(const sample_t *sample)
{
    unsigned accepted = 0;
    opal_cryptfile_map_t *map;

    for (size_t count = 0; count < sample->count; ++count) {
        uint8_t *bytes = malloc(count + 1);     /* exact, for the address sanitizer */
        memcpy(bytes, sample->bytes, count);
        accepted += OPAL_CRYPT_OK == opal_cryptfile_map_parse(bytes, count, &map);
        free(bytes);
    }
    UNIT_CHECK(0 == accepted);
    uint8_t longer[4097];
    memcpy(longer, sample->bytes, sample->count);
    longer[sample->count] = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_map_parse(longer, sample->count + 1, &map));
}

static void test_vectors(void)
{
    FILE *file = vector_file("map-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned maps = 0;

    while (vector_next(file, &vector)) {
        sample_t sample = {.count = 0};
        opal_cryptfile_map_t *built;
        UNIT_REQUIRE(kind_is(&vector, "map"));
        UNIT_GROUP("map %s: fields, bytes, MACs, every bit flipped, every length", vector_text(&vector, "name"));
        sample.count = vector_bytes(&vector, "map", sample.bytes, sizeof(sample.bytes));
        vector_bytes(&vector, "digest", sample.digest, sizeof(sample.digest));
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_parse(sample.bytes, sample.count, &sample.map));
        UNIT_CHECK(sample.map->generation == (uint64_t) number_of(&vector, "generation"));
        UNIT_REQUIRE(sample.map->region_count == number_of(&vector, "regions") && sample.map->region_count <= 8);
        UNIT_CHECK(opal_cryptfile_map_unknown(sample.map) == (0 == number_of(&vector, "unknown") ? -1 : (int) number_of(&vector, "unknown")));
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&built));
        for (uint32_t i = 0; i < sample.map->region_count; ++i) {
            UNIT_REQUIRE(vector_next(file, &vector) && kind_is(&vector, "region"));
            check_region(&sample, built, &vector);
        }
        check_bytes(&sample, built);
        check_flips(&sample);
        check_lengths(&sample);
        opal_cryptfile_map_destroy(built);
        opal_cryptfile_map_destroy(sample.map);
        for (int i = 0; i < 8; ++i) {
            opal_crypt_secmem_free(sample.data_keys[i]);
        }
        ++maps;
    }
    vector_clear(&vector);
    fclose(file);
    UNIT_CHECK(6 == maps);
}

static int add(opal_cryptfile_map_t *map, uint64_t displacement, uint64_t extent, uint64_t bytes, bool once,
               const char *label, uint32_t block, opal_crypt_why_t *why)
{
    const opal_cryptfile_run_t run = {0, bytes, 0};
    opal_cryptfile_tiling_t tiling;
    opal_cryptfile_region_ask_t ask = {NULL != label, OPAL_AEAD_AES_128_GCM, block, label, &tiling};
    uint32_t region;
    bool added;

    UNIT_REQUIRE(0 == opal_cryptfile_tiling_make(&tiling, displacement, extent, once, &run, 1, NULL));
    int rc = opal_cryptfile_map_add(map, &ask, &region, &added, why);
    opal_cryptfile_tiling_free(&tiling);
    return rc;
}

static void test_adding(void)
{
    opal_cryptfile_map_t *map;
    opal_crypt_why_t why;
    opal_cryptfile_region_ask_t rest = {.encrypted = false}, bad = {.encrypted = true, .label = "x", .block_bytes = 4096};
    uint32_t region;
    uint64_t plain, bytes;
    bool added;

    UNIT_GROUP("what may be added to a map, and what not");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    UNIT_CHECK(0 == add(map, 4096, 4096, 1024, false, "a", 4096, &why));
    UNIT_CHECK(0 == add(map, 5120, 4096, 1024, false, "b", 512, &why));
    UNIT_CHECK(0 == add(map, 0, 4096, 4096, true, NULL, 0, &why));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 6143, 4096, 2, false, "c", 512, &why) && 0 == strcmp(why.topic, "file-map-overlap"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 0, 1, 1, false, "c", 512, &why) && 0 == strcmp(why.topic, "file-map-overlap"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 4096, 4096, 1024, false, "b", 4096, &why) && 0 == strcmp(why.topic, "file-map-contradicts"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 4096, 4096, 1024, false, "a", 8192, &why) && 0 == strcmp(why.topic, "file-map-contradicts"));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 4096, 4096, 1024, false, NULL, 0, &why) && 0 == strcmp(why.topic, "file-map-contradicts"));
    static const uint32_t sizes[] = {0, 1, 256, 513, 4097, 3 * 4096, 32u << 20, UINT32_MAX};
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 7000, 4096, 10, false, "c", sizes[i], &why) && 0 == strcmp(why.topic, "file-block-size"));
    }
    static const char *labels[] = {"", " ", "a b", "../x", ".hidden", "a/b", "\xc3\xa9",
                                   "0123456789012345678901234567890123456789012345678901234567890123x"};
    for (unsigned i = 0; i < sizeof(labels) / sizeof(*labels); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 7000, 4096, 10, false, labels[i], 512, &why) && 0 == strcmp(why.topic, "file-label"));
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_map_add(map, &bad, &region, &added, &why));
    UNIT_CHECK(3 == map->region_count);

    UNIT_GROUP("where a byte belongs");
    uint32_t hint = 0;
    UNIT_CHECK(opal_cryptfile_map_find(map, &hint, 4095, &region, &plain, &bytes) && 2 == region && 4095 == plain && 1 == bytes);
    UNIT_CHECK(opal_cryptfile_map_find(map, &hint, 8292, &region, &plain, &bytes) && 0 == region && 1124 == plain && 924 == bytes);
    UNIT_CHECK(opal_cryptfile_map_find(map, &hint, 5120, &region, &plain, &bytes) && 1 == region && 0 == plain && 1024 == bytes);
    UNIT_CHECK(!opal_cryptfile_map_find(map, &hint, 6144, &region, &plain, &bytes) && 2048 == bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &rest, &region, &added, &why) && added && 3 == region);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &rest, &region, &added, &why) && !added && 3 == region);
    UNIT_CHECK(opal_cryptfile_map_find(map, &hint, 6144, &region, &plain, &bytes) && 3 == region && 6144 == plain && 2048 == bytes);
    opal_cryptfile_map_destroy(map);

    UNIT_GROUP("4,096 regions, and not one more");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    unsigned refused = 0;
    for (uint64_t i = 0; i < OPAL_CRYPTFILE_REGIONS_MAX; ++i) {
        refused += OPAL_CRYPT_OK != add(map, i * 10, OPAL_CRYPTFILE_REGIONS_MAX * 10, 10, false, "many", 4096, &why);
        map->regions[i].wrapped->bytes = 72;
    }
    UNIT_CHECK(0 == refused);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == add(map, 0, 1, 1, true, "many", 4096, &why));
    map->generation = 1;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_geometry_choose(map, opal_cryptfile_map_bytes(map)));
    UNIT_CHECK(88 + OPAL_CRYPTFILE_REGIONS_MAX * (32 + 16 + 4 + 34 + 72) == opal_cryptfile_map_bytes(map));
    uint8_t *all = malloc(opal_cryptfile_map_bytes(map));
    opal_cryptfile_map_t *again = NULL;
    opal_cryptfile_map_write(map, all);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_parse(all, opal_cryptfile_map_bytes(map), &again));
    UNIT_CHECK(NULL != again && OPAL_CRYPTFILE_REGIONS_MAX == again->region_count);
    free(all);
    opal_cryptfile_map_destroy(again);
    opal_cryptfile_map_destroy(map);
}

static void test_names(void)
{
    opal_crypt_why_t why;
    opal_aead_cipher_t cipher;
    static const char *bad[] = {"aes-128-ecb", "AES-256-CBC", "aes-xts", "3DES", "des", "aes-128-ctr"};

    UNIT_GROUP("names of algorithms");
    for (int i = 0; i < OPAL_AEAD_CIPHERS; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_algorithm_parse(opal_cryptfile_algorithm_name((opal_aead_cipher_t) i), &cipher, &why)
                   && (int) cipher == i);
    }
    for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_algorithm_parse(bad[i], &cipher, &why) &&
                   0 == strcmp(why.topic, "file-algorithm-refused"));
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_cryptfile_algorithm_parse("rot13", &cipher, &why) &&
               0 == strcmp(why.topic, "file-algorithm-unknown"));
}

static void test_extensions(void)
{
    static const struct {
        const char *bytes;
        size_t count;
        int unknown;                    /* -2: refused */
    } cases[] = {{"", 0, -1}, {"\1\0\0\0\0\0\0\0", 8, -1}, {"\1\0\1\0\0\0\0\0", 8, 1}, {"\1\0\2\0\0\0\0\0", 8, -2},
                 {"\1\0\0\0\0\0\0", 7, -2}, {"\1\0\0\0\1\0\0\0", 8, -2}, {"\1\0\0\0\377\377\377\377", 8, -2},
                 {"\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16, -2}, {"\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0", 16, -2},
                 {"\0\0\0\0\0\0\0\0\0\1\1\0\2\0\0\0ab", 18, 256}};
    uint8_t *large = calloc(1, OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES + 1);

    UNIT_GROUP("extensions: types rise, lengths fit, critical is 0 or 1");
    for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); ++i) {
        opal_cryptfile_map_t *map;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
        int rc = opal_cryptfile_map_extensions_set(map, (const uint8_t *) cases[i].bytes, cases[i].count);
        UNIT_CHECK((OPAL_CRYPT_OK == rc) == (cases[i].unknown > -2) && (OPAL_CRYPT_OK != rc || cases[i].unknown == opal_cryptfile_map_unknown(map)));
        opal_cryptfile_map_destroy(map);
    }
    for (uint32_t more = 0; more < 2; ++more) {
        opal_cryptfile_map_t *map;
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
        opal_crypt_le_put32(large + 4, OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES - 8 + more);
        UNIT_CHECK((0 == more) == (OPAL_CRYPT_OK == opal_cryptfile_map_extensions_set(map, large, OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES + more)));
        opal_cryptfile_map_destroy(map);
    }
    free(large);
}

static void test_digest(void)
{
    opal_cryptfile_map_digest_t digest = {.generation = 5}, read;
    uint8_t bytes[OPAL_CRYPTFILE_MAP_DIGEST_BYTES + 1];

    UNIT_GROUP("the digest form: every byte flipped is refused or differs");
    memset(digest.uuid, 7, sizeof(digest.uuid));
    memset(digest.hash, 9, sizeof(digest.hash));
    opal_cryptfile_map_digest_write(&digest, bytes);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_digest_parse(bytes, 80, &read) && 0 == memcmp(&read, &digest, sizeof(read)));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_map_digest_parse(bytes, 79, &read));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_cryptfile_map_digest_parse(bytes, 81, &read));
    unsigned unseen = 0;
    for (unsigned at = 0; at < 80; ++at) {
        bytes[at] ^= 0x10;
        memset(&read, 0, sizeof(read));
        unseen += OPAL_CRYPT_OK == opal_cryptfile_map_digest_parse(bytes, 80, &read) && 0 == memcmp(&read, &digest, sizeof(read));
        bytes[at] ^= 0x10;
    }
    UNIT_CHECK(0 == unseen);
}

int main(void)
{
    test_vectors();
    test_adding();
    test_names();
    test_extensions();
    test_digest();
    opal_crypt_secmem_finalize();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys of a map's regions: which requests go to the keystore, and which maps are
 * refused, with keys that are new and with keys that are there already.
 */
#include "keystore_cases.h"

#include "opal/mca/common/cryptfile/file/header.h"
#include "opal/mca/common/cryptfile/keystore/keystore_object.h"

enum { REGIONS = 60, ROW = 100 };

static opal_cryptfile_keystore_t *keystore;
static char *directory;

static const char *label_of(uint32_t region) { return region % 3 ? "lab" : "other"; }

static void add_region(opal_cryptfile_map_t *map, uint32_t number)
{
    opal_cryptfile_run_t run = {.offset = 0, .bytes = ROW};
    opal_cryptfile_tiling_t tiling;
    opal_crypt_why_t why;
    uint32_t region;
    bool added;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_tiling_make(&tiling, (uint64_t) number * 2 * ROW, ROW, true, &run, 1, &why));
    const opal_cryptfile_region_ask_t ask = {true, OPAL_AEAD_AES_128_GCM, 512, label_of(number), &tiling};
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_add(map, &ask, &region, &added, &why) && added && number == region);
    opal_cryptfile_tiling_free(&tiling);
}

static void seal(opal_cryptfile_map_t *map, const opal_cryptfile_key_t *keys)
{
    for (uint32_t i = 0; i < map->region_count; ++i) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_mac(map, i, keys[i].data_key, map->regions[i].mac));
    }
}

/* Regions up to `count`: draw the keys of those from `from` on; make all MACs. */
static void make(opal_cryptfile_map_t *map, uint32_t from, uint32_t count, opal_cryptfile_key_t *keys)
{
    opal_crypt_why_t why;

    for (uint32_t i = from; i < count; ++i) {
        add_region(map, i);
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_lock(map, i, keystore, &keys[i], &why));
    }
    seal(map, keys);
}

static void drop(opal_cryptfile_key_t *keys, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < count; ++i) {
        opal_crypt_secmem_free(keys[i].data_key);
        memset(&keys[i], 0, sizeof(keys[i]));
    }
}

/* Unlock with the known keys, and drop the new ones; the reason is kept for the next check. */
static opal_crypt_why_t why_not;

static int try(const opal_cryptfile_map_t *map, const opal_cryptfile_key_t *known, uint32_t known_count)
{
    opal_cryptfile_key_t *keys = calloc(map->region_count, sizeof(*keys));

    if (known_count > 0) {
        memcpy(keys, known, known_count * sizeof(*keys));
    }
    why_not = (opal_crypt_why_t){.topic = NULL};
    int rc = opal_cryptfile_map_unlock(map, keystore, keys, &why_not);
    drop(keys, known_count, map->region_count);
    free(keys);
    return rc;
}

static bool refused(int rc, const char *topic, uint32_t region)
{
    char text[40];

    snprintf(text, sizeof(text), "region %u, ", (unsigned) region);
    return OPAL_CRYPT_ERR_AUTH == rc && NULL != why_not.topic && 0 == strcmp(topic, why_not.topic) &&
           0 == strncmp(text, why_not.detail, strlen(text));
}

static unsigned unwraps(void) { return log_lines(directory, "unwrap", "", ""); }

static void case_all(opal_cryptfile_map_t *map, const opal_cryptfile_key_t *made)
{
    opal_cryptfile_key_t *keys = calloc(REGIONS, sizeof(*keys));
    opal_crypt_why_t why = {.topic = NULL};
    unsigned before = unwraps(), wrong = 0;

    UNIT_GROUP("%d regions of two labels: the log has two lines more", REGIONS);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_unlock(map, keystore, keys, &why));
    for (uint32_t i = 0; i < REGIONS; ++i) {
        wrong += OPAL_CRYPTFILE_GRANT_SEAL != keys[i].grant || 0 != memcmp(keys[i].data_key, made[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
    UNIT_CHECK(0 == wrong && before + 2 == unwraps());
    opal_cryptfile_keys_free(keys, REGIONS);
}

static void case_forged(opal_cryptfile_map_t *map)
{
    unsigned accepted = 0;

    UNIT_GROUP("every MAC and every wrapped key flipped: refused, and the region is named");
    for (uint32_t i = 0; i < REGIONS; ++i) {
        opal_cryptfile_region_t *region = &map->regions[i];
        region->mac[i % OPAL_CRYPTFILE_MAP_MAC_BYTES] ^= 1;
        accepted += !refused(try(map, NULL, 0), "file-map-forged", i);
        region->mac[i % OPAL_CRYPTFILE_MAP_MAC_BYTES] ^= 1;
        region->wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + i % 40] ^= 1;
        accepted += !refused(try(map, NULL, 0), "file-map-other-key", i);
        region->wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + i % 40] ^= 1;
    }
    UNIT_CHECK(0 == accepted && OPAL_CRYPT_OK == try(map, NULL, 0));
}

static bool judged(const opal_cryptfile_map_t *map, const opal_cryptfile_copy_state_t *other, opal_cryptfile_copy_state_t *state)
{
    size_t count = opal_cryptfile_map_bytes(map);
    uint8_t *bytes = malloc(count);

    opal_cryptfile_map_write(map, bytes);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_copy_judge(bytes, count, keystore, other, state));
    free(bytes);
    why_not = state->why;
    return state->verified;
}

/* The same, refused. */
static bool forged_after(const opal_cryptfile_map_t *map, const opal_cryptfile_copy_state_t *other, const char *topic, uint32_t region)
{
    opal_cryptfile_copy_state_t state;
    bool is = !judged(map, other, &state) && refused(state.refused ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_OK, topic, region);

    opal_cryptfile_copy_free(&state);
    return is;
}

static void case_copies(opal_cryptfile_map_t *map, const opal_cryptfile_key_t *made)
{
    opal_cryptfile_copy_state_t first, second;
    unsigned wrong = 0;

    UNIT_GROUP("a second copy takes the keys of the first, unless they prove nothing there, and each of its MACs is checked");
    UNIT_CHECK(judged(map, NULL, &first));
    unsigned before = unwraps();
    for (unsigned recovered = 0; recovered < 2; ++recovered) {
        first.recovered = recovered;
        UNIT_CHECK(judged(map, &first, &second) && !second.recovered && before + 2 * recovered == unwraps());
        for (uint32_t i = 0; i < REGIONS; ++i) {
            wrong += 0 != memcmp(second.keys[i].data_key, made[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
        }
        opal_cryptfile_copy_free(&second);
    }
    first.recovered = false;
    for (uint32_t i = 0; i < REGIONS; ++i) {
        opal_cryptfile_region_t *region = &map->regions[i];
        region->mac[i % OPAL_CRYPTFILE_MAP_MAC_BYTES] ^= 1;
        wrong += !forged_after(map, &first, "file-map-forged", i);
        region->mac[i % OPAL_CRYPTFILE_MAP_MAC_BYTES] ^= 1;
        region->wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + i % 40] ^= 1;
        wrong += !forged_after(map, &first, "file-map-other-key", i);
        region->wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + i % 40] ^= 1;
    }
    UNIT_CHECK(0 == wrong);
    first.verified = false;             /* a key server did not answer: it is not asked about the same map again, but about another */
    first.unasked = true;
    (void) opal_crypt_refuse(&first.why, OPAL_CRYPT_OK, "keystore-vault", "it is sealed");
    before = unwraps();
    UNIT_CHECK(!judged(map, &first, &second) && second.unasked && 0 == strcmp("it is sealed", second.why.detail) && before == unwraps());
    opal_cryptfile_copy_free(&second);
    ++map->generation;
    UNIT_CHECK(!judged(map, &first, &second) && !second.unasked && second.refused && before < unwraps());
    --map->generation;
    opal_cryptfile_copy_free(&second);
    opal_cryptfile_copy_free(&first);
}

/* A map that was verified, and one more region. */
static void case_known(opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    unsigned before = unwraps();

    UNIT_GROUP("a region more, with the keys of the others at hand: only its own is unwrapped");
    UNIT_CHECK(OPAL_CRYPT_OK == try(map, keys, REGIONS) && before == unwraps());
    add_region(map, REGIONS);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_lock(map, REGIONS, keystore, &keys[REGIONS], &why_not));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_mac(map, REGIONS, keys[REGIONS].data_key, map->regions[REGIONS].mac));
    UNIT_CHECK(refused(try(map, keys, REGIONS), "file-map-forged", 0));        /* its holders have not seen this map */
    seal(map, keys);
    before = unwraps();
    UNIT_CHECK(OPAL_CRYPT_OK == try(map, keys, REGIONS) && before + 1 == unwraps());
    map->regions[REGIONS].mac[3] ^= 1;
    UNIT_CHECK(refused(try(map, keys, REGIONS), "file-map-forged", REGIONS));
    map->regions[REGIONS].mac[3] ^= 1;
    map->regions[REGIONS].wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + 14] ^= 1;
    UNIT_CHECK(refused(try(map, keys, REGIONS), "file-map-other-key", REGIONS));
    map->regions[REGIONS].wrapped->blob[OPAL_CRYPTFILE_BLOB_WRAPPED_AT + 14] ^= 1;
    ++map->regions[1].tiling.displacement;
    UNIT_CHECK(refused(try(map, keys, REGIONS + 1), "file-map-forged", 0));
    --map->regions[1].tiling.displacement;
    UNIT_CHECK(OPAL_CRYPT_OK == try(map, keys, REGIONS + 1));
}

/* One version of a label revoked: its regions have no key, the others do. */
static void case_versions(opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    opal_cryptfile_keystore_record_t record = {.label = "lab"};
    opal_cryptfile_key_t *some = calloc(REGIONS + 3, sizeof(*some));
    opal_crypt_why_t why = {.topic = NULL};
    unsigned wrong = 0;

    UNIT_GROUP("two versions of a label in one map, and one of them revoked");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, true, &record, &why));
    make(map, REGIONS + 1, REGIONS + 3, keys);
    unsigned before = unwraps();
    UNIT_CHECK(OPAL_CRYPT_OK == try(map, NULL, 0) && before + 3 == unwraps());
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "lab", 1, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_unlock(map, keystore, some, &why));
    for (uint32_t i = 0; i < map->region_count; ++i) {
        bool expected = i > REGIONS || 0 == strcmp("other", label_of(i));
        wrong += expected != (NULL != some[i].data_key) || (expected && 0 != memcmp(some[i].data_key, keys[i].data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES));
    }
    UNIT_CHECK(0 == wrong);
    opal_cryptfile_keys_free(some, map->region_count);
}

/* What the newest version allows says nothing about older ones, and every refusal is reported. */
static void case_refusals(opal_cryptfile_map_t *map)
{
    opal_cryptfile_keystore_record_t record = {.label = "other", .owner_count = 1, .owners = {geteuid() + 1}};
    opal_cryptfile_key_t *keys = calloc(map->region_count, sizeof(*keys));
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .secret_on_netfs = true, .now = NOW};
    opal_cryptfile_keystore_t *full = keystore;
    opal_crypt_why_t why = {.topic = NULL};
    char empty[128];

    UNIT_GROUP("a version opens what it wrapped, whoever owns the newest; refusals are logged, with their reasons");
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, true, &record, &why));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_map_unlock(map, keystore, keys, &why) && NULL != keys[0].data_key);
    opal_cryptfile_keys_free(keys, map->region_count);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "lab", 0, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_revoke(keystore, "other", 0, &why));
    unsigned before = log_lines(directory, "unwrap", "label=lab version=2", "refused: the key is revoked");
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == try(map, NULL, 0) && 0 == strcmp("keystore-refused", why_not.topic));
    UNIT_CHECK(NULL != strstr(why_not.detail, "revoked"));
    UNIT_CHECK(before + 1 == log_lines(directory, "unwrap", "label=lab version=2", "refused: the key is revoked"));
    snprintf(empty, sizeof(empty), "%s/empty", directory);
    UNIT_REQUIRE(0 == mkdir(empty, 0700));
    options.directory = empty;
    keystore = reopen(NULL, &options, NOW);
    UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == try(map, NULL, 0) && 0 == strcmp("file-no-label", why_not.topic));
    UNIT_CHECK(1 == log_lines(empty, "unwrap", "label=lab version=2", "refused: no such key"));
    opal_cryptfile_keystore_close(keystore);
    keystore = full;
}

/* A file with an unknown critical extension is refused, although an older map without it verifies, too; one
 * that is not critical is kept in the next map. */
static void case_extensions(opal_cryptfile_map_t *map, opal_cryptfile_key_t *keys)
{
    UNIT_GROUP("extensions: unknown and critical refuses, others are kept");
    for (unsigned critical = 0; critical < 2; ++critical) {
        opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES] = {{.map = NULL}};
        opal_crypt_why_t why = {.topic = NULL};
        const uint8_t extension[11] = {7, 1, (uint8_t) critical, 0, 3, 0, 0, 0, 'a', 'b', 'c'};
        for (int i = 0; i < 2; ++i) {
            size_t count = opal_cryptfile_map_bytes(map);
            uint8_t *bytes = malloc(count);
            opal_cryptfile_map_write(map, bytes);
            UNIT_CHECK(OPAL_CRYPT_OK == opal_cryptfile_copy_judge(bytes, count, keystore, NULL,
                                                                       &states[OPAL_CRYPTFILE_COPY_PLACE_0 + i]));
            free(bytes);
            if (0 == i) {
                UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_extensions_set(map, extension, sizeof(extension)));
                ++map->generation;
                seal(map, keys);
            }
        }
        opal_cryptfile_header_t header = {.geometry = map->geometry};
        opal_cryptfile_copy_t chosen = OPAL_CRYPTFILE_COPIES;
        bool differ;
        memcpy(header.uuid, map->uuid, sizeof(header.uuid));
        int rc = opal_cryptfile_header_choose(states, &header, &chosen, &differ, &why);
        UNIT_CHECK(states[OPAL_CRYPTFILE_COPY_PLACE_0].verified && states[OPAL_CRYPTFILE_COPY_PLACE_1].verified);
        opal_cryptfile_copy_state_t *newer = &states[OPAL_CRYPTFILE_COPY_PLACE_1];
        opal_crypt_why_t unasked = {.topic = NULL};
        opal_cryptfile_copy_t none;
        newer->verified = false;                /* a key server does not answer about it: the older one is not taken */
        newer->unasked = true;
        (void) opal_crypt_refuse(&newer->why, OPAL_CRYPT_OK, "keystore-vault", "it is sealed");
        UNIT_CHECK(OPAL_CRYPT_ERR_ACCESS == opal_cryptfile_header_choose(states, &header, &none, &differ, &unasked) && 0 == strcmp("it is sealed", unasked.detail));
        newer->verified = true;
        newer->unasked = false;
        UNIT_CHECK(critical ? OPAL_CRYPT_ERR_CONFIG == rc && 0 == strcmp("file-map-extension", why.topic) && 0 == strcmp("type 263", why.detail)
                            : OPAL_CRYPT_OK == rc && OPAL_CRYPTFILE_COPY_PLACE_1 == chosen);
        const opal_cryptfile_map_t *read = states[OPAL_CRYPTFILE_COPY_PLACE_1].map;
        UNIT_CHECK(sizeof(extension) == read->extension_bytes && 0 == memcmp(extension, read->extensions, sizeof(extension)));
        states[OPAL_CRYPTFILE_COPY_PLACE_1].map->extensions[8] ^= 1;  /* only key holders change, add or remove one */
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == try(read, NULL, 0) && 0 == strcmp("file-map-forged", why_not.topic));
        states[OPAL_CRYPTFILE_COPY_PLACE_1].map->extension_bytes = 0;
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == try(read, NULL, 0));
        for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
            opal_cryptfile_copy_free(&states[i]);
        }
        free(map->extensions);
        map->extensions = NULL;
        map->extension_bytes = 0;
        seal(map, keys);
    }
}

int main(void)
{
    directory = scratch();
    opal_cryptfile_keystore_options_t options = {.backend = OPAL_CRYPTFILE_KEYSTORE_FILE, .directory = directory, .secret_on_netfs = true, .now = NOW};
    opal_cryptfile_keystore_record_t lab = {.label = "lab"}, other = {.label = "other"};
    opal_cryptfile_key_t *keys = calloc(REGIONS + 3, sizeof(*keys));
    opal_cryptfile_map_t *map;
    opal_crypt_why_t why;

    keystore = reopen(NULL, &options, NOW);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &lab, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_keystore_new(keystore, false, &other, &why));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_map_create(&map));
    map->generation = 1;
    make(map, 0, REGIONS, keys);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_cryptfile_geometry_choose(map, opal_cryptfile_map_bytes(map)));
    seal(map, keys);
    case_all(map, keys);
    case_forged(map);
    case_copies(map, keys);
    case_known(map, keys);
    case_extensions(map, keys);
    case_versions(map, keys);
    case_refusals(map);
    opal_cryptfile_keys_free(keys, REGIONS + 3);
    opal_cryptfile_map_destroy(map);
    opal_cryptfile_keystore_close(keystore);
    shell("rm -rf %s", directory);
    opal_crypt_secmem_finalize();
    return unit_done();
}

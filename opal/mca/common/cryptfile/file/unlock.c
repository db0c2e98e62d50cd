/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys of a map's regions, and the decision which copy of a map is believed.
 */
#include "unlock.h"
#include "opal/mca/common/crypt/base/library.h"
#include "opal/mca/common/crypt/base/secmem.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

void opal_cryptfile_keys_free(opal_cryptfile_key_t *keys, uint32_t count)
{
    for (uint32_t i = 0; NULL != keys && i < count; ++i) {
        opal_crypt_secmem_free(keys[i].data_key);
    }
    free(keys);
}

/* Regions that were wrapped under one version of one label are unwrapped together. */
typedef struct unlocker {
    const opal_cryptfile_map_t *map;
    opal_crypt_input_t body;
    opal_cryptfile_keystore_t *keystore;
    opal_cryptfile_key_t *keys;
    opal_crypt_why_t *why;
    bool *seen;                         /* of each region */
    uint32_t *numbers;                  /* of those that belong together now */
    opal_cryptfile_unwrap_t *blobs;
    uint32_t count;
} unlocker_t;

static int forged(const unlocker_t *u, const char *topic, uint32_t number)
{
    return opal_crypt_refuse(u->why, OPAL_CRYPT_ERR_AUTH, topic, "region %u, label %s", (unsigned) number,
                             u->map->regions[number].label);
}

static int check_mac(const unlocker_t *u, uint32_t number)
{
    int rc = opal_cryptfile_map_body_check(u->map, &u->body, number, u->keys[number].data_key);

    return OPAL_CRYPT_ERR_AUTH == rc ? forged(u, "file-map-forged", number) : rc;
}

/* The regions without a key that belong to region `first`, and room for their keys. */
static int collect(unlocker_t *u, uint32_t first)
{
    const opal_cryptfile_region_t *of = &u->map->regions[first];

    u->count = 0;
    for (uint32_t i = first; i < u->map->region_count; ++i) {
        const opal_cryptfile_region_t *region = &u->map->regions[i];
        if (!region->encrypted || u->seen[i] || NULL != u->keys[i].data_key || 0 != strcmp(region->label, of->label) ||
            !opal_cryptfile_wrapped_alike(region->wrapped, of->wrapped)) {
            continue;
        }
        u->seen[i] = true;
        u->keys[i].data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
        if (NULL == u->keys[i].data_key) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        u->blobs[u->count] = (opal_cryptfile_unwrap_t){region->wrapped, u->keys[i].data_key};
        u->numbers[u->count++] = i;
    }
    return OPAL_CRYPT_OK;
}

static int unwrap_keys(const unlocker_t *u, const char *label)
{
    opal_cryptfile_grant_t grant;
    size_t which = 0;

    int rc = opal_cryptfile_keystore_unwrap_all(u->keystore, label, u->map->uuid, u->blobs, u->count, &which, &grant, u->why);
    if (OPAL_CRYPT_ERR_AUTH == rc && 0 == strcmp("keystore-unwrap", u->why->topic)) {
        const opal_crypt_why_t why = *u->why;           /* names the keys */

        return opal_crypt_refuse(u->why, rc, "file-map-other-key", "region %u, label %.700s", (unsigned) u->numbers[which], why.detail);
    }
    if (OPAL_CRYPT_ERR_AUTH == rc) {
        return forged(u, "file-map-other-key", u->numbers[which]);
    }
    for (uint32_t i = 0; OPAL_CRYPT_OK == rc && i < u->count; ++i) {
        u->keys[u->numbers[i]].grant = grant;
        rc = check_mac(u, u->numbers[i]);
    }
    return rc;
}

static int unlock_alike(unlocker_t *u, uint32_t first)
{
    int rc = collect(u, first);

    if (OPAL_CRYPT_OK == rc) {
        rc = unwrap_keys(u, u->map->regions[first].label);
    }
    for (uint32_t i = 0; OPAL_CRYPT_OK != rc && i < u->count; ++i) {
        opal_cryptfile_key_t *key = &u->keys[u->numbers[i]];
        opal_crypt_secmem_free(key->data_key);
        memset(key, 0, sizeof(*key));
    }
    return OPAL_CRYPT_ERR_CONFIG == rc ? OPAL_CRYPT_OK : rc;       /* refused by the keystore: just no key */
}

/* Check one MAC with the keys that are there already: it covers the whole body. */
static int check_known(const unlocker_t *u)
{
    uint32_t i = 0;

    while (i < u->map->region_count && NULL == u->keys[i].data_key) {
        ++i;
    }
    return i == u->map->region_count ? OPAL_CRYPT_OK : check_mac(u, i);
}

static int unlock_all(const opal_cryptfile_map_t *map, opal_cryptfile_keystore_t *keystore,
                      opal_cryptfile_key_t *keys, opal_crypt_why_t *why)
{
    size_t count = (size_t) map->region_count + 1;
    unlocker_t u = {.map = map, .keystore = keystore, .keys = keys, .why = why, .seen = calloc(count, sizeof(*u.seen)),
                    .numbers = calloc(count, sizeof(*u.numbers)), .blobs = calloc(count, sizeof(*u.blobs))};
    int rc = NULL == u.seen || NULL == u.numbers || NULL == u.blobs ? OPAL_CRYPT_ERR_MEMORY
                                                                    : opal_cryptfile_map_body(map, &u.body);

    if (OPAL_CRYPT_OK == rc) {
        rc = check_known(&u);
    }
    for (uint32_t i = 0; NULL != keystore && OPAL_CRYPT_OK == rc && i < map->region_count; ++i) {
        if (map->regions[i].encrypted && NULL == keys[i].data_key && !u.seen[i]) {
            rc = unlock_alike(&u, i);
        }
    }
    free((void *) (uintptr_t) u.body.base);
    free(u.blobs);
    free(u.numbers);
    free(u.seen);
    return rc;
}

int opal_cryptfile_map_unlock(const opal_cryptfile_map_t *map, opal_cryptfile_keystore_t *keystore,
                              opal_cryptfile_key_t *keys, opal_crypt_why_t *why)
{
    uint32_t opened = 0;
    const opal_cryptfile_region_t *first = NULL;
    opal_cryptfile_wrapped_by_t by;
    char key[OPAL_CRYPTFILE_KEY_TEXT_BYTES];
    int rc = unlock_all(map, keystore, keys, why);

    if (OPAL_CRYPT_OK != rc) {
        return rc;
    }
    for (uint32_t i = 0; i < map->region_count; ++i) {
        opened += NULL != keys[i].data_key;
        first = NULL == first && map->regions[i].encrypted ? &map->regions[i] : first;
    }
    if (0 != opened) {
        return OPAL_CRYPT_OK;
    }
    bool said = NULL != why->topic && 0 != strcmp("keystore-no-label", why->topic);
    if (said) {
        return OPAL_CRYPT_ERR_ACCESS;           /* the keystore said why */
    }
    if (NULL == first || OPAL_CRYPT_OK != opal_cryptfile_wrapped_parse(first->wrapped, &by)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "file-no-label", "%s", NULL == first ? "" : first->label);
    }
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "file-no-label", "%s, version %u (%s)", first->label, by.version,
                             opal_cryptfile_key_text(by.fingerprint, by.created, key));
}

int opal_cryptfile_map_lock(opal_cryptfile_map_t *map, uint32_t region, opal_cryptfile_keystore_t *keystore,
                            opal_cryptfile_key_t *key, opal_crypt_why_t *why)
{
    key->data_key = opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES);
    if (NULL == key->data_key) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    int rc = opal_crypt_draw(key->data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_refuse(why, rc, "library", "a data key");
    } else {
        key->grant = OPAL_CRYPTFILE_GRANT_SEAL;
        rc = opal_cryptfile_keystore_wrap(keystore, map->regions[region].label, map->uuid, key->data_key,
                                          map->regions[region].wrapped, why);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_crypt_secmem_free(key->data_key);
        memset(key, 0, sizeof(*key));
    }
    return rc;
}

/* ---- copies ---- */

static bool same_body(const opal_cryptfile_copy_state_t *a, const opal_cryptfile_copy_state_t *b)
{
    return 0 == memcmp(&a->head, &b->head, sizeof(a->head));
}

/* Keys of another copy with the same body, as far as they were wrapped in the same bytes.  Only one of a region with the same
 * MAC, which that copy's key has verified: others are unwrapped, and checked.  None of a copy with a key from its escrow alone:
 * they prove nothing, and would be taken for the keystore's. */
static int keys_of_other(const opal_cryptfile_copy_state_t *other, opal_cryptfile_copy_state_t *state)
{
    if (NULL == other || !other->verified || other->recovered || NULL == other->map || !same_body(other, state)) {
        return OPAL_CRYPT_OK;
    }
    for (uint32_t i = 0; i < state->map->region_count; ++i) {
        const opal_cryptfile_wrapped_t *a = state->map->regions[i].wrapped, *b = other->map->regions[i].wrapped;
        const opal_cryptfile_key_t *key = &other->keys[i];
        if (NULL == key->data_key || a->bytes != b->bytes || 0 != memcmp(a->blob, b->blob, a->bytes) ||
            0 != memcmp(state->map->regions[i].mac, other->map->regions[i].mac, OPAL_CRYPTFILE_MAP_MAC_BYTES)) {
            continue;
        }
        state->keys[i] = (opal_cryptfile_key_t){opal_crypt_secmem_alloc(OPAL_CRYPTFILE_DATA_KEY_BYTES), key->grant};
        if (NULL == state->keys[i].data_key) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        memcpy(state->keys[i].data_key, key->data_key, OPAL_CRYPTFILE_DATA_KEY_BYTES);
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_copy_judge(const uint8_t *bytes, size_t count, opal_cryptfile_keystore_t *keystore,
                              const opal_cryptfile_copy_state_t *other, opal_cryptfile_copy_state_t *state)
{
    memset(state, 0, sizeof(*state));
    state->present = 0 != count;
    if (!state->present) {
        return OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_OK == opal_cryptfile_map_digest_parse(bytes, count, &state->head)) {
        state->digest = true;
        return OPAL_CRYPT_OK;
    }
    int rc = opal_cryptfile_map_parse(bytes, count, &state->map);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_cryptfile_map_digest(state->map, &state->head);
    }
    if (OPAL_CRYPT_OK == rc) {
        state->keys = calloc(state->map->region_count, sizeof(*state->keys));
        rc = NULL == state->keys ? OPAL_CRYPT_ERR_MEMORY : keys_of_other(other, state);
        if (OPAL_CRYPT_OK == rc && NULL != other && other->unasked && same_body(other, state)) {
            state->why = other->why;    /* nor would it say now: each label would cost its time limit again */
            rc = OPAL_CRYPT_ERR_PEER;
        }
        rc = OPAL_CRYPT_OK == rc ? opal_cryptfile_map_unlock(state->map, keystore, state->keys, &state->why) : rc;
        state->verified = OPAL_CRYPT_OK == rc;
        state->refused = OPAL_CRYPT_ERR_AUTH == rc;
        state->unasked = OPAL_CRYPT_ERR_PEER == rc;
    }
    return OPAL_CRYPT_ERR_MEMORY == rc ? rc : OPAL_CRYPT_OK;
}

void opal_cryptfile_copy_free(opal_cryptfile_copy_state_t *state)
{
    if (NULL != state->map) {
        opal_cryptfile_keys_free(state->keys, state->map->region_count);
        opal_cryptfile_map_destroy(state->map);
    }
    memset(state, 0, sizeof(*state));
}

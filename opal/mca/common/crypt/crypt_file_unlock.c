/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Keys of a map's regions, and the decision which copy of a map is believed.
 */
#include "crypt_file_store.h"
#include "crypt_secmem.h"

#include <stdlib.h>
#include <string.h>

/* ---- keys ---- */

void opal_common_crypt_keys_free(opal_common_crypt_file_key_t *keys, uint32_t count)
{
    for (uint32_t i = 0; NULL != keys && i < count; ++i) {
        opal_common_crypt_secmem_free(keys[i].data_key);
    }
    free(keys);
}

static int unlock_region(const opal_common_crypt_map_t *map, uint32_t number, opal_common_crypt_keystore_t *keystore,
                         opal_common_crypt_file_key_t *key, opal_common_crypt_why_t *why)
{
    const opal_common_crypt_region_t *region = &map->regions[number];

    if (OPAL_CRYPT_GRANT_NONE == opal_common_crypt_keystore_grant(keystore, region->label)) {
        return OPAL_CRYPT_OK;
    }
    key->data_key = opal_common_crypt_secmem_alloc(OPAL_CRYPT_DATA_KEY_BYTES);
    if (NULL == key->data_key) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    int rc = opal_common_crypt_keystore_unwrap(keystore, region->label, map->uuid, region->wrapped, key->data_key,
                                               &key->grant, why);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_map_check(map, number, key->data_key);
        if (OPAL_CRYPT_ERR_AUTH == rc) {
            rc = opal_common_crypt_refuse(why, rc, "file-map-forged", "region %u, label %s", (unsigned) number, region->label);
        }
    } else if (OPAL_CRYPT_ERR_AUTH == rc) {
        rc = opal_common_crypt_refuse(why, rc, "file-map-other-key", "region %u, label %s", (unsigned) number, region->label);
    }
    if (OPAL_CRYPT_OK != rc) {
        opal_common_crypt_secmem_free(key->data_key);
        key->data_key = NULL;
        key->grant = OPAL_CRYPT_GRANT_NONE;
    }
    return OPAL_CRYPT_ERR_CONFIG == rc ? OPAL_CRYPT_OK : rc;       /* refused by the keystore: no key, that is all */
}

int opal_common_crypt_map_unlock(const opal_common_crypt_map_t *map, opal_common_crypt_keystore_t *keystore,
                                 opal_common_crypt_file_key_t *keys, opal_common_crypt_why_t *why)
{
    uint32_t opened = 0;
    const char *label = "";

    memset(keys, 0, map->region_count * sizeof(*keys));
    for (uint32_t i = 0; i < map->region_count; ++i) {
        if (map->regions[i].encrypted) {
            int rc = NULL == keystore ? OPAL_CRYPT_OK : unlock_region(map, i, keystore, &keys[i], why);
            if (OPAL_CRYPT_OK != rc) {
                return rc;
            }
            opened += NULL != keys[i].data_key;
            label = '\0' == *label ? map->regions[i].label : label;
        }
    }
    if (0 != opened) {
        return OPAL_CRYPT_OK;
    }
    return NULL != why->topic ? OPAL_CRYPT_ERR_ACCESS      /* the keystore said why */
                              : opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_ACCESS, "file-no-label", "%s", label);
}

int opal_common_crypt_map_lock(opal_common_crypt_map_t *map, uint32_t region, opal_common_crypt_keystore_t *keystore,
                               opal_common_crypt_file_key_t *key, opal_common_crypt_why_t *why)
{
    key->data_key = opal_common_crypt_secmem_alloc(OPAL_CRYPT_DATA_KEY_BYTES);
    if (NULL == key->data_key) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    opal_common_crypt_random(key->data_key, OPAL_CRYPT_DATA_KEY_BYTES);
    key->grant = OPAL_CRYPT_GRANT_SEAL;
    int rc = opal_common_crypt_keystore_wrap(keystore, map->regions[region].label, map->uuid, key->data_key,
                                             map->regions[region].wrapped, why);
    if (OPAL_CRYPT_OK != rc) {
        opal_common_crypt_secmem_free(key->data_key);
        memset(key, 0, sizeof(*key));
    }
    return rc;
}

/* ---- copies ---- */

int opal_common_crypt_copy_judge(const uint8_t *bytes, size_t count, opal_common_crypt_keystore_t *keystore,
                                 opal_common_crypt_copy_state_t *state)
{
    memset(state, 0, sizeof(*state));
    state->present = 0 != count;
    if (!state->present) {
        return OPAL_CRYPT_OK;
    }
    if (OPAL_CRYPT_OK == opal_common_crypt_map_digest_parse(bytes, count, &state->head)) {
        state->digest = true;
        return OPAL_CRYPT_OK;
    }
    int rc = opal_common_crypt_map_parse(bytes, count, &state->map);
    if (OPAL_CRYPT_OK == rc) {
        rc = opal_common_crypt_map_digest(state->map, &state->head);
    }
    if (OPAL_CRYPT_OK == rc) {
        state->keys = calloc(state->map->region_count, sizeof(*state->keys));
        rc = NULL == state->keys ? OPAL_CRYPT_ERR_MEMORY
                                 : opal_common_crypt_map_unlock(state->map, keystore, state->keys, &state->why);
        state->verified = OPAL_CRYPT_OK == rc;
        state->refused = OPAL_CRYPT_ERR_AUTH == rc;
    }
    return OPAL_CRYPT_ERR_MEMORY == rc ? rc : OPAL_CRYPT_OK;
}

void opal_common_crypt_copy_free(opal_common_crypt_copy_state_t *state)
{
    if (NULL != state->map) {
        opal_common_crypt_keys_free(state->keys, state->map->region_count);
        opal_common_crypt_map_destroy(state->map);
    }
    memset(state, 0, sizeof(*state));
}

static bool same_map(const opal_common_crypt_map_digest_t *a, const opal_common_crypt_map_digest_t *b)
{
    return 0 == memcmp(a->uuid, b->uuid, sizeof(a->uuid)) && a->generation == b->generation &&
           0 == memcmp(a->hash, b->hash, sizeof(a->hash));
}

int opal_common_crypt_copy_choose(const opal_common_crypt_copy_state_t states[OPAL_CRYPT_COPIES],
                                  const uint8_t header_uuid[OPAL_CRYPT_UUID_BYTES], bool *differ,
                                  opal_common_crypt_why_t *why)
{
    const opal_common_crypt_copy_state_t *attribute = &states[OPAL_CRYPT_COPY_ATTRIBUTE];
    int best = -1;

    for (int i = 0; i < OPAL_CRYPT_COPIES; ++i) {
        if (states[i].verified && !states[i].refused && (best < 0 || states[i].head.generation > states[best].head.generation)) {
            best = i;
        }
        if (states[i].refused || (best < 0 && NULL != states[i].why.topic)) {
            *why = states[i].why;
        }
    }
    if (best < 0) {
        if (NULL == why->topic) {
            (void) opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-map-damaged", "no copy of it can be read");
        }
        return -1;
    }
    const opal_common_crypt_map_digest_t *head = &states[best].head;
    if (0 != memcmp(head->uuid, header_uuid, OPAL_CRYPT_UUID_BYTES) ||
        ((attribute->digest || attribute->verified) && 0 != memcmp(head->uuid, attribute->head.uuid, OPAL_CRYPT_UUID_BYTES))) {
        (void) opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-sidecar-other", "the UUIDs differ");
        return -1;
    }
    if (attribute->digest && (attribute->head.generation > head->generation ||
                              (attribute->head.generation == head->generation && !same_map(&attribute->head, head)))) {
        (void) opal_common_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-map-older", "the attribute knows generation %llu, "
                                        "the sidecar %llu", (unsigned long long) attribute->head.generation,
                                        (unsigned long long) head->generation);
        return -1;
    }
    *differ = !same_map(&attribute->head, head) ||
              (!same_map(&states[OPAL_CRYPT_COPY_SIDECAR_0].head, head) && !same_map(&states[OPAL_CRYPT_COPY_SIDECAR_1].head, head));
    return best;
}

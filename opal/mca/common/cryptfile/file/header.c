/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Header and map places as bytes, and the choice of the map.  No I/O.
 */
#include "header.h"
#include "opal/mca/common/crypt/base/le.h"

#include <assert.h>
#include <string.h>

#define get32 opal_crypt_le_get32

enum { MAGIC_BYTES = OPAL_CRYPTFILE_FILE_MAGIC_BYTES, UUID_AT = 24, GEOMETRY_AT = 40, CRC_AT = 80, ZEROS_AT = 84 };
enum { HEADER_VERSION = 1, HEADER_KIND = 1 };

static_assert(sizeof(OPAL_CRYPTFILE_FILE_MAGIC) == MAGIC_BYTES, "magic");
static_assert(UUID_AT + OPAL_CRYPTFILE_UUID_BYTES == GEOMETRY_AT && GEOMETRY_AT + OPAL_CRYPTFILE_GEOMETRY_BYTES == CRC_AT, "header");

#if defined(__x86_64__)
/* Whole words only; returns how many bytes those were. */
__attribute__((target("sse4.2"))) static size_t crc_words(uint32_t *crc, const uint8_t *at, size_t count)
{
    uint64_t word, wide = *crc;
    size_t done = 0;

    for (; count - done >= sizeof(word); done += sizeof(word)) {
        memcpy(&word, at + done, sizeof(word));
        wide = __builtin_ia32_crc32di(wide, word);
    }
    *crc = (uint32_t) wide;
    return done;
}
#endif

/* Four bits at a time, except for what the processor can do. */
uint32_t opal_cryptfile_crc(uint32_t before, const void *bytes, size_t count)
{
    static const uint32_t step[16] = {
        0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
        0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
    const uint8_t *at = bytes;
    uint32_t crc = ~before;
    size_t i = 0;

#if defined(__x86_64__)
    i = __builtin_cpu_supports("sse4.2") ? crc_words(&crc, at, count) : 0;
#endif
    for (; i < count; ++i) {
        crc ^= at[i];
        crc = crc >> 4 ^ step[crc & 15];
        crc = crc >> 4 ^ step[crc & 15];
    }
    return ~crc;
}

/* ---- header ---- */

void opal_cryptfile_header_write(const opal_cryptfile_header_t *header, uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES])
{
    memset(bytes, 0, OPAL_CRYPTFILE_HEADER_BYTES);
    memcpy(bytes, OPAL_CRYPTFILE_FILE_MAGIC, MAGIC_BYTES);
    opal_crypt_le_put16(bytes + MAGIC_BYTES, HEADER_VERSION);
    opal_crypt_le_put16(bytes + MAGIC_BYTES + 2, HEADER_KIND);
    memcpy(bytes + UUID_AT, header->uuid, OPAL_CRYPTFILE_UUID_BYTES);
    opal_cryptfile_geometry_write(&header->geometry, bytes + GEOMETRY_AT);
    opal_crypt_le_put32(bytes + CRC_AT, opal_cryptfile_crc(0, bytes, CRC_AT));
}

bool opal_cryptfile_header_magic(const uint8_t *bytes, size_t count)
{
    return count >= MAGIC_BYTES && 0 == memcmp(bytes, OPAL_CRYPTFILE_FILE_MAGIC, MAGIC_BYTES);
}

int opal_cryptfile_header_parse(const uint8_t *bytes, size_t count, opal_cryptfile_header_t *header)
{
    if (OPAL_CRYPTFILE_HEADER_BYTES != count || !opal_cryptfile_header_magic(bytes, count) ||
        get32(bytes + CRC_AT) != opal_cryptfile_crc(0, bytes, CRC_AT)) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    if (HEADER_VERSION != opal_crypt_le_get16(bytes + MAGIC_BYTES) || HEADER_KIND != opal_crypt_le_get16(bytes + MAGIC_BYTES + 2)) {
        return OPAL_CRYPT_ERR_CONFIG;
    }
    memcpy(header->uuid, bytes + UUID_AT, OPAL_CRYPTFILE_UUID_BYTES);
    return 0 == get32(bytes + MAGIC_BYTES + 4) && opal_crypt_all_zero(bytes + ZEROS_AT, count - ZEROS_AT)
               ? opal_cryptfile_geometry_parse(bytes + GEOMETRY_AT, &header->geometry) : OPAL_CRYPT_ERR_AUTH;
}

int opal_cryptfile_state_parse(const uint8_t bytes[4], const opal_cryptfile_geometry_t *geometry, uint64_t end,
                               opal_cryptfile_state_t *state)
{
    uint32_t value = get32(bytes);

    if (value > OPAL_CRYPTFILE_STATE_SEALED ||
        (OPAL_CRYPTFILE_STATE_MAKING == value && end > opal_cryptfile_geometry_end(geometry, 0))) {
        return OPAL_CRYPT_ERR_AUTH;
    }
    *state = (opal_cryptfile_state_t) value;
    return OPAL_CRYPT_OK;
}

/* ---- map places ---- */

void opal_cryptfile_place_write(const opal_cryptfile_map_t *map, uint8_t *bytes)
{
    size_t count = opal_cryptfile_map_bytes(map);

    opal_cryptfile_map_write(map, bytes);
    opal_crypt_le_put32(bytes + count, opal_cryptfile_crc(0, bytes, count));
}

size_t opal_cryptfile_place_peek(const uint8_t *bytes, const opal_cryptfile_geometry_t *geometry)
{
    opal_cryptfile_kind_t kind;
    size_t count = get32(bytes + 44);

    return OPAL_CRYPT_OK == opal_cryptfile_kind(bytes, OPAL_CRYPTFILE_MAP_HEAD_BYTES, &kind) && OPAL_CRYPTFILE_KIND_MAP == kind &&
           count <= geometry->map_bytes - 4 && count <= OPAL_CRYPTFILE_MAP_MAX_BYTES - 4 ? count : 0;
}

bool opal_cryptfile_place_whole(const uint8_t *bytes, size_t count, const opal_cryptfile_header_t *header)
{
    size_t map_bytes = count < OPAL_CRYPTFILE_MAP_HEAD_BYTES ? 0 : opal_cryptfile_place_peek(bytes, &header->geometry);

    return 0 != map_bytes && map_bytes + 4 <= count && get32(bytes + map_bytes) == opal_cryptfile_crc(0, bytes, map_bytes) &&
           0 == memcmp(bytes + 16, header->uuid, OPAL_CRYPTFILE_UUID_BYTES);
}

int opal_cryptfile_place_judge(const uint8_t *bytes, size_t count, const opal_cryptfile_header_t *header,
                               opal_cryptfile_keystore_t *keystore, const opal_cryptfile_copy_state_t *other,
                               opal_cryptfile_copy_state_t *state)
{
    int rc = OPAL_CRYPT_OK;

    memset(state, 0, sizeof(*state));
    if (opal_cryptfile_place_whole(bytes, count, header)) {
        rc = opal_cryptfile_copy_judge(bytes, opal_cryptfile_place_peek(bytes, &header->geometry),
                                       keystore, other, state);
    }
    state->present = true;
    return rc;
}

/* ---- choosing ---- */

/* Of equal bodies, the one in place 1 is used, which is written first and has the newer wrapped keys. */
static const opal_cryptfile_copy_t in_order[OPAL_CRYPTFILE_COPIES] = {OPAL_CRYPTFILE_COPY_PLACE_1, OPAL_CRYPTFILE_COPY_PLACE_0,
                                                                      OPAL_CRYPTFILE_COPY_ATTRIBUTE};

static bool is_of(const opal_cryptfile_copy_state_t *state, const opal_cryptfile_header_t *header)
{
    return (NULL != state->map || state->digest) && 0 == memcmp(state->head.uuid, header->uuid, OPAL_CRYPTFILE_UUID_BYTES);
}

static bool may_count(const opal_cryptfile_copy_state_t *state, const opal_cryptfile_header_t *header)
{
    return is_of(state, header) && NULL != state->map && state->verified && !state->refused;
}

static bool same_head(const opal_cryptfile_map_digest_t *a, const opal_cryptfile_map_digest_t *b)
{
    return a->generation == b->generation && 0 == memcmp(a->hash, b->hash, sizeof(a->hash));
}

/* Two maps that cannot both have been made for one file. */
static bool exclude(const opal_cryptfile_copy_state_t *a, const opal_cryptfile_copy_state_t *b)
{
    return !opal_cryptfile_geometry_same(&a->map->geometry, &b->map->geometry) ||
           (a->head.generation == b->head.generation && !same_head(&a->head, &b->head));
}

/* For two maps with the same body. */
static bool same_keys(const opal_cryptfile_map_t *a, const opal_cryptfile_map_t *b)
{
    for (uint32_t i = 0; i < a->region_count; ++i) {
        const opal_cryptfile_region_t *x = &a->regions[i], *y = &b->regions[i];
        if (x->encrypted && (x->wrapped->bytes != y->wrapped->bytes || 0 != memcmp(x->wrapped->blob, y->wrapped->blob, x->wrapped->bytes) ||
                             0 != memcmp(x->mac, y->mac, sizeof(x->mac)))) {
            return false;
        }
    }
    return true;
}

/* Is there another copy that says something else?  The attribute need not be there. */
static bool others_differ(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                          const opal_cryptfile_copy_state_t *best)
{
    bool differ = false;

    for (int i = 0; i < OPAL_CRYPTFILE_COPIES; ++i) {
        const opal_cryptfile_copy_state_t *state = &states[i];
        bool same = is_of(state, header) && same_head(&state->head, &best->head) && (state->digest || same_keys(state->map, best->map));
        differ = differ || (state != best && !same && (OPAL_CRYPTFILE_COPY_ATTRIBUTE != i || state->present));
    }
    return differ;
}

static int refuse_map(opal_crypt_why_t *why, const char *reason)
{
    return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-map-damaged", "%s", reason);
}

/* No copy counts. */
static int refuse_all(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                      opal_crypt_why_t *why)
{
    for (int pass = 0; pass < 2; ++pass) {      /* one without a key of ours, else one with a wrong MAC */
        for (int k = 0; k < OPAL_CRYPTFILE_COPIES; ++k) {
            const opal_cryptfile_copy_state_t *state = &states[in_order[k]];
            if (is_of(state, header) && NULL != state->map && state->refused == (1 == pass)) {
                *why = state->why;
                return state->refused ? OPAL_CRYPT_ERR_AUTH : OPAL_CRYPT_ERR_ACCESS;
            }
        }
    }
    return refuse_map(why, "no copy of it can be read");
}

/* One that does not rest on escrow alone goes first; of two alike, the newer one. */
static bool goes_before(const opal_cryptfile_copy_state_t *state, const opal_cryptfile_copy_state_t *best)
{
    return state->recovered != best->recovered ? best->recovered : state->head.generation > best->head.generation;
}

/* The best of those that count; NULL: none does. */
static int best_copy(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                     const opal_cryptfile_copy_state_t **best, opal_crypt_why_t *why)
{
    *best = NULL;
    for (int k = 0; k < OPAL_CRYPTFILE_COPIES; ++k) {
        const opal_cryptfile_copy_state_t *state = &states[in_order[k]];
        if (state->unasked && is_of(state, header)) {       /* it may be the newest */
            *why = state->why;
            return OPAL_CRYPT_ERR_ACCESS;
        }
        if (!may_count(state, header)) {
            continue;
        }
        for (int i = 0; i < k; ++i) {
            if (may_count(&states[in_order[i]], header) && exclude(state, &states[in_order[i]])) {
                return refuse_map(why, "two maps contradict each other");
            }
        }
        *best = NULL == *best || goes_before(state, *best) ? state : *best;
    }
    return OPAL_CRYPT_OK;
}

int opal_cryptfile_header_choose(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                                 opal_cryptfile_copy_t *chosen, bool *differ, opal_crypt_why_t *why)
{
    const opal_cryptfile_copy_state_t *attribute = &states[OPAL_CRYPTFILE_COPY_ATTRIBUTE], *best;

    if (!is_of(&states[OPAL_CRYPTFILE_COPY_PLACE_0], header) && !is_of(&states[OPAL_CRYPTFILE_COPY_PLACE_1], header)) {
        return refuse_map(why, "no place of the file has one");         /* the attribute alone opens nothing */
    }
    int rc = best_copy(states, header, &best, why);
    if (OPAL_CRYPT_OK != rc || NULL == best) {
        return OPAL_CRYPT_OK == rc ? refuse_all(states, header, why) : rc;
    }
    if (!opal_cryptfile_geometry_same(&best->map->geometry, &header->geometry)) {
        return refuse_map(why, "the header of the file has another geometry");
    }
    if (attribute->digest && is_of(attribute, header) && attribute->head.generation >= best->head.generation &&
        !same_head(&attribute->head, &best->head)) {
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_AUTH, "file-map-older", "the attribute knows generation %llu, the file %llu",
                                 (unsigned long long) attribute->head.generation, (unsigned long long) best->head.generation);
    }
    int unknown = opal_cryptfile_map_unknown(best->map);
    if (unknown >= 0) {                 /* an older map without it is not used either */
        return opal_crypt_refuse(why, OPAL_CRYPT_ERR_CONFIG, "file-map-extension", "type %d", unknown);
    }
    *chosen = (opal_cryptfile_copy_t) (best - states);
    *differ = others_differ(states, header, best);
    return OPAL_CRYPT_OK;
}

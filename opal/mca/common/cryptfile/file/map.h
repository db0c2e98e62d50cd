/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The map of an encrypted file: which bytes are encrypted with what, under
 * which label.  docs/file-format.rst, "Map".
 *
 *     | head 48 | region | region ... | extension ... | wrapped key, MAC | wrapped key, MAC ... |
 *     |<------------------- body -------------------->|<-- one for each encrypted region ------>|
 *
 * A map that was parsed is attacker's input until opal_cryptfile_map_unlock
 * has verified it; nothing else may be done with it before.
 *
 * Threads: one at a time, as long as the map may change.
 */
#ifndef OPAL_CRYPTFILE_FILE_MAP_H
#define OPAL_CRYPTFILE_FILE_MAP_H

#include "geometry.h"
#include "opal/mca/aead/aead_module.h"
#include "opal/mca/common/crypt/base/base.h"
#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/cryptfile/keystore/keystore.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_VERSION         1
#define OPAL_CRYPTFILE_MAGIC           "MPICRYPT"
#define OPAL_CRYPTFILE_MAGIC_BYTES     8
#define OPAL_CRYPTFILE_BLOCK_MIN            512u
#define OPAL_CRYPTFILE_BLOCK_MAX            (16u << 20)
#define OPAL_CRYPTFILE_REGIONS_MAX          4096u
#define OPAL_CRYPTFILE_RUNS_MAX             (1u << 20)  /* of all regions together */

#define OPAL_CRYPTFILE_MAP_HEAD_BYTES       48          /* the lengths are in these; the geometry follows */
#define OPAL_CRYPTFILE_MAP_REGIONS_AT       (OPAL_CRYPTFILE_MAP_HEAD_BYTES + OPAL_CRYPTFILE_GEOMETRY_BYTES)
#define OPAL_CRYPTFILE_MAP_REGION_BYTES     32
#define OPAL_CRYPTFILE_MAP_RUN_BYTES        16
#define OPAL_CRYPTFILE_MAP_MAC_BYTES        32
#define OPAL_CRYPTFILE_MAP_DIGEST_BYTES     80
#define OPAL_CRYPTFILE_EXTENSIONS_MAX_BYTES 65536u
#define OPAL_CRYPTFILE_MAP_MAX_BYTES        (32u << 20)  /* more than the limits above can fill */

/* What the kind field of a head says. */
typedef enum {
    OPAL_CRYPTFILE_KIND_MAP = 4,        /* 1 to 3 belonged to a format that was not released */
    OPAL_CRYPTFILE_KIND_DIGEST = 5
} opal_cryptfile_kind_t;

typedef struct opal_cryptfile_region {
    bool encrypted;
    opal_aead_cipher_t cipher;          /* these three only if encrypted */
    uint32_t block_bytes;
    char label[OPAL_CRYPTFILE_KEY_LABEL_MAX + 1];
    opal_cryptfile_tiling_t tiling;     /* no runs, and not encrypted: the rest */
    opal_cryptfile_wrapped_t *wrapped;          /* own memory; NULL for plain regions */
    uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES];
} opal_cryptfile_region_t;

typedef struct opal_cryptfile_map {
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    uint64_t generation;
    opal_cryptfile_geometry_t geometry; /* zeros: not chosen yet */
    uint32_t region_count;
    opal_cryptfile_region_t *regions;
    uint8_t *extensions;                /* own memory, as they stand in the body; NULL: none */
    size_t extension_bytes;
} opal_cryptfile_map_t;

/* ---- making one ---- */

/* An empty map with a fresh UUID, generation 0. */
int opal_cryptfile_map_create(opal_cryptfile_map_t **map);
void opal_cryptfile_map_destroy(opal_cryptfile_map_t *map);            /* NULL allowed */

/* What a caller asks for; the tiling remains the caller's. */
typedef struct opal_cryptfile_region_ask {
    bool encrypted;
    opal_aead_cipher_t cipher;
    uint32_t block_bytes;
    const char *label;
    const opal_cryptfile_tiling_t *tiling;      /* NULL, if plain: the rest */
} opal_cryptfile_region_ask_t;

/* Add a region; *region is its number.  An identical one that the map already
 * has is found and not added (*added false).  ERR_CONFIG with `why`: it
 * overlaps or contradicts another, its block size or label is invalid, or
 * there are too many. */
int opal_cryptfile_map_add(opal_cryptfile_map_t *map, const opal_cryptfile_region_ask_t *ask,
                           uint32_t *region, bool *added, opal_crypt_why_t *why);

/* The names of info keys and parameters: "aes-128-gcm" ...; a refused one
 * (ECB, CBC, XTS, 3DES ...) is ERR_CONFIG with the reason. */
int opal_cryptfile_algorithm_parse(const char *text, opal_aead_cipher_t *cipher,
                                   opal_crypt_why_t *why);
const char *opal_cryptfile_algorithm_name(opal_aead_cipher_t cipher);

/* ---- bytes ---- */

/* The sizes of the body and of the whole map, as written. */
size_t opal_cryptfile_map_body_bytes(const opal_cryptfile_map_t *map);
size_t opal_cryptfile_map_bytes(const opal_cryptfile_map_t *map);

/* Write that many bytes.  The whole map needs wrapped keys and MACs, which are
 * in `map` already; the body does not. */
void opal_cryptfile_map_body_write(const opal_cryptfile_map_t *map, uint8_t *bytes);
void opal_cryptfile_map_write(const opal_cryptfile_map_t *map, uint8_t *bytes);

/* Read exactly `count` bytes.  ERR_AUTH: they depart from the format. */
int opal_cryptfile_map_parse(const uint8_t *bytes, size_t count, opal_cryptfile_map_t **map);

/* Copy these extensions to a map that has none.  ERR_AUTH unless they are well-formed. */
int opal_cryptfile_map_extensions_set(opal_cryptfile_map_t *map, const uint8_t *bytes, size_t count);
/* The type of a critical extension that is not known here: the file must not be used.  -1: none. */
int opal_cryptfile_map_unknown(const opal_cryptfile_map_t *map);

/* What the attribute has when the map does not fit. */
typedef struct opal_cryptfile_map_digest {
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    uint64_t generation;
    uint8_t hash[OPAL_CRYPT_HASH_BYTES];
} opal_cryptfile_map_digest_t;

int opal_cryptfile_map_digest(const opal_cryptfile_map_t *map, opal_cryptfile_map_digest_t *digest);
void opal_cryptfile_map_digest_write(const opal_cryptfile_map_digest_t *digest, uint8_t bytes[OPAL_CRYPTFILE_MAP_DIGEST_BYTES]);
int opal_cryptfile_map_digest_parse(const uint8_t *bytes, size_t count, opal_cryptfile_map_digest_t *digest);

/* The kind that a head says it is; ERR_AUTH: unknown, or of another version. */
int opal_cryptfile_kind(const uint8_t *bytes, size_t count, opal_cryptfile_kind_t *kind);

/* ---- verification ---- */

/* MAC_i = HMAC(Expand(data key_i, 'file map', UUID), i || body). */
int opal_cryptfile_map_mac(const opal_cryptfile_map_t *map, uint32_t region,
                           const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                           uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES]);

/* ERR_AUTH unless MAC_i fits. */
int opal_cryptfile_map_check(const opal_cryptfile_map_t *map, uint32_t region,
                             const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES]);

/* The same, for many regions of a map: its body is written once.  The body is
 * malloc'd (free body->base), and the caller's. */
int opal_cryptfile_map_body(const opal_cryptfile_map_t *map, opal_crypt_input_t *body);
int opal_cryptfile_map_body_mac(const opal_cryptfile_map_t *map, const opal_crypt_input_t *body,
                                uint32_t region, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES],
                                uint8_t mac[OPAL_CRYPTFILE_MAP_MAC_BYTES]);
int opal_cryptfile_map_body_check(const opal_cryptfile_map_t *map, const opal_crypt_input_t *body,
                                  uint32_t region, const uint8_t data_key[OPAL_CRYPTFILE_DATA_KEY_BYTES]);

/* ---- looking up ---- */

/* Which region holds the byte at this offset: *region, its packed position
 * (equal to the offset in "the rest"), and for how many bytes this stays
 * so.  False: none (only *file_bytes is set).  *hint, 0 at first: the region found
 * last; it and those after it are tried first, since rows of a matrix follow one another. */
bool opal_cryptfile_map_find(const opal_cryptfile_map_t *map, uint32_t *hint, uint64_t file_offset,
                             uint32_t *region, uint64_t *plain, uint64_t *file_bytes);

#pragma GCC visibility pop

#endif

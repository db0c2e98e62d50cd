/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The start of an encrypted file, and which of its maps counts.
 * docs/file-format.rst.
 *
 *     header     | magic 16 | version 2 | kind 2 | 0 4 | UUID 16 | geometry 40 | CRC-32C 4 | 0 to 512 |
 *     map place  | map | CRC-32C 4 | anything |
 *
 * The header locates the maps, and is trusted for nothing else: its geometry is used for a size, a lock or a
 * write only once a verified map has the same one.
 */
#ifndef OPAL_CRYPTFILE_FILE_HEADER_H
#define OPAL_CRYPTFILE_FILE_HEADER_H

#include "unlock.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_HEADER_BYTES         512
#define OPAL_CRYPTFILE_FILE_MAGIC           "\x89MPICRYPT\r\n\x1a\n\0\0"   /* and the string's final 0 */
#define OPAL_CRYPTFILE_FILE_MAGIC_BYTES     16

typedef struct opal_cryptfile_header {
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    opal_cryptfile_geometry_t geometry;
} opal_cryptfile_header_t;

void opal_cryptfile_header_write(const opal_cryptfile_header_t *header, uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES]);

/* Does a file begin like one of ours? */
bool opal_cryptfile_header_magic(const uint8_t *bytes, size_t count);
/* Were these the first bytes of a map (kind 1), its digest (2), or a second file FILE.mpicrypt (3) of a development version? */
static inline bool opal_cryptfile_header_old(const uint8_t *bytes, size_t count)
{
    return count >= 12 && 0 == memcmp(bytes, "MPICRYPT\1\0", 10) && bytes[10] >= 1 && bytes[10] <= 3 && 0 == bytes[11];
}
/* ERR_CONFIG: of another version, whatever the rest says.  ERR_AUTH: not a header, or damaged. */
int opal_cryptfile_header_parse(const uint8_t *bytes, size_t count, opal_cryptfile_header_t *header);

/* The first 4 bytes of the seal record. */
typedef enum {
    OPAL_CRYPTFILE_STATE_MAKING = 0,
    OPAL_CRYPTFILE_STATE_OPEN = 1,
    OPAL_CRYPTFILE_STATE_SEALED = 2
} opal_cryptfile_state_t;

/* ERR_AUTH: a file F of this length cannot be in this state. */
int opal_cryptfile_state_parse(const uint8_t bytes[4], const opal_cryptfile_geometry_t *geometry, uint64_t end,
                               opal_cryptfile_state_t *state);

/* Continue the CRC-32C `before` (0: begin one) with these bytes. */
uint32_t opal_cryptfile_crc(uint32_t before, const void *bytes, size_t count);

/* ---- maps ---- */

/* Where a file has a copy of its map. */
typedef enum {
    OPAL_CRYPTFILE_COPY_ATTRIBUTE,
    OPAL_CRYPTFILE_COPY_PLACE_0,
    OPAL_CRYPTFILE_COPY_PLACE_1,
    OPAL_CRYPTFILE_COPIES
} opal_cryptfile_copy_t;

/* The bytes of a place that a map takes, at most m. */
static inline size_t opal_cryptfile_place_bytes(const opal_cryptfile_map_t *map)
{
    return opal_cryptfile_map_bytes(map) + 4;
}
void opal_cryptfile_place_write(const opal_cryptfile_map_t *map, uint8_t *bytes);

/* The length of the map in a place, from the place's first 48 bytes; 0: there is no map. */
size_t opal_cryptfile_place_peek(const uint8_t *bytes, const opal_cryptfile_geometry_t *geometry);
/* Are these bytes of a place a complete map of this file?  It is not verified. */
bool opal_cryptfile_place_whole(const uint8_t *bytes, size_t count, const opal_cryptfile_header_t *header);
/* Judge the map in a place from `count` bytes of it.  One that is incomplete or another file's is only `present`.
 * Returns ERR_MEMORY or OK. */
int opal_cryptfile_place_judge(const uint8_t *bytes, size_t count, const opal_cryptfile_header_t *header,
                               opal_cryptfile_keystore_t *keystore, const opal_cryptfile_copy_state_t *other, opal_cryptfile_copy_state_t *state);

/* Which copy counts, once `verified` and `refused` say what any process found; the places are those
 * of the file.  *differ: another copy differs, and must be replaced.  With `why`: ERR_AUTH;
 * ERR_ACCESS, no key of ours fits; ERR_CONFIG, the map has a critical extension that is not known here. */
int opal_cryptfile_header_choose(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                                 opal_cryptfile_copy_t *chosen, bool *differ, opal_crypt_why_t *why);

/* ---- on the storage (map_store.c) ---- */

/* Read the start of the file.  *magic: it is like one of ours; else the rest is not set,
 * and ERR_CONFIG says that it is the second file of a development version.  ERR_STORAGE, and the errors
 * of header_parse and state_parse. */
int opal_cryptfile_beginning_read(opal_cryptfile_storage_t *storage, bool *magic, opal_cryptfile_header_t *header,
                                  opal_cryptfile_state_t *state);
/* The same without the state, in one call to the storage: for a file whose state another process has checked. */
int opal_cryptfile_header_read(opal_cryptfile_storage_t *storage, bool *magic, opal_cryptfile_header_t *header);
/* As much of a place as place_judge wants; malloc'd.  NULL and 0: it has no map. */
int opal_cryptfile_place_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_header_t *header, unsigned place,
                              uint8_t **bytes, size_t *count);

/* Write the state, and sync it. */
int opal_cryptfile_state_put(opal_cryptfile_storage_t *storage, const opal_cryptfile_geometry_t *geometry, opal_cryptfile_state_t state);

/* The functions below need the maker's lock, or the map's. */

/* Give a file without data this map: header, places, length.  It may have been begun with another map, or be made anew.
 * Then the caller writes the attribute, and make_end makes the file valid.  The directory is up to the caller. */
int opal_cryptfile_make_begin(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map);
int opal_cryptfile_make_end(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map);

/* What a place has: this map, with the same wrapped keys; another whole map of this file; or neither. */
typedef enum {
    OPAL_CRYPTFILE_PLACE_HAS,
    OPAL_CRYPTFILE_PLACE_OTHER,
    OPAL_CRYPTFILE_PLACE_DAMAGED
} opal_cryptfile_place_t;
int opal_cryptfile_place_holds(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map, unsigned place,
                              opal_cryptfile_place_t *holds);

/* Replace `now`, the map that counts, by `next`.  A place that does not have `now` gets it first.  Then the caller writes
 * the attribute.  ERR_STORAGE with ENOSPC: it does not fit. */
int opal_cryptfile_map_replace(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *now, const opal_cryptfile_map_t *next);

#pragma GCC visibility pop

#endif

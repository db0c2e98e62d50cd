/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The beginning of an encrypted file that is one file, and which map counts there.
 * docs/design/012-one-file.rst, "The layout".
 *
 *     header     | magic 16 | version 2 | kind 2 | 0 4 | UUID 16 | geometry 40 | CRC-32C 4 | 0 to 512 |
 *     map place  | map | CRC-32C 4 | anything |
 *
 * The header locates the maps, and is believed for nothing else: its geometry gives a size, a lock or a
 * write only when a map that verifies has the same one.
 */
#ifndef OPAL_CRYPTFILE_FILE_HEADER_H
#define OPAL_CRYPTFILE_FILE_HEADER_H

#include "store.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_HEADER_BYTES         512
#define OPAL_CRYPTFILE_FILE_MAGIC           "\x89MPICRYPT\r\n\x1a\n\0\0"   /* and the 0 at its end */
#define OPAL_CRYPTFILE_FILE_MAGIC_BYTES     16

typedef struct opal_cryptfile_header {
    uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES];
    opal_cryptfile_geometry_t geometry;
} opal_cryptfile_header_t;

void opal_cryptfile_header_write(const opal_cryptfile_header_t *header, uint8_t bytes[OPAL_CRYPTFILE_HEADER_BYTES]);

/* Does a file begin like one of ours? */
bool opal_cryptfile_header_magic(const uint8_t *bytes, size_t count);
/* ERR_CONFIG: another version made it, whatever else it says.  ERR_AUTH: it is not one, or damaged. */
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

/* CRC-32C of what came before, whose CRC this is (0: nothing), and these bytes. */
uint32_t opal_cryptfile_crc(uint32_t before, const void *bytes, size_t count);

/* ---- maps ---- */

/* The bytes of a place: m at most, as many as this. */
static inline size_t opal_cryptfile_place_bytes(const opal_cryptfile_map_t *map)
{
    return opal_cryptfile_map_bytes(map) + 4;
}
void opal_cryptfile_place_write(const opal_cryptfile_map_t *map, uint8_t *bytes);

/* How many bytes the map in a place has, from the place's first 48 bytes; 0: there is none. */
size_t opal_cryptfile_place_peek(const uint8_t *bytes, const opal_cryptfile_geometry_t *geometry);
/* Judge the map in a place, given so much of it.  What is not whole or not this file's is present, and nothing else.
 * Returns ERR_MEMORY or OK. */
int opal_cryptfile_place_judge(const uint8_t *bytes, size_t count, const opal_cryptfile_header_t *header,
                               opal_cryptfile_keystore_t *keystore, opal_cryptfile_copy_state_t *state);

/* Which copy counts, once `verified` and `refused` say what any process found; SIDECAR_0 and _1 are the
 * places.  *differ: another copy does not say the same, and is to be replaced.  With `why`: ERR_AUTH;
 * ERR_ACCESS, no key of ours fits; ERR_CONFIG, the map has a critical extension that is not known here. */
int opal_cryptfile_header_choose(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES], const opal_cryptfile_header_t *header,
                                 opal_cryptfile_copy_t *chosen, bool *differ, opal_crypt_why_t *why);

/* ---- on the storage (places.c) ---- */

/* How the file begins.  *magic: like one of ours; else the rest is not set.  ERR_STORAGE, and the errors of header_parse and
 * state_parse. */
int opal_cryptfile_beginning_read(opal_cryptfile_storage_t *storage, bool *magic, opal_cryptfile_header_t *header,
                                  opal_cryptfile_state_t *state);
/* As much of a place as place_judge wants; malloc'd.  NULL and 0: it has no map. */
int opal_cryptfile_place_read(opal_cryptfile_storage_t *storage, const opal_cryptfile_header_t *header, unsigned place,
                              uint8_t **bytes, size_t *count);

/* To write the state, and to see it on the storage. */
int opal_cryptfile_state_put(opal_cryptfile_storage_t *storage, const opal_cryptfile_geometry_t *geometry, opal_cryptfile_state_t state);

/* What follows is under the maker's lock, or that of the map. */

/* A file without data gets this map: header, places, length.  `before`: the geometry of one that was made before in the same
 * place; or NULL.  Then comes the attribute, then the end, and with it the file counts.  The directory is the caller's. */
int opal_cryptfile_make_begin(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map, const opal_cryptfile_geometry_t *before);
int opal_cryptfile_make_end(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map);

/* The next map takes the place of the one that counts now, which these places have, whole.  Then comes the attribute.
 * ERR_STORAGE with ENOSPC: it does not fit. */
int opal_cryptfile_places_change(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *now, const bool has[2],
                                 const opal_cryptfile_map_t *next);

#pragma GCC visibility pop

#endif

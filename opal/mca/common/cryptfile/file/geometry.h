/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where everything lies in an encrypted file.
 * docs/file-format.rst.  Arithmetic only: no I/O, no keys.
 *
 *     F     = | header area H | group 0 | group 1 | ...         group g starts at H + g G
 *     group = | control T | data D |                            D = G - T
 *
 *     control = | 8,192 | tables of the seal | heads of rooms | ... | ciphertext of rooms | entries |
 *
 * A geometry that was parsed is within bounds, so that nothing here overflows; an offset must be below
 * geometry_most, and a group, an entry or a room must be one that the geometry has.
 */
#ifndef OPAL_CRYPTFILE_FILE_GEOMETRY_H
#define OPAL_CRYPTFILE_FILE_GEOMETRY_H

#include "region.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_GEOMETRY_BYTES   40
#define OPAL_CRYPTFILE_END_MAX          (UINT64_C(1) << 61)     /* of F: locks are beyond it */
#define OPAL_CRYPTFILE_ENTRY_BYTES 128u   /* slot, slot, what was sealed */
#define OPAL_CRYPTFILE_REDO_ROOMS_MAX  32u

typedef struct opal_cryptfile_geometry {
    uint64_t group_bytes, control_bytes, header_bytes;  /* G, T, H; G is 0: not chosen yet */
    uint32_t map_bytes, entries, redo_rooms, redo_bytes; /* m, N, W, b */
} opal_cryptfile_geometry_t;

void opal_cryptfile_geometry_write(const opal_cryptfile_geometry_t *geometry, uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES]);
/* ERR_AUTH: it is out of bounds. */
int opal_cryptfile_geometry_parse(const uint8_t bytes[OPAL_CRYPTFILE_GEOMETRY_BYTES], opal_cryptfile_geometry_t *geometry);

bool opal_cryptfile_geometry_same(const opal_cryptfile_geometry_t *a, const opal_cryptfile_geometry_t *b);

/* D */
static inline uint64_t opal_cryptfile_geometry_data(const opal_cryptfile_geometry_t *geometry)
{
    return geometry->group_bytes - geometry->control_bytes;
}

/* ---- bytes ---- */

/* The most bytes that a file can have. */
uint64_t opal_cryptfile_geometry_most(const opal_cryptfile_geometry_t *geometry);
uint64_t opal_cryptfile_geometry_place(const opal_cryptfile_geometry_t *geometry, uint64_t offset);
/* The length of F for a file of this size, and the size of a file for a length of F. */
uint64_t opal_cryptfile_geometry_end(const opal_cryptfile_geometry_t *geometry, uint64_t bytes);
uint64_t opal_cryptfile_geometry_size(const opal_cryptfile_geometry_t *geometry, uint64_t end);

/* ---- header area ---- */

uint64_t opal_cryptfile_geometry_map_at(const opal_cryptfile_geometry_t *geometry, unsigned place);
uint64_t opal_cryptfile_geometry_seal_at(const opal_cryptfile_geometry_t *geometry);
/* How many roots fit into the seal record. */
uint32_t opal_cryptfile_geometry_roots(const opal_cryptfile_geometry_t *geometry);

/* ---- control areas; rooms count from 1 ---- */

uint64_t opal_cryptfile_geometry_entry_at(const opal_cryptfile_geometry_t *geometry, uint64_t group, uint64_t entry);
uint64_t opal_cryptfile_geometry_head_at(const opal_cryptfile_geometry_t *geometry, uint64_t group, uint32_t redo);
uint64_t opal_cryptfile_geometry_redo_at(const opal_cryptfile_geometry_t *geometry, uint64_t group, uint32_t redo);
/* `level`: 1 to 4. */
uint64_t opal_cryptfile_geometry_table_at(const opal_cryptfile_geometry_t *geometry, unsigned level, uint64_t node);

/* The byte that is locked for the block with this entry, and for the room with this head. */
static inline uint64_t opal_cryptfile_geometry_entry_lock(uint64_t entry_at)
{
    return (UINT64_C(1) << 62) + entry_at / OPAL_CRYPTFILE_ENTRY_BYTES;
}

static inline uint64_t opal_cryptfile_geometry_head_lock(uint64_t head_at)
{
    return (UINT64_C(1) << 62) + (UINT64_C(1) << 60) + head_at / OPAL_CRYPTFILE_ENTRY_BYTES;
}

/* ---- a region's blocks.  The region is one of a map that fits: B divides D ---- */

/* Where a byte of a region stands: the group's number x D, plus the region's bytes before it in the group.  Divided
 * by B this is the number of its block.  For an offset outside the region: where the region's next byte in the
 * group stands, or the group's end. */
uint64_t opal_cryptfile_geometry_stand(const opal_cryptfile_geometry_t *geometry, const opal_cryptfile_tiling_t *tiling,
                                       uint64_t offset);
/* The inverse: the offset of the byte that stands there, and how many bytes from there on are contiguous
 * within the group.  False: no byte stands there. */
bool opal_cryptfile_geometry_locate(const opal_cryptfile_geometry_t *geometry, const opal_cryptfile_tiling_t *tiling,
                                    uint64_t stand, uint64_t *offset, uint64_t *together);
/* The bytes and the blocks of a region in a group. */
uint64_t opal_cryptfile_geometry_bytes(const opal_cryptfile_geometry_t *geometry, const opal_cryptfile_tiling_t *tiling, uint64_t group);
uint64_t opal_cryptfile_geometry_blocks(const opal_cryptfile_geometry_t *geometry, const opal_cryptfile_tiling_t *tiling,
                                        uint32_t block_bytes, uint64_t group);

/* ---- all regions of a map ---- */

struct opal_cryptfile_map;

/* Choose a good geometry for a map's regions, and for the map itself, which then has `map_bytes` bytes and may double
 * in size (geometry_choose.c).  Needs an encrypted region; ERR_MEMORY. */
int opal_cryptfile_geometry_choose(struct opal_cryptfile_map *map, size_t map_bytes);
/* A: the most encrypted regions whose intervals, from first to last byte, touch one and the same group. */
int opal_cryptfile_geometry_active(const struct opal_cryptfile_map *map, uint64_t *most);

/* Does the geometry of a map fit its regions and its own size in bytes?  ERR_AUTH, ERR_MEMORY. */
int opal_cryptfile_geometry_fits(const struct opal_cryptfile_map *map, size_t map_bytes);

/* The index of a block's entry in its group. */
uint64_t opal_cryptfile_geometry_entry(const struct opal_cryptfile_map *map, uint32_t region, uint64_t block);

#pragma GCC visibility pop

#endif

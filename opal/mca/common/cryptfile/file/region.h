/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which bytes of a file belong to a region, and where each of them stands in
 * the region's packed stream.  Arithmetic only: no I/O, no keys.
 *
 *     file    |..aaaa....aa|..aaaa....aa|..aaaa     displacement 2, extent 12,
 *     packed    0123    45   6789    01   2345      runs (0,4) (8,2)
 *
 * Units are bytes.  file_ offsets count from the start of the file, plain_
 * positions from the start of the packed stream.
 */
#ifndef OPAL_CRYPTFILE_FILE_REGION_H
#define OPAL_CRYPTFILE_FILE_REGION_H

#include "opal/mca/common/crypt/base/base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPTFILE_OFFSET_MAX INT64_MAX      /* MPI_Offset and off_t are signed */

/* A run of a tile; `packed` is where it starts in the tile's packed bytes. */
typedef struct opal_cryptfile_run {
    uint64_t offset, bytes, packed;
} opal_cryptfile_run_t;

static inline uint64_t opal_cryptfile_run_end(const opal_cryptfile_run_t *run)
{
    return run->offset + run->bytes;
}

/* The bytes that a region describes, in canonical form (docs/file-format.rst).
 * run_count 0: the rest of the file. */
typedef struct opal_cryptfile_tiling {
    uint64_t displacement, extent;
    uint64_t tile_bytes;                /* sum of the runs */
    bool once;
    uint32_t run_count;
    opal_cryptfile_run_t *runs;         /* own memory */
} opal_cryptfile_tiling_t;

/* Bring a filetype into canonical form: `runs` (which may touch, with offsets
 * that do not decrease; `packed` is ignored) repeated every `extent` bytes from
 * `displacement` on, or once.  Copies.  ERR_CONFIG with `why` for what cannot
 * be a region: no bytes, bytes described twice, offsets that decrease or are
 * beyond 2^63. */
int opal_cryptfile_tiling_make(opal_cryptfile_tiling_t *tiling, uint64_t displacement,
                               uint64_t extent, bool once,
                               const opal_cryptfile_run_t *runs, uint32_t run_count,
                               opal_crypt_why_t *why);
void opal_cryptfile_tiling_free(opal_cryptfile_tiling_t *tiling);

/* True if the fields are what tiling_make would make; fills packed and
 * tile_bytes.  For what was read from storage. */
bool opal_cryptfile_tiling_check(opal_cryptfile_tiling_t *tiling);

bool opal_cryptfile_tiling_same(const opal_cryptfile_tiling_t *a,
                                const opal_cryptfile_tiling_t *b);

/* The greatest common divisor. */
uint64_t opal_cryptfile_gcd(uint64_t a, uint64_t b);

/* ERR_MEMORY, 0 (disjoint) or 1 (a byte is in both).  Not for "the rest". */
int opal_cryptfile_tiling_overlap(const opal_cryptfile_tiling_t *a,
                                  const opal_cryptfile_tiling_t *b);

/* How many bytes of the region lie before this offset; it is also the packed
 * position of the first region byte at or after it. */
uint64_t opal_cryptfile_tiling_before(const opal_cryptfile_tiling_t *tiling,
                                      uint64_t file_offset);

/* Where the byte at `plain` of the packed stream lies, and how many bytes from
 * there on are contiguous in the file (UINT64_MAX: all).  False if a region of
 * one tile has no such byte. */
bool opal_cryptfile_tiling_locate(const opal_cryptfile_tiling_t *tiling, uint64_t plain,
                                  uint64_t *file_offset, uint64_t *file_bytes);

/* Is the byte at this offset in the region?  If so *plain is its packed
 * position; *file_bytes is how far from here the answer stays the same
 * (UINT64_MAX: for ever). */
bool opal_cryptfile_tiling_find(const opal_cryptfile_tiling_t *tiling, uint64_t file_offset,
                                uint64_t *plain, uint64_t *file_bytes);

#pragma GCC visibility pop

#endif

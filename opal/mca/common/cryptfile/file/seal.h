/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The seal of a file: what single blocks cannot show, namely that each is the
 * newest of its versions, that none was turned into a hole, and that the end is
 * where it was.  docs/file-format.rst, "Seal".
 *
 * Processes that hold its keys seal a file while nobody writes; opening it for
 * writing ends that, after everything was checked against the seal.  A reader
 * that demands the seal checks record and tables once, and every page whenever it reads
 * entries of it.  A job that seals what it wrote keeps track of what that is.
 */
#ifndef OPAL_CRYPTFILE_FILE_SEAL_H
#define OPAL_CRYPTFILE_FILE_SEAL_H

#include "file.h"

#pragma GCC visibility push(default)

/* ---- sealing: see seal_tree.h ---- */

/* The root of a region that this process made (false: it did not); and take over another process's. */
bool opal_cryptfile_seal_root_of(const opal_cryptfile_t *file, uint32_t region, uint8_t root[OPAL_CRYPT_HASH_BYTES]);
void opal_cryptfile_seal_root_take(opal_cryptfile_t *file, uint32_t region, const uint8_t root[OPAL_CRYPT_HASH_BYTES]);

/* The hash for the user, of these roots and, for other regions, of the stored ones; and as text. */
int opal_cryptfile_seal_hash(opal_cryptfile_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);
#define OPAL_CRYPTFILE_SEAL_TEXT_BYTES (2 * OPAL_CRYPT_HASH_BYTES + 1)
void opal_cryptfile_seal_text(const uint8_t hash[OPAL_CRYPT_HASH_BYTES], char text[OPAL_CRYPTFILE_SEAL_TEXT_BYTES]);
bool opal_cryptfile_seal_parse(const char *text, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);

/* ---- demanding ---- */

/* From now on only what was sealed can be read.  `wanted`: the hash
 * that the user kept, or NULL.  ERR_AUTH with `why`: there is no seal, or the
 * file is not what was sealed. */
int opal_cryptfile_seal_demand(opal_cryptfile_t *file, const uint8_t *wanted, opal_crypt_why_t *why);

/* The length of the sealed file.  False: no seal was demanded, and `bytes` is unchanged. */
bool opal_cryptfile_sealed_bytes(const opal_cryptfile_t *file, uint64_t *bytes);
/* The hash for the user of the seal that was demanded, and verified.  False: none was. */
bool opal_cryptfile_sealed_hash(const opal_cryptfile_t *file, uint8_t hash[OPAL_CRYPT_HASH_BYTES]);

/* ---- watching: a job writes, and seals at the end ---- */

/* Watch from now on; the file has `data_bytes` bytes.  Called once. */
void opal_cryptfile_seal_watch(opal_cryptfile_t *file, uint64_t data_bytes);
/* A process cut the file to this size or, if `done` is false, may have done a part of that: what was beyond is no
 * longer expected. */
void opal_cryptfile_seal_cut(opal_cryptfile_t *file, uint64_t data_bytes, bool done);

/* What this process knows, malloc'd, for those that seal ... */
int opal_cryptfile_seal_witnesses(opal_cryptfile_t *file, uint8_t **bytes, size_t *count);
/* ... and all processes' together, before tree_accept. */
int opal_cryptfile_seal_witnessed(opal_cryptfile_t *file, uint32_t region, const uint8_t *bytes, size_t count);

#pragma GCC visibility pop

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the map of a file is kept, and which of its copies is believed.
 *
 *     attribute  | map, or its digest |        sidecar  | header, map slot, map slot |
 *         \            three copies as bytes            /
 *          parse, unlock with whatever labels this process holds, choose
 *
 * What is read is attacker's input until a key that this process holds has
 * verified it.
 */
#ifndef OPAL_CRYPTFILE_FILE_STORE_H
#define OPAL_CRYPTFILE_FILE_STORE_H

#include "file.h"

#pragma GCC visibility push(default)

typedef enum {
    OPAL_CRYPTFILE_COPY_ATTRIBUTE,
    OPAL_CRYPTFILE_COPY_SIDECAR_0,
    OPAL_CRYPTFILE_COPY_SIDECAR_1,
    OPAL_CRYPTFILE_COPIES
} opal_cryptfile_copy_t;

/* ---- the sidecar's header ---- */

/* A new, empty one for this map's UUID. */
int opal_cryptfile_sidecar_create(opal_cryptfile_storage_t *storage, const uint8_t uuid[OPAL_CRYPTFILE_UUID_BYTES]);

int opal_cryptfile_sidecar_read(opal_cryptfile_storage_t *storage, opal_cryptfile_sidecar_header_t *header);

/* Is everything there that header and directories name?  A sidecar grows before anything refers to the new part: so a
 * shorter one was cut, and its blocks must not be taken for unwritten.  ERR_AUTH with `why`: it was cut. */
int opal_cryptfile_sidecar_whole(opal_cryptfile_storage_t *storage, const opal_cryptfile_sidecar_header_t *header,
                                 const opal_cryptfile_map_t *map, opal_crypt_why_t *why);

/* Copy what counts in a sidecar to a new, empty one; nobody may use the file, and no block may be behind. */
int opal_cryptfile_sidecar_compact(opal_cryptfile_storage_t *from, opal_cryptfile_storage_t *to,
                                   const opal_cryptfile_map_t *map);

/* The bytes of map slot 0 or 1; NULL and 0: it is empty. */
int opal_cryptfile_sidecar_map_read(opal_cryptfile_storage_t *storage,
                                    const opal_cryptfile_sidecar_header_t *header, int slot,
                                    uint8_t **bytes, size_t *count);

/* Put a map into the slot that is not `keep`, which holds the one that counted
 * so far (-1: none does). */
int opal_cryptfile_sidecar_map_write(opal_cryptfile_storage_t *storage, const opal_cryptfile_map_t *map,
                                     int keep);

/* Write "open" if it says "sealed". */
int opal_cryptfile_sidecar_unseal(opal_cryptfile_storage_t *storage);

/* ---- keys ---- */

/* Data keys of all regions whose label the keystore grants, and the map's MACs
 * checked with each.  `keys` has room for every region: zeros, or a key that
 * the caller has already, from making the region or from an earlier state of
 * this map that was verified.  One MAC is checked with those: it covers the
 * whole body.  ERR_AUTH: a MAC or a wrapped key does not fit; the map is
 * refused.  ERR_ACCESS: there is no key to check with.  `why` says more. */
int opal_cryptfile_map_unlock(const opal_cryptfile_map_t *map, opal_cryptfile_keystore_t *keystore,
                              opal_cryptfile_key_t *keys, opal_crypt_why_t *why);

/* Draw and wrap a data key for region `region`. */
int opal_cryptfile_map_lock(opal_cryptfile_map_t *map, uint32_t region, opal_cryptfile_keystore_t *keystore,
                            opal_cryptfile_key_t *key, opal_crypt_why_t *why);

void opal_cryptfile_keys_free(opal_cryptfile_key_t *keys, uint32_t count);                 /* wipes them */

/* ---- choosing ---- */

/* One copy, as far as this process can tell. */
typedef struct opal_cryptfile_copy_state {
    opal_cryptfile_map_t *map;          /* own; NULL: absent, a digest, or unreadable */
    opal_cryptfile_key_t *keys; /* own; for each of its regions */
    bool present;                       /* there are bytes */
    bool digest;                        /* they are a digest, which is in `head` */
    opal_cryptfile_map_digest_t head;
    bool verified;                      /* a key of ours fits */
    bool recovered;                     /* a key came from escrow alone, which proves nothing (mpicrypt) */
    bool refused;                       /* a key of ours does not */
    opal_crypt_why_t why;
} opal_cryptfile_copy_state_t;

/* Parse a copy, as a map of this kind or its digest, and unlock it; what is wrong with it is in the
 * state.  Returns ERR_MEMORY or OK. */
int opal_cryptfile_copy_judge_kind(const uint8_t *bytes, size_t count, opal_cryptfile_kind_t kind,
                                   opal_cryptfile_keystore_t *keystore, opal_cryptfile_copy_state_t *state);

static inline int opal_cryptfile_copy_judge(const uint8_t *bytes, size_t count, opal_cryptfile_keystore_t *keystore,
                                            opal_cryptfile_copy_state_t *state)
{
    return opal_cryptfile_copy_judge_kind(bytes, count, OPAL_CRYPTFILE_KIND_MAP, keystore, state);
}
/* Give a copy with the same bytes as a judged one the same verdict.  Map and
 * keys stay with that one, which comes first when one is chosen. */
void opal_cryptfile_copy_again(const opal_cryptfile_copy_state_t *of, opal_cryptfile_copy_state_t *state);
void opal_cryptfile_copy_free(opal_cryptfile_copy_state_t *state);

/* The copy to use, once `verified` and `refused` say what any process found.
 * -1 with `why`: none.  *differ: the attribute or the other slot
 * differs, and must be replaced. */
int opal_cryptfile_copy_choose(const opal_cryptfile_copy_state_t states[OPAL_CRYPTFILE_COPIES],
                               const uint8_t header_uuid[OPAL_CRYPTFILE_UUID_BYTES], bool *differ,
                               opal_crypt_why_t *why);

#pragma GCC visibility pop

#endif

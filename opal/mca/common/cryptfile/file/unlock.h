/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A map's keys, and what this process can tell of one copy of a map.  What is read is attacker's input until a
 * key that this process holds has verified it.
 */
#ifndef OPAL_CRYPTFILE_FILE_UNLOCK_H
#define OPAL_CRYPTFILE_FILE_UNLOCK_H

#include "file.h"

#pragma GCC visibility push(default)

/* ---- keys ---- */

/* Data keys of all regions whose label the keystore grants, and the map's MACs
 * checked with each.  `keys` has room for every region: zeros, or a key that
 * the caller has already, from making the region or from an earlier state of
 * this map that was verified.  One MAC is checked with those: it covers the
 * whole body.  ERR_AUTH: a MAC or a wrapped key does not fit; the map is
 * refused.  ERR_ACCESS: there is no key to check with.  ERR_PEER: a key server did not say whether there is one.  `why` says more. */
int opal_cryptfile_map_unlock(const opal_cryptfile_map_t *map, opal_cryptfile_keystore_t *keystore,
                              opal_cryptfile_key_t *keys, opal_crypt_why_t *why);

/* Draw and wrap a data key for region `region`. */
int opal_cryptfile_map_lock(opal_cryptfile_map_t *map, uint32_t region, opal_cryptfile_keystore_t *keystore,
                            opal_cryptfile_key_t *key, opal_crypt_why_t *why);

void opal_cryptfile_keys_free(opal_cryptfile_key_t *keys, uint32_t count);                 /* wipes them */

/* ---- copies; header_choose says which one counts ---- */

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
    bool unasked;                       /* the key server did not say: the file has no map that counts, for now */
    opal_crypt_why_t why;
} opal_cryptfile_copy_state_t;

/* Parse a copy, as a map or its digest, and unlock it; what is wrong with it is in the state.  Returns ERR_MEMORY or OK.
 * `other`: NULL, or a copy that was judged before: the keystore is not asked again for wrapped keys that are the same, of
 * regions with the same MACs; nor for any of a map with the same body, if the key server did not say (`unasked`). */
int opal_cryptfile_copy_judge(const uint8_t *bytes, size_t count, opal_cryptfile_keystore_t *keystore,
                              const opal_cryptfile_copy_state_t *other, opal_cryptfile_copy_state_t *state);
void opal_cryptfile_copy_free(opal_cryptfile_copy_state_t *state);

#pragma GCC visibility pop

#endif

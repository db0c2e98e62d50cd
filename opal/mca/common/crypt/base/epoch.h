/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The keys of one direction, epoch by epoch.
 *
 *     counter --(>> shift)--> epoch --Expand--> AEAD key, IV, chopping key
 *
 * Every epoch can be derived at any time and in any order; the newest few are kept.  To seal or open, a caller holds
 * an epoch for the length of one call:
 *
 *     hold --> seal or open --> release(authentic?)
 *
 * An epoch derived because a frame from the network named it is kept only if that frame verified; otherwise it is
 * wiped, and no kept epoch was evicted.
 *
 * Threads: any number may hold, release and thus replace epochs at once; crypt/base/epoch.c begins with the proof that
 * this is safe.  If the process has declared a single thread (opal_crypt_threads), holders are counted without
 * atomics, unless these are `always_shared`.
 */
#ifndef OPAL_CRYPT_BASE_EPOCH_H
#define OPAL_CRYPT_BASE_EPOCH_H

#include "base.h"
#include "nonce_log.h"
#include "opal/mca/aead/aead_module.h"

#define OPAL_CRYPT_EPOCH_SHIFT  20
#define OPAL_CRYPT_EPOCH_SEATS  3

/* One epoch; lives in crypt_secmem, followed by the expanded key. */
typedef struct opal_crypt_epoch {
    uint8_t chop[OPAL_AEAD_KEY_MAX_BYTES];  /* the chopping key K */
    uint64_t number;
    uint8_t iv[OPAL_AEAD_NONCE_BYTES];
    uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES]; /* test builds: names the AEAD key in the nonce log */
    _Alignas(OPAL_AEAD_KEY_ALIGN) uint8_t key[];
} opal_crypt_epoch_t;

/* Fill raw, iv and chop of `epoch->number` from `parent`. */
typedef int (*opal_crypt_derive_fn_t)(const void *parent, opal_aead_cipher_t cipher,
                                      opal_crypt_epoch_t *epoch, uint8_t *raw);

typedef struct opal_crypt_seat {
    uint64_t word;                          /* | epoch + 1, 49 bits | holders 15 bits |; 0: empty */
    opal_crypt_epoch_t *epoch;
} opal_crypt_seat_t;

typedef struct opal_crypt_epochs {
    opal_crypt_seat_t seats[OPAL_CRYPT_EPOCH_SEATS];
    const opal_aead_module_t *aead;
    opal_aead_cipher_t cipher;
    opal_crypt_derive_fn_t derive;
    const void *parent;                     /* must live at least as long */
    bool always_shared;                     /* regardless of opal_crypt_threads */
} opal_crypt_epochs_t;

typedef struct opal_crypt_hold {
    const opal_crypt_epoch_t *epoch;
    opal_crypt_seat_t *seat;                /* NULL: `epoch` is the holder's own */
} opal_crypt_hold_t;

void opal_crypt_epochs_init(opal_crypt_epochs_t *epochs,
                            const opal_aead_module_t *aead, opal_aead_cipher_t cipher,
                            opal_crypt_derive_fn_t derive, const void *parent,
                            bool always_shared);

/* Wipes all; no epoch may be held any more. */
void opal_crypt_epochs_fini(opal_crypt_epochs_t *epochs);

/* Wipes those that nobody holds, to give back their memory: they may not be needed for long. */
void opal_crypt_epochs_rest(opal_crypt_epochs_t *epochs);

int opal_crypt_epoch_hold(opal_crypt_epochs_t *epochs, uint64_t number,
                          opal_crypt_hold_t *hold);

/* `keep`: this epoch is known to be in use (we seal under it, or a tag of the
 * peer verified under it). */
void opal_crypt_epoch_release(opal_crypt_epochs_t *epochs,
                              opal_crypt_hold_t *hold, bool keep);

#endif

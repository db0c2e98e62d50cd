/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The internals of the subkey of one chopped message.  Its operations are in crypt/wire/frame.h.
 */
#ifndef OPAL_CRYPT_WIRE_CHOP_H
#define OPAL_CRYPT_WIRE_CHOP_H

#include "session_object.h"

/* In crypt_secmem, followed by the expanded subkey. */
struct opal_crypt_chop {
    uint8_t derived[3 * 16];                /* subkey || prefix; the subkey only until expanded */
    uint8_t prefix[OPAL_CRYPT_PREFIX_BYTES];
    bool sealing;                           /* made by first_seal: may seal, must not open */
    const opal_aead_module_t *aead;
    opal_crypt_shape_t shape;
    uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES]; /* test builds: names the subkey in the nonce log */
    size_t block_bytes;
    struct opal_crypt_chop *next;           /* in the pool */
    _Alignas(OPAL_AEAD_KEY_ALIGN) uint8_t key[];
};

/* Derive the subkey of the message with this counter; end it with opal_crypt_chop_end.  crypt/wire/chop_key.c. */
int opal_crypt_chop_make(const opal_crypt_session_t *session,
                         const opal_crypt_epoch_t *epoch, uint64_t counter, opal_crypt_chop_t **made);

/* Free the pool of ended chops. */
void opal_crypt_chop_finalize(void);

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The box: the only place that calls a provider.  Whatever is sealed or opened, a frame, a piece or a block, fills one
 * in: which key, which nonce, and which additional data.
 *
 *     box_seal     forked? --> log (key, nonce) --> provider --> count
 *     box_open     forked? --> provider --> count, or wipe
 *
 * Most keys belong to an epoch of a counter.  box_seal_at and box_open_at hold that epoch during the call and make its
 * nonce; for other keys the caller supplies both.
 *
 * Threads: any, on disjoint buffers.
 */
#ifndef OPAL_CRYPT_BASE_BOX_H
#define OPAL_CRYPT_BASE_BOX_H

#include "epoch.h"
#include "nonce.h"
#include "nonce_log.h"
#include "thread.h"

#pragma GCC visibility push(default)

typedef struct opal_crypt_box {
    const opal_aead_module_t *aead;
    const void *key;                        /* in the provider's expanded form */
    const uint8_t *id;                      /* test builds: names the key in the nonce log */
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES];
    const void *bound;                      /* additional data */
    size_t bound_bytes;
    bool trial;                             /* a wrong tag is no sign of an attack */
} opal_crypt_box_t;

/* Writes `bytes` to `cipher`, and the tag.  ERR_FORKED, ERR_MEMORY, ERR_LIBRARY: writes nothing, or zeros. (key,
 * nonce) has been used then, and never is again: the caller has taken a counter. */
int opal_crypt_box_seal(const opal_crypt_box_t *box, const void *plain, size_t bytes, void *cipher,
                        uint8_t tag[OPAL_AEAD_TAG_BYTES]);

/* Writes `bytes` to `plain`: the plaintext or, on any error, zeros.  ERR_AUTH: the tag is wrong; counted as a failure
 * unless this is a trial. */
int opal_crypt_box_open(const opal_crypt_box_t *box, const void *cipher, size_t bytes,
                        const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain);

/* The same for several pieces.  Only with a provider that can do this: seal_joined is not NULL. */
int opal_crypt_box_seal_joined(const opal_crypt_box_t *box, const opal_aead_piece_t *plain, int count, void *cipher,
                               uint8_t tag[OPAL_AEAD_TAG_BYTES]);

/* The same with the key and IV of `counter`: the caller fills in aead and bound, and the rest is found here.  An epoch
 * under which nothing opens is discarded at once. */
int opal_crypt_box_seal_at(opal_crypt_box_t *box, opal_crypt_epochs_t *epochs, unsigned shift, uint64_t counter,
                           const void *plain, size_t bytes, void *cipher, uint8_t tag[OPAL_AEAD_TAG_BYTES]);
int opal_crypt_box_open_at(opal_crypt_box_t *box, opal_crypt_epochs_t *epochs, unsigned shift, uint64_t counter,
                           const void *cipher, size_t bytes, const uint8_t tag[OPAL_AEAD_TAG_BYTES], void *plain);

#pragma GCC visibility pop

#endif

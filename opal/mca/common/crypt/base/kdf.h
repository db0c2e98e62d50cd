/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * HKDF-SHA256 (RFC 5869), and the list of ALL labels: every key of this project is made here, under a label of its
 * own.
 *
 *     Expand(secret, label, context) = HKDF-Expand(secret, info, bytes)
 *     info = | bytes 2 | label length 1 | label | context |
 *
 * The output's length is part of info, so a shorter key is never a prefix of a longer one.  docs/wire-format.rst,
 * "Keys".
 */
#ifndef OPAL_CRYPT_BASE_KDF_H
#define OPAL_CRYPT_BASE_KDF_H

#include "base.h"

#pragma GCC visibility push(default)

#define OPAL_CRYPT_HASH_BYTES           32
#define OPAL_CRYPT_SECRET_BYTES         32
#define OPAL_CRYPT_KDF_MAX              (255 * OPAL_CRYPT_HASH_BYTES)
#define OPAL_CRYPT_KDF_CONTEXT_MAX      512

/* One label per use.  Their texts are in crypt/base/kdf.c. */
typedef enum {
    /* from the psk */
    OPAL_CRYPT_LABEL_PSK_AUTH,          /* authenticates records */
    OPAL_CRYPT_LABEL_PSK_MIX,           /* salt of the pair secret */
    /* from the pair secret, by opal_crypt_schedule_expand */
    OPAL_CRYPT_LABEL_DIRECTION,         /* parent of the epoch keys of one direction */
    OPAL_CRYPT_LABEL_CHOP,              /* parent of the chopping keys of one direction */
    OPAL_CRYPT_LABEL_PIECE,             /* parent of the keys of pieces of one direction */
    OPAL_CRYPT_LABEL_LOCAL_TOKEN,
    OPAL_CRYPT_LABEL_TRANSPORT,         /* the external PSK of TLS 1.3; src is the process that connects */
    /* from the direction secret or the chopping parent; context: epoch 8 */
    OPAL_CRYPT_LABEL_EPOCH_KEY,
    OPAL_CRYPT_LABEL_EPOCH_IV,
    OPAL_CRYPT_LABEL_CHOP_KEY,
    /* from the parent of pieces; context: epoch 8 */
    OPAL_CRYPT_LABEL_PIECE_KEY,
    OPAL_CRYPT_LABEL_PIECE_IV,
    /* from a group key; context: group id, context id, hash of the sender's key, epoch */
    OPAL_CRYPT_LABEL_GROUP_KEY,
    OPAL_CRYPT_LABEL_GROUP_IV,
    /* from the data key of a file's region; docs/file-format.rst, "Keys" */
    OPAL_CRYPT_LABEL_FILE_MAP,
    OPAL_CRYPT_LABEL_FILE_BLOCK,
    OPAL_CRYPT_LABEL_FILE_SEAL,
    /* from a key of the keystore (its record), and for an escrowed data key */
    OPAL_CRYPT_LABEL_KEYSTORE_RECORD,
    OPAL_CRYPT_LABEL_ESCROW,
    OPAL_CRYPT_LABELS
} opal_crypt_label_t;

const char *opal_crypt_label_text(opal_crypt_label_t label);

/* Expand as drawn above.  `out` is secret, and is zeroed on failure.
 * context_bytes <= OPAL_CRYPT_KDF_CONTEXT_MAX, 1 <= bytes <= OPAL_CRYPT_KDF_MAX. */
int opal_crypt_kdf_expand(const uint8_t secret[OPAL_CRYPT_SECRET_BYTES],
                          opal_crypt_label_t label,
                          const void *context, size_t context_bytes,
                          void *out, size_t bytes);

/* Plain RFC 5869. */
int opal_crypt_hkdf_extract(const void *salt, size_t salt_bytes,
                            const void *input, size_t input_bytes,
                            uint8_t prk[OPAL_CRYPT_HASH_BYTES]);
int opal_crypt_hkdf_expand(const uint8_t prk[OPAL_CRYPT_HASH_BYTES],
                           const void *info, size_t info_bytes,
                           void *out, size_t bytes);

/* RFC 8446, 7.1: HKDF-Expand-Label with an empty context, with the hash of a TLS 1.3 suite.  The secret is as long as
 * the hash: 32 bytes, or 48 with SHA-384.  `label` has at most 32. */
#define OPAL_CRYPT_TLS_SECRET_MAX       48

int opal_crypt_tls_expand(bool sha384, const uint8_t *secret, const char *label, void *out, size_t bytes);

/* HMAC-SHA256 and SHA-256 of the concatenated pieces. */
typedef struct opal_crypt_input {
    const void *base;
    size_t bytes;
} opal_crypt_input_t;

int opal_crypt_hmac(const uint8_t key[OPAL_CRYPT_SECRET_BYTES],
                    const opal_crypt_input_t *pieces, int count,
                    uint8_t mac[OPAL_CRYPT_HASH_BYTES]);
int opal_crypt_sha256(const opal_crypt_input_t *pieces, int count,
                      uint8_t hash[OPAL_CRYPT_HASH_BYTES]);

#pragma GCC visibility pop

#endif

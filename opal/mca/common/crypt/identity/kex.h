/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Key agreement: X25519 (RFC 7748), or ECDH over P-256 under crypt_fips=1.
 *
 * The private key is 32 bytes in memory of crypt_secmem; libcrypto's own
 * objects are made for one call and freed with it.
 *
 * Threads: make and destroy by one thread, derive by any.
 */
#ifndef OPAL_CRYPT_IDENTITY_KEX_H
#define OPAL_CRYPT_IDENTITY_KEX_H

#include "opal/mca/common/crypt/base/base.h"

/* The numbers used in records. */
typedef enum {
    OPAL_CRYPT_KEX_X25519 = 1,
    OPAL_CRYPT_KEX_P256 = 2
} opal_crypt_kex_t;

#define OPAL_CRYPT_KEX_PUBLIC_MAX   65
#define OPAL_CRYPT_KEX_SECRET       32

typedef struct opal_crypt_keypair {
    opal_crypt_kex_t kex;
    uint8_t public[OPAL_CRYPT_KEX_PUBLIC_MAX];
    uint8_t *private;               /* 32 bytes of crypt_secmem; P-256: in the machine's byte order */
} opal_crypt_keypair_t;

/* 32, or 65 (uncompressed point); 0 for an unknown method. */
static inline size_t opal_crypt_kex_public_bytes(unsigned kex)
{
    return OPAL_CRYPT_KEX_X25519 == kex ? 32 : OPAL_CRYPT_KEX_P256 == kex ? 65 : 0;
}

const char *opal_crypt_kex_name(unsigned kex);

int opal_crypt_keypair_make(opal_crypt_kex_t kex, opal_crypt_keypair_t *pair);

/* The X25519 pair of a given private key (test vectors). */
int opal_crypt_keypair_from_private(const uint8_t private[32], opal_crypt_keypair_t *pair);

void opal_crypt_keypair_wipe(opal_crypt_keypair_t *pair);

/* The shared secret; `secret` is memory of crypt_secmem.  ERR_AUTH if the peer's key is not a point on the curve, or
 * results in a secret of zeros, which anybody could compute. */
int opal_crypt_kex_derive(const opal_crypt_keypair_t *pair, const uint8_t *peer_public,
                          uint8_t secret[OPAL_CRYPT_KEX_SECRET]);

#endif

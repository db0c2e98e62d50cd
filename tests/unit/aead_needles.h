/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What must not be found in a core file: 16 bytes each of the raw key, of every
 * round key of AES, computed here without any library, and of GHASH's key and its
 * first powers, also in the doubled form that implementations keep.
 */
#ifndef TESTS_AEAD_NEEDLES_H
#define TESTS_AEAD_NEEDLES_H

#include <openssl/evp.h>

#include "opal/mca/aead/aead_module.h"
#include "tests/unit/unit.h"

#define NEEDLE       16
#define NEEDLES_MOST 40
#define HASH_POWERS  4

typedef struct {
    int count;
    uint8_t bytes[NEEDLES_MOST][NEEDLE];
} needles_t;

/* ---- the key expansion of FIPS 197 ---- */

static inline uint8_t times(uint8_t a, uint8_t b)
{
    uint8_t product = 0;

    for (; 0 != b; b >>= 1) {
        product ^= b & 1 ? a : 0;
        a = (uint8_t) (a << 1 ^ (a & 0x80 ? 0x1b : 0));
    }
    return product;
}

static inline uint8_t substitute(uint8_t a)
{
    uint8_t inverse = 1, result = 0x63;

    for (int i = 0; i < 254; ++i) {
        inverse = times(inverse, a);
    }
    for (int i = 0; i < 5; ++i) {
        result ^= (uint8_t) (inverse << i | inverse >> (8 - i));
    }
    return result;
}

/* Round keys one after the other; the first ones are the raw key. */
static inline int expand(const uint8_t *raw, int raw_bytes, uint8_t *w)
{
    const int rounds = raw_bytes / 4 + 6;
    uint8_t constant = 1;

    memcpy(w, raw, (size_t) raw_bytes);
    for (int i = raw_bytes; i < (rounds + 1) * NEEDLE; i += 4) {
        uint8_t t[4] = { w[i - 4], w[i - 3], w[i - 2], w[i - 1] };

        if (0 == i % raw_bytes) {
            const uint8_t first = t[0];
            t[0] = substitute(t[1]) ^ constant;
            t[1] = substitute(t[2]);
            t[2] = substitute(t[3]);
            t[3] = substitute(first);
            constant = times(constant, 2);
        } else if (32 == raw_bytes && 16 == i % raw_bytes) {
            for (int j = 0; j < 4; ++j) {
                t[j] = substitute(t[j]);
            }
        }
        for (int j = 0; j < 4; ++j) {
            w[i + j] = w[i + j - raw_bytes] ^ t[j];
        }
    }
    return rounds + 1;
}

/* ---- GHASH's key ---- */

/* E_K(0), by libcrypto. */
static inline void hash_key(const uint8_t *raw, int raw_bytes, uint8_t h[NEEDLE])
{
    static const uint8_t zeros[NEEDLE];
    EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
    int written;

    UNIT_REQUIRE(NULL != evp
        && 1 == EVP_EncryptInit_ex(evp, 16 == raw_bytes ? EVP_aes_128_ecb() : 24 == raw_bytes ? EVP_aes_192_ecb()
                                                                            : EVP_aes_256_ecb(), NULL, raw, NULL)
        && 1 == EVP_EncryptUpdate(evp, h, &written, zeros, NEEDLE) && NEEDLE == written);
    EVP_CIPHER_CTX_free(evp);
}

/* a = a b in GHASH's field (SP 800-38D, 6.3). */
static inline void hash_times(uint8_t a[NEEDLE], const uint8_t b[NEEDLE])
{
    uint8_t product[NEEDLE] = { 0 }, v[NEEDLE];

    memcpy(v, b, NEEDLE);
    for (int bit = 0; bit < 8 * NEEDLE; ++bit) {
        const uint8_t last = v[NEEDLE - 1] & 1;

        for (int i = NEEDLE - 1; i >= 0; --i) {
            product[i] ^= a[bit / 8] & 0x80 >> bit % 8 ? v[i] : 0;
            v[i] = (uint8_t) (v[i] >> 1 | (0 < i ? v[i - 1] << 7 : 0));
        }
        v[0] ^= last ? 0xe1 : 0;
    }
    memcpy(a, product, NEEDLE);
}

/* An element, and it shifted by one bit modulo GHASH's polynomial, in both byte
 * orders. */
static inline void add_element(needles_t *needles, const uint8_t h[NEEDLE])
{
    uint8_t (*to)[NEEDLE] = &needles->bytes[needles->count];

    memcpy(to[0], h, NEEDLE);
    for (int i = 0; i < NEEDLE; ++i) {
        to[1][i] = (uint8_t) (h[i] << 1 | (i + 1 < NEEDLE ? h[i + 1] >> 7 : 0));
    }
    if (h[0] & 0x80) {
        to[1][0] ^= 0xc2;
        to[1][NEEDLE - 1] ^= 1;
    }
    for (int i = 0; i < NEEDLE; ++i) {
        to[2][i] = to[0][NEEDLE - 1 - i];
        to[3][i] = to[1][NEEDLE - 1 - i];
    }
    needles->count += 4;
}

static inline void needles_of(needles_t *needles, opal_aead_cipher_t cipher, const uint8_t *raw)
{
    const int raw_bytes = (int) opal_aead_raw_key_bytes(cipher);
    uint8_t h[NEEDLE], power[NEEDLE];

    memset(needles, 0, sizeof(*needles));
    if (OPAL_AEAD_CHACHA20_POLY1305 == cipher) {
        memcpy(needles->bytes, raw, 2 * NEEDLE);
        needles->count = 2;
    } else {
        needles->count = expand(raw, raw_bytes, needles->bytes[0]);
        hash_key(raw, raw_bytes, h);
        memcpy(power, h, NEEDLE);
        for (int i = 0; i < HASH_POWERS; ++i) {
            add_element(needles, power);
            hash_times(power, h);
        }
    }
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Disk integers: little-endian, byte by byte, whatever the machine.
 */
#ifndef OPAL_CRYPT_BASE_LE_H
#define OPAL_CRYPT_BASE_LE_H

#include <stdint.h>

static inline void opal_crypt_le_put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t) v;
    p[1] = (uint8_t) (v >> 8);
}

static inline void opal_crypt_le_put32(uint8_t *p, uint32_t v)
{
    opal_crypt_le_put16(p, (uint16_t) v);
    opal_crypt_le_put16(p + 2, (uint16_t) (v >> 16));
}

static inline void opal_crypt_le_put64(uint8_t *p, uint64_t v)
{
    opal_crypt_le_put32(p, (uint32_t) v);
    opal_crypt_le_put32(p + 4, (uint32_t) (v >> 32));
}

static inline uint16_t opal_crypt_le_get16(const uint8_t *p)
{
    return (uint16_t) (p[0] | (p[1] << 8));
}

static inline uint32_t opal_crypt_le_get32(const uint8_t *p)
{
    return opal_crypt_le_get16(p) | ((uint32_t) opal_crypt_le_get16(p + 2) << 16);
}

static inline uint64_t opal_crypt_le_get64(const uint8_t *p)
{
    return opal_crypt_le_get32(p) | ((uint64_t) opal_crypt_le_get32(p + 4) << 32);
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading DER, strictly: definite lengths in their shortest form, tags of one byte, nothing beyond the end.  It looks at
 * a stranger's bytes before libcrypto does.
 */
#ifndef MPICRYPT_KEY_DER_H
#define MPICRYPT_KEY_DER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MPICRYPT_DER_INTEGER = 0x02,
    MPICRYPT_DER_BITS = 0x03,
    MPICRYPT_DER_OCTETS = 0x04,
    MPICRYPT_DER_NULL = 0x05,
    MPICRYPT_DER_OID = 0x06,
    MPICRYPT_DER_SEQUENCE = 0x30,
    MPICRYPT_DER_SET = 0x31,
    MPICRYPT_DER_CONTEXT = 0xa0         /* plus a number: constructed; 0x80: primitive */
};

/* What has not been read yet. */
typedef struct mpicrypt_der {
    const uint8_t *at, *end;
} mpicrypt_der_t;

static inline size_t mpicrypt_der_left(const mpicrypt_der_t *der) { return (size_t) (der->end - der->at); }

/* Take one element, which must have this tag; `content` may be NULL.  False: there is none. */
bool mpicrypt_der_take(mpicrypt_der_t *der, unsigned tag, mpicrypt_der_t *content);

/* Take one element, which must have this tag and content. */
bool mpicrypt_der_is(mpicrypt_der_t *der, unsigned tag, const void *content, size_t bytes);

/* The same for an integer from 0 to 127, and for an object identifier (its encoded content). */
bool mpicrypt_der_is_number(mpicrypt_der_t *der, uint8_t number);
#define MPICRYPT_DER_IS_OID(der, oid) mpicrypt_der_is((der), MPICRYPT_DER_OID, (oid), sizeof(oid))

#endif

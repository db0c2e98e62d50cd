/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reading DER, strictly.
 */
#include "der.h"

#include <string.h>

bool mpicrypt_der_take(mpicrypt_der_t *der, unsigned tag, mpicrypt_der_t *content)
{
    const uint8_t *at = der->at;
    size_t bytes, left = mpicrypt_der_left(der);

    if (left < 2 || tag != at[0]) {
        return false;
    }
    bytes = at[1];
    at += 2;
    left -= 2;
    if (bytes >= 0x80) {                /* the length itself has 1 to 3 bytes, and no fewer would do */
        size_t digits = bytes & 0x7f;

        if (digits < 1 || digits > 3 || digits > left || 0 == at[0]) {
            return false;
        }
        bytes = 0;
        for (size_t i = 0; i < digits; ++i) {
            bytes = bytes << 8 | at[i];
        }
        if (bytes < 0x80) {
            return false;
        }
        at += digits;
        left -= digits;
    }
    if (bytes > left) {
        return false;
    }
    if (NULL != content) {
        *content = (mpicrypt_der_t){at, at + bytes};
    }
    der->at = at + bytes;
    return true;
}

bool mpicrypt_der_is(mpicrypt_der_t *der, unsigned tag, const void *content, size_t bytes)
{
    mpicrypt_der_t found;

    return mpicrypt_der_take(der, tag, &found) && mpicrypt_der_left(&found) == bytes
           && (0 == bytes || 0 == memcmp(found.at, content, bytes));
}

bool mpicrypt_der_is_number(mpicrypt_der_t *der, uint8_t number)
{
    return number < 0x80 && mpicrypt_der_is(der, MPICRYPT_DER_INTEGER, &number, 1);
}

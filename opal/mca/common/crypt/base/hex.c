/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Bytes as lower-case hexadecimal digits, and back.
 */
#include "hex.h"

void opal_crypt_hex_write(const uint8_t *bytes, size_t count, char *text)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < count; ++i) {
        text[2 * i] = digits[bytes[i] >> 4];
        text[2 * i + 1] = digits[bytes[i] & 15];
    }
    text[2 * count] = '\0';
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool opal_crypt_hex_read(const char *text, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        int high = digit_of(text[2 * i]), low = high < 0 ? -1 : digit_of(text[2 * i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        bytes[i] = (uint8_t) (high << 4 | low);
    }
    return true;
}

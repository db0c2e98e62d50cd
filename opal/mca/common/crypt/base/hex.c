/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Bytes as hexadecimal digits, and back.  Keys are among them: no branch and no address depends on a digit.
 */
#include "hex.h"
#include "constant.h"

/* All ones if a < b, else zero; both are below 2^31, or a is the result of a subtraction that wrapped. */
static unsigned mask_below(unsigned a, unsigned b)
{
    return 0u - (((a - b) & ~a) >> 31);
}

static char digit_for(unsigned value)
{
    return (char) (value + '0' + (~mask_below(value, 10) & ('a' - '0' - 10)));
}

unsigned opal_crypt_hex_value(char c)
{
    unsigned digit = (unsigned char) c - (unsigned) '0', letter = ((unsigned char) c | 0x20u) - (unsigned) 'a';
    unsigned is_digit = mask_below(digit, 10), is_letter = mask_below(letter, 6);

    return (digit & is_digit) | ((letter + 10) & is_letter) | (OPAL_CRYPT_HEX_BAD & ~(is_digit | is_letter));
}

void opal_crypt_hex_write(const uint8_t *bytes, size_t count, char *text)
{
    for (size_t i = 0; i < count; ++i) {
        text[2 * i] = digit_for(bytes[i] >> 4);
        text[2 * i + 1] = digit_for(bytes[i] & 15);
    }
    text[2 * count] = '\0';
}

bool opal_crypt_hex_read(const char *text, uint8_t *bytes, size_t count)
{
    unsigned bad = 0;

    for (size_t i = 0; i < count; ++i) {
        unsigned high = opal_crypt_hex_value(text[2 * i]), low = opal_crypt_hex_value(text[2 * i + 1]);

        /* Digits and lower-case letters have this bit, capitals lack it. */
        bad |= ((high | low) & OPAL_CRYPT_HEX_BAD) | (~((unsigned) text[2 * i] & (unsigned) text[2 * i + 1]) & 0x20);
        bytes[i] = (uint8_t) (high << 4 | low);
    }
    OPAL_CRYPT_PUBLIC(&bad, sizeof(bad));       /* a text that is not hexadecimal is refused */
    return 0 == bad;
}

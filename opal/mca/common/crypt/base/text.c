/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Which parts of a text are UTF-8, and what a terminal may show.  See crypt/base/text.h.
 */
#include "text.h"

#include <stddef.h>
#include <string.h>

int opal_crypt_utf8_bytes(const char *characters)
{
    const unsigned char *text = (const unsigned char *) characters;
    static const struct {
        unsigned char first, last, least, most;         /* of the first byte, of the second */
        int bytes;
    } forms[] = {{0x01, 0x7f, 0, 0xff, 1}, {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                 {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4},
                 {0xf4, 0xf4, 0x80, 0x8f, 4}};
    size_t i = 0;

    while (i < sizeof(forms) / sizeof(forms[0]) && (text[0] < forms[i].first || text[0] > forms[i].last)) {
        ++i;
    }
    if (i == sizeof(forms) / sizeof(forms[0]) || text[1] < forms[i].least || text[1] > forms[i].most) {
        return 0;
    }
    for (int at = 2; at < forms[i].bytes; ++at) {
        if (0x80 != (text[at] & 0xc0)) {
            return 0;
        }
    }
    return forms[i].bytes;
}

char *opal_crypt_harmless(char *text, const char *kept)
{
    for (int bytes, at = 0; '\0' != text[at]; at += 0 == bytes ? 1 : bytes) {
        unsigned char *one = (unsigned char *) text + at;

        bytes = opal_crypt_utf8_bytes((char *) one);
        if (0 == bytes || (one[0] < 0x20 && NULL == strchr(kept, one[0])) || 0x7f == one[0]) {
            one[0] = '?';
        } else if (0xc2 == one[0] && one[1] < 0xa0) {       /* 8-bit terminals take it for the start of a command */
            one[0] = one[1] = '?';
        } else if ((0xe2 == one[0] && 0x80 == one[1] && one[2] >= 0xa8 && one[2] <= 0xae)
                   || (0xe2 == one[0] && 0x81 == one[1] && one[2] >= 0xa6 && one[2] <= 0xa9)) {    /* lines, directions */
            one[0] = one[1] = one[2] = '?';
        }
    }
    return text;
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Text as JSON has it.  It may come from a node or from the name of a file, so it may hold any bytes.
 */
#include "mpicrypt.h"
#include "opal/mca/common/crypt/base/text.h"

void mpicrypt_json_text(FILE *out, const char *text)
{
    int bytes;

    fputc('"', out);
    for (; '\0' != *text; text += 0 == bytes ? 1 : bytes) {
        bytes = opal_crypt_utf8_bytes(text);
        if (0 == bytes) {
            fputs("\\ufffd", out);
        } else if ('"' == *text || '\\' == *text) {
            fprintf(out, "\\%c", *text);
        } else if ((unsigned char) *text < 0x20) {
            fprintf(out, "\\u%04x", (unsigned char) *text);
        } else {
            fwrite(text, 1, (size_t) bytes, out);
        }
    }
    fputc('"', out);
}

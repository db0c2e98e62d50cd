/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The typed extensions of a record: what later versions add, in a form that this one can read.
 *
 *     | type 2, its upper bit: critical | length 2 | bytes |   ...   types in rising order
 *
 * They are covered by the record's authenticator, like the whole body.  An unknown one is skipped, unless its maker
 * marked it critical.
 */
#include "record.h"

#include <string.h>

/* Read the extension at *at, and move *at behind it; false at the end of the list, and for malformed bytes (*at is
 * then not the end). */
static bool extension_next(const uint8_t *list, size_t bytes, size_t *at, opal_crypt_extension_t *extension)
{
    const size_t left = bytes - *at;
    unsigned head;

    if (left < OPAL_CRYPT_EXTENSION_HEAD) {
        return false;
    }
    head = opal_crypt_get16(list + *at);
    extension->type = (uint16_t) (head & ~(unsigned) OPAL_CRYPT_EXTENSION_CRITICAL);
    extension->critical = 0 != (head & OPAL_CRYPT_EXTENSION_CRITICAL);
    extension->count = opal_crypt_get16(list + *at + 2);
    extension->bytes = list + *at + OPAL_CRYPT_EXTENSION_HEAD;
    if (0 == extension->type || extension->count > left - OPAL_CRYPT_EXTENSION_HEAD) {
        return false;
    }
    *at += OPAL_CRYPT_EXTENSION_HEAD + extension->count;
    return true;
}

static bool known(uint16_t type)
{
    return OPAL_CRYPT_EXTENSION_REPORT == type || OPAL_CRYPT_EXTENSION_TRANSPORT == type;
}

bool opal_crypt_extensions_good(const uint8_t *list, size_t bytes)
{
    opal_crypt_extension_t extension;
    uint16_t last = 0;
    size_t at = 0;

    if (bytes > OPAL_CRYPT_RECORD_EXTENSIONS_MAX) {
        return false;
    }
    while (extension_next(list, bytes, &at, &extension)) {
        if (extension.type <= last || (OPAL_CRYPT_EXTENSION_REPORT == extension.type && 0 != extension.count)
            || (OPAL_CRYPT_EXTENSION_TRANSPORT == extension.type && extension.count > OPAL_CRYPT_TRANSPORT_MAX)) {
            return false;
        }
        last = extension.type;
    }
    return at == bytes;
}

bool opal_crypt_extension_put(uint8_t *list, size_t capacity, size_t *used,
                              const opal_crypt_extension_t *extension)
{
    const size_t bytes = *used + OPAL_CRYPT_EXTENSION_HEAD + extension->count;
    uint8_t *p = list + *used;

    if (extension->type >= OPAL_CRYPT_EXTENSION_CRITICAL || extension->count > OPAL_CRYPT_RECORD_EXTENSIONS_MAX
        || bytes > capacity) {
        return false;
    }
    opal_crypt_put16(p, (uint16_t) (extension->type | (extension->critical ? OPAL_CRYPT_EXTENSION_CRITICAL : 0)));
    opal_crypt_put16(p + 2, (uint16_t) extension->count);
    if (extension->count > 0) {
        memcpy(p + OPAL_CRYPT_EXTENSION_HEAD, extension->bytes, extension->count);
    }
    if (!opal_crypt_extensions_good(list, bytes)) {
        return false;
    }
    *used = bytes;
    return true;
}

bool opal_crypt_record_extension(const opal_crypt_record_t *record, uint16_t type, opal_crypt_extension_t *extension)
{
    size_t at = 0;

    while (extension_next(record->extensions, record->extensions_bytes, &at, extension)) {
        if (type == extension->type) {
            return true;
        }
    }
    return false;
}

uint16_t opal_crypt_record_unknown(const opal_crypt_record_t *record)
{
    opal_crypt_extension_t extension;
    size_t at = 0;

    while (extension_next(record->extensions, record->extensions_bytes, &at, &extension)) {
        if (extension.critical && !known(extension.type)) {
            return extension.type;
        }
    }
    return 0;
}

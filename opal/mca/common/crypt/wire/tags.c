/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the reserved tags of a host are.  See crypt/wire/tags.h.
 */
#include "tags.h"

unsigned opal_crypt_tags_bits(int32_t max_tag)
{
    unsigned bits = 1;

    while (bits < OPAL_CRYPT_TAG_BITS_MAX && (INT64_C(1) << bits) - 1 <= max_tag) {
        bits++;
    }
    return bits;
}

void opal_crypt_tags_make(unsigned bits, opal_crypt_tags_t *tags)
{
    const int64_t all = INT64_C(1) << (bits - 1);

    tags->floor = (int32_t) (-all / 2);
    tags->folded = (uint32_t) (all / 8);
    tags->segments = (int32_t) (tags->floor - all / 8 - 1);
    tags->segment_count = (uint32_t) (all / 4);
    tags->bodies = (int32_t) (tags->segments - all / 4);
    tags->body_count = (uint32_t) (all / 16);
    tags->lowest = (int32_t) -all;
}

int32_t opal_crypt_tags_below(const opal_crypt_tags_t *tags, int32_t tag)
{
    if (tag < OPAL_CRYPT_TAG_FIXED(OPAL_CRYPT_TAG_FIXED_END)) {
        return tags->lowest + (tag - INT32_MIN);
    }
    return tags->floor - 1 - (int32_t) ((uint32_t) (tags->floor - 1 - tag) & (tags->folded - 1));
}

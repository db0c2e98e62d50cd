/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Reserved tags at hosts of every width: ours among themselves, those of Open MPI's
 * collectives and those of applications never meet, in the bits that a host compares.
 */
#include "unit.h"

#include "opal/mca/common/crypt/wire/tags.h"

/* Open MPI's: coll_tags.h of 4.1 and 5.0. */
enum { BLOCKING = -10, NONBLOCKING = -27, NONBLOCKING_END = -INT32_MAX / 2 + 1, NEIGHBOR_END = NONBLOCKING_END - 1025 };

static uint32_t seen_by(unsigned bits, int32_t tag)
{
    return (uint32_t) tag & (uint32_t) ((UINT64_C(1) << bits) - 1);
}

static int32_t at_host(const opal_crypt_tags_t *tags, int32_t tag)
{
    return tag >= tags->floor ? tag : opal_crypt_tags_below(tags, tag);
}

/* Which of five kinds a host tag is; 0 for none. */
static int kind_of(const opal_crypt_tags_t *tags, int32_t host)
{
    const bool fixed = host >= tags->lowest && host < tags->lowest + OPAL_CRYPT_TAG_FIXED_END;
    const bool body = host <= tags->bodies && host > tags->bodies - (int32_t) tags->body_count;
    const bool segment = host <= tags->segments && host > tags->segments - (int32_t) tags->segment_count;
    const bool folded = host < tags->floor && host >= tags->floor - (int32_t) tags->folded;
    const bool same = host >= tags->floor;

    UNIT_CHECK(1 == fixed + body + segment + folded + same);
    return fixed ? 1 : body ? 2 : segment ? 3 : folded ? 4 : same ? 5 : 0;
}

/* The largest tags of ob1; of ucx; of mtl/ofi in its shortest layout; of mtl/psm2, which is no power of two less one. */
static void widths_of_hosts(void)
{
    UNIT_CHECK(32 == opal_crypt_tags_bits(INT32_MAX));
    UNIT_CHECK(24 == opal_crypt_tags_bits((1 << 23) - 1));
    UNIT_CHECK(20 == opal_crypt_tags_bits((1 << 19) - 1));
    UNIT_CHECK(31 == opal_crypt_tags_bits(1 << 30));
    UNIT_CHECK(23 == opal_crypt_tags_bits((1 << 23) - 2));
    UNIT_CHECK(1 == opal_crypt_tags_bits(0) && 1 == opal_crypt_tags_bits(-1));
}

static void width(unsigned bits)
{
    opal_crypt_tags_t tags;

    opal_crypt_tags_make(bits, &tags);
    /* every host tag is negative for a host with this many bits, and none equals another */
    UNIT_CHECK(tags.lowest == -(INT64_C(1) << (bits - 1)));
    for (int number = 0; number < OPAL_CRYPT_TAG_FIXED_END; number++) {
        UNIT_CHECK(1 == kind_of(&tags, at_host(&tags, OPAL_CRYPT_TAG_FIXED(number))));
        UNIT_CHECK(seen_by(bits, at_host(&tags, OPAL_CRYPT_TAG_FIXED(number))) == seen_by(bits, tags.lowest) + (uint32_t) number);
    }
    for (uint64_t counter = 0; counter < UINT64_C(1) << 48; counter = 2 * counter + 1) {
        UNIT_CHECK(3 == kind_of(&tags, opal_crypt_tags_segments(&tags, counter)));
        UNIT_CHECK(2 == kind_of(&tags, opal_crypt_tags_body(&tags, counter)));
    }
    UNIT_CHECK(opal_crypt_tags_segments(&tags, tags.segment_count) == opal_crypt_tags_segments(&tags, 0));
    UNIT_CHECK(opal_crypt_tags_segments(&tags, tags.segment_count - 1) == tags.segments - (int32_t) tags.segment_count + 1);

    /* what collectives use */
    for (int64_t tag = BLOCKING; tag >= NEIGHBOR_END; tag -= 1 + (tag > -5000000 ? 97 : 99991)) {
        const int32_t host = at_host(&tags, (int32_t) tag);

        UNIT_CHECK(host < 0 && kind_of(&tags, host) >= 4);
        UNIT_CHECK(host >= -(INT64_C(1) << (bits - 1)));
        UNIT_CHECK(tag < tags.floor || host == tag);
    }
    /* this many in a row are distinct */
    for (int64_t start = NONBLOCKING; start > NEIGHBOR_END + 1000; start -= 10000019) {
        for (int32_t tag = (int32_t) start; tag > start - 1000; tag--) {
            UNIT_CHECK(at_host(&tags, tag) != at_host(&tags, tag - 1));
        }
    }
    /* and applications */
    UNIT_CHECK(0 == at_host(&tags, 0) && INT32_MAX == at_host(&tags, INT32_MAX) && -1 == at_host(&tags, -1));
}

int main(void)
{
    UNIT_GROUP("hosts of 16 to 32 bits");
    for (unsigned bits = OPAL_CRYPT_TAG_BITS_MIN; bits <= OPAL_CRYPT_TAG_BITS_MAX; bits++) {
        width(bits);
    }
    UNIT_GROUP("a host's largest tag says how many");
    widths_of_hosts();
    UNIT_GROUP("ob1 has Open MPI's tags as they are");
    opal_crypt_tags_t tags;
    opal_crypt_tags_make(32, &tags);
    for (int32_t tag = NONBLOCKING_END + 10; tag >= NEIGHBOR_END; tag--) {
        UNIT_CHECK(tag == at_host(&tags, tag));
    }
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * THE RESERVED TAGS (docs/wire-format.rst), and where a host has them.
 *
 * Open MPI's non-blocking collectives count their tags down from about -30 to -2^30 and start over; hosts compare only
 * the lower bits of a tag: ob1 32, ucx 24, cm as many as its MTL has room for (20 or 32 with libfabric).  With b bits,
 * the N = 2^(b-1) negative tags of a host are used like this:
 *
 *     -1 ... -N/2      unchanged
 *     N/8 below        lower ones of Open MPI's, modulo N/8
 *     N/4 below        segments of chopped messages
 *     N/16 below       large local messages
 *     ... -N           fixed: the lowest ones, by number
 *
 * So no tag of Open MPI's, nor of the application, ever meets one of ours.  Two of Open MPI's may collide there if
 * they are N/8 apart; the envelope has the original tag, so such a message is refused and never taken for the other.
 */
#ifndef OPAL_CRYPT_WIRE_TAGS_H
#define OPAL_CRYPT_WIRE_TAGS_H

#include "opal/mca/common/crypt/base/base.h"

#pragma GCC visibility push(default)

/* In an envelope, and for pml/crypt's callers: -2^31 plus a number. */
#define OPAL_CRYPT_TAG_FIXED(number) (INT32_MIN + (number))
enum { OPAL_CRYPT_TAG_FIXED_END = 256 };

enum { OPAL_CRYPT_TAG_BITS_MIN = 16, OPAL_CRYPT_TAG_BITS_MAX = 32 };

typedef struct opal_crypt_tags {
    int32_t floor;                      /* tags from here up are passed to the host unchanged */
    uint32_t folded;                    /* how many host tags below it stand for all other tags of Open MPI's */
    int32_t segments, bodies;           /* the first of each; the others are below it */
    uint32_t segment_count, body_count; /* powers of two */
    int32_t lowest;
} opal_crypt_tags_t;

/* The bits of a host whose largest tag is this one: one more for the sign. */
unsigned opal_crypt_tags_bits(int32_t max_tag);

void opal_crypt_tags_make(unsigned bits, opal_crypt_tags_t *tags);

/* The host's tag for one below the floor. */
int32_t opal_crypt_tags_below(const opal_crypt_tags_t *tags, int32_t tag);

static inline int32_t opal_crypt_tags_segments(const opal_crypt_tags_t *tags, uint64_t counter)
{
    return tags->segments - (int32_t) (counter & (tags->segment_count - 1));
}

static inline int32_t opal_crypt_tags_body(const opal_crypt_tags_t *tags, uint64_t number)
{
    return tags->bodies - (int32_t) (number & (tags->body_count - 1));
}

#pragma GCC visibility pop

#endif

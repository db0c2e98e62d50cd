/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Chopped messages: shapes, round trips, and every way to change one.
 */
#include "unit.h"

#include "sessions.h"

#include "opal/mca/common/crypt/wire/chop.h"

#define MOST 4096

static const opal_crypt_envelope_t here = {7, 8, 1, 9};

/* A whole message in one buffer: first part, then the segments. */
typedef struct {
    opal_crypt_shape_t shape;
    uint8_t plain[MOST], first[MOST], segments[MOST];
    uint64_t counter;
} message_t;

static size_t segment_at(const opal_crypt_shape_t *shape, uint32_t segment)
{
    return (size_t) (segment - 1) * (shape->chunk_bytes + OPAL_CRYPT_SEGMENT_OVERHEAD);
}

static size_t segment_wire(const opal_crypt_shape_t *shape, uint32_t segment)
{
    return opal_crypt_segment_bytes(shape, segment) + OPAL_CRYPT_SEGMENT_OVERHEAD;
}

static void message_seal(opal_crypt_session_t *session, message_t *m, uint64_t total,
                         uint32_t first, uint32_t chunk, uint64_t seed)
{
    opal_crypt_chop_t *chop;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(total, first, chunk, &m->shape));
    fill(m->plain, total, seed);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(session, &here, &m->shape, m->plain, m->first, &m->counter,
                                                        &chop));
    for (uint32_t i = m->shape.count; i >= 1; --i) {        /* any order */
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_seal(
                       chop, i, m->plain + opal_crypt_segment_offset(&m->shape, i),
                       m->segments + segment_at(&m->shape, i)));
    }
    opal_crypt_chop_end(chop);
}

/* Open the unchanged first part, to try segments on. */
static opal_crypt_chop_t *message_begin(opal_crypt_session_t *session, const message_t *m,
                                        uint8_t *plain)
{
    opal_crypt_chop_t *chop = NULL;
    opal_crypt_shape_t shape = {0};
    uint64_t counter = UINT64_MAX;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(session, &here, m->first,
                                                        m->shape.first_bytes + 40, plain, SIZE_MAX,
                                                        &shape, &counter, &chop));
    UNIT_CHECK(counter == m->counter && same_shape(&shape, &m->shape));
    return chop;
}

static void round_trip(opal_aead_cipher_t cipher, uint64_t total, uint32_t first, uint32_t chunk)
{
    ends_t ends = ends_make(cipher, 20, 1);
    uint8_t back[MOST], in_place[MOST];
    static message_t m;

    message_seal(ends.a, &m, total, first, chunk, total);
    opal_crypt_chop_t *chop = message_begin(ends.b, &m, back);
    for (uint32_t i = 1; i <= m.shape.count; ++i) {
        const uint8_t *frame = m.segments + segment_at(&m.shape, i);
        const size_t wire = segment_wire(&m.shape, i);
        uint8_t *to = back + opal_crypt_segment_offset(&m.shape, i);
        memcpy(in_place, frame, wire);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(chop, i, frame, wire, to));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(chop, i, in_place, wire, in_place));
        UNIT_EQUAL_BYTES(to, in_place, wire - OPAL_CRYPT_SEGMENT_OVERHEAD);
    }
    UNIT_EQUAL_BYTES(m.plain, back, total);
    opal_crypt_chop_end(chop);
    ends_free(&ends);
}

/* Everything in the first part, and an empty segment that cannot be removed or moved to another message. */
static void whole(uint64_t total)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 3);
    uint8_t plain[64] = {7, 8, 9}, first[64 + 40], segment[16], back[64];
    opal_crypt_shape_t shape, seen;
    opal_crypt_chop_t *sealing, *opening;
    uint64_t counter, seen_counter;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_whole(total, &shape));
    UNIT_CHECK(1 == shape.count && total == shape.first_bytes && 0 == opal_crypt_segment_bytes(&shape, 1));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(ends.a, &here, &shape, plain, first, &counter, &sealing));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_seal(sealing, 1, plain, segment));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_seal(sealing, 2, plain, segment));
    for (size_t capacity = 0; capacity < total; ++capacity) {
        memset(back, 0xa5, sizeof(back));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_first_open(ends.b, &here, first, total + 40, back, capacity, &seen,
                                                                &seen_counter, &opening));
        UNIT_CHECK(all_zero(back, capacity) && 0xa5 == back[capacity]);         /* and not a byte behind it */
    }
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(ends.b, &here, first, total + 40, back, total, &seen,
                                                        &seen_counter, &opening));
    UNIT_EQUAL_BYTES(plain, back, total);
    UNIT_CHECK(seen.total_bytes == total && seen.first_bytes == total && 1 == seen.count);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(opening, 1, segment, 16, back));
    segment[3] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(opening, 1, segment, 16, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(opening, 1, segment, 15, back));
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
    ends_free(&ends);
}

static void shapes(void)
{
    opal_crypt_shape_t shape;
    const uint64_t most = OPAL_CRYPT_TOTAL_MAX;
    static const struct {
        uint64_t total;
        uint32_t first, chunk;
        int64_t count;                  /* < 0: refused */
    } cases[] = {
        {0, 0, 1, 0}, {100, 100, 1, 0}, {100, 99, 1, 1}, {100, 0, 100, 1}, {101, 0, 100, 2},
        {200, 0, 100, 2}, {100, 101, 1, -1}, {100, 0, 0, -1}, {100, 0, OPAL_CRYPT_CHUNK_MAX, 1},
        {100, 0, OPAL_CRYPT_CHUNK_MAX + 1, -1}, {OPAL_CRYPT_COUNT_MAX, 0, 1, OPAL_CRYPT_COUNT_MAX},
        {(uint64_t) OPAL_CRYPT_COUNT_MAX + 1, 0, 1, -1}, {(uint64_t) OPAL_CRYPT_COUNT_MAX + 1, 1, 1, OPAL_CRYPT_COUNT_MAX},
        {most, 0, OPAL_CRYPT_CHUNK_MAX, 65536}, {most + 1, 1, OPAL_CRYPT_CHUNK_MAX, -1},
        {UINT64_MAX, UINT32_MAX, UINT32_MAX, -1}, {UINT64_MAX, 0, OPAL_CRYPT_CHUNK_MAX, -1},
        {OPAL_CRYPT_CHUNK_MAX, OPAL_CRYPT_CHUNK_MAX, 1, 0},
        {OPAL_CRYPT_CHUNK_MAX + 1, OPAL_CRYPT_CHUNK_MAX + 1, 1, -1},
    };

    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); ++i) {
        int rc = opal_crypt_shape_make(cases[i].total, cases[i].first, cases[i].chunk, &shape);
        UNIT_CHECK(cases[i].count < 0 ? OPAL_CRYPT_ERR_CONFIG == rc
                                      : OPAL_CRYPT_OK == rc && shape.count == cases[i].count);
    }
}

static int first_open(opal_crypt_session_t *session, const opal_crypt_envelope_t *envelope,
                      const uint8_t *frame, size_t frame_bytes, uint8_t *plain)
{
    opal_crypt_chop_t *chop = NULL;
    opal_crypt_shape_t shape;
    uint64_t counter;

    memset(plain, 0xa5, MOST);
    int rc = opal_crypt_first_open(session, envelope, frame, frame_bytes, plain, SIZE_MAX, &shape, &counter, &chop);
    UNIT_CHECK((OPAL_CRYPT_OK == rc) == (NULL != chop));
    opal_crypt_chop_end(chop);
    return rc;
}

static void every_byte_counts(opal_aead_cipher_t cipher)
{
    ends_t ends = ends_make(cipher, 20, 2);
    uint8_t bad[MOST], back[MOST];
    static message_t m;
    const size_t first_bytes = 40 + 21;

    message_seal(ends.a, &m, 100, 21, 30, 1);

    /* the first part: all of it, its envelope, its length */
    for (unsigned bit = 0; bit < 8 * first_bytes; ++bit) {
        memcpy(bad, m.first, first_bytes);
        bad[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == first_open(ends.b, &here, bad, first_bytes, back));
        UNIT_CHECK(all_zero(back, 21) && 0xa5 == back[21]);
    }
    for (unsigned bit = 0; bit < 192; ++bit) {
        opal_crypt_envelope_t other = envelope_flipped(here, bit);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == first_open(ends.b, &other, m.first, first_bytes, back));
    }
    memcpy(bad, m.first, first_bytes + 1);
    for (size_t bytes = 0; bytes <= first_bytes + 1; ++bytes) {
        if (bytes != first_bytes) {
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == first_open(ends.b, &here, bad, bytes, back));
        }
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == first_open(ends.a, &here, m.first, first_bytes, back));
    UNIT_CHECK(OPAL_CRYPT_OK == first_open(ends.b, &here, m.first, first_bytes, back));

    /* the segments: all of each, its number, its length */
    opal_crypt_chop_t *chop = message_begin(ends.b, &m, back);
    for (uint32_t i = 1; i <= m.shape.count; ++i) {
        const size_t wire = segment_wire(&m.shape, i);
        uint8_t *frame = m.segments + segment_at(&m.shape, i);
        for (unsigned bit = 0; bit < 8 * wire; ++bit) {
            memcpy(bad, frame, wire);
            bad[bit / 8] ^= (uint8_t) (1u << (bit % 8));
            memset(back, 0xa5, wire);
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(chop, i, bad, wire, back));
            UNIT_CHECK(all_zero(back, wire - 16) && 0xa5 == back[wire - 16]);
        }
        for (size_t bytes = 0; bytes <= wire + 1; ++bytes) {
            memset(back, 0xa5, MOST);
            if (bytes != wire) {
                UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(chop, i, frame, bytes, back));
                UNIT_CHECK(bytes <= 16 || all_zero(back, bytes < wire ? bytes - 16 : wire - 16));
            }
        }
        for (uint32_t j = 1; j <= m.shape.count; ++j) {         /* reordered, repeated */
            if (i != j) {
                UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(chop, j, frame, wire, back));
            }
        }
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(chop, i, frame, wire, back));
    }
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_open(chop, 0, m.segments, 46, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_open(chop, 4, m.segments, 46, back));
    opal_crypt_chop_end(chop);
    ends_free(&ends);
}

static void between_messages(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 3);
    static message_t m, n, longer;
    uint8_t back[MOST];

    message_seal(ends.a, &m, 90, 30, 30, 1);
    message_seal(ends.a, &n, 90, 30, 30, 2);
    message_seal(ends.a, &longer, 120, 30, 30, 1);
    opal_crypt_chop_t *chop = message_begin(ends.b, &m, back);
    for (uint32_t i = 1; i <= 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(
                       chop, i, n.segments + segment_at(&n.shape, i), 46, back));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(
                       chop, i, longer.segments + segment_at(&longer.shape, i), 46, back));
    }
    opal_crypt_chop_end(chop);

    /* segment 2 of two is the last, segment 2 of three is not: no truncation */
    chop = message_begin(ends.b, &longer, back);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(chop, 2, longer.segments + 46, 46, back));
    opal_crypt_chop_end(chop);
    ends_free(&ends);
}

/* What only a holder of the keys can make, but is still refused. */
static void ill_shaped(uint64_t total, uint32_t chunk, uint32_t count, uint32_t first_bytes)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 4);
    opal_aead_context_t *context = opal_crypt_context(&opal_aead_openssl_module);
    opal_crypt_hold_t hold;
    opal_crypt_chop_t *chop;
    uint8_t frame[MOST] = {0}, aad[48], nonce[12], back[MOST];
    const uint64_t counter = take(ends.a);

    UNIT_REQUIRE(NULL != context);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_epoch_hold(&ends.a->out, 0, &hold));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_chop_make(ends.a, hold.epoch, counter, &chop));
    opal_crypt_epoch_release(&ends.a->out, &hold, true);
    opal_crypt_header_put(frame, OPAL_CRYPT_FRAME_FIRST, counter);
    opal_crypt_put64(frame + 8, total);
    opal_crypt_put32(frame + 16, chunk);
    opal_crypt_put32(frame + 20, count);
    memcpy(aad, frame, 24);
    opal_crypt_envelope_put(aad + 24, &here);
    opal_crypt_nonce_segment(chop->prefix, 0 == count, 0, nonce);
    UNIT_REQUIRE(0 == opal_aead_openssl_module.seal(context, chop->key, nonce,
                                                    aad, 48, frame + 24, first_bytes,
                                                    frame + 24, frame + 24 + first_bytes));
    opal_crypt_chop_end(chop);

    const uint64_t rest = total >= first_bytes ? total - first_bytes : 0;
    const bool good = total == 100 && first_bytes == 40 && chunk == 30 && count == (rest + 29) / 30;
    UNIT_CHECK((good ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH)
               == first_open(ends.b, &here, frame, first_bytes + 40, back));
    UNIT_CHECK(good || all_zero(back, first_bytes));
    ends_free(&ends);
}

static void misuse(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 5);
    opal_crypt_chop_t *chop;
    opal_crypt_shape_t shape;
    static message_t m;
    uint8_t back[MOST];
    uint64_t counter;

    message_seal(ends.a, &m, 90, 30, 30, 1);
    chop = message_begin(ends.b, &m, back);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_seal(chop, 1, m.plain, back));
    opal_crypt_chop_end(chop);

    shape = m.shape;
    ++shape.count;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_first_seal(ends.a, &here, &shape,
                                                              m.plain, back, &counter, &chop));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_first_seal(ends.a, &here, &m.shape,
                                                      m.plain, back, &counter, &chop));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_seal(chop, 0, m.plain, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_seal(chop, 3, m.plain, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_segment_open(chop, 1, m.segments, 46, back));
    opal_crypt_chop_end(chop);
    ends_free(&ends);
}

int main(void)
{
    UNIT_GROUP("shapes");
    shapes();
    for (opal_aead_cipher_t cipher = 0; cipher < OPAL_AEAD_CIPHERS; ++cipher) {
        if (0 == opal_aead_openssl_init() && (opal_aead_openssl_module.ciphers & OPAL_AEAD_BIT(cipher))) {
            UNIT_GROUP("chopped, cipher %d: round trips", (int) cipher);
            round_trip(cipher, 100, 40, 24);
            round_trip(cipher, 112, 40, 24);
            round_trip(cipher, 50, 40, 24);
            round_trip(cipher, 64, 40, 24);
            round_trip(cipher, 40, 40, 24);
            round_trip(cipher, 30, 0, 7);
            round_trip(cipher, 0, 0, 1);
            round_trip(cipher, 2000, 1, 37);
            UNIT_GROUP("chopped, cipher %d: every byte counts", (int) cipher);
            every_byte_counts(cipher);
        }
    }
    UNIT_GROUP("segments of another message, truncation");
    between_messages();
    UNIT_GROUP("authentic, but ill-shaped");
    ill_shaped(100, 30, 2, 40);                 /* this one is right */
    ill_shaped(100, 30, 1, 40);
    ill_shaped(100, 30, 3, 40);
    ill_shaped(100, 30, 0, 40);
    ill_shaped(100, 0, 2, 40);
    ill_shaped(100, 0, 0, 100);
    ill_shaped(100, 30, 2, 100);
    ill_shaped(40, 30, UINT32_MAX, 40);
    UNIT_GROUP("all in the first part");
    whole(0);
    whole(1);
    whole(33);
    ill_shaped(39, 30, 0, 40);
    ill_shaped(UINT64_MAX, 30, 2, 40);
    ill_shaped(UINT64_MAX, OPAL_CRYPT_CHUNK_MAX, UINT32_MAX, 40);
    ill_shaped(100, UINT32_MAX, 1, 40);
    ill_shaped(OPAL_CRYPT_TOTAL_MAX + 40 + 1, OPAL_CRYPT_CHUNK_MAX, 65537, 40);
    ill_shaped((UINT64_C(1) << 32) * 30 + 40 + 60, 30, 2, 40);       /* its count, cut to 32 bits */
    UNIT_GROUP("misuse");
    misuse();
    return unit_done();
}

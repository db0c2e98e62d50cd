/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Direct, final and local frames: what goes in comes out, and every changed
 * byte, envelope, length or direction is refused and leaves zeros.
 */
#include "unit.h"

#include "sessions.h"

#define MOST 5000

static const opal_crypt_envelope_t here = {0x0123456789abcdefu, 0xfedcba9876543210u, 0x89abcdefu, -42};

static int open_at(opal_crypt_session_t *session, const opal_crypt_envelope_t *envelope,
                   const uint8_t *frame, size_t frame_bytes, uint8_t *plain)
{
    uint64_t counter = UINT64_MAX;

    memset(plain, 0xa5, MOST);
    return opal_crypt_direct_open(session, envelope, frame, frame_bytes, plain, SIZE_MAX, &counter);
}

static void round_trips(opal_aead_cipher_t cipher)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 64, 255, 4096, MOST};
    ends_t ends = ends_make(cipher, 20, 3);
    uint8_t plain[MOST], frame[MOST + OPAL_CRYPT_DIRECT_OVERHEAD], back[MOST];

    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        const uint64_t counter = ends.a->next;
        uint64_t seen = UINT64_MAX;
        fill(plain, sizes[i], i);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, sizes[i], frame));
        UNIT_CHECK(OPAL_CRYPT_FRAME_DIRECT == opal_crypt_frame_type(frame, sizes[i] + 24));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_open(ends.b, &here, frame, sizes[i] + 24,
                                                           back, SIZE_MAX, &seen));
        UNIT_CHECK(seen == counter);
        UNIT_EQUAL_BYTES(plain, back, sizes[i]);

        /* in place, both ways */
        memcpy(frame + OPAL_CRYPT_FRAME_HEADER, plain, sizes[i]);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, frame + 8, sizes[i], frame));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_open(ends.b, &here, frame, sizes[i] + 24,
                                                           frame + 8, SIZE_MAX, &seen));
        UNIT_CHECK(seen == counter + 1 && ends.a->next == counter + 2);
        UNIT_EQUAL_BYTES(plain, frame + 8, sizes[i]);
    }
    ends_free(&ends);
}

static void largest(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 3);
    const size_t most = OPAL_CRYPT_DIRECT_MAX;
    uint8_t *plain = malloc(most + 1), *frame = malloc(most + 1 + OPAL_CRYPT_DIRECT_OVERHEAD);
    uint64_t counter;

    UNIT_REQUIRE(NULL != plain && NULL != frame);
    fill(plain, most, 1);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_direct_seal(ends.a, &here, plain,
                                                               most + 1, frame));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, most, frame));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_direct_open(ends.b, &here, frame, most + 25,
                                                             plain, SIZE_MAX, &counter));
    UNIT_CHECK(all_zero(plain, most + 1));
    memset(plain, 0xa5, most);
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_direct_open(ends.b, &here, frame, most + 24,
                                                             plain, most - 1, &counter));
    UNIT_CHECK(all_zero(plain, most - 1) && 0xa5 == plain[most - 1]);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_open(ends.b, &here, frame, most + 24,
                                                       plain, SIZE_MAX, &counter));
    free(plain);
    free(frame);
    ends_free(&ends);
}

static void every_byte_counts(opal_aead_cipher_t cipher)
{
    enum { SIZE = 37 };
    ends_t ends = ends_make(cipher, 20, 4);
    uint8_t plain[SIZE], frame[SIZE + 24], bad[SIZE + 25], back[MOST];

    fill(plain, SIZE, 1);
    (void) take(ends.a);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, SIZE, frame));

    for (unsigned bit = 0; bit < 8 * sizeof(frame); ++bit) {
        memcpy(bad, frame, sizeof(frame));
        bad[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, bad, sizeof(frame), back));
        UNIT_CHECK(all_zero(back, SIZE) && 0xa5 == back[SIZE]);
    }
    for (unsigned bit = 0; bit < 192; ++bit) {
        opal_crypt_envelope_t other = envelope_flipped(here, bit);
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &other, frame, sizeof(frame), back));
        UNIT_CHECK(all_zero(back, SIZE));
    }
    memcpy(bad, frame, sizeof(frame));
    bad[sizeof(frame)] = 0;
    for (size_t bytes = 0; bytes <= sizeof(bad); ++bytes) {
        if (bytes != sizeof(frame)) {
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, bad, bytes, back));
        }
    }
    /* sent back to its sender */
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.a, &here, frame, sizeof(frame), back));
    /* and after all that it opens */
    UNIT_CHECK(OPAL_CRYPT_OK == open_at(ends.b, &here, frame, sizeof(frame), back));
    UNIT_EQUAL_BYTES(plain, back, SIZE);
    ends_free(&ends);
}

/* One type may not pass for another, even where the lengths fit. */
static void types_are_apart(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 5);
    opal_crypt_chop_t *chop = NULL;
    opal_crypt_shape_t shape;
    uint8_t plain[64] = {0}, frame[OPAL_CRYPT_FINAL_BYTES], back[MOST];
    uint64_t sent = 1, counter;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, 8, frame));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_final_open(ends.b, &here, frame, 32, &sent, &counter));
    frame[0] = 1 << 4 | OPAL_CRYPT_FRAME_FINAL;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_final_open(ends.b, &here, frame, 32, &sent, &counter));
    UNIT_CHECK(0 == sent);

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_seal(ends.a, &here, frame));
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, frame, 32, back));
    frame[0] = 1 << 4 | OPAL_CRYPT_FRAME_DIRECT;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, frame, 32, back));
    frame[0] = 1 << 4 | OPAL_CRYPT_FRAME_FINAL;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_final_open(ends.b, &here, frame, 31, &sent, &counter));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_open(ends.b, &here, frame, 32, &sent, &counter));
    UNIT_CHECK(2 == sent && 1 == counter);

    uint8_t longer[64 + 24];
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, 64, longer));
    longer[0] = 1 << 4 | OPAL_CRYPT_FRAME_FIRST;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_first_open(ends.b, &here, longer, sizeof(longer), back, SIZE_MAX,
                                                            &shape, &counter, &chop));
    UNIT_CHECK(NULL == chop);
    ends_free(&ends);
}

static void claimed_types(void)
{
    uint8_t frame[8] = {0};

    for (unsigned first = 0; first < 256; ++first) {
        frame[0] = (uint8_t) first;
        bool good = 1 == first >> 4 && (first & 15) >= 1 && (first & 15) <= 5;
        UNIT_CHECK((good ? (int) (first & 15) : OPAL_CRYPT_ERR_AUTH) == opal_crypt_frame_type(frame, 8));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_frame_type(frame, 7));
    }
    frame[0] = 0x11;
    for (unsigned reserved = 1; reserved < 256; ++reserved) {
        frame[1] = (uint8_t) reserved;
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_frame_type(frame, 8));
    }
}

static int refuses_to_seal(opal_aead_context_t *context, const void *key, const uint8_t *nonce, const void *aad,
                           size_t aad_bytes, const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    (void) context, (void) key, (void) nonce, (void) aad, (void) aad_bytes, (void) plain, (void) text_bytes;
    (void) cipher, (void) tag;
    return OPAL_AEAD_ERROR;
}

static void counters(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 6);
    const uint64_t end = UINT64_C(1) << 48;
    uint8_t frame[OPAL_CRYPT_FINAL_BYTES], back[MOST];
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop = NULL;
    uint64_t counter;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(0, 0, 1, &shape));
    ends.a->next = end - 2;
    UNIT_CHECK(end - 2 == take(ends.a));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, "last", 4, frame));
    for (int i = 0; i < 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_direct_seal(ends.a, &here, "more", 4, back));
        UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_first_seal(ends.a, &here, &shape, "", back, &counter, &chop));
        UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_final_seal(ends.a, &here, back));
        UNIT_CHECK(NULL == chop && end == opal_crypt_session_sent(ends.a));
    }
    UNIT_CHECK(OPAL_CRYPT_OK == open_at(ends.b, &here, frame, 28, back));
    UNIT_CHECK(0 == memcmp(back, "last", 4));
    ends_free(&ends);
}

/* What the final frame says: its own counter, less what never left. */
static void counted_as_sent(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 9);
    opal_aead_module_t broken = *ends.a->aead;
    const opal_aead_module_t *aead = ends.a->aead;
    uint8_t frame[64 + OPAL_CRYPT_FIRST_OVERHEAD];
    opal_crypt_session_state_t state;
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop = NULL;
    uint64_t sent = 0, counter;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(100, 30, 24, &shape));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, "left", 4, frame));
    UNIT_CHECK(1 == opal_crypt_session_sent(ends.a));
    broken.seal = refuses_to_seal;
    ends.a->aead = &broken;
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_crypt_direct_seal(ends.a, &here, "stay", 4, frame));
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_crypt_first_seal(ends.a, &here, &shape, frame, frame, &counter, &chop));
    UNIT_CHECK(OPAL_CRYPT_ERR_LIBRARY == opal_crypt_final_seal(ends.a, &here, frame));
    ends.a->aead = aead;
    UNIT_CHECK(NULL == chop && 4 == ends.a->next && 1 == opal_crypt_session_sent(ends.a));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, "kept", 4, frame));
    opal_crypt_session_unsent(ends.a);          /* the host refused it */
    opal_crypt_session_snapshot(ends.a, &state);
    UNIT_CHECK(1 == state.sent);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_seal(ends.a, &here, frame));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_open(ends.b, &here, frame, OPAL_CRYPT_FINAL_BYTES, &sent, &counter));
    UNIT_CHECK(2 == sent && 5 == counter);
    ends.a->unsent = 100;                       /* more than there were */
    UNIT_CHECK(0 == opal_crypt_session_sent(ends.a));
    ends_free(&ends);
}

static void local_frames(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 7);
    const opal_crypt_token_t *out = opal_crypt_token_out(ends.a);
    const opal_crypt_token_t *in = opal_crypt_token_in(ends.b);
    static const opal_crypt_frame_type_t types[] = {OPAL_CRYPT_FRAME_LOCAL, OPAL_CRYPT_FRAME_LOCAL_LARGE};
    uint8_t frame[OPAL_CRYPT_LOCAL_LARGE_BYTES] = {0};

    UNIT_CHECK(out->base == in->base);
    for (int t = 0; t < 2; ++t) {
        opal_crypt_local_header(out, types[t], frame);
        UNIT_CHECK((int) types[t] == opal_crypt_frame_type(frame, sizeof(frame)));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_local_check(in, types[t], frame, sizeof(frame)));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_local_check(in, types[!t], frame, sizeof(frame)));
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_local_check(in, types[t], frame, 23));
        UNIT_CHECK((0 == t ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_AUTH)
                   == opal_crypt_local_check(in, types[t], frame, 24));
        /* the other direction's token is another */
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_local_check(opal_crypt_token_in(ends.a),
                                                                 types[t], frame, sizeof(frame)));
        for (unsigned bit = 0; bit < 8 * OPAL_CRYPT_LOCAL_HEADER; ++bit) {
            frame[bit / 8] ^= (uint8_t) (1u << (bit % 8));
            UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_local_check(in, types[t], frame, sizeof(frame)));
            frame[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        }
    }
    ends_free(&ends);
}

static void statistics(void)
{
    ends_t ends = ends_make(OPAL_AEAD_AES_128_GCM, 20, 8);
    opal_crypt_stats_t before, after;
    uint8_t plain[100] = {0}, frame[124], back[MOST];

    opal_crypt_stats(&before);
    for (int i = 0; i < 3; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &here, plain, 100, frame));
        UNIT_CHECK(OPAL_CRYPT_OK == open_at(ends.b, &here, frame, 124, back));
    }
    frame[30] ^= 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, frame, 124, back));
    opal_crypt_stats(&after);
    UNIT_CHECK(3 == after.sealed_calls - before.sealed_calls && 300 == after.sealed_bytes - before.sealed_bytes);
    UNIT_CHECK(3 == after.opened_calls - before.opened_calls && 300 == after.opened_bytes - before.opened_bytes);
    UNIT_CHECK(1 == after.failed_opens - before.failed_opens);

    /* the thousandth failure is reported */
    while (!opal_crypt_too_many_failures()) {
        UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == open_at(ends.b, &here, frame, 124, back));
    }
    opal_crypt_stats(&after);
    UNIT_CHECK(OPAL_CRYPT_FAILURES_MAX == after.failed_opens);
    ends_free(&ends);
    opal_crypt_finalize();
    UNIT_CHECK(!opal_crypt_too_many_failures());
    opal_crypt_stats(&after);
    UNIT_CHECK(0 == after.sealed_calls && 0 == after.failed_opens);
}

int main(void)
{
    UNIT_GROUP("statistics, and the thousandth failure");
    statistics();
    UNIT_GROUP("claimed types");
    claimed_types();
    for (opal_aead_cipher_t cipher = 0; cipher < OPAL_AEAD_CIPHERS; ++cipher) {
        if (opal_aead_openssl_module.ciphers & OPAL_AEAD_BIT(cipher)) {
            UNIT_GROUP("direct, cipher %d: round trips", (int) cipher);
            round_trips(cipher);
            UNIT_GROUP("direct, cipher %d: every byte counts", (int) cipher);
            every_byte_counts(cipher);
        }
    }
    UNIT_GROUP("direct: the largest");
    largest();
    UNIT_GROUP("types are kept apart");
    types_are_apart();
    UNIT_GROUP("counters end at 2^48");
    counters();
    UNIT_GROUP("what is counted as sent");
    counted_as_sent();
    UNIT_GROUP("local frames");
    local_frames();
    return unit_done();
}

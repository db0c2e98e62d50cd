/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * tests/vectors/frame-v1.txt, which another implementation wrote: we seal to
 * the same bytes, and open them.
 */
#include "unit.h"

#include "opal/mca/common/crypt/wire/tags.h"
#include "sessions.h"
#include "vectors.h"

#define MOST 1024

static uint8_t prk[32], pair[96];       /* pk_src || pk_dst || th */

static int64_t vector_number(const vector_block_t *vector, const char *name)
{
    return strtoll(vector_text(vector, name), NULL, 10);
}

static opal_aead_cipher_t cipher_of(const vector_block_t *vector)
{
    static const char *const names[] = {"AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "ChaCha20-Poly1305"};
    const char *name = vector_text(vector, "cipher");

    for (int i = 0; i < OPAL_AEAD_CIPHERS; ++i) {
        if (0 == strcmp(name, names[i])) {
            return (opal_aead_cipher_t) i;
        }
    }
    exit(1);
}

/* Without generation and tag: pieces have none. */
static opal_crypt_envelope_t context_of(const vector_block_t *vector)
{
    uint8_t context[16];

    UNIT_REQUIRE(16 == vector_bytes(vector, "context", context, sizeof(context)));
    return (opal_crypt_envelope_t) {opal_crypt_get64(context), opal_crypt_get64(context + 8), 0, 0};
}

static opal_crypt_envelope_t envelope_of(const vector_block_t *vector)
{
    opal_crypt_envelope_t envelope = context_of(vector);

    envelope.generation = (uint32_t) vector_number(vector, "generation");
    envelope.tag = (int32_t) vector_number(vector, "tag");
    return envelope;
}

/* The sender and the receiver of the vectors' pair. */
static ends_t ends_of(const vector_block_t *vector)
{
    opal_crypt_secrets_t sender, receiver;
    uint8_t token[20];
    ends_t ends = {0};

    fill(&sender, sizeof(sender), 1);           /* the other direction is not in the vectors */
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_DIRECTION, pair, sizeof(pair),
                                            sender.out.direct, 32));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_CHOP, pair, sizeof(pair),
                                            sender.out.chop, 32));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_PIECE, pair, sizeof(pair),
                                            sender.out.piece, 32));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(prk, OPAL_CRYPT_LABEL_LOCAL_TOKEN, pair, sizeof(pair),
                                            token, sizeof(token)));
    memcpy(sender.token_out.bytes, token, 16);
    sender.token_out.base = opal_crypt_get32(token + 16);
    receiver = (opal_crypt_secrets_t) {.in = sender.out, .out = sender.in,
                                              .token_in = sender.token_out, .token_out = sender.token_in};
    opal_aead_cipher_t cipher = NULL == vector ? OPAL_AEAD_AES_128_GCM : cipher_of(vector);
    ends.a = session_from(&sender, cipher, 20);
    ends.b = session_from(&receiver, cipher, 20);
    if (NULL != vector) {
        ends.a->next = (uint64_t) vector_number(vector, "counter");
    }
    return ends;
}

static void direct(const vector_block_t *vector)
{
    ends_t ends = ends_of(vector);
    const opal_crypt_envelope_t envelope = envelope_of(vector);
    const uint64_t counter = (uint64_t) vector_number(vector, "counter");
    uint8_t plain[MOST], frame[MOST], expected[MOST], back[MOST];
    uint64_t seen = UINT64_MAX;

    size_t bytes = vector_bytes(vector, "plain", plain, MOST);
    UNIT_CHECK(bytes + 24 == vector_bytes(vector, "frame", expected, MOST));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &envelope, plain, bytes, frame));
    UNIT_EQUAL_BYTES(frame, expected, bytes + 24);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_open(ends.b, &envelope, expected, bytes + 24, back, SIZE_MAX, &seen));
    UNIT_CHECK(seen == counter);
    UNIT_EQUAL_BYTES(back, plain, bytes);
    ends_free(&ends);
}

static void final(const vector_block_t *vector)
{
    ends_t ends = ends_of(vector);
    const opal_crypt_envelope_t envelope = envelope_of(vector);
    const uint64_t counter = (uint64_t) vector_number(vector, "counter");
    const uint64_t sent = (uint64_t) vector_number(vector, "sent");
    uint8_t frame[OPAL_CRYPT_FINAL_BYTES], expected[OPAL_CRYPT_FINAL_BYTES];
    uint64_t seen = UINT64_MAX, seen_sent = 0;

    UNIT_CHECK(sizeof(expected) == vector_bytes(vector, "frame", expected, sizeof(expected)));
    ends.a->unsent = counter + 1 - sent;
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_seal(ends.a, &envelope, frame));
    UNIT_EQUAL_BYTES(frame, expected, sizeof(expected));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_final_open(ends.b, &envelope, expected, sizeof(expected),
                                                      &seen_sent, &seen));
    UNIT_CHECK(seen == counter && seen_sent == sent);
    ends_free(&ends);
}

static void chopped(const vector_block_t *vector)
{
    ends_t ends = ends_of(vector);
    const opal_crypt_envelope_t envelope = envelope_of(vector);
    const uint64_t counter = (uint64_t) vector_number(vector, "counter");
    uint8_t plain[MOST], frame[MOST], expected[MOST], back[MOST];
    opal_crypt_shape_t shape, seen_shape = {0};
    opal_crypt_chop_t *sealing, *opening;
    uint64_t seen = UINT64_MAX, taken = UINT64_MAX;

    size_t total = vector_bytes(vector, "plain", plain, MOST);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_make(total, (uint32_t) vector_number(vector, "first"),
                                                        (uint32_t) vector_number(vector, "chunk"), &shape));
    if (0 == shape.count && 1 == vector_number(vector, "count")) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_shape_whole(total, &shape));
    }
    UNIT_CHECK(vector_number(vector, "count") == shape.count);

    const size_t wire = shape.first_bytes + 40;
    UNIT_CHECK(wire == vector_bytes(vector, "part0", expected, MOST));
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_seal(ends.a, &envelope, &shape, plain, frame, &taken, &sealing));
    UNIT_CHECK(taken == counter);
    UNIT_EQUAL_BYTES(frame, expected, wire);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_first_open(ends.b, &envelope, expected, wire, back, SIZE_MAX,
                                                        &seen_shape, &seen, &opening));
    UNIT_CHECK(seen == counter && same_shape(&seen_shape, &shape));

    for (uint32_t i = 1; i <= shape.count; ++i) {
        const uint64_t at = opal_crypt_segment_offset(&shape, i);
        const size_t bytes = opal_crypt_segment_bytes(&shape, i);
        char name[16];
        snprintf(name, sizeof(name), "part%u", i);
        UNIT_CHECK(bytes + 16 == vector_bytes(vector, name, expected, MOST));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_seal(sealing, i, plain + at, frame));
        UNIT_EQUAL_BYTES(frame, expected, bytes + 16);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(opening, i, expected, bytes + 16, back + at));
    }
    UNIT_EQUAL_BYTES(back, plain, total);
    opal_crypt_chop_end(sealing);
    opal_crypt_chop_end(opening);
    ends_free(&ends);
}

static void local(const vector_block_t *vector)
{
    ends_t ends = ends_of(NULL);
    const opal_crypt_token_t *token = opal_crypt_token_out(ends.a);
    uint8_t frame[OPAL_CRYPT_LOCAL_LARGE_BYTES], expected[OPAL_CRYPT_LOCAL_LARGE_BYTES];

    UNIT_CHECK(vector_number(vector, "base") == token->base);
    UNIT_CHECK(OPAL_CRYPT_LOCAL_HEADER == vector_bytes(vector, "small", expected, sizeof(expected)));
    opal_crypt_local_header(token, OPAL_CRYPT_FRAME_LOCAL, frame);
    UNIT_EQUAL_BYTES(frame, expected, OPAL_CRYPT_LOCAL_HEADER);
    UNIT_CHECK(sizeof(expected) == vector_bytes(vector, "large", expected, sizeof(expected)));
    opal_crypt_local_large(token, (uint64_t) vector_number(vector, "total"),
                           (uint64_t) vector_number(vector, "id"), frame);
    UNIT_EQUAL_BYTES(frame, expected, sizeof(frame));
    ends_free(&ends);
}

static opal_crypt_group_secret_t group_secret;

/* For all: under the group key.  For one: under keys of the two. */
static void piece(const vector_block_t *vector)
{
    const uint32_t origin = (uint32_t) vector_number(vector, "origin");
    const uint64_t counter = (uint64_t) vector_number(vector, "counter");
    uint8_t members[4][32] = {{1}, {2}, {3}, {4}}, plain[MOST], sealed[MOST], expected[MOST], back[MOST];
    const opal_crypt_envelope_t context = context_of(vector);
    opal_crypt_group_t *sender, *receiver;
    opal_crypt_piece_t piece = {
        .sequence = (uint64_t) vector_number(vector, "sequence"),
        .operation = (uint8_t) vector_number(vector, "operation"),
        .algorithm = (uint8_t) vector_number(vector, "algorithm"),
        .origin = origin,
        .destination = (uint32_t) vector_number(vector, "destination"),
        .index = (uint32_t) vector_number(vector, "index"),
        .count = (uint32_t) vector_number(vector, "count"),
        .plain_bytes = vector_bytes(vector, "plain", plain, MOST),
    };

    const bool all = OPAL_CRYPT_TO_ALL == piece.destination;
    const uint32_t opener = all ? (origin + 1) % 4 : piece.destination;
    UNIT_REQUIRE(origin < 4 && opener < 4 && 32 == vector_bytes(vector, "sender", members[origin], 32));
    ends_t ends = ends_of(vector);
    memcpy(ends.a->peer.key_hash, members[opener], 32);
    memcpy(ends.b->peer.key_hash, members[origin], 32);
    for (uint32_t self = 0; self < 2; ++self) {
        UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_group_from_secret(
                         &group_secret, &opal_aead_openssl_module, cipher_of(vector), 20, context.context_high,
                         context.context_low, members, 4, 0 == self ? origin : opener,
                         0 == self ? &sender : &receiver));
    }
    opal_crypt_group_next = counter;
    UNIT_CHECK(piece.plain_bytes + 24 == vector_bytes(vector, "sealed", expected, MOST));
    UNIT_CHECK(OPAL_CRYPT_OK == (all ? opal_crypt_piece_seal(sender, &piece, plain, sealed)
                                     : opal_crypt_piece_seal_to(sender, ends.a, &piece, plain, sealed)));
    UNIT_EQUAL_BYTES(sealed, expected, piece.plain_bytes + 24);
    UNIT_CHECK(OPAL_CRYPT_OK == (all ? opal_crypt_piece_open(receiver, &piece, expected, back)
                                     : opal_crypt_piece_open_from(receiver, ends.b, &piece, expected, back)));
    UNIT_EQUAL_BYTES(back, plain, piece.plain_bytes);
    ends_free(&ends);
    opal_crypt_group_destroy(sender);
    opal_crypt_group_destroy(receiver);
}

/* Of Open MPI's tags and the reserved ones. */
static void tags_of(const vector_block_t *vector)
{
    opal_crypt_tags_t tags;
    char tag[8], host[8];

    opal_crypt_tags_make((unsigned) vector_number(vector, "bits"), &tags);
    for (int i = 0; i < 14; ++i) {
        snprintf(tag, sizeof(tag), "tag%d", i);
        snprintf(host, sizeof(host), "host%d", i);
        if (vector_has(vector, tag)) {
            const int32_t given = (int32_t) vector_number(vector, tag);
            UNIT_CHECK(vector_number(vector, host)
                       == (given >= tags.floor ? given : opal_crypt_tags_below(&tags, given)));
        }
    }
}

static void rest(const vector_block_t *vector)
{
    const uint64_t counter = (uint64_t) vector_number(vector, "counter");
    opal_crypt_tags_t tags;

    opal_crypt_tags_make((unsigned) vector_number(vector, "bits"), &tags);
    UNIT_CHECK(vector_number(vector, "segments") == opal_crypt_tags_segments(&tags, counter));
    UNIT_CHECK(vector_number(vector, "body") == opal_crypt_tags_body(&tags, counter));
}

int main(void)
{
    FILE *file = vector_file("frame-v1.txt");
    vector_block_t vector = {.count = 0};
    unsigned done[7] = {0};

    while (vector_next(file, &vector)) {
        const char *kind = vector_text(&vector, "kind");
        if (0 == strcmp(kind, "pair")) {
            vector_bytes(&vector, "prk", prk, 32);
            vector_bytes(&vector, "pk_src", pair, 32);
            vector_bytes(&vector, "pk_dst", pair + 32, 32);
            vector_bytes(&vector, "th", pair + 64, 32);
        } else if (0 == strcmp(kind, "direct")) {
            direct(&vector);
            ++done[0];
        } else if (0 == strcmp(kind, "final")) {
            final(&vector);
            ++done[1];
        } else if (0 == strcmp(kind, "chopped")) {
            chopped(&vector);
            ++done[2];
        } else if (0 == strcmp(kind, "local")) {
            local(&vector);
            ++done[3];
        } else if (0 == strcmp(kind, "group")) {
            vector_bytes(&vector, "key", group_secret.key, sizeof(group_secret.key));
            vector_bytes(&vector, "id", group_secret.id, sizeof(group_secret.id));
        } else if (0 == strcmp(kind, "piece")) {
            piece(&vector);
            ++done[4];
        } else if (0 == strcmp(kind, "tags")) {
            tags_of(&vector);
            ++done[5];
        } else if (0 == strcmp(kind, "rest")) {
            rest(&vector);
            ++done[6];
        } else {
            UNIT_CHECK(!"a kind of vector that this test knows");
        }
    }
    vector_clear(&vector);
    fclose(file);
    UNIT_GROUP("%u direct, %u final, %u chopped messages, %u local frames, %u pieces, %u lists of tags", done[0], done[1], done[2],
               done[3], done[4], done[5]);
    UNIT_CHECK(24 == done[0] && 4 == done[1] && 40 == done[2] && 1 == done[3] && 24 == done[4]
               && 4 == done[5] && 20 == done[6]);
    return unit_done();
}

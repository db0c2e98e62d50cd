/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Any bytes as a frame: from the network, or from a peer that holds the keys
 * but makes frames of its own.
 *
 *     | what 1 | context id 16 | tag 4 | frame ... |
 *
 *     0  a direct message                 3, 4  a local frame, small and large
 *     1  a final message                  5     | description 26 | piece |, for all or for one
 *     2  a first part                     6     a first part's header and plaintext, which
 *                                               the key's holder seals as they are
 *
 * What opens is sealed again to the same bytes; what does not leaves zeros and
 * no trace in the session.  make_corpus_frame.py knows the keys.
 */
#include "fuzz.h"

#include "opal/mca/common/crypt/wire/chop.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);
void *opal_crypt_secmem_alloc(size_t bytes);

#define ENVELOPE 24
#define PIECE    26
#define RANKS    3
#define LONGEST  4096               /* of a segment that is tried */

static opal_crypt_session_t *sender, *receiver;
static opal_crypt_group_t *origin, *member;

static opal_crypt_session_t *session(int out, int in)
{
    opal_crypt_secrets_t *secrets = opal_crypt_secmem_alloc(sizeof(*secrets));
    opal_crypt_session_t *made;

    FUZZ_CHECK(NULL != secrets);
    memset(secrets->out.direct, 0x10 + out, sizeof(secrets->out.direct));
    memset(secrets->out.chop, 0x20 + out, sizeof(secrets->out.chop));
    memset(secrets->out.piece, 0x40 + out, sizeof(secrets->out.piece));
    memset(&secrets->token_out, 0x30 + out, sizeof(secrets->token_out));
    memset(secrets->in.direct, 0x10 + in, sizeof(secrets->in.direct));
    memset(secrets->in.chop, 0x20 + in, sizeof(secrets->in.chop));
    memset(secrets->in.piece, 0x40 + in, sizeof(secrets->in.piece));
    memset(&secrets->token_in, 0x30 + in, sizeof(secrets->token_in));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_session_from_secrets(secrets, &opal_aead_openssl_module,
                                                                OPAL_AEAD_AES_128_GCM, 20, &made));
    return made;
}

static opal_crypt_group_t *group(uint32_t self)
{
    opal_crypt_group_secret_t secret;
    opal_crypt_group_t *made;
    uint8_t members[RANKS][32];

    memset(secret.key, 0x50, sizeof(secret.key));
    memset(secret.id, 0x60, sizeof(secret.id));
    for (int i = 0; i < RANKS; ++i) {
        memset(members[i], 0x70 + i, sizeof(members[i]));
    }
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_group_from_secret(&secret, &opal_aead_openssl_module,
                                                             OPAL_AEAD_AES_128_GCM, 20, 8, 9,
                                                             (const uint8_t (*)[32]) members, RANKS, self,
                                                             &made));
    return made;
}

static void begin(void)
{
    if (NULL == sender) {
        FUZZ_CHECK(0 == opal_aead_openssl_init());
        sender = session(1, 0);
        receiver = session(0, 1);
    }
}

/* Bytes of their own, so that a sanitizer sees one too many. */
static uint8_t *block(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(0 == size ? 1 : size);

    FUZZ_CHECK(NULL != copy);
    if (NULL == data) {
        memset(copy, 0xa5, size);
    } else {
        memcpy(copy, data, size);
    }
    return copy;
}

static int zeros(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; ++i) {
        if (0 != bytes[i]) {
            return 0;
        }
    }
    return 1;
}

static void no_trace(void)
{
    FUZZ_CHECK(0 == receiver->replay.top && 0 == receiver->replay.accepted && 0 == receiver->order.count);
    for (int i = 0; i < OPAL_CRYPT_EPOCH_SEATS; ++i) {
        FUZZ_CHECK(0 == (receiver->in.seats[i].word & 0x7fff));         /* nobody holds it */
    }
}

static void direct(const opal_crypt_envelope_t *envelope, const uint8_t *frame, size_t size)
{
    size_t plain_bytes = size < OPAL_CRYPT_DIRECT_OVERHEAD ? 0 : size - OPAL_CRYPT_DIRECT_OVERHEAD;
    uint8_t *plain = block(NULL, plain_bytes), *again = block(NULL, size);
    uint64_t counter = UINT64_MAX;
    int rc = opal_crypt_direct_open(receiver, envelope, frame, size, plain, SIZE_MAX, &counter);

    if (OPAL_CRYPT_OK == rc) {
        sender->next = counter;
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(sender, envelope, plain, plain_bytes, again));
        FUZZ_CHECK(0 == memcmp(frame, again, size));
    } else {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == rc && zeros(plain, plain_bytes) && UINT64_MAX == counter);
    }
    free(plain);
    free(again);
}

static void final(const opal_crypt_envelope_t *envelope, const uint8_t *frame, size_t size)
{
    uint8_t again[OPAL_CRYPT_FINAL_BYTES];
    uint64_t counter = UINT64_MAX, sent = UINT64_MAX;

    if (OPAL_CRYPT_OK == opal_crypt_final_open(receiver, envelope, frame, size, &sent, &counter)) {
        sender->next = counter;
        sender->unsent = counter + 1 - sent;
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_final_seal(sender, envelope, again));
        FUZZ_CHECK(sizeof(again) == size && (sent > counter + 1 || 0 == memcmp(frame, again, size)));
    } else {
        FUZZ_CHECK(0 == sent && UINT64_MAX == counter);
    }
}

/* A first part that has all of its message may have an empty segment behind it (docs/wire-format.rst). */
static bool right_count(const opal_crypt_shape_t *made, uint32_t count)
{
    return made->count == count || (0 == made->count && 1 == count);
}

/* Whatever they are, segments of the wrong bytes do not open, and the right ones do. */
static void segments(const opal_crypt_shape_t *shape, opal_crypt_chop_t *opening,
                     opal_crypt_chop_t *sealing, const uint8_t *data, size_t size)
{
    for (uint32_t i = 1; i <= shape->count && i <= 4; ++i) {
        const uint32_t segment = 4 == i ? shape->count : i;
        const size_t bytes = opal_crypt_segment_bytes(shape, segment);
        FUZZ_CHECK((bytes > 0 || shape->first_bytes == shape->total_bytes) && bytes <= shape->chunk_bytes);
        FUZZ_CHECK(opal_crypt_segment_offset(shape, segment) + bytes <= shape->total_bytes);
        if (bytes > LONGEST) {
            continue;
        }
        uint8_t *plain = block(NULL, bytes), *frame = block(NULL, bytes + OPAL_CRYPT_SEGMENT_OVERHEAD);
        memcpy(frame, data, size < bytes ? size : bytes);
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_segment_open(
                       opening, segment, frame, bytes + OPAL_CRYPT_SEGMENT_OVERHEAD, plain));
        FUZZ_CHECK(zeros(plain, bytes));
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_seal(sealing, segment, plain, frame));
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_segment_open(
                       opening, segment, frame, bytes + OPAL_CRYPT_SEGMENT_OVERHEAD, plain));
        free(plain);
        free(frame);
    }
    FUZZ_CHECK(OPAL_CRYPT_OK != opal_crypt_segment_open(opening, 0, data, size, NULL));
    FUZZ_CHECK(OPAL_CRYPT_OK != opal_crypt_segment_open(opening, shape->count + 1, data, size, NULL));
}

static int first(const opal_crypt_envelope_t *envelope, const uint8_t *frame, size_t size)
{
    size_t first_bytes = size < OPAL_CRYPT_FIRST_OVERHEAD ? 0 : size - OPAL_CRYPT_FIRST_OVERHEAD;
    uint8_t *plain = block(NULL, first_bytes), *again = block(NULL, size);
    opal_crypt_chop_t *opening = (opal_crypt_chop_t *) plain, *sealing;
    opal_crypt_shape_t shape, made;
    uint64_t counter = UINT64_MAX, taken = UINT64_MAX;
    int rc = opal_crypt_first_open(receiver, envelope, frame, size, plain, SIZE_MAX, &shape, &counter, &opening);

    if (OPAL_CRYPT_OK == rc) {
        FUZZ_CHECK(first_bytes == shape.first_bytes);
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_shape_make(shape.total_bytes, shape.first_bytes,
                                                          shape.chunk_bytes, &made));
        FUZZ_CHECK(right_count(&made, shape.count));
        sender->next = counter;
        FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_first_seal(sender, envelope, &shape, plain, again, &taken, &sealing));
        FUZZ_CHECK(taken == counter);
        FUZZ_CHECK(0 == memcmp(frame, again, size));
        segments(&shape, opening, sealing, frame, size);
        opal_crypt_chop_end(sealing);
        opal_crypt_chop_end(opening);
    } else {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == rc && zeros(plain, first_bytes));
        FUZZ_CHECK(UINT64_MAX == counter && NULL == opening);
    }
    free(plain);
    free(again);
    return rc;
}

static void local(const uint8_t *frame, size_t size, opal_crypt_frame_type_t type)
{
    const opal_crypt_token_t *out = opal_crypt_token_out(sender);
    uint8_t again[OPAL_CRYPT_LOCAL_LARGE_BYTES];

    if (OPAL_CRYPT_OK != opal_crypt_local_check(opal_crypt_token_in(receiver), type, frame, size)) {
        return;
    }
    if (OPAL_CRYPT_FRAME_LOCAL == type) {
        opal_crypt_local_header(out, type, again);
        FUZZ_CHECK(0 == memcmp(frame, again, OPAL_CRYPT_LOCAL_HEADER));
        return;
    }
    opal_crypt_local_large(out, opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER),
                           opal_crypt_get64(frame + OPAL_CRYPT_LOCAL_HEADER + 8), again);
    FUZZ_CHECK(sizeof(again) == size && 0 == memcmp(frame, again, size));
}

static void piece(const uint8_t *data, size_t size)
{
    const size_t plain_bytes = size - PIECE - OPAL_CRYPT_PIECE_OVERHEAD;
    const opal_crypt_piece_t what = {
        .sequence = opal_crypt_get64(data), .operation = data[8], .algorithm = data[9],
        .origin = opal_crypt_get32(data + 10), .destination = opal_crypt_get32(data + 14),
        .index = opal_crypt_get32(data + 18), .count = opal_crypt_get32(data + 22),
        .plain_bytes = plain_bytes,
    };
    uint8_t *plain = block(NULL, plain_bytes), *again = block(NULL, plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD);

    const bool all = OPAL_CRYPT_TO_ALL == what.destination;
    const uint32_t from = what.origin < RANKS ? what.origin : 0;

    origin = group(from);
    member = group(1);
    memset(receiver->peer.key_hash, 0x70 + (int) from, 32);     /* group() */
    memset(sender->peer.key_hash, 0x70 + 1, 32);
    int rc = all ? opal_crypt_piece_open(member, &what, data + PIECE, plain)
                 : opal_crypt_piece_open_from(member, receiver, &what, data + PIECE, plain);
    if (OPAL_CRYPT_OK == rc) {
        opal_crypt_group_next = opal_crypt_get64(data + PIECE);
        FUZZ_CHECK(OPAL_CRYPT_OK == (all ? opal_crypt_piece_seal(origin, &what, plain, again)
                                         : opal_crypt_piece_seal_to(origin, sender, &what, plain, again)));
        FUZZ_CHECK(0 == memcmp(data + PIECE, again, plain_bytes + OPAL_CRYPT_PIECE_OVERHEAD));
    } else if (OPAL_CRYPT_ERR_CONFIG != rc) {
        FUZZ_CHECK(OPAL_CRYPT_ERR_AUTH == rc && zeros(plain, plain_bytes));
    }
    opal_crypt_group_destroy(origin);
    opal_crypt_group_destroy(member);
    free(plain);
    free(again);
}

/* The key's holder seals any header: it opens if and only if it makes sense. */
static void insider(const opal_crypt_envelope_t *envelope, const uint8_t *data, size_t size)
{
    const size_t first_bytes = size - OPAL_CRYPT_FIRST_HEADER, wire = size + OPAL_CRYPT_FRAME_TAG;
    const uint64_t counter = opal_crypt_get48(data + 2);
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], aad[OPAL_CRYPT_FIRST_HEADER + ENVELOPE];
    uint8_t *frame = block(NULL, wire);
    opal_aead_context_t *context = opal_crypt_context(sender->aead);
    opal_crypt_shape_t shape;
    opal_crypt_chop_t *chop;
    opal_crypt_hold_t hold;

    FUZZ_CHECK(NULL != context);
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_epoch_hold(&sender->out, counter >> sender->shift, &hold));
    FUZZ_CHECK(OPAL_CRYPT_OK == opal_crypt_chop_make(sender, hold.epoch, counter, &chop));
    opal_crypt_epoch_release(&sender->out, &hold, true);
    opal_crypt_nonce_segment(chop->prefix, 0 == opal_crypt_get32(data + 20), 0, nonce);
    memcpy(frame, data, OPAL_CRYPT_FIRST_HEADER);
    memcpy(aad, data, OPAL_CRYPT_FIRST_HEADER);
    opal_crypt_envelope_put(aad + OPAL_CRYPT_FIRST_HEADER, envelope);
    FUZZ_CHECK(OPAL_AEAD_OK == sender->aead->seal(context, chop->key, nonce, aad, sizeof(aad),
                                                  data + OPAL_CRYPT_FIRST_HEADER, first_bytes,
                                                  frame + OPAL_CRYPT_FIRST_HEADER, frame + size));
    opal_crypt_chop_end(chop);

    int sense = 0x12 == data[0] && 0 == data[1]
                && OPAL_CRYPT_OK == opal_crypt_shape_make(opal_crypt_get64(data + 8),
                                                          (uint32_t) first_bytes,
                                                          opal_crypt_get32(data + 16), &shape)
                && right_count(&shape, opal_crypt_get32(data + 20));
    FUZZ_CHECK((OPAL_CRYPT_OK == first(envelope, frame, wire)) == sense);
    free(frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    opal_crypt_envelope_t envelope;

    begin();
    if (size < 1 + ENVELOPE) {
        return 0;
    }
    envelope.context_high = opal_crypt_get64(data + 1);
    envelope.context_low = opal_crypt_get64(data + 9);
    envelope.generation = opal_crypt_get32(data + 17);
    envelope.tag = (int32_t) opal_crypt_get32(data + 21);

    const size_t bytes = size - 1 - ENVELOPE;
    uint8_t *frame = block(data + 1 + ENVELOPE, bytes);
    switch (data[0]) {
    case 0: direct(&envelope, frame, bytes); break;
    case 1: final(&envelope, frame, bytes); break;
    case 2: (void) first(&envelope, frame, bytes); break;
    case 3: local(frame, bytes, OPAL_CRYPT_FRAME_LOCAL); break;
    case 4: local(frame, bytes, OPAL_CRYPT_FRAME_LOCAL_LARGE); break;
    case 5: if (bytes >= PIECE + OPAL_CRYPT_PIECE_OVERHEAD) { piece(frame, bytes); } break;
    case 6: if (bytes >= OPAL_CRYPT_FIRST_HEADER) { insider(&envelope, frame, bytes); } break;
    default: break;
    }
    free(frame);
    no_trace();
    return 0;
}

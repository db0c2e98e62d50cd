/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Pieces of collectives that one member opens: as the piece that it is and as no
 * other, and no third member, which has the group key, can read or make one.
 */
#include "unit.h"

#include "sessions.h"

#define RANKS 3
#define SHIFT 3
#define MOST  256

static opal_crypt_group_secret_t secret;
static uint8_t hashes[RANKS][32];

static opal_crypt_group_t *member(uint32_t self, opal_aead_cipher_t cipher, uint64_t context_low)
{
    opal_crypt_group_t *group = NULL;

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_group_from_secret(&secret, &opal_aead_openssl_module, cipher,
                                                               SHIFT, 5, context_low, hashes, RANKS, self,
                                                               &group));
    return group;
}

/* A session of these two: `seed` says which. */
static ends_t pair(uint32_t a, uint32_t b, opal_aead_cipher_t cipher, uint64_t seed)
{
    ends_t ends = ends_make(cipher, SHIFT, seed);

    memcpy(ends.a->peer.key_hash, hashes[b], 32);
    memcpy(ends.b->peer.key_hash, hashes[a], 32);
    return ends;
}

static opal_crypt_piece_t piece_of(uint64_t sequence, uint32_t origin, uint32_t destination, uint64_t plain_bytes)
{
    return (opal_crypt_piece_t) {.sequence = sequence, .operation = 3, .algorithm = 2, .origin = origin,
                                        .destination = destination, .index = 3, .count = 4,
                                        .plain_bytes = plain_bytes};
}

static int refused(opal_crypt_group_t *group, opal_crypt_session_t *session,
                   opal_crypt_piece_t piece, const uint8_t *sealed)
{
    uint8_t back[MOST];

    memset(back, 0x55, sizeof(back));
    return OPAL_CRYPT_ERR_AUTH == opal_crypt_piece_open_from(group, session, &piece, sealed, back)
           && all_zero(back, piece.plain_bytes);
}

static void all_sizes(opal_aead_cipher_t cipher)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, MOST};
    opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1);
    ends_t ends = pair(0, 1, cipher, 7);
    uint8_t plain[MOST], sealed[MOST + 24], back[MOST];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        opal_crypt_piece_t piece = piece_of(2 * i + 1, 0, 1, sizes[i]);
        fill(plain, sizeof(plain), i);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, sealed));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &piece, sealed, back));
        UNIT_EQUAL_BYTES(plain, back, sizes[i]);

        /* in place */
        piece.sequence++;
        memcpy(sealed + 8, plain, sizes[i]);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &piece, sealed + 8, sealed));
        UNIT_CHECK(sizes[i] < 16 || 0 != memcmp(sealed + 8, plain, sizes[i]));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &piece, sealed, sealed + 8));
        UNIT_EQUAL_BYTES(plain, sealed + 8, sizes[i]);
    }
    ends_free(&ends);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

static void every_bit(void)
{
    const opal_aead_cipher_t cipher = OPAL_AEAD_AES_128_GCM;
    opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1), *other;
    ends_t ends = pair(0, 1, cipher, 7), others = pair(0, 1, cipher, 8);
    ends_t from_2 = pair(2, 1, cipher, 7), to_2 = pair(0, 2, cipher, 7);
    const opal_crypt_piece_t piece = piece_of(9, 0, 1, 40);
    uint8_t plain[40], sealed[64], back[40];

    fill(plain, sizeof(plain), 1);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, sealed));
    for (unsigned bit = 0; bit < 8 * sizeof(sealed); ++bit) {
        sealed[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        UNIT_CHECK(refused(b, ends.b, piece, sealed));
        sealed[bit / 8] ^= (uint8_t) (1u << (bit % 8));
    }

    /* every field of the description */
    opal_crypt_piece_t fields[] = {piece, piece, piece, piece, piece, piece, piece};
    fields[0].sequence ^= 1;
    fields[1].operation ^= 1;
    fields[2].algorithm ^= 0x80;
    fields[3].index ^= UINT32_C(1) << 31;
    fields[4].count ^= 1;
    fields[5].plain_bytes -= 1;
    fields[6].index = piece.count, fields[6].count = piece.index;
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); ++i) {
        UNIT_CHECK(refused(b, ends.b, fields[i], sealed));
    }
    /* even with the same keys */
    UNIT_CHECK(refused(b, from_2.b, piece_of(9, 2, 1, 40), sealed));
    UNIT_CHECK(refused(other = member(2, cipher, 1), to_2.b, piece_of(9, 0, 2, 40), sealed));
    opal_crypt_group_destroy(other);

    /* another communicator, another group, another session, and its own way back */
    UNIT_CHECK(refused(other = member(1, cipher, 2), ends.b, piece, sealed));
    opal_crypt_group_destroy(other);
    secret.id[15] ^= 1;
    UNIT_CHECK(refused(other = member(1, cipher, 1), ends.b, piece, sealed));
    opal_crypt_group_destroy(other);
    secret.id[15] ^= 1;
    UNIT_CHECK(refused(b, others.b, piece, sealed));
    UNIT_CHECK(refused(a, ends.a, piece_of(9, 1, 0, 40), sealed));

    /* and it still opens: nothing of all that was committed */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &piece, sealed, back));
    UNIT_EQUAL_BYTES(plain, back, sizeof(plain));
    ends_free(&ends);
    ends_free(&others);
    ends_free(&from_2);
    ends_free(&to_2);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

/* ---- with the group key alone ---- */

/* What a member can derive: keys of every sender. */
typedef struct insider {
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], aad[74];
    opal_aead_context_t *context;
    void *key;
} insider_t;

static insider_t insider(uint32_t sender, uint64_t counter, const opal_crypt_piece_t *piece)
{
    uint8_t scope[16 + 16 + 32 + 8], raw[16], iv[12];
    insider_t knows = {.key = opal_crypt_secmem_alloc(opal_aead_openssl_module.key_bytes)};

    memcpy(scope, secret.id, 16);
    opal_crypt_put64(scope + 16, 5);
    opal_crypt_put64(scope + 24, 1);
    memcpy(scope + 32, hashes[sender], 32);
    opal_crypt_put64(scope + 64, counter >> SHIFT);
    UNIT_REQUIRE(NULL != knows.key && 0 == opal_aead_openssl_module.context_new(&knows.context));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(secret.key, OPAL_CRYPT_LABEL_GROUP_KEY, scope, sizeof(scope), raw, 16));
    UNIT_REQUIRE(0 == opal_crypt_kdf_expand(secret.key, OPAL_CRYPT_LABEL_GROUP_IV, scope, sizeof(scope), iv, 12));
    UNIT_REQUIRE(0 == opal_aead_openssl_module.key_init(OPAL_AEAD_AES_128_GCM, raw, knows.key));
    opal_crypt_nonce_epoch(iv, counter, knows.nonce);
    opal_crypt_put64(knows.aad, counter);
    memcpy(knows.aad + 8, secret.id, 16);
    opal_crypt_put64(knows.aad + 24, piece->sequence);
    knows.aad[32] = piece->operation;
    knows.aad[33] = piece->algorithm;
    opal_crypt_put32(knows.aad + 34, piece->origin);
    opal_crypt_put32(knows.aad + 38, piece->destination);
    opal_crypt_put32(knows.aad + 42, piece->index);
    opal_crypt_put32(knows.aad + 46, piece->count);
    opal_crypt_put64(knows.aad + 50, piece->plain_bytes);
    memcpy(knows.aad + 58, scope + 16, 16);
    return knows;
}

/* The format, as a member may try it: with the context id behind, and without. */
enum { AAD_SHORT = 58, AAD_LONG = 74 };

static void insider_free(insider_t *knows)
{
    opal_aead_openssl_module.context_free(knows->context);
    opal_crypt_secmem_free(knows->key);
}

static int insider_opens(const opal_crypt_piece_t *piece, const uint8_t *sealed, size_t aad_bytes)
{
    insider_t knows = insider(piece->origin, opal_crypt_get64(sealed), piece);
    uint8_t back[MOST];
    int rc = opal_aead_openssl_module.open(knows.context, knows.key, knows.nonce, knows.aad, aad_bytes,
                                           sealed + 8, piece->plain_bytes, sealed + 8 + piece->plain_bytes, back);

    insider_free(&knows);
    return OPAL_AEAD_OK == rc;
}

static void insider_seals(const opal_crypt_piece_t *piece, uint64_t counter, const uint8_t *plain, size_t aad_bytes,
                          uint8_t *sealed)
{
    insider_t knows = insider(piece->origin, counter, piece);

    opal_crypt_put64(sealed, counter);
    UNIT_REQUIRE(OPAL_AEAD_OK
                 == opal_aead_openssl_module.seal(knows.context, knows.key, knows.nonce,
                                                  knows.aad, aad_bytes, plain, piece->plain_bytes,
                                                  sealed + 8, sealed + 8 + piece->plain_bytes));
    insider_free(&knows);
}

static void third_member(void)
{
    const opal_aead_cipher_t cipher = OPAL_AEAD_AES_128_GCM;
    opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1), *c = member(2, cipher, 1);
    ends_t ends = pair(0, 1, cipher, 7), with_a = pair(0, 2, cipher, 8);
    opal_crypt_piece_t piece = piece_of(1, 0, 1, 40), for_all = piece_of(1, 0, OPAL_CRYPT_TO_ALL, 40);
    uint8_t plain[40], sealed[64], forged[64], back[40];

    /* pieces for all it can read and make: so its attempts are right */
    fill(plain, sizeof(plain), 1);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &for_all, plain, sealed));
    UNIT_CHECK(insider_opens(&for_all, sealed, AAD_SHORT));
    insider_seals(&for_all, 1000, plain, AAD_SHORT, forged);
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &for_all, forged, back));

    /* pieces for one it cannot */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, sealed));
    UNIT_CHECK(!insider_opens(&piece, sealed, AAD_SHORT) && !insider_opens(&piece, sealed, AAD_LONG));
    piece.destination = 2;
    UNIT_CHECK(refused(c, with_a.b, piece, sealed));
    piece.destination = OPAL_CRYPT_TO_ALL;
    UNIT_CHECK(OPAL_CRYPT_ERR_AUTH == opal_crypt_piece_open(c, &piece, sealed, back));
    piece.destination = 1;
    for (int i = 0; i < 2; ++i) {
        insider_seals(&piece, 2000, plain, 0 == i ? AAD_SHORT : AAD_LONG, forged);
        UNIT_CHECK(refused(b, ends.b, piece, forged));
    }

    /* nor do we, by mistake */
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal(a, &piece, plain, forged));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open(c, &piece, sealed, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open(b, &piece, sealed, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open_from(c, with_a.b, &piece, sealed, back));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal_to(a, with_a.a, &piece, plain, forged));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open_from(b, with_a.a, &piece, sealed, back));
    piece.destination = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, forged));
    piece.destination = RANKS;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, forged));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal_to(a, ends.a, &for_all, plain, forged));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open_from(b, ends.b, &for_all, sealed, back));
    piece = piece_of(1, RANKS, 1, 40);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open_from(b, ends.b, &piece, sealed, back));
    ends_free(&ends);
    ends_free(&with_a);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
    opal_crypt_group_destroy(c);
}

/* Pieces for one and for all of an origin are one sequence. */
static void order(void)
{
    const opal_aead_cipher_t cipher = OPAL_AEAD_AES_128_GCM;
    opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1);
    ends_t ends = pair(0, 1, cipher, 7);
    opal_crypt_piece_t first = piece_of(1, 0, 1, 1), all = piece_of(2, 0, OPAL_CRYPT_TO_ALL, 1),
                              last = piece_of(3, 0, 1, 1), late = piece_of(4, 0, 1, 1);
    uint8_t sealed[4][25], plain[1];

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &first, "x", sealed[0]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &late, "x", sealed[3]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &all, "x", sealed[1]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &last, "x", sealed[2]));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &first, sealed[0], plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &all, sealed[1], plain));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open_from(b, ends.b, &first, sealed[0], plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &last, sealed[2], plain));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open(b, &all, sealed[1], plain) && 0 == plain[0]);
    plain[0] = 1;
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open_from(b, ends.b, &late, sealed[3], plain)
               && 0 == plain[0]);
    ends_free(&ends);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

/* The build that aborts when a pair seals twice: many groups share a session, and take
 * turns with pieces for all and with its messages, through more epochs than are kept. */
static void never_twice(void)
{
    const opal_aead_cipher_t cipher = OPAL_AEAD_AES_128_GCM;
    ends_t ends = pair(0, 1, cipher, 7);
    const opal_crypt_envelope_t envelope = {5, 1, 1, 3};
    uint8_t sealed[34], frame[34], plain[10] = {0};

    for (unsigned i = 0; i < 500; ++i) {
        opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1);
        const opal_crypt_piece_t piece = piece_of(i + 1, 0, 1, sizeof(plain));
        const opal_crypt_piece_t for_all = piece_of(i + 1, 0, OPAL_CRYPT_TO_ALL, sizeof(plain));

        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal_to(a, ends.a, &piece, plain, sealed));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open_from(b, ends.b, &piece, sealed, plain));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &for_all, plain, sealed));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_direct_seal(ends.a, &envelope, plain, sizeof(plain), frame));
        opal_crypt_group_destroy(a);
        opal_crypt_group_destroy(b);
    }
    ends_free(&ends);
}

int main(void)
{
    UNIT_REQUIRE(0 == opal_aead_openssl_init());
    fill(&secret, sizeof(secret), 3);
    fill(hashes, sizeof(hashes), 4);

    UNIT_GROUP("pieces of all sizes, every cipher");
    for (int cipher = 0; cipher < OPAL_AEAD_CIPHERS; ++cipher) {
        all_sizes((opal_aead_cipher_t) cipher);
    }
    UNIT_GROUP("every bit of a piece and every field of its description");
    every_bit();
    UNIT_GROUP("a third member, who has the group key");
    third_member();
    UNIT_GROUP("collectives in order");
    order();
    UNIT_GROUP("500 groups from one secret, with one session");
    never_twice();
    opal_crypt_finalize();
    return unit_done();
}

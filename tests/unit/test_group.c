/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Group pieces: what one member seals for all every member opens, as the piece that
 * it is and as no other; the counter never gives two pieces one nonce.
 */
#include "unit.h"

#include "sessions.h"

#include "opal/mca/common/crypt/base/nonce_log.h"

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

static opal_crypt_piece_t piece_of(uint64_t sequence, uint32_t origin, uint64_t plain_bytes)
{
    return (opal_crypt_piece_t) {.sequence = sequence, .operation = 1, .algorithm = 2, .origin = origin,
                                        .destination = OPAL_CRYPT_TO_ALL, .index = 3, .count = 4,
                                        .plain_bytes = plain_bytes};
}

/* As this piece it does not open, and leaves zeros. */
static int refused(opal_crypt_group_t *group, opal_crypt_piece_t piece, const uint8_t *sealed)
{
    uint8_t back[MOST];

    memset(back, 0x55, sizeof(back));
    return OPAL_CRYPT_ERR_AUTH == opal_crypt_piece_open(group, &piece, sealed, back)
           && all_zero(back, piece.plain_bytes);
}

static void all_sizes(opal_aead_cipher_t cipher)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 100, MOST};
    opal_crypt_group_t *a = member(0, cipher, 1), *b = member(1, cipher, 1);
    uint8_t plain[MOST], sealed[MOST + 24], back[MOST];

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); ++i) {
        opal_crypt_piece_t piece = piece_of(i + 1, 0, sizes[i]);
        fill(plain, sizeof(plain), i);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &piece, plain, sealed));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &piece, sealed, back));
        UNIT_EQUAL_BYTES(plain, back, sizes[i]);

        /* in place */
        piece.sequence += 100;
        memcpy(sealed + 8, plain, sizes[i]);
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &piece, sealed + 8, sealed));
        UNIT_CHECK(sizes[i] < 16 || 0 != memcmp(sealed + 8, plain, sizes[i]));
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &piece, sealed, sealed + 8));
        UNIT_EQUAL_BYTES(plain, sealed + 8, sizes[i]);
        opal_crypt_group_destroy(b);
        b = member(1, cipher, 1);
    }
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

static void every_bit(void)
{
    opal_crypt_group_t *a = member(0, OPAL_AEAD_AES_128_GCM, 1), *b = member(1, OPAL_AEAD_AES_128_GCM, 1);
    const opal_crypt_piece_t piece = piece_of(9, 0, 40);
    uint8_t plain[40], sealed[64], back[40];
    opal_crypt_stats_t before, after;
    unsigned long tried = 0;

    fill(plain, sizeof(plain), 1);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &piece, plain, sealed));
    opal_crypt_stats(&before);
    for (unsigned bit = 0; bit < 8 * sizeof(sealed); ++bit, ++tried) {
        sealed[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        UNIT_CHECK(refused(b, piece, sealed));
        sealed[bit / 8] ^= (uint8_t) (1u << (bit % 8));
    }

    /* every field of the description */
    opal_crypt_piece_t others[] = {piece, piece, piece, piece, piece, piece, piece, piece, piece};
    others[0].sequence ^= 1;
    others[1].sequence ^= UINT64_C(1) << 63;
    others[2].operation ^= 1;
    others[3].algorithm ^= 0x80;
    others[4].origin = 2;
    others[5].index ^= UINT32_C(1) << 31;
    others[6].count ^= 1;
    others[7].plain_bytes -= 1;
    others[8].index = piece.count, others[8].count = piece.index;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); ++i, ++tried) {
        UNIT_CHECK(refused(b, others[i], sealed));
    }

    /* another communicator, another group, another member, another cipher */
    opal_crypt_group_t *other = member(1, OPAL_AEAD_AES_128_GCM, 2);
    UNIT_CHECK(refused(other, piece, sealed));
    opal_crypt_group_destroy(other);
    secret.id[15] ^= 1;
    other = member(1, OPAL_AEAD_AES_128_GCM, 1);
    secret.id[15] ^= 1;
    UNIT_CHECK(refused(other, piece, sealed));
    opal_crypt_group_destroy(other);
    secret.key[0] ^= 1;
    other = member(1, OPAL_AEAD_AES_128_GCM, 1);
    secret.key[0] ^= 1;
    UNIT_CHECK(refused(other, piece, sealed));
    opal_crypt_group_destroy(other);
    hashes[0][31] ^= 1;
    other = member(1, OPAL_AEAD_AES_128_GCM, 1);
    hashes[0][31] ^= 1;
    UNIT_CHECK(refused(other, piece, sealed));
    opal_crypt_group_destroy(other);
    other = member(1, OPAL_AEAD_AES_256_GCM, 1);
    UNIT_CHECK(refused(other, piece, sealed));
    opal_crypt_group_destroy(other);

    opal_crypt_stats(&after);
    UNIT_CHECK(tried + 5 == after.failed_opens - before.failed_opens);
    UNIT_CHECK(before.opened_calls == after.opened_calls);

    /* and it still opens: nothing of all that was committed */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &piece, sealed, back));
    UNIT_EQUAL_BYTES(plain, back, sizeof(plain));
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

static void order(void)
{
    opal_crypt_group_t *a = member(0, OPAL_AEAD_AES_128_GCM, 1), *b = member(1, OPAL_AEAD_AES_128_GCM, 1);
    opal_crypt_piece_t pieces[6];
    uint8_t sealed[6][24], late[2][25], plain[1];

    for (unsigned i = 0; i < 6; ++i) {          /* collectives 1 1 1, 2 2, and an old 1 sealed later */
        pieces[i] = piece_of(i < 3 ? 1 : i < 5 ? 2 : 1, 0, 0);
        pieces[i].index = i;
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &pieces[i], plain, sealed[i]));
    }
    /* within a collective in any order, and more than once */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[2], sealed[2], plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[0], sealed[0], plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[0], sealed[0], plain));
    /* the next */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[4], sealed[4], plain));
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[3], sealed[3], plain));
    /* an earlier one has ended, whether its piece was opened or not */
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open(b, &pieces[0], sealed[0], plain));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open(b, &pieces[1], sealed[1], plain));
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open(b, &pieces[5], sealed[5], plain));

    /* a later collective's piece that was sealed before an earlier one's */
    pieces[0] = piece_of(4, 0, 1);
    pieces[1] = piece_of(3, 0, 1);
    for (unsigned i = 0; i < 2; ++i) {
        UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &pieces[i], "x", late[i]));
    }
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &pieces[1], late[1], plain) && 'x' == plain[0]);
    UNIT_CHECK(OPAL_CRYPT_ERR_REPLAY == opal_crypt_piece_open(b, &pieces[0], late[0], plain)
               && 0 == plain[0]);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

static uint64_t counter_after(opal_crypt_group_t *group, size_t plain_bytes, const void *plain, uint8_t *sealed)
{
    const opal_crypt_piece_t piece = piece_of(1, 0, plain_bytes);

    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_piece_seal(group, &piece, plain, sealed));
    return opal_crypt_get64(sealed);
}

/* Counters: one a 4 MiB, never across an epoch's end, never beyond the last. */
static void counters(void)
{
    const size_t unit = OPAL_CRYPT_DIRECT_MAX, epoch = 1u << SHIFT;
    opal_crypt_group_t *a = member(0, OPAL_AEAD_AES_128_GCM, 1), *b = member(1, OPAL_AEAD_AES_128_GCM, 1);
    uint8_t *plain = calloc(1, 3 * unit), *sealed = malloc(3 * unit + 24);
    opal_crypt_piece_t piece = piece_of(1, 0, 3 * unit);
    uint64_t start = (opal_crypt_group_next | (epoch - 1)) + 1;

    UNIT_REQUIRE(NULL != plain && NULL != sealed);
    opal_crypt_group_next = start;
    UNIT_CHECK(start == counter_after(a, 0, plain, sealed));
    UNIT_CHECK(start + 1 == counter_after(a, unit, plain, sealed));
    UNIT_CHECK(start + 2 == counter_after(a, unit + 1, plain, sealed));
    UNIT_CHECK(start + 4 == counter_after(a, 2 * unit, plain, sealed));
    UNIT_CHECK(start + epoch == counter_after(a, 3 * unit, plain, sealed));      /* 6 + 3 > 8 */
    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &piece, sealed, plain));
    UNIT_CHECK(start + epoch + 3 == opal_crypt_group_next);

    opal_crypt_group_next = OPAL_CRYPT_COUNTER_END - 2;
    piece.plain_bytes = 3 * unit;
    UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_piece_seal(a, &piece, plain, sealed));
    UNIT_CHECK(OPAL_CRYPT_COUNTER_END - 2 == counter_after(a, 10, plain, sealed));
    UNIT_CHECK(OPAL_CRYPT_COUNTER_END - 1 == counter_after(a, 10, plain, sealed));
    piece.plain_bytes = 0;
    UNIT_CHECK(OPAL_CRYPT_ERR_EXHAUSTED == opal_crypt_piece_seal(a, &piece, plain, sealed));
    UNIT_CHECK(OPAL_CRYPT_COUNTER_END == opal_crypt_group_next);
    opal_crypt_group_next = start + 2 * epoch;
    free(plain);
    free(sealed);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(b);
}

static void misuse(void)
{
    opal_crypt_group_t *a = member(0, OPAL_AEAD_AES_128_GCM, 1), *none;
    opal_crypt_piece_t piece = piece_of(1, 1, 0);
    uint8_t sealed[24] = {0}, plain[1];

    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal(a, &piece, plain, sealed));          /* not ours */
    piece.origin = RANKS;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal(a, &piece, plain, sealed));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_open(a, &piece, sealed, plain));
    piece = piece_of(1, 0, 0);
    piece.destination = RANKS;
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal(a, &piece, plain, sealed));
    piece = piece_of(1, 0, OPAL_CRYPT_PIECE_MAX + 1);
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_piece_seal(a, &piece, plain, sealed));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_group_from_secret(
                   &secret, &opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, SHIFT, 5, 1, hashes, RANKS, RANKS,
                   &none));
    UNIT_CHECK(OPAL_CRYPT_ERR_CONFIG == opal_crypt_group_from_secret(
                   &secret, &opal_aead_openssl_module, OPAL_AEAD_AES_128_GCM, 21, 5, 1, hashes, RANKS, 0, &none)
               && NULL == none);
    opal_crypt_group_destroy(a);
    opal_crypt_group_destroy(NULL);
}

/* The build that aborts when a pair seals twice: groups made again and again
 * from one secret, and more epochs than are kept. */
static void never_twice(void)
{
    opal_crypt_group_t *b = member(1, OPAL_AEAD_AES_128_GCM, 1);
    const uint64_t before = opal_crypt_recorded();
    uint8_t sealed[34], plain[10] = {0};

    for (unsigned i = 0; i < 1000; ++i) {
        opal_crypt_group_t *a = member(0, OPAL_AEAD_AES_128_GCM, 1);
        const opal_crypt_piece_t piece = piece_of(i + 1, 0, sizeof(plain));
        for (unsigned j = 0; j < 1 + i % 3; ++j) {
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_seal(a, &piece, plain, sealed));
            UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_piece_open(b, &piece, sealed, plain));
        }
        opal_crypt_group_destroy(a);
    }
    UNIT_CHECK(1999 == opal_crypt_recorded() - before);
    opal_crypt_group_destroy(b);
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
    UNIT_GROUP("collectives in order");
    order();
    UNIT_GROUP("counters of long pieces, and their end");
    counters();
    UNIT_GROUP("misuse");
    misuse();
    UNIT_GROUP("1,000 groups from one secret");
    never_twice();
    opal_crypt_finalize();
    return unit_done();
}

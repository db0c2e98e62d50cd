/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Two ends of a session without records: what one sends the other receives.
 */
#ifndef TESTS_UNIT_SESSIONS_H
#define TESTS_UNIT_SESSIONS_H

#include "opal/mca/common/crypt/wire/session_object.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/wire/frame.h"

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);

typedef struct ends {
    opal_crypt_session_t *a, *b;
    opal_crypt_serials_t *serials;              /* of b's receives */
} ends_t;

/* Bytes that differ from place to place and from seed to seed. */
static inline void fill(void *block, size_t bytes, uint64_t seed)
{
    uint8_t *p = block;

    for (size_t i = 0; i < bytes; ++i) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        p[i] = (uint8_t) (seed >> 56);
    }
}

static inline uint64_t random_below(uint64_t *state, uint64_t limit)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % limit;
}

static inline opal_crypt_session_t *session_from(const opal_crypt_secrets_t *secrets,
                                                 opal_aead_cipher_t cipher, unsigned shift)
{
    opal_crypt_secrets_t *own = opal_crypt_secmem_alloc(sizeof(*own));
    opal_crypt_session_t *session = NULL;

    UNIT_REQUIRE(0 == opal_aead_openssl_init() && NULL != own);
    *own = *secrets;
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_session_from_secrets(own, &opal_aead_openssl_module,
                                                                  cipher, shift, &session));
    return session;
}

static inline ends_t ends_make(opal_aead_cipher_t cipher, unsigned shift, uint64_t seed)
{
    opal_crypt_secrets_t mine, theirs;
    ends_t ends;

    fill(&mine, sizeof(mine), seed);
    theirs = (opal_crypt_secrets_t) {.out = mine.in, .in = mine.out,
                                            .token_out = mine.token_in, .token_in = mine.token_out};
    ends.a = session_from(&mine, cipher, shift);
    ends.b = session_from(&theirs, cipher, shift);
    UNIT_REQUIRE(OPAL_CRYPT_OK == opal_crypt_serials_create(&ends.serials));
    return ends;
}

static inline void ends_free(ends_t *ends)
{
    opal_crypt_session_destroy(ends->a);
    opal_crypt_session_destroy(ends->b);
    opal_crypt_serials_destroy(ends->serials);
}

static inline uint64_t take(opal_crypt_session_t *session)
{
    uint64_t counter = UINT64_MAX;

    UNIT_CHECK(OPAL_CRYPT_OK == opal_crypt_counter_take(session, &counter));
    return counter;
}

/* One bit (0 .. 191) of the envelope changed. */
static inline opal_crypt_envelope_t envelope_flipped(opal_crypt_envelope_t envelope, unsigned bit)
{
    if (bit < 64) {
        envelope.context_high ^= UINT64_C(1) << bit;
    } else if (bit < 128) {
        envelope.context_low ^= UINT64_C(1) << (bit - 64);
    } else if (bit < 160) {
        envelope.generation ^= 1u << (bit - 128);
    } else {
        envelope.tag = (int32_t) ((uint32_t) envelope.tag ^ (1u << (bit - 160)));
    }
    return envelope;
}

static inline bool all_zero(const void *block, size_t bytes)
{
    const uint8_t *p = block;

    for (size_t i = 0; i < bytes; ++i) {
        if (0 != p[i]) {
            return false;
        }
    }
    return true;
}

/* Not memcmp: a struct's padding is undefined. */
static inline bool same_shape(const opal_crypt_shape_t *a, const opal_crypt_shape_t *b)
{
    return a->total_bytes == b->total_bytes && a->first_bytes == b->first_bytes && a->chunk_bytes == b->chunk_bytes
           && a->count == b->count;
}

#endif

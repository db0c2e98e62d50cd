/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * How a provider is chosen, with made-up providers around a real one: the order of
 * auto, names, FIPS; and a provider whose answers are wrong, in any way that the
 * self-test checks for, is never used.
 */
#include "tests/unit/aead_providers.h"

static const opal_aead_module_t *real;
static int fault;                       /* which fault the faulty provider has */

enum { NO_FAULT, WRONG_TAG, WRONG_TEXT, ACCEPTS_FORGERY, LEAVES_TEXT, REFUSES_ALL, LOSES_AAD, COPIES, FAULTS };

static int faulty_seal(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                       const void *aad, size_t aad_bytes,
                       const void *plain, size_t text_bytes, void *cipher, uint8_t *tag)
{
    const int rc = COPIES == fault ? OPAL_AEAD_OK : real->seal(context, key, nonce, aad, LOSES_AAD == fault ? aad_bytes / 2 : aad_bytes,
                              plain, text_bytes, cipher, tag);

    if (COPIES == fault) {
        memmove(cipher, plain, text_bytes);
        memset(tag, 0, OPAL_AEAD_TAG_BYTES);
    } else if (WRONG_TAG == fault) {
        tag[0] ^= 0x80;
    } else if (WRONG_TEXT == fault) {
        ((uint8_t *) cipher)[text_bytes - 1] ^= 1;
    }
    return rc;
}

static int faulty_open(opal_aead_context_t *context, const void *key, const uint8_t *nonce,
                       const void *aad, size_t aad_bytes,
                       const void *cipher, size_t text_bytes, const uint8_t *tag, void *plain)
{
    const int rc = COPIES == fault ? OPAL_AEAD_OK : real->open(context, key, nonce, aad, LOSES_AAD == fault ? aad_bytes / 2 : aad_bytes,
                              cipher, text_bytes, tag, plain);

    if (COPIES == fault) {
        memmove(plain, cipher, text_bytes);
    }
    if (ACCEPTS_FORGERY == fault) {
        return OPAL_AEAD_OK;
    }
    if (LEAVES_TEXT == fault && OPAL_AEAD_REFUSED == rc) {
        ((uint8_t *) plain)[text_bytes / 2] = 1;
    }
    return REFUSES_ALL == fault ? OPAL_AEAD_REFUSED : rc;
}

static opal_aead_module_t faulty, good, narrow;

static int priority_90(opal_aead_cipher_t cipher) { (void) cipher; return 90; }
static int priority_50(opal_aead_cipher_t cipher) { (void) cipher; return 50; }
static int priority_never(opal_aead_cipher_t cipher) { (void) cipher; return -1; }
static int yes(void) { return 1; }
static int no(void) { return 0; }

static void make_up(void)
{
    good = narrow = faulty = *real;
    good.name = "good";
    narrow.name = "narrow";
    narrow.ciphers = OPAL_AEAD_BIT(OPAL_AEAD_AES_256_GCM);
    faulty.name = "faulty";
    faulty.seal = faulty_seal;
    faulty.open = faulty_open;
}

static const opal_aead_module_t *chosen;
static opal_aead_why_t why;

#define CHOOSE(list, wanted, cipher, fips) \
    opal_aead_base_choose(list, sizeof(list) / sizeof((list)[0]), wanted, cipher, fips, &chosen, &why)
#define WHY(wanted_topic, words) \
    (NULL == chosen && NULL != why.topic && 0 == strcmp(wanted_topic, why.topic) && NULL != strstr(why.detail, words))

static void test_faults(void)
{
    const opal_aead_candidate_t list[] = {
        { &good, priority_50, NULL }, { &faulty, priority_90, yes }
    };

    UNIT_GROUP("a provider with wrong answers is never used");
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        const opal_aead_cipher_t cipher = (opal_aead_cipher_t) c;

        fault = NO_FAULT;
        UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, "auto", cipher, 0) && &faulty == chosen && NULL == why.topic);
        for (fault = WRONG_TAG; fault < FAULTS; ++fault) {
            UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, "auto", cipher, 0) && &good == chosen);
            UNIT_CHECK(0 == strcmp("passed over", why.topic) && NULL != strstr(why.detail, "faulty"));
            UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "faulty", cipher, 0) && WHY("selftest", "faulty"));
        }
    }
    fault = WRONG_TAG;
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "auto", OPAL_AEAD_AES_128_GCM, 1) && WHY("selftest", "faulty"));
    fault = NO_FAULT;
}

static void test_names(void)
{
    const opal_aead_candidate_t list[] = {
        { &narrow, priority_90, NULL }, { &good, priority_50, NULL }, { &faulty, priority_50, NULL }
    };

    UNIT_GROUP("auto takes the best for the cipher, of equals the first; names are exact");
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, NULL, OPAL_AEAD_AES_256_GCM, 0) && &narrow == chosen);
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, "", OPAL_AEAD_AES_128_GCM, 0) && &good == chosen);
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, "auto", OPAL_AEAD_AES_128_GCM, 0) && &good == chosen);
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(list, "faulty", OPAL_AEAD_AES_128_GCM, 0) && &faulty == chosen);
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "narrow", OPAL_AEAD_AES_128_GCM, 0) && WHY("cannot", "narrow, AES-128-GCM"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "goo", OPAL_AEAD_AES_128_GCM, 0) && WHY("unknown", "auto, narrow, good, faulty"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "good,narrow", OPAL_AEAD_AES_256_GCM, 0) && WHY("unknown", "\"good,narrow\""));
}

static void test_none(void)
{
    const opal_aead_candidate_t list[] = {
        { &narrow, priority_90, NULL }, { &good, priority_never, NULL }
    };

    UNIT_GROUP("no provider for the cipher is an error, so is none at all");
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "auto", OPAL_AEAD_AES_128_GCM, 0) && WHY("none", "narrow, good"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(list, "good", OPAL_AEAD_AES_128_GCM, 0) && WHY("cannot", "good"));
    UNIT_CHECK(OPAL_AEAD_ERROR == opal_aead_base_choose(NULL, 0, "auto", OPAL_AEAD_AES_128_GCM, 0, &chosen, &why)
               && WHY("none", "providers here: none"));
    UNIT_CHECK(OPAL_AEAD_ERROR == opal_aead_base_choose(NULL, 0, "x", OPAL_AEAD_AES_128_GCM, 0, &chosen, &why)
               && WHY("unknown", "\"x\""));
}

static void test_fips(void)
{
    const opal_aead_candidate_t with[] = { { &good, priority_90, no }, { &narrow, priority_50, yes } };
    const opal_aead_candidate_t without[] = { { &good, priority_90, no }, { &narrow, priority_50, NULL } };

    UNIT_GROUP("crypt_fips takes a validated module or nothing");
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(with, "auto", OPAL_AEAD_AES_256_GCM, 1) && &narrow == chosen);
    UNIT_CHECK(OPAL_AEAD_OK == CHOOSE(with, "narrow", OPAL_AEAD_AES_256_GCM, 1) && &narrow == chosen);
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(with, "good", OPAL_AEAD_AES_256_GCM, 1) && WHY("not fips", "good"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(with, "auto", OPAL_AEAD_AES_128_GCM, 1) && WHY("no fips", "AES-128-GCM"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(without, "auto", OPAL_AEAD_AES_256_GCM, 1) && WHY("no fips", "AES-256-GCM"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(without, "narrow", OPAL_AEAD_AES_256_GCM, 1) && WHY("not fips", "narrow"));
    UNIT_CHECK(OPAL_AEAD_ERROR == CHOOSE(with, "auto", OPAL_AEAD_CHACHA20_POLY1305, 1) && WHY("fips cipher", "ChaCha20"));
}

static void test_real(void)
{
    opal_aead_candidate_t list[PROVIDERS_MOST];

    UNIT_GROUP("every provider of this build passes its self-test");
    for (int p = 0; p < provider_count; ++p) {
        list[p] = (opal_aead_candidate_t) { providers[p]->module, providers[p]->priority, NULL };
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (can(providers[p], (opal_aead_cipher_t) c)) {
                UNIT_CHECK(OPAL_AEAD_OK == opal_aead_base_selftest(providers[p]->module, (opal_aead_cipher_t) c));
            }
        }
    }
    for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
        const opal_aead_cipher_t cipher = (opal_aead_cipher_t) c;

        UNIT_CHECK(OPAL_AEAD_OK == opal_aead_base_choose(list, (size_t) provider_count, "auto", cipher, 0, &chosen, &why));
        printf("  auto for %s: %s\n", opal_aead_cipher_name(cipher), chosen->name);
    }
}

int main(void)
{
    providers_init();
    real = providers[0]->module;
    UNIT_REQUIRE((1u << OPAL_AEAD_CIPHERS) - 1 == real->ciphers);
    make_up();
    test_faults();
    test_names();
    test_none();
    test_fips();
    test_real();
    providers_fini();
    return unit_done();
}

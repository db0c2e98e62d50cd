/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The providers that were built, for tests that go through all of them, and
 * one way to seal and open with them.
 */
#ifndef TESTS_AEAD_PROVIDERS_H
#define TESTS_AEAD_PROVIDERS_H

#include "opal/mca/aead/aead_util.h"
#include "opal/mca/aead/base/aead_base_choose.h"
#include "tests/unit/unit.h"

#define PROVIDER(name) OPAL_AEAD_PROVIDER(name);
#include "tests/unit/aead_found.h"
#undef PROVIDER

typedef struct {
    const opal_aead_module_t *module;
    int (*init)(void);
    void (*fini)(void);
    int (*priority)(opal_aead_cipher_t cipher);
} provider_t;

#define PROVIDER(name) \
    { &opal_aead_##name##_module, opal_aead_##name##_init, opal_aead_##name##_fini, opal_aead_##name##_priority },

static const provider_t all_providers[] = {
#include "tests/unit/aead_found.h"
    { NULL, NULL, NULL, NULL }
};

/* Those that this machine can run. */
#define PROVIDERS_MOST 16
static const provider_t *providers[PROVIDERS_MOST];
static int provider_count;

static inline void providers_init(void)
{
    UNIT_GROUP("providers of this build");
    for (const provider_t *p = all_providers; NULL != p->module; ++p) {
        const int rc = p->init();

        if (OPAL_AEAD_OK == rc && provider_count < PROVIDERS_MOST) {
            providers[provider_count++] = p;
        }
        printf("  %-10s %s", p->module->name, OPAL_AEAD_OK == rc ? p->module->version() : "cannot be used here");
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (p->module->ciphers & OPAL_AEAD_BIT(c)) {
                printf(", %s (%d)", opal_aead_cipher_name((unsigned) c),
                       p->priority((opal_aead_cipher_t) c));
            }
        }
        putchar('\n');
    }
    UNIT_REQUIRE(0 < provider_count);
}

static inline void providers_fini(void)
{
    while (0 < provider_count) {
        providers[--provider_count]->fini();
    }
}

static inline int can(const provider_t *p, opal_aead_cipher_t cipher)
{
    return 0 != (p->module->ciphers & OPAL_AEAD_BIT(cipher));
}

/* A key of one provider, in memory as the providers want it. */
typedef struct {
    const opal_aead_module_t *module;
    opal_aead_context_t *context;
    void *key;
    size_t key_bytes;
} keyed_t;

static inline keyed_t keyed_new(const provider_t *p, opal_aead_cipher_t cipher, const uint8_t *raw)
{
    keyed_t k = { p->module, NULL, NULL, p->module->key_bytes };

    k.key = opal_aead_pages_alloc(k.key_bytes);
    UNIT_REQUIRE(NULL != k.key);
    UNIT_REQUIRE(OPAL_AEAD_OK == p->module->key_init(cipher, raw, k.key));
    UNIT_REQUIRE(OPAL_AEAD_OK == p->module->context_new(&k.context));
    return k;
}

static inline void keyed_free(keyed_t *k)
{
    k->module->key_wipe(k->key);
    k->module->context_free(k->context);
    opal_aead_pages_free(k->key, k->key_bytes);
}

static inline int zeros_only(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (0 != bytes[i]) {
            return 0;
        }
    }
    return 1;
}

/* Bytes that differ from place to place, the same in every run. */
static inline void fill(uint8_t *bytes, size_t count, uint64_t seed)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;

    for (size_t i = 0; i < count; ++i) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes[i] = (uint8_t) (state >> 32);
    }
}

#endif

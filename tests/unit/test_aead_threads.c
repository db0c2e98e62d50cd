/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Eight threads share one key, each with a context of its own, while other
 * keys come and go: every thread seals what a single one sealed, and opens it.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/aead_providers.h"

#define THREADS    8
#define MESSAGES   64
#define ROUNDS     40
#define OTHER_KEYS 600          /* more than a context remembers to be gone */
#define TEXT_MOST  3000

typedef struct {
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES], tag[OPAL_AEAD_TAG_BYTES];
    size_t bytes;
} message_t;

static message_t messages[MESSAGES];
static uint8_t plain[TEXT_MOST];
static const char aad[] = "shared";

static const opal_aead_module_t *module;
static opal_aead_cipher_t cipher;
static void *key;
static atomic_int wrong;
static pthread_barrier_t start;

static int works(opal_aead_context_t *context, const message_t *m)
{
    uint8_t text[TEXT_MOST], tag[OPAL_AEAD_TAG_BYTES];

    return OPAL_AEAD_OK == module->seal(context, key, m->nonce, aad, sizeof(aad), plain, m->bytes, text, tag)
        && 0 == memcmp(tag, m->tag, sizeof(tag))
        && OPAL_AEAD_OK == module->open(context, key, m->nonce, aad, sizeof(aad), text, m->bytes, m->tag, text)
        && 0 == memcmp(text, plain, m->bytes);
}

static void *work(void *argument)
{
    const int first = *(const int *) argument;
    opal_aead_context_t *context = NULL;

    if (OPAL_AEAD_OK != module->context_new(&context)) {
        atomic_fetch_add(&wrong, 1);
    }
    pthread_barrier_wait(&start);
    for (int i = 0; NULL != context && i < ROUNDS * MESSAGES; ++i) {
        if (!works(context, &messages[(first + i) % MESSAGES])) {
            atomic_fetch_add(&wrong, 1);
        }
    }
    module->context_free(context);
    return NULL;
}

/* Keys that live for one message. */
static void *come_and_go(void *argument)
{
    const provider_t *p = argument;
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES], text[32], tag[OPAL_AEAD_TAG_BYTES];
    keyed_t k;

    pthread_barrier_wait(&start);
    for (int i = 0; i < OTHER_KEYS; ++i) {
        fill(raw, sizeof(raw), (uint64_t) i);
        k = keyed_new(p, cipher, raw);
        if (OPAL_AEAD_OK != module->seal(k.context, k.key, messages[0].nonce, NULL, 0, plain, sizeof(text), text, tag)) {
            atomic_fetch_add(&wrong, 1);
        }
        keyed_free(&k);
    }
    return NULL;
}

static void share(const provider_t *p)
{
    pthread_t threads[THREADS + 1];
    int firsts[THREADS];
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES], text[TEXT_MOST];
    keyed_t k;

    module = p->module;
    fill(raw, sizeof(raw), 9);
    k = keyed_new(p, cipher, raw);
    key = k.key;
    for (int i = 0; i < MESSAGES; ++i) {
        fill(messages[i].nonce, sizeof(messages[i].nonce), (uint64_t) i);
        messages[i].bytes = (size_t) i * i * 2 / 3;
        UNIT_REQUIRE(OPAL_AEAD_OK == module->seal(k.context, key, messages[i].nonce, aad, sizeof(aad), plain,
                                                  messages[i].bytes, text, messages[i].tag));
    }
    atomic_store(&wrong, 0);
    pthread_barrier_init(&start, NULL, THREADS + 2);
    for (int i = 0; i < THREADS; ++i) {
        firsts[i] = 5 * i;
        UNIT_REQUIRE(0 == pthread_create(&threads[i], NULL, work, &firsts[i]));
    }
    UNIT_REQUIRE(0 == pthread_create(&threads[THREADS], NULL, come_and_go, (void *) (uintptr_t) p));
    pthread_barrier_wait(&start);
    for (int i = 0; i <= THREADS; ++i) {
        pthread_join(threads[i], NULL);
    }
    pthread_barrier_destroy(&start);
    UNIT_CHECK(0 == atomic_load(&wrong));
    keyed_free(&k);
}

int main(void)
{
    providers_init();
    fill(plain, sizeof(plain), 4);
    UNIT_GROUP("%d threads share a key", THREADS);
    for (int p = 0; p < provider_count; ++p) {
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            cipher = (opal_aead_cipher_t) c;
            if (can(providers[p], cipher)) {
                share(providers[p]);
            }
        }
    }
    providers_fini();
    return unit_done();
}

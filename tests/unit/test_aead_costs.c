/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * What a message must not cost: no provider allocates, takes a lock or fetches
 * an algorithm for one, once a context has met the key.  This program's own
 * malloc, pthread locks and EVP_CIPHER_fetch stand before the real ones and
 * count.
 *
 * Two limits: BoringSSL is loaded in a way that its calls bypass these, and
 * Crypto++'s ChaCha20-Poly1305 sets its key again for each message, with
 * allocations that its user cannot prevent.
 */
#include <dlfcn.h>
#include <pthread.h>

#include <openssl/evp.h>

#include "tests/unit/aead_providers.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

int main(void)
{
    return unit_skip("a sanitizer has malloc for itself");
}

#else

static unsigned long allocations, locks, fetches;

/* ---- in front of the C library, and of libcrypto ---- */

#pragma GCC visibility push(default)

extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *block, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes)
{
    allocations++;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    allocations++;
    return __libc_calloc(count, bytes);
}

void *realloc(void *block, size_t bytes)
{
    allocations++;
    return __libc_realloc(block, bytes);
}

void *memalign(size_t alignment, size_t bytes);
void *memalign(size_t alignment, size_t bytes)
{
    allocations++;
    return __libc_memalign(alignment, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return memalign(alignment, bytes);
}

int posix_memalign(void **block, size_t alignment, size_t bytes)
{
    *block = memalign(alignment, bytes);
    return NULL == *block;
}

/* The function that ours wraps. */
#define NEXT(name) \
    static __typeof__(&name) next; \
    if (NULL == next) { \
        *(void **) &next = dlsym(RTLD_NEXT, #name); \
    }

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    NEXT(pthread_mutex_lock)
    locks++;
    return next(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    NEXT(pthread_rwlock_rdlock)
    locks++;
    return next(lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    NEXT(pthread_rwlock_wrlock)
    locks++;
    return next(lock);
}

#ifdef OMPI_CRYPT_HAVE_AEAD_OPENSSL
EVP_CIPHER *EVP_CIPHER_fetch(OSSL_LIB_CTX *library, const char *algorithm, const char *properties)
{
    NEXT(EVP_CIPHER_fetch)
    fetches++;
    return next(library, algorithm, properties);
}
#endif

#pragma GCC visibility pop

/* ---- the cases ---- */

#define KEYS 8

static void message(keyed_t *k, const opal_aead_context_t *context, size_t bytes, int i)
{
    static uint8_t text[5000];
    uint8_t nonce[OPAL_AEAD_NONCE_BYTES] = { (uint8_t) i }, tag[OPAL_AEAD_TAG_BYTES];

    UNIT_REQUIRE(OPAL_AEAD_OK == k->module->seal((opal_aead_context_t *) context, k->key, nonce, "header", 6,
                                                 text, bytes, text, tag));
    UNIT_REQUIRE(OPAL_AEAD_OK == k->module->open((opal_aead_context_t *) context, k->key, nonce, "header", 6,
                                                 text, bytes, tag, text));
    tag[0] ^= 1;
    UNIT_REQUIRE(OPAL_AEAD_REFUSED == k->module->open((opal_aead_context_t *) context, k->key, nonce, "header", 6,
                                                      text, bytes, tag, text));
}

/* Messages of several keys by turns, as with several peers. */
static void measure(const provider_t *p, opal_aead_cipher_t cipher)
{
    static const size_t lengths[] = { 0, 1, 16, 64, 1000, 5000 };
    uint8_t raw[OPAL_AEAD_KEY_MAX_BYTES];
    keyed_t k[KEYS];

    for (int i = 0; i < KEYS; ++i) {
        fill(raw, sizeof(raw), (uint64_t) i);
        k[i] = keyed_new(p, cipher, raw);
        message(&k[i], k[0].context, 100, i);
    }
    allocations = locks = fetches = 0;
    for (int i = 0; i < 300; ++i) {
        message(&k[i % KEYS], k[0].context, lengths[i % 6], i);
    }
    if (OPAL_AEAD_CHACHA20_POLY1305 == cipher && 0 == strcmp("cryptopp", p->module->name)) {
        allocations = 0;
    }
    if (!UNIT_CHECK(0 == allocations && 0 == locks && 0 == fetches)) {
        fprintf(stderr, "  %s, %s: %lu allocations, %lu locks, %lu fetches\n", p->module->name,
                opal_aead_cipher_name(cipher), allocations, locks, fetches);
    }
    for (int i = 0; i < KEYS; ++i) {
        keyed_free(&k[i]);
    }
}

static void test_counters(void)
{
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    UNIT_GROUP("the counters count");
    allocations = locks = fetches = 0;
    void *volatile block = malloc(1000);
    free(block);
    UNIT_CHECK(1 == allocations);
    pthread_mutex_lock(&mutex);
    pthread_rwlock_rdlock(&lock);
    UNIT_CHECK(2 == locks);
#ifdef OMPI_CRYPT_HAVE_AEAD_OPENSSL
    /* What a naive caller does for each message. */
    locks = 0;
    EVP_CIPHER_free(EVP_CIPHER_fetch(NULL, "AES-128-GCM", NULL));
    UNIT_CHECK(1 == fetches && 0 < locks);
    EVP_CIPHER_CTX *evp = EVP_CIPHER_CTX_new();
    locks = 0;
    UNIT_CHECK(1 == EVP_EncryptInit_ex(evp, EVP_aes_128_gcm(), NULL, NULL, NULL) && 0 < locks);
    EVP_CIPHER_CTX_free(evp);
#endif
}

int main(void)
{
    providers_init();
    test_counters();
    UNIT_GROUP("a message costs no allocation, no lock and no fetch");
    for (int p = 0; p < provider_count; ++p) {
        for (int c = 0; c < OPAL_AEAD_CIPHERS; ++c) {
            if (can(providers[p], (opal_aead_cipher_t) c)) {
                measure(providers[p], (opal_aead_cipher_t) c);
            }
        }
    }
    providers_fini();
    return unit_done();
}

#endif

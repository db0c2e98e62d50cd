/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Per-thread state and the statistics that are summed from it.
 *
 * All states are in one list.  A thread that ends removes its own (by the destructor of a pthread key); finalize
 * removes all and deletes the key.  A thread may end at that very moment: its generation shows, with the lock held,
 * that its pointer is stale, and the library is never unloaded (-z nodelete), so the destructor is still there.
 *
 * A fork takes the locks of providers first, then ours.  So the contexts of an ended thread are freed without our
 * lock, and finalize waits for that.
 */
#include "thread.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "fork.h"
#include "library.h"
#include "secmem.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static bool key_made;
static opal_crypt_thread_t *threads;
static unsigned leaving;                            /* threads that free their contexts */
static pthread_cond_t left = PTHREAD_COND_INITIALIZER;
static opal_crypt_stats_t ended;                    /* of threads that have ended */
static uint64_t failed_opens, epochs;
bool opal_crypt_timing = false;

static const bool always = true;
const bool *opal_crypt_multiple = &always;

static unsigned generation = 1, users;

/* Sixteen bytes of the static TLS that libc reserves for libraries loaded late, so that a message need not ask the
 * dynamic linker for their address.  If other libraries have used it up, this one cannot be loaded
 * (docs/install.rst). */
#define AT_HAND __attribute__((tls_model("initial-exec")))
static __thread AT_HAND opal_crypt_thread_t *mine;
static __thread AT_HAND unsigned mine_generation;

static void stats_add(opal_crypt_stats_t *sum, const opal_crypt_stats_t *one)
{
    sum->sealed_calls += __atomic_load_n(&one->sealed_calls, __ATOMIC_RELAXED);
    sum->sealed_bytes += __atomic_load_n(&one->sealed_bytes, __ATOMIC_RELAXED);
    sum->opened_calls += __atomic_load_n(&one->opened_calls, __ATOMIC_RELAXED);
    sum->opened_bytes += __atomic_load_n(&one->opened_bytes, __ATOMIC_RELAXED);
    sum->chopped_sealed += __atomic_load_n(&one->chopped_sealed, __ATOMIC_RELAXED);
    sum->chopped_opened += __atomic_load_n(&one->chopped_opened, __ATOMIC_RELAXED);
    sum->aead_ns += __atomic_load_n(&one->aead_ns, __ATOMIC_RELAXED);
}

/* With the lock: afterwards nobody finds the state, nor a key of ours in it. */
static void thread_remove(opal_crypt_thread_t *thread)
{
    stats_add(&ended, &thread->stats);
    if (NULL != thread->next) {
        thread->next->previous = thread->previous;
    }
    if (NULL != thread->previous) {
        thread->previous->next = thread->next;
    } else {
        threads = thread->next;
    }
    if (!opal_crypt_library_ended()) {
        EVP_CIPHER_CTX_free(thread->aes);
    }
}

/* Without the lock. */
static void thread_free(opal_crypt_thread_t *thread)
{
    for (int i = 0; i < OPAL_CRYPT_THREAD_CONTEXTS && NULL != thread->aead[i]; ++i) {
        thread->aead[i]->context_free(thread->context[i]);
    }
    free(thread);
}

static void thread_ended(void *unused)
{
    opal_crypt_thread_t *gone = NULL;

    (void) unused;
    pthread_mutex_lock(&lock);
    /* In a forked child its contexts are zeros.  (opal_crypt_forked needs a core that has not ended meanwhile.) */
    if (NULL != mine && mine_generation == generation && !opal_crypt_forked()) {
        gone = mine;
        thread_remove(gone);
        ++leaving;
    }
    if (key_made) {
        pthread_setspecific(key, NULL);
    }
    mine = NULL;
    mine_generation = 0;
    pthread_mutex_unlock(&lock);
    if (NULL != gone) {
        thread_free(gone);
        pthread_mutex_lock(&lock);
        if (0 == --leaving) {
            pthread_cond_broadcast(&left);
        }
        pthread_mutex_unlock(&lock);
    }
}

void opal_crypt_thread_end(void)
{
    thread_ended(NULL);
    OPENSSL_thread_stop();
}

OPAL_CRYPT_RARE
static opal_crypt_thread_t *thread_make(void)
{
    opal_crypt_thread_t *thread = calloc(1, sizeof(*thread));

    pthread_mutex_lock(&lock);
    if (!key_made) {
        key_made = 0 == pthread_key_create(&key, thread_ended);
    }
    if (NULL == thread || !key_made || 0 != pthread_setspecific(key, thread)) {
        free(thread);
        thread = NULL;
        goto unlock;
    }
    thread->next = threads;
    if (NULL != threads) {
        threads->previous = thread;
    }
    threads = thread;
    mine = thread;
    mine_generation = __atomic_load_n(&generation, __ATOMIC_RELAXED);
unlock:
    pthread_mutex_unlock(&lock);
    return thread;
}

OPAL_CRYPT_OFTEN
opal_crypt_thread_t *opal_crypt_thread(void)
{
    if (__builtin_expect(mine_generation == __atomic_load_n(&generation, __ATOMIC_RELAXED), 1)) {
        return mine;
    }
    return thread_make();
}

OPAL_CRYPT_OFTEN
int opal_crypt_thread_ready(const opal_aead_module_t *aead, opal_crypt_thread_t **thread_out, opal_aead_context_t **context)
{
    opal_crypt_thread_t *thread;
    int i;

    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    thread = opal_crypt_thread();
    if (NULL == thread) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    for (i = 0; i < OPAL_CRYPT_THREAD_CONTEXTS && NULL != thread->aead[i] && thread->aead[i] != aead; ++i) {
    }
    if (OPAL_CRYPT_THREAD_CONTEXTS == i) {
        return OPAL_CRYPT_ERR_MEMORY;
    }
    if (NULL == thread->aead[i]) {
        if (OPAL_AEAD_OK != aead->context_new(&thread->context[i])) {
            return OPAL_CRYPT_ERR_MEMORY;
        }
        thread->aead[i] = aead;
    }
    *thread_out = thread;
    *context = thread->context[i];
    return OPAL_CRYPT_OK;
}

opal_aead_context_t *opal_crypt_context(const opal_aead_module_t *aead)
{
    opal_crypt_thread_t *thread;
    opal_aead_context_t *context;

    return OPAL_CRYPT_OK == opal_crypt_thread_ready(aead, &thread, &context) ? context : NULL;
}

/* Mark the AES context as unusable for a child forked now: before anything in it changes, whatever the order in which
 * the processor writes. */
static void key_bytes_forget(opal_crypt_thread_t *thread)
{
    __atomic_store_n(&thread->aes_key_bytes, 0, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_seq_cst);
}

/* Prepare the context for a cipher with this key length, keyed with zeros. */
static int aes_prepare(opal_crypt_thread_t *thread, size_t key_bytes, const uint8_t *zeros)
{
    const opal_crypt_library_t *library = opal_crypt_library();
    const char *name = 16 == key_bytes ? "AES-128-ECB" : 24 == key_bytes ? "AES-192-ECB" : "AES-256-ECB";
    EVP_CIPHER *cipher = NULL;
    int ok = 0;

    key_bytes_forget(thread);
    if (NULL == thread->aes) {
        thread->aes = EVP_CIPHER_CTX_new();
    }
    if (NULL != thread->aes && NULL != library) {
        cipher = EVP_CIPHER_fetch(library->context, name, library->properties);
    }
    if (NULL != cipher) {
        EVP_CIPHER_CTX_reset(thread->aes);
        /* Padding stays on: only Final would pad, and each Init hands the flag that turns it off to the provider
         * again, at some cost. */
        ok = EVP_EncryptInit_ex2(thread->aes, cipher, zeros, NULL, NULL);
        EVP_CIPHER_free(cipher);
    }
    if (1 != ok) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    __atomic_store_n(&thread->aes_key_bytes, key_bytes, __ATOMIC_RELEASE);
    return OPAL_CRYPT_OK;
}

/* A thread may have been in the middle of deriving a subkey: then its context has the chopping key.  Another key
 * overwrites it, without allocating. */
void opal_crypt_thread_fork(opal_crypt_fork_t when)
{
    static const uint8_t zeros[OPAL_AEAD_KEY_MAX_BYTES];

    if (OPAL_CRYPT_FORK_BEFORE == when) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (OPAL_CRYPT_FORK_CHILD == when) {
        leaving = 0;
    }
    if (OPAL_CRYPT_FORK_CHILD == when && !opal_crypt_library_ended()) {
        for (const opal_crypt_thread_t *thread = threads; NULL != thread; thread = thread->next) {
            if (0 != __atomic_load_n(&thread->aes_key_bytes, __ATOMIC_ACQUIRE)) {
                (void) EVP_EncryptInit_ex2(thread->aes, NULL, zeros, NULL, NULL);
            }
        }
    }
    pthread_mutex_unlock(&lock);
}

/* The states of the parent's threads are left where they are: libcrypto's contexts in them may be half changed. */
void opal_crypt_thread_anew(void)
{
    pthread_mutex_lock(&lock);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
    threads = NULL;
    pthread_mutex_unlock(&lock);
}

int opal_crypt_thread_aes(opal_crypt_thread_t *thread,
                          const uint8_t *aes_key, size_t key_bytes,
                          const uint8_t *in, uint8_t *out, int blocks)
{
    static const uint8_t zeros[OPAL_AEAD_KEY_MAX_BYTES];
    int written = 0;

    if (opal_crypt_library_ended()) {
        return OPAL_CRYPT_ERR_LIBRARY;
    }
    if (opal_crypt_forked()) {
        return OPAL_CRYPT_ERR_FORKED;
    }
    if (thread->aes_key_bytes != key_bytes) {
        int rc = aes_prepare(thread, key_bytes, zeros);
        if (OPAL_CRYPT_OK != rc) {
            return rc;
        }
    }
    int ok = 1 == EVP_EncryptInit_ex2(thread->aes, NULL, aes_key, NULL, NULL)
             && 1 == EVP_EncryptUpdate(thread->aes, out, &written, in, 16 * blocks)
             && 16 * blocks == written;
    /* The round keys are on libcrypto's heap: overwrite them at once. */
    if (1 != EVP_EncryptInit_ex2(thread->aes, NULL, zeros, NULL, NULL)) {
        key_bytes_forget(thread);
        EVP_CIPHER_CTX_reset(thread->aes);
    }
    return ok ? OPAL_CRYPT_OK : OPAL_CRYPT_ERR_LIBRARY;
}

void opal_crypt_threads(const bool *multiple)
{
    opal_crypt_multiple = NULL == multiple ? &always : multiple;
}

int opal_crypt_count_failed(void)
{
    __atomic_fetch_add(&failed_opens, 1, __ATOMIC_RELAXED);
    return OPAL_CRYPT_ERR_AUTH;
}

void opal_crypt_count_epoch(void)
{
    __atomic_fetch_add(&epochs, 1, __ATOMIC_RELAXED);
}

uint64_t opal_crypt_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return UINT64_C(1000000000) * (uint64_t) now.tv_sec + (uint64_t) now.tv_nsec;
}

void opal_crypt_count_time(uint64_t since)
{
    opal_crypt_thread_t *thread = opal_crypt_thread();

    if (NULL != thread) {
        opal_crypt_count(&thread->stats.aead_ns, opal_crypt_now() - since);
    }
}

void opal_crypt_stats_timing(bool on)
{
    opal_crypt_timing = on;
}

bool opal_crypt_too_many_failures(void)
{
    return __atomic_load_n(&failed_opens, __ATOMIC_RELAXED) >= OPAL_CRYPT_FAILURES_MAX;
}

void opal_crypt_stats(opal_crypt_stats_t *stats)
{
    pthread_mutex_lock(&lock);
    *stats = ended;
    for (const opal_crypt_thread_t *thread = threads; NULL != thread; thread = thread->next) {
        stats_add(stats, &thread->stats);
    }
    stats->failed_opens = __atomic_load_n(&failed_opens, __ATOMIC_RELAXED);
    stats->epochs = __atomic_load_n(&epochs, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

void opal_crypt_base_begin(void)
{
    pthread_mutex_lock(&lock);
    ++users;
    pthread_mutex_unlock(&lock);
}

static bool still_used(void)
{
    pthread_mutex_lock(&lock);
    users -= users > 0;
    const bool used = users > 0;
    pthread_mutex_unlock(&lock);
    return used;
}

void opal_crypt_base_finalize(void)
{
    opal_crypt_thread_t *gone = NULL, *next;

    if (still_used()) {
        return;
    }
    opal_crypt_threads(NULL);
    pthread_mutex_lock(&lock);
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
    while (NULL != (next = threads)) {
        thread_remove(next);
        next->next = gone;
        gone = next;
    }
    while (leaving > 0) {
        pthread_cond_wait(&left, &lock);
    }
    if (key_made) {
        pthread_key_delete(key);
        key_made = false;
    }
    ended = (opal_crypt_stats_t) {0};
    __atomic_store_n(&failed_opens, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&epochs, 0, __ATOMIC_RELAXED);
    opal_crypt_timing = false;
    pthread_mutex_unlock(&lock);
    for (; NULL != gone; gone = next) {
        next = gone->next;
        thread_free(gone);
    }

    opal_crypt_secmem_finalize();
    opal_crypt_library_close();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The first calls of a process, by several threads at once: none takes itself for a fork'd child,
 * and each gets memory, a context and a hash.  Under ThreadSanitizer this test shows that
 * nothing races where things are made once.
 */
#include "tests/unit/unit.h"

#include <pthread.h>
#include <stdint.h>

#include "opal/mca/common/crypt/base/kdf.h"
#include "opal/mca/common/crypt/base/secmem.h"
#include "opal/mca/common/crypt/base/thread.h"
#include "opal/mca/common/crypt/wire/session.h"

enum { THREADS = 4, ROUNDS = 300 };

extern opal_aead_module_t opal_aead_openssl_module;
int opal_aead_openssl_init(void);
void opal_aead_openssl_fini(void);

static pthread_barrier_t start;
static unsigned long wrong[THREADS];            /* UNIT_CHECK counts without a lock */

static void *first_calls(void *argument)
{
    const opal_crypt_input_t nothing = {"", 0};
    const intptr_t me = (intptr_t) argument;
    uint8_t hash[32];
    void *block;

    pthread_barrier_wait(&start);
    wrong[me] += opal_crypt_forked();
    block = opal_crypt_secmem_alloc(64);
    wrong[me] += NULL == block;
    wrong[me] += opal_crypt_forked();
    opal_crypt_secmem_free(block);
    wrong[me] += NULL == opal_crypt_context(&opal_aead_openssl_module);
    wrong[me] += OPAL_CRYPT_OK != opal_crypt_sha256(&nothing, 1, hash) || 0xe3 != hash[0];
    (void) opal_crypt_secmem_locked();
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    UNIT_REQUIRE(OPAL_AEAD_OK == opal_aead_openssl_init());
    pthread_barrier_init(&start, NULL, THREADS);
    UNIT_GROUP("%d threads, %d times", THREADS, ROUNDS);
    for (int round = 0; round < ROUNDS; ++round) {
        for (intptr_t t = 0; t < THREADS; ++t) {
            UNIT_REQUIRE(0 == pthread_create(&threads[t], NULL, first_calls, (void *) t));
        }
        for (int t = 0; t < THREADS; ++t) {
            pthread_join(threads[t], NULL);
        }
        opal_crypt_finalize();
    }
    for (int t = 0; t < THREADS; ++t) {
        UNIT_CHECK(0 == wrong[t]);
    }
    opal_aead_openssl_fini();
    return unit_done();
}

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The log of (key, nonce) pairs in test builds: an open-addressing hash set of the first 16 bytes of SHA-256(key id ||
 * nonce).
 */
#include "nonce_log.h"

#ifdef OPAL_CRYPT_TEST_RECORD

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "constant.h"
#include "kdf.h"

typedef struct {
    uint64_t a, b;              /* both 0: free */
} pair_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pair_t *pairs;
static uint64_t count, capacity;

/* True if already present. */
static bool insert_pair(pair_t *set, uint64_t set_capacity, pair_t pair)
{
    uint64_t i = pair.a & (set_capacity - 1);

    while (0 != set[i].a || 0 != set[i].b) {
        if (set[i].a == pair.a && set[i].b == pair.b) {
            return true;
        }
        i = (i + 1) & (set_capacity - 1);
    }
    set[i] = pair;
    return false;
}

static void grow(void)
{
    uint64_t wider = 0 == capacity ? 1024 : 2 * capacity;
    pair_t *set = calloc(wider, sizeof(pair_t));

    if (NULL == set) {
        fputs("crypt: no memory for the record of nonces\n", stderr);
        abort();
    }
    for (uint64_t i = 0; i < capacity; ++i) {
        if (0 != pairs[i].a || 0 != pairs[i].b) {
            (void) insert_pair(set, wider, pairs[i]);
        }
    }
    free(pairs);
    pairs = set;
    capacity = wider;
}

void opal_crypt_nonce_log_key(const uint8_t *raw, size_t bytes, uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES])
{
    uint8_t hash[32];

    if (OPAL_CRYPT_OK != opal_crypt_sha256(&(opal_crypt_input_t) {raw, bytes}, 1, hash)) {
        abort();
    }
    memcpy(id, hash, OPAL_CRYPT_RECORD_ID_BYTES);
}

void opal_crypt_nonce_log_add(const uint8_t id[OPAL_CRYPT_RECORD_ID_BYTES], const uint8_t nonce[12])
{
    const opal_crypt_input_t pieces[] = {{id, OPAL_CRYPT_RECORD_ID_BYTES}, {nonce, 12}};
    uint8_t hash[32];
    pair_t pair;

    if (OPAL_CRYPT_OK != opal_crypt_sha256(pieces, 2, hash)) {
        abort();
    }
    OPAL_CRYPT_PUBLIC(hash, sizeof(hash));      /* only test builds have this log */
    memcpy(&pair, hash, sizeof(pair));

    pthread_mutex_lock(&lock);
    if (2 * count >= capacity) {
        grow();
    }
    if (insert_pair(pairs, capacity, pair)) {
        fputs("crypt: a (key, nonce) pair was about to seal twice\n", stderr);
        abort();
    }
    ++count;
    pthread_mutex_unlock(&lock);
}

uint64_t opal_crypt_recorded(void)
{
    pthread_mutex_lock(&lock);
    uint64_t seen = count;
    pthread_mutex_unlock(&lock);
    return seen;
}

void opal_crypt_record_forget(void)
{
    pthread_mutex_lock(&lock);
    free(pairs);
    pairs = NULL;
    count = capacity = 0;
    pthread_mutex_unlock(&lock);
}

#else

typedef int opal_crypt_nonce_log_unused_t;

#endif

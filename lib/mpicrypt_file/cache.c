/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * The cache: a table of lists, and one list by age.
 */
#include "lib/mpicrypt_file/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "opal/mca/common/crypt/base/secmem.h"

enum { LISTS = 4096 };                  /* a power of two */

typedef struct cached_block {
    struct cached_block *next;          /* in its list */
    struct cached_block *newer, *older;
    mpicrypt_block_name_t name;
    mpicrypt_stamp_t stamp;
    uint8_t *text;
} cached_block_t;

struct mpicrypt_cache {
    pthread_mutex_t lock;
    uint64_t most, used;                /* used: of blocks in the lists */
    cached_block_t *newest, *oldest;
    cached_block_t *lists[LISTS];
};

mpicrypt_cache_t *mpicrypt_cache_new(uint64_t most)
{
    mpicrypt_cache_t *cache = calloc(1, sizeof(*cache));

    if (NULL != cache) {
        pthread_mutex_init(&cache->lock, NULL);
        cache->most = most;
    }
    return cache;
}

bool mpicrypt_cache_fits(const mpicrypt_cache_t *cache, uint32_t block_bytes)
{
    return NULL != cache && block_bytes <= cache->most;
}

/* ---- with the lock ---- */

static cached_block_t **list_of(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name)
{
    const uint64_t mixed = (name->block + ((uint64_t) name->region << 40)) * UINT64_C(0x9e3779b97f4a7c15);

    return &cache->lists[(mixed >> 48) & (LISTS - 1)];
}

static cached_block_t *cached_find(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name)
{
    cached_block_t *found = *list_of(cache, name);

    while (NULL != found && (found->name.block != name->block || found->name.region != name->region)) {
        found = found->next;
    }
    return found;
}

static void age_out(mpicrypt_cache_t *cache, cached_block_t *block)
{
    *(NULL == block->newer ? &cache->newest : &block->newer->older) = block->older;
    *(NULL == block->older ? &cache->oldest : &block->older->newer) = block->newer;
}

static void age_newest(mpicrypt_cache_t *cache, cached_block_t *block)
{
    block->newer = NULL;
    block->older = cache->newest;
    *(NULL == cache->newest ? &cache->oldest : &cache->newest->newer) = block;
    cache->newest = block;
}

/* Out of both lists; its text is the caller's. */
static uint8_t *cached_remove(mpicrypt_cache_t *cache, cached_block_t *block)
{
    cached_block_t **link = list_of(cache, &block->name);
    uint8_t *text = block->text;

    while (block != *link) {
        link = &(*link)->next;
    }
    *link = block->next;
    age_out(cache, block);
    cache->used -= block->name.block_bytes;
    free(block);
    return text;
}

/* ---- the calls ---- */

bool mpicrypt_cache_copy(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name, const mpicrypt_stamp_t *stamp,
                         uint32_t within, void *to, size_t bytes)
{
    bool there = false;

    pthread_mutex_lock(&cache->lock);
    cached_block_t *block = cached_find(cache, name);
    if (NULL != block && 0 == memcmp(&block->stamp, stamp, sizeof(*stamp))) {
        memcpy(to, block->text + within, bytes);
        age_out(cache, block);
        age_newest(cache, block);
        there = true;
    }
    pthread_mutex_unlock(&cache->lock);
    return there;
}

uint8_t *mpicrypt_cache_room(mpicrypt_cache_t *cache, uint32_t block_bytes)
{
    uint8_t *reused = NULL;

    pthread_mutex_lock(&cache->lock);
    while (NULL == reused && NULL != cache->oldest && cache->used + block_bytes > cache->most) {
        const bool same = cache->oldest->name.block_bytes == block_bytes;
        uint8_t *text = cached_remove(cache, cache->oldest);
        if (same) {
            reused = text;
        } else {
            opal_crypt_secmem_free(text);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    return NULL == reused ? opal_crypt_secmem_alloc(block_bytes) : reused;
}

void mpicrypt_cache_put(mpicrypt_cache_t *cache, const mpicrypt_block_name_t *name, const mpicrypt_stamp_t *stamp, uint8_t *text)
{
    cached_block_t *made = malloc(sizeof(*made));

    pthread_mutex_lock(&cache->lock);
    cached_block_t *old = cached_find(cache, name);
    uint8_t *unused = NULL == old ? NULL : cached_remove(cache, old);
    if (NULL != made && cache->used + name->block_bytes <= cache->most) {
        *made = (cached_block_t){.name = *name, .stamp = *stamp, .text = text};
        cached_block_t **list = list_of(cache, name);
        made->next = *list;
        *list = made;
        age_newest(cache, made);
        cache->used += name->block_bytes;
        made = NULL;
        text = NULL;
    }
    pthread_mutex_unlock(&cache->lock);
    free(made);
    opal_crypt_secmem_free(text);
    opal_crypt_secmem_free(unused);
}

void mpicrypt_cache_free(mpicrypt_cache_t *cache)
{
    if (NULL == cache) {
        return;
    }
    while (NULL != cache->oldest) {
        opal_crypt_secmem_free(cached_remove(cache, cache->oldest));
    }
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

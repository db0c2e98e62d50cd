/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * An EVP context holds round keys on libcrypto's heap, where a core file would expose them, and a forked child would
 * have them.  libcrypto accepts another allocator only before its very first allocation (CRYPTO_set_mem_functions), or
 * at any time if it had one already, which we must not replace: its blocks must go back to it.  So:
 *
 *   own pages      libcrypto accepted ours.  Allocations between secret_begin() and
 *                  secret_end() are in pages marked MADV_DONTDUMP and
 *                  MADV_WIPEONFORK; all others go to malloc as before.
 *   no core files  libcrypto was in use before, or has the program's allocator, now or since: no_core_files().
 *                  `note` of the module says so in reports.  Children: aead_openssl_cache.c.
 *
 * libcrypto keeps our functions for the life of the process: this object is linked with -z nodelete and its pages are
 * never unmapped.
 *
 *     | header 64: class | payload 2^class ... |    from one reserved range
 */
#include <pthread.h>

#include <openssl/crypto.h>

#include "opal/mca/aead/aead_util.h"
#include "aead_openssl.h"

#define RESERVED     ((size_t) 256 << 20)      /* addresses, not memory */
#define STEP         ((size_t) 64 << 10)       /* made usable in steps of this size */
#define HEADER       ((size_t) 64)
#define CLASS_LEAST  6
#define CLASS_MOST   20

typedef struct block {
    unsigned class;
    struct block *next;                 /* while free */
} block_t;

static pthread_once_t take_over_once = PTHREAD_ONCE_INIT, guard_once = PTHREAD_ONCE_INIT;
static opal_aead_openssl_guard_t guard = OPAL_AEAD_OPENSSL_NOT_GUARDED;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *range;
static size_t range_usable, range_used;
static size_t range_dead;                   /* the parent's part of it, in a child that has begun anew */
static block_t *free_blocks[CLASS_MOST + 1];
static bool wiped_by_kernel, forked;        /* forked: in a child, where all of it is zeros */

static __thread bool secret;

void opal_aead_openssl_secret_begin(void)
{
    secret = true;
}

void opal_aead_openssl_secret_end(void)
{
    secret = false;
}

bool opal_aead_openssl_in_own_pages(const void *address)
{
    const uintptr_t a = (uintptr_t) address, first = (uintptr_t) range;

    return NULL != range && first <= a && a < first + RESERVED;
}

static block_t *block_of(void *payload)
{
    return (block_t *) ((uint8_t *) payload - HEADER);
}

static bool make_usable(size_t needed)
{
    while (range_usable < needed) {
        if (RESERVED - range_usable < STEP
            || 0 != mprotect(range + range_usable, STEP, PROT_READ | PROT_WRITE)) {
            return false;
        }
        (void) mlock(range + range_usable, STEP);       /* RLIMIT_MEMLOCK may forbid it */
        range_usable += STEP;
    }
    return true;
}

static void *own_alloc(size_t bytes)
{
    unsigned class = CLASS_LEAST;
    block_t *block;

    while (class <= CLASS_MOST && ((size_t) 1 << class) < bytes) {
        ++class;
    }
    if (class > CLASS_MOST || forked) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    block = free_blocks[class];
    if (NULL != block) {
        free_blocks[class] = block->next;
    } else if (make_usable(range_used + HEADER + ((size_t) 1 << class))) {
        block = (block_t *) (range + range_used);
        range_used += HEADER + ((size_t) 1 << class);
        block->class = class;
    }
    pthread_mutex_unlock(&lock);
    return NULL == block ? NULL : (uint8_t *) block + HEADER;
}

static void own_free(void *payload)
{
    block_t *block = block_of(payload);

    if (forked || (uint8_t *) block < range + range_dead) {
        return;
    }
    opal_aead_wipe(payload, (size_t) 1 << block->class);
    pthread_mutex_lock(&lock);
    block->next = free_blocks[block->class];
    free_blocks[block->class] = block;
    pthread_mutex_unlock(&lock);
}

/* ---- the three functions that libcrypto calls ---- */

static void *hook_malloc(size_t bytes, const char *file, int line)
{
    (void) file;
    (void) line;
    if (0 == bytes) {
        return NULL;
    }
    return secret ? own_alloc(bytes) : malloc(bytes);
}

static void hook_free(void *payload, const char *file, int line)
{
    (void) file;
    (void) line;
    if (opal_aead_openssl_in_own_pages(payload)) {
        own_free(payload);
    } else {
        free(payload);
    }
}

static void *hook_realloc(void *payload, size_t bytes, const char *file, int line)
{
    size_t held;
    void *larger;

    if (NULL == payload) {
        return hook_malloc(bytes, file, line);
    }
    if (0 == bytes) {
        hook_free(payload, file, line);
        return NULL;
    }
    if (!opal_aead_openssl_in_own_pages(payload)) {
        return realloc(payload, bytes);
    }
    held = (size_t) 1 << block_of(payload)->class;
    if (bytes <= held) {
        return payload;
    }
    larger = own_alloc(bytes);          /* once secret, always secret */
    if (NULL != larger) {
        memcpy(larger, payload, held);
        own_free(payload);
    }
    return larger;
}

/* ---- fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void in_parent(void)
{
    pthread_mutex_unlock(&lock);
}

static void in_child(void)
{
    forked = true;
    if (!wiped_by_kernel) {
        opal_aead_wipe(range, range_usable);
    }
    pthread_mutex_unlock(&lock);
}

void opal_aead_openssl_anew(void)
{
    pthread_mutex_lock(&lock);
    if (forked) {
        range_dead = range_used = range_usable;     /* a child inherits no locked pages: begin with new ones */
        memset(free_blocks, 0, sizeof(free_blocks));
        forked = false;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- deciding ---- */

static bool has_its_own(void)
{
    CRYPTO_malloc_fn from = NULL;
    CRYPTO_realloc_fn again = NULL;
    CRYPTO_free_fn to = NULL;

    CRYPTO_get_mem_functions(&from, &again, &to);
    return CRYPTO_malloc == from && CRYPTO_realloc == again && CRYPTO_free == to;
}

static bool has_ours(void)
{
    CRYPTO_malloc_fn from = NULL;

    CRYPTO_get_mem_functions(&from, NULL, NULL);
    return hook_malloc == from;
}

static void take_over(void)
{
    if (!has_its_own()) {
        return;
    }
    void *reserved = mmap(NULL, RESERVED, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (MAP_FAILED == reserved) {
        return;
    }
    if (0 == madvise(reserved, RESERVED, MADV_DONTDUMP) && 0 == pthread_atfork(before_fork, in_parent, in_child)) {
        wiped_by_kernel = 0 == madvise(reserved, RESERVED, MADV_WIPEONFORK);
        range = reserved;
        if (1 == CRYPTO_set_mem_functions(hook_malloc, hook_realloc, hook_free)) {
            guard = OPAL_AEAD_OPENSSL_OWN_PAGES;
            return;
        }
        range = NULL;               /* none of it is usable */
    }
    munmap(reserved, RESERVED);
}

static void choose_guard(void)
{
    opal_aead_openssl_take_over();
    if (OPAL_AEAD_OPENSSL_NOT_GUARDED == guard && opal_aead_no_core_files()) {
        guard = OPAL_AEAD_OPENSSL_NO_CORE_FILES;
    }
}

void opal_aead_openssl_take_over(void)
{
    pthread_once(&take_over_once, take_over);
}

opal_aead_openssl_guard_t opal_aead_openssl_guard(void)
{
    pthread_once(&guard_once, choose_guard);
    if (OPAL_AEAD_OPENSSL_OWN_PAGES == guard && !has_ours()) {
        guard = opal_aead_no_core_files() ? OPAL_AEAD_OPENSSL_NO_CORE_FILES : OPAL_AEAD_OPENSSL_NOT_GUARDED;
    }
    return guard;
}

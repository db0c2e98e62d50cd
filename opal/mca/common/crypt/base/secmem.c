/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory for secrets.  Blocks of up to 16 KiB are slots of arenas, each arena
 * a 64 KiB mapping for one size of slot; a larger block has a mapping of its
 * own.  Every mapping is aligned to 64 KiB and starts with its description, so that a block finds it by rounding its
 * address down:
 *     | arena 256 B: links, slot size, bitmap | slot | slot | ... |
 *
 * A slot is zero while not in use: fresh from the kernel, or wiped by free.  Nothing here may ever touch the heap.
 *
 * A forked child finds zeros in place of the mappings, descriptions included: it gets no blocks, and returns none.
 */
#include "secmem.h"
#include "constant.h"
#include "fork.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include <openssl/crypto.h>

#define ARENA_BYTES     ((size_t) 65536)
#define ARENA_HEADER    ((size_t) 256)
#define CLASSES         11
#define LARGE           CLASSES                 /* the list of one-block mappings */
#define ARENA_MAGIC     UINT64_C(0x6f6d70692d637279)

typedef struct arena {
    uint64_t magic;
    struct arena *next, *previous;
    size_t mapped_bytes;
    size_t slot_bytes;
    unsigned list;                              /* class, or LARGE */
    unsigned slots, used;
    uint64_t taken[16];                         /* one bit per slot */
} arena_t;

_Static_assert(sizeof(arena_t) <= ARENA_HEADER, "an arena's description must fit before its slots");
_Static_assert((ARENA_BYTES - ARENA_HEADER) / 64 <= 16 * 64, "the bitmap must cover the smallest slots");

/* Multiples of 64.  A peer has two epochs with a key of ipsecmb, or the two directions of a connection: 1088 and 2304
 * with its releases 1.x, 1344 and 2816 with 2.0. */
static const size_t slot_sizes[CLASSES] = {64, 128, 256, 512, 1088, 1344, 2304, 2816, 4096, 8192, 16384};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static arena_t *arenas[CLASSES + 1];            /* arenas with a free slot come first */
static bool unlocked_somewhere;
static bool kept_by_children;                   /* the kernel has no MADV_WIPEONFORK */

/* The fork marker: 1 in the process that made it, 0 in its children.  Read without the lock. */
static volatile uint32_t *_Atomic marker;
static pid_t marker_pid;                        /* nonzero: the kernel does not guarantee that */

void opal_crypt_wipe(void *block, size_t bytes)
{
    OPENSSL_cleanse(block, bytes);
}

int opal_crypt_differ(const void *a, const void *b, size_t bytes)
{
    int differ = CRYPTO_memcmp(a, b, bytes);

    OPAL_CRYPT_PUBLIC(&differ, sizeof(differ)); /* every caller acts on it; at which byte remains a secret */
    return differ;
}

void opal_crypt_random(void *block, size_t bytes)
{
    uint8_t *p = block;

    while (bytes > 0) {
        ssize_t got = getrandom(p, bytes, 0);

        if (got < 0 && EINTR == errno) {
            continue;
        }
        if (got <= 0) {
            fputs("ompi-crypt: getrandom() failed: no keys can be made\n", stderr);
            abort();
        }
        p += got;
        bytes -= (size_t) got;
    }
}

/* ---- mappings ---- */

/* Maps `bytes` of zeros at a multiple of ARENA_BYTES, left out of core files. */
static void *map(size_t bytes)
{
    uint8_t *wide, *block;
    size_t before;

    if (bytes > SIZE_MAX - ARENA_BYTES) {
        return NULL;
    }
    wide = mmap(NULL, bytes + ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == wide) {
        return NULL;
    }
    before = (ARENA_BYTES - ((uintptr_t) wide & (ARENA_BYTES - 1))) & (ARENA_BYTES - 1);
    block = wide + before;
    if (before > 0) {
        munmap(wide, before);
    }
    munmap(block + bytes, ARENA_BYTES - before);

    if (0 != madvise(block, bytes, MADV_DONTDUMP)) {
        munmap(block, bytes);
        return NULL;
    }
    if (0 != madvise(block, bytes, MADV_WIPEONFORK)) {
        kept_by_children = true;                /* until the child wipes them, first thing */
    }
    if (0 != mlock(block, bytes)) {
        unlocked_somewhere = true;
    }
    return block;
}

static void unmap(arena_t *arena)
{
    size_t bytes = arena->mapped_bytes;

    opal_crypt_wipe(arena, bytes);
    munmap(arena, bytes);
}

static void link_first(arena_t *arena)
{
    arena->previous = NULL;
    arena->next = arenas[arena->list];
    if (NULL != arena->next) {
        arena->next->previous = arena;
    }
    arenas[arena->list] = arena;
}

static void link_last(arena_t *arena)
{
    arena_t *last = arenas[arena->list];

    if (NULL == last) {
        link_first(arena);
        return;
    }
    while (NULL != last->next) {
        last = last->next;
    }
    last->next = arena;
    arena->previous = last;
    arena->next = NULL;
}

static void unlink_arena(arena_t *arena)
{
    if (NULL != arena->next) {
        arena->next->previous = arena->previous;
    }
    if (NULL != arena->previous) {
        arena->previous->next = arena->next;
    } else {
        arenas[arena->list] = arena->next;
    }
}

static arena_t *arena_make(unsigned list, size_t mapped_bytes, size_t slot_bytes, unsigned slots)
{
    arena_t *arena = map(mapped_bytes);

    if (NULL != arena) {
        arena->magic = ARENA_MAGIC;
        arena->mapped_bytes = mapped_bytes;
        arena->slot_bytes = slot_bytes;
        arena->list = list;
        arena->slots = slots;
        link_first(arena);
    }
    return arena;
}

static bool marker_make(void)
{
    volatile uint32_t *page;
    void *made;

    if (NULL != atomic_load_explicit(&marker, memory_order_relaxed)) {
        return true;
    }
    if (!opal_crypt_fork_watch()) {
        return false;
    }
    made = mmap(NULL, (size_t) sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (MAP_FAILED == made) {
        return false;
    }
    marker_pid = 0 == madvise(made, (size_t) sysconf(_SC_PAGESIZE), MADV_WIPEONFORK) ? 0 : getpid();
    page = made;
    *page = 1;
    atomic_store_explicit(&marker, page, memory_order_release);     /* or another thread believes it is a child */
    return true;
}

/* ---- blocks ---- */

static void *slot_take(arena_t *arena)
{
    for (unsigned word = 0; word < 16; ++word) {
        if (UINT64_MAX != arena->taken[word]) {
            unsigned slot = word * 64 + (unsigned) __builtin_ctzll(~arena->taken[word]);

            if (slot >= arena->slots) {
                return NULL;
            }
            arena->taken[word] |= UINT64_C(1) << (slot % 64);
            if (++arena->used == arena->slots && LARGE != arena->list) {
                unlink_arena(arena);
                link_last(arena);
            }
            return (uint8_t *) arena + ARENA_HEADER + slot * arena->slot_bytes;
        }
    }
    return NULL;
}

static void *take_block(size_t bytes)
{
    unsigned class = 0;
    arena_t *arena;

    while (class < CLASSES && slot_sizes[class] < bytes) {
        ++class;
    }
    if (LARGE == class) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);

        if (bytes > SIZE_MAX - 2 * ARENA_BYTES) {
            return NULL;
        }
        arena = arena_make(LARGE, (ARENA_HEADER + bytes + page - 1) & ~(page - 1), bytes, 1);
    } else {
        arena = arenas[class];
        if (NULL == arena || arena->used == arena->slots) {
            const size_t slot_bytes = slot_sizes[class];

            arena = arena_make(class, ARENA_BYTES, slot_bytes,
                               (unsigned) ((ARENA_BYTES - ARENA_HEADER) / slot_bytes));
        }
    }
    return NULL == arena ? NULL : slot_take(arena);
}

void *opal_crypt_secmem_alloc(size_t bytes)
{
    void *block = NULL;

    if (opal_crypt_forked()) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (marker_make()) {
        block = take_block(bytes);
    }
    pthread_mutex_unlock(&lock);
    return block;
}

void opal_crypt_secmem_free(void *block)
{
    arena_t *arena;
    unsigned slot;

    if (NULL == block || opal_crypt_forked()) {
        return;
    }
    arena = (arena_t *) ((uintptr_t) block & ~(uintptr_t) (ARENA_BYTES - 1));

    pthread_mutex_lock(&lock);
    slot = (unsigned) ((size_t) ((uint8_t *) block - (uint8_t *) arena - ARENA_HEADER) / arena->slot_bytes);
    if (ARENA_MAGIC != arena->magic || slot >= arena->slots
        || 0 == (arena->taken[slot / 64] & (UINT64_C(1) << (slot % 64)))) {
        fputs("ompi-crypt: a block was freed that is not in use\n", stderr);
        abort();
    }
    unlink_arena(arena);
    if (LARGE == arena->list) {
        unmap(arena);
    } else {
        opal_crypt_wipe(block, arena->slot_bytes);
        arena->taken[slot / 64] &= ~(UINT64_C(1) << (slot % 64));
        --arena->used;
        link_first(arena);
    }
    pthread_mutex_unlock(&lock);
}

bool opal_crypt_forked(void)
{
    const volatile uint32_t *page = atomic_load_explicit(&marker, memory_order_acquire);

    if (NULL == page) {
        return false;
    }
    return 1 != *page || (0 != marker_pid && marker_pid != getpid());
}

bool opal_crypt_secmem_locked(void)
{
    bool locked;

    pthread_mutex_lock(&lock);
    locked = !unlocked_somewhere;
    pthread_mutex_unlock(&lock);
    return locked;
}

void opal_crypt_secmem_finalize(void)
{
    if (opal_crypt_forked()) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (unsigned list = 0; list <= LARGE; ++list) {
        while (NULL != arenas[list]) {
            arena_t *arena = arenas[list];

            arenas[list] = arena->next;
            unmap(arena);
        }
    }
    if (NULL != marker) {
        munmap((void *) (uintptr_t) marker, (size_t) sysconf(_SC_PAGESIZE));
        marker = NULL;
    }
    unlocked_somewhere = kept_by_children = false;
    pthread_mutex_unlock(&lock);
}

/* ---- fork ---- */

static void wipe_all(void)
{
    for (unsigned list = 0; list <= LARGE; ++list) {
        for (arena_t *arena = arenas[list], *next; NULL != arena; arena = next) {
            next = arena->next;
            opal_crypt_wipe(arena, arena->mapped_bytes);
        }
    }
}

void opal_crypt_secmem_fork(opal_crypt_fork_t when)
{
    if (OPAL_CRYPT_FORK_BEFORE == when) {
        pthread_mutex_lock(&lock);
        return;
    }
    if (OPAL_CRYPT_FORK_CHILD == when && NULL != marker) {
        if (kept_by_children) {
            wipe_all();
        }
        *marker = 0;
    }
    pthread_mutex_unlock(&lock);
}

/* The parent's arenas are zeros: they are left where they are. */
void opal_crypt_secmem_anew(void)
{
    pthread_mutex_lock(&lock);
    for (unsigned list = 0; list <= LARGE; ++list) {
        arenas[list] = NULL;
    }
    if (NULL != marker) {
        marker_pid = 0 == marker_pid ? 0 : getpid();
        *marker = 1;
    }
    pthread_mutex_unlock(&lock);
}

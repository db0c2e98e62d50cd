/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Shared by several providers: wiping, comparing tags, memory that stays out of core files, CPU features.
 *
 * Like aead_module.h it does not depend on Open MPI.
 */
#ifndef OPAL_AEAD_UTIL_H
#define OPAL_AEAD_UTIL_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <unistd.h>

#include "opal/mca/aead/aead_module.h"

/* Wipe memory in a way that the compiler cannot remove. */
static inline void opal_aead_wipe(void *block, size_t bytes)
{
    if (0 < bytes) {
        memset(block, 0, bytes);
        __asm__ volatile("" : : "r"(block) : "memory");
    }
}

/* Constant-time comparison of two tags: 0 when equal.  Both are read completely, and the compiler does not know what
 * it compares. */
static inline int opal_aead_tags_differ(const uint8_t *a, const uint8_t *b)
{
    uint64_t left[2], right[2], difference;

    memcpy(left, a, OPAL_AEAD_TAG_BYTES);
    memcpy(right, b, OPAL_AEAD_TAG_BYTES);
    difference = (left[0] ^ right[0]) | (left[1] ^ right[1]);
    __asm__ volatile("" : "+r"(difference));
    return 0 != difference;
}

/* The longest text that one nonce may cover: 2^32 - 2 blocks of 16 bytes for
 * GCM (SP 800-38D), 2^32 - 1 blocks of 64 bytes for ChaCha20 (RFC 8439). */
static inline bool opal_aead_text_fits(opal_aead_cipher_t cipher, size_t text_bytes)
{
    const uint64_t most = OPAL_AEAD_CHACHA20_POLY1305 == cipher ? (UINT64_C(1) << 38) - 64
                                                                : (UINT64_C(1) << 36) - 32;

    return text_bytes <= most;
}

/* ---- traces of a library call ---- */

#define OPAL_AEAD_VECTORS_0_TO_15 \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", \
    "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

/* All vector registers, where most libraries leave GHASH's key, some a round key, and the C library's memcpy what it
 * copied: a core file contains them.  Call it as soon as a library call that was given a key returns. */
static inline void opal_aead_vectors_wipe(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        __asm__ volatile(".irp n,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\t"
                         "vpxord %%zmm\\n, %%zmm\\n, %%zmm\\n\n\t"
                         ".endr" : : : "memory"
#if defined(__AVX512F__)
                         , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23",
                         "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31"
#endif
                         );
    }
    if (__builtin_cpu_supports("avx")) {
        __asm__ volatile("vzeroall" : : : "memory", OPAL_AEAD_VECTORS_0_TO_15);
    } else {
        __asm__ volatile(".irp n,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n\t"
                         "pxor %%xmm\\n, %%xmm\\n\n\t"
                         ".endr" : : : "memory", OPAL_AEAD_VECTORS_0_TO_15);
    }
#endif
}

#define OPAL_AEAD_TRACES_BYTES 4096

/* For libraries that leave keys on the stack, too: also wipes the stack below the caller's frame. */
static __attribute__((noinline, unused)) void opal_aead_traces_wipe(void)
{
    uint8_t below[OPAL_AEAD_TRACES_BYTES];
    size_t bytes = sizeof(below);

    __asm__("" : "+r"(bytes));          /* hides the size: the C library's memset is the fastest */
    opal_aead_wipe(below, bytes);
    opal_aead_vectors_wipe();
}

/* ---- contexts of a provider that keeps nothing from message to message ---- */

static inline int opal_aead_no_context_new(opal_aead_context_t **context)
{
    static char none;                   /* callers take NULL for a failure */

    *context = (opal_aead_context_t *) &none;
    return OPAL_AEAD_OK;
}

static inline void opal_aead_no_context_free(opal_aead_context_t *context) { (void) context; }

/* ---- whole pages, zeroed, left out of core files and of children, locked where allowed ---- */

/* A forked child finds zeros there or, before Linux 4.14, nothing at all. */
static inline bool opal_aead_pages_leave(void *pages, size_t bytes)
{
    return 0 == madvise(pages, bytes, MADV_DONTDUMP)
        && (0 == madvise(pages, bytes, MADV_WIPEONFORK) || 0 == madvise(pages, bytes, MADV_DONTFORK));
}

static inline size_t opal_aead_pages_round(size_t bytes)
{
    const size_t page = (size_t) sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

static inline void *opal_aead_pages_alloc(size_t bytes)
{
    const size_t rounded = opal_aead_pages_round(bytes);
    void *pages = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (MAP_FAILED == pages) {
        return NULL;
    }
    if (!opal_aead_pages_leave(pages, rounded)) {
        munmap(pages, rounded);
        return NULL;
    }
    (void) mlock(pages, rounded);       /* RLIMIT_MEMLOCK may forbid it */
    return pages;
}

static inline void opal_aead_pages_free(void *pages, size_t bytes)
{
    if (NULL != pages) {
        opal_aead_wipe(pages, bytes);
        munmap(pages, opal_aead_pages_round(bytes));
    }
}

/* For libraries whose memory cannot be kept out of core files: this process dumps none.  The soft limit of one byte is
 * too small for any file, and with it Linux does not run a core_pattern pipe either (0 would not stop that). */
static inline bool opal_aead_no_core_files(void)
{
    struct rlimit limit;

    if (0 != getrlimit(RLIMIT_CORE, &limit)) {
        return false;
    }
    limit.rlim_cur = 0 == limit.rlim_max ? 0 : 1;
    return 0 == setrlimit(RLIMIT_CORE, &limit);
}

/* ---- CPU features ---- */

static inline bool opal_aead_cpu_aes(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul")
        && __builtin_cpu_supports("ssse3");
#else
    return false;
#endif
}

/* AES and GHASH on four blocks at once: libraries that use it are two to three times as fast as others. */
static inline bool opal_aead_cpu_wide_aes(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;        /* clang 14 has no __builtin_cpu_supports for the first two */
    return opal_aead_cpu_aes() && __get_cpuid_count(7, 0, &a, &b, &c, &d)
        && 0 != (c & bit_VAES) && 0 != (c & bit_VPCLMULQDQ)
        && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

#endif

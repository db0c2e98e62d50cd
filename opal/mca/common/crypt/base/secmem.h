/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory for secrets: our own pages, left out of core files (MADV_DONTDUMP), locked if the system allows it, never on
 * the heap, wiped when freed, and zeros in a forked child (MADV_WIPEONFORK), which therefore refuses to seal and to
 * open.
 *
 * Threads: every function may be called by any thread.
 */
#ifndef OPAL_CRYPT_BASE_SECMEM_H
#define OPAL_CRYPT_BASE_SECMEM_H

#include "base.h"

#pragma GCC visibility push(default)

/* Zeroed, aligned to 64 bytes; NULL if there is none, and in a child.  Free it with opal_crypt_secmem_free only. */
void *opal_crypt_secmem_alloc(size_t bytes);
void opal_crypt_secmem_free(void *block);               /* wipes; NULL allowed */

/* Wipe memory in a way that the compiler cannot remove. */
void opal_crypt_wipe(void *block, size_t bytes);

/* Constant-time comparison: 0 when equal. */
int opal_crypt_differ(const void *a, const void *b, size_t bytes);

/* True in a child of the process that first called secmem_alloc: its blocks are all zeros. */
bool opal_crypt_forked(void);

/* Wipe and unmap everything, at finalize; blocks still in use become invalid.  Does nothing in a child, which remains
 * one. */
void opal_crypt_secmem_finalize(void);

/* True if all pages could be locked; shown in reports. */
bool opal_crypt_secmem_locked(void);

/* Random bytes for keys, from getrandom(2); aborts if the kernel has none. */
void opal_crypt_random(void *block, size_t bytes);

#pragma GCC visibility pop

#endif

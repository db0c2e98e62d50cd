/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Memory for secrets: pages of our own that are left out of core files
 * (MADV_DONTDUMP), locked where the system allows it, never on the heap, and
 * wiped when freed.  One page is marked MADV_WIPEONFORK: a fork'd child finds
 * it empty, and refuses to seal.
 *
 * Threads: every function may be called by any thread.
 */
#ifndef OPAL_COMMON_CRYPT_SECMEM_H
#define OPAL_COMMON_CRYPT_SECMEM_H

#include "crypt_base.h"

#pragma GCC visibility push(default)

/* Zeroed, aligned to 64 bytes; NULL when there is none.  A block that comes
 * from here is returned by opal_common_crypt_secmem_free and nothing else. */
void *opal_common_crypt_secmem_alloc(size_t bytes);
void opal_common_crypt_secmem_free(void *block);        /* wipes; NULL allowed */

/* Wipe memory that the compiler would otherwise leave alone. */
void opal_common_crypt_wipe(void *block, size_t bytes);

/* Constant-time comparison: 0 when equal. */
int opal_common_crypt_differ(const void *a, const void *b, size_t bytes);

/* True in a child of the process that first called secmem_alloc. */
bool opal_common_crypt_forked(void);

/* Wipe and unmap everything, at finalize; blocks still in use become invalid. */
void opal_common_crypt_secmem_finalize(void);

/* True if all pages could be locked; says so in reports. */
bool opal_common_crypt_secmem_locked(void);

/* Random bytes for keys, from getrandom(2); aborts if the kernel has none. */
void opal_common_crypt_random(void *block, size_t bytes);

#pragma GCC visibility pop

#endif

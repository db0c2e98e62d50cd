/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * A forked child has none of our keys.
 *
 *   memory of crypt_secmem    the kernel gives the child zeros (MADV_WIPEONFORK);
 *                             if it cannot, the child wipes them before anything else
 *   libcrypto's, between      a fork waits for those calls (secret_begin .. secret_end);
 *   two calls                 the contexts of threads that were in the middle of a
 *                             message are given another key in the child
 *   providers                 handle their own contexts (opal/mca/aead/aead_live.h)
 *
 * The child only writes to memory: it has one of the process's threads, so whatever another thread held stays held.  A
 * child made in another way (clone, vfork, posix_spawn) runs none of this: with its own memory it gets the kernel's
 * zeros, and the other two become another program at once.
 */
#include "fork.h"
#include "secmem.h"

#include <pthread.h>
#include <stdint.h>

enum { STACK = 16384 };         /* the most stack that libcrypto uses in one of those calls */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool watched;

/* Held for reading while libcrypto has a secret in its memory. */
static pthread_rwlock_t secrets = PTHREAD_RWLOCK_INITIALIZER;

void opal_crypt_secret_begin(void)
{
    pthread_rwlock_rdlock(&secrets);
}

/* Wipe what earlier calls left on this thread's stack, below its end. */
static __attribute__((noinline)) void wipe_stack(void)
{
    uint8_t below[STACK];

    opal_crypt_wipe(below, sizeof(below));
}

void opal_crypt_secret_end(void)
{
    wipe_stack();
    pthread_rwlock_unlock(&secrets);
}

static void before(void)
{
    pthread_rwlock_wrlock(&secrets);
    opal_crypt_thread_fork(OPAL_CRYPT_FORK_BEFORE);
    opal_crypt_secmem_fork(OPAL_CRYPT_FORK_BEFORE);
}

static void in_parent(void)
{
    opal_crypt_secmem_fork(OPAL_CRYPT_FORK_PARENT);
    opal_crypt_thread_fork(OPAL_CRYPT_FORK_PARENT);
    pthread_rwlock_unlock(&secrets);
}

static void in_child(void)
{
    opal_crypt_secmem_fork(OPAL_CRYPT_FORK_CHILD);
    opal_crypt_thread_fork(OPAL_CRYPT_FORK_CHILD);
    /* locked by a thread of the parent, so it cannot be unlocked */
    secrets = (pthread_rwlock_t) PTHREAD_RWLOCK_INITIALIZER;
}

static void watch(void)
{
    watched = 0 == pthread_atfork(before, in_parent, in_child);
}

void opal_crypt_fork_anew(void)
{
    opal_crypt_thread_anew();
    opal_crypt_secmem_anew();
}

bool opal_crypt_fork_watch(void)
{
    pthread_once(&once, watch);
    return watched;
}

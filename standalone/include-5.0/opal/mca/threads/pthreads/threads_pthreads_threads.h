/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Stand-in for a header that Open MPI 5.0 includes but some packages (Debian's
 * 5.0.7 among them) do not ship.  configure uses it only where the original is
 * missing.  How a thread yields.
 */
#ifndef OMPI_CRYPT_THREADS_PTHREADS_THREADS_H
#define OMPI_CRYPT_THREADS_PTHREADS_THREADS_H

#include <pthread.h>
#include <signal.h>

#include "opal/mca/threads/pthreads/threads_pthreads.h"
#include "opal/mca/threads/threads.h"

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void)
{
    opal_threads_pthreads_yield_fn();
}

#endif

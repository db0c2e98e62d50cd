/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Stand-in for a header that Open MPI 5.0 includes but some packages (Debian's
 * 5.0.7 among them) do not ship.  configure uses it only where the original is
 * missing.  The function behind yield is libopen-pal's.
 */
#ifndef OMPI_CRYPT_THREADS_PTHREADS_H
#define OMPI_CRYPT_THREADS_PTHREADS_H

#include "opal_config.h"

typedef void (opal_threads_pthreads_yield_fn_t)(void);

OPAL_DECLSPEC extern opal_threads_pthreads_yield_fn_t *opal_threads_pthreads_yield_fn;

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Stand-in for a header that Open MPI 5.0 includes but some packages (Debian's
 * 5.0.7 among them) do not ship.  configure uses it only where the original is
 * missing.  Thread-specific data.
 */
#ifndef OMPI_CRYPT_THREADS_PTHREADS_TSD_H
#define OMPI_CRYPT_THREADS_PTHREADS_TSD_H

#include <pthread.h>
#include <signal.h>

#include "opal/constants.h"

typedef pthread_key_t opal_tsd_key_t;

static inline int opal_tsd_key_delete(opal_tsd_key_t key)
{
    return 0 == pthread_key_delete(key) ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline int opal_tsd_set(opal_tsd_key_t key, void *value)
{
    return 0 == pthread_setspecific(key, value) ? OPAL_SUCCESS : OPAL_ERR_IN_ERRNO;
}

static inline int opal_tsd_get(opal_tsd_key_t key, void **value)
{
    *value = pthread_getspecific(key);
    return OPAL_SUCCESS;
}

#endif

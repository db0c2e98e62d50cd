/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where Open MPI 4.1 and 5.0 differ: every #if on a version lives here.
 */
#ifndef OMPI_COMMON_CRYPTMPI_COMPAT_H
#define OMPI_COMMON_CRYPTMPI_COMPAT_H

#include "ompi_config.h"

#include <stdint.h>

#include <pthread.h>

#include "ompi/communicator/communicator.h"
#include "ompi/mca/pml/pml.h"
#include "ompi/proc/proc.h"

#if !((4 == OMPI_MAJOR_VERSION && 1 == OMPI_MINOR_VERSION) || 5 == OMPI_MAJOR_VERSION)
#    error "ompi-crypt supports Open MPI 4.1 and 5.0"
#endif

#ifdef MCA_ompi_pml_DIRECT_CALL
#    if MCA_ompi_pml_DIRECT_CALL
#        error "a direct-call PML cannot be wrapped: build Open MPI without --enable-mca-direct=pml-..."
#    endif
#endif

#if OMPI_MAJOR_VERSION >= 5

#    include "opal/mca/accelerator/accelerator.h"
#    include "opal/mca/accelerator/base/base.h"
#    include "opal/mca/pmix/pmix-internal.h"

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 1

typedef mca_pml_base_component_2_1_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#    define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0
#    define OMPI_COMMON_CRYPTMPI_MODEX_SCOPE PMIX_GLOBAL

typedef opal_atomic_int32_t ompi_common_cryptmpi_atomic32_t;

static inline uint32_t ompi_common_cryptmpi_comm_index(const ompi_communicator_t *comm)
{
    return comm->c_index;
}

static inline void ompi_common_cryptmpi_context(const ompi_communicator_t *comm, uint64_t *high, uint64_t *low)
{
    *high = comm->c_contextid.cid_base;
    *low = comm->c_contextid.cid_sub.u64;
}

#else /* 4.1 */

#    include "opal/mca/pmix/pmix.h"
#    if OPAL_CUDA_SUPPORT
#        include "opal/datatype/opal_datatype_cuda.h"
#    endif

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 0

typedef mca_pml_base_component_2_0_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#    define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0
#    define OMPI_COMMON_CRYPTMPI_MODEX_SCOPE OPAL_PMIX_GLOBAL

typedef volatile int32_t ompi_common_cryptmpi_atomic32_t;

static inline uint32_t ompi_common_cryptmpi_comm_index(const ompi_communicator_t *comm)
{
    return comm->c_contextid;
}

static inline void ompi_common_cryptmpi_context(const ompi_communicator_t *comm, uint64_t *high, uint64_t *low)
{
    *high = 0;
    *low = comm->c_contextid;
}

#endif

/* The members of a PML module that only one series has. */
#if OMPI_MAJOR_VERSION >= 5
#    define OMPI_COMMON_CRYPTMPI_COPY_PML_EXTRAS(to, from)              \
        do {                                                            \
            (to)->pml_revoke_comm = (from)->pml_revoke_comm;            \
            (to)->pml_get_transports = (from)->pml_get_transports;      \
        } while (0)
#else
#    define OMPI_COMMON_CRYPTMPI_COPY_PML_EXTRAS(to, from) ((to)->pml_ft_event = (from)->pml_ft_event)
#endif

/* A lock that costs one test while the application has a single thread.  The
 * threads framework's own header is not part of every devel package. */
typedef pthread_mutex_t ompi_common_cryptmpi_lock_t;
extern OMPI_DECLSPEC bool ompi_common_cryptmpi_threads;     /* MPI_THREAD_MULTIPLE was given */

static inline void ompi_common_cryptmpi_lock_acquire(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threads)) {
        pthread_mutex_lock(lock);
    }
}

static inline void ompi_common_cryptmpi_lock_release(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threads)) {
        pthread_mutex_unlock(lock);
    }
}

#endif

/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where Open MPI 4.1 and 5.0 differ: every #if on a version lives here, or, for what is OPAL's
 * alone, in opal/mca/common/cryptproc/cryptproc_compat.h.
 */
#ifndef OMPI_COMMON_CRYPTMPI_COMPAT_H
#define OMPI_COMMON_CRYPTMPI_COMPAT_H

#include "ompi_config.h"

#include "opal/mca/common/cryptproc/cryptproc_compat.h"
#include "opal/util/info.h"
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

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 1
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 0      /* calls of the runtime that can be replaced: opal_pmix */

typedef mca_pml_base_component_2_1_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_1_0
#    define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_4_0

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

#    if OPAL_CUDA_SUPPORT
#        include "opal/datatype/opal_datatype_cuda.h"
#    endif

#    define OMPI_COMMON_CRYPTMPI_ACCELERATOR 0
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 1

typedef mca_pml_base_component_2_0_0_t ompi_common_cryptmpi_pml_component_t;
#    define OMPI_COMMON_CRYPTMPI_PML_VERSION MCA_PML_BASE_VERSION_2_0_0
#    define OMPI_COMMON_CRYPTMPI_COLL_VERSION MCA_COLL_BASE_VERSION_2_0_0

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

/* What 5.0 asks an fbtl before it sets atomic mode. */
#if OMPI_MAJOR_VERSION >= 5
#    define OMPI_COMMON_CRYPTMPI_FBTL_EXTRAS(check) .fbtl_check_atomicity = (check),
#    define OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(fbtl, fh) \
        (NULL != (fbtl)->fbtl_check_atomicity && (fbtl)->fbtl_check_atomicity(fh))
#else
#    define OMPI_COMMON_CRYPTMPI_FBTL_EXTRAS(check)
#    define OMPI_COMMON_CRYPTMPI_FBTL_IS_ATOMIC(fbtl, fh) (NULL == (fbtl))
#endif

/* The value of an info key, cut to size - 1 characters; false if there is none.
 * 4.1 copies values, 5.0 hands out objects. */
static inline bool ompi_common_cryptmpi_info_get(opal_info_t *info, const char *key, char *value, size_t size)
{
    int found = 0;

    if (NULL == info) {
        return false;
    }
#if OMPI_MAJOR_VERSION >= 5
    opal_cstring_t *text;
    if (OPAL_SUCCESS == opal_info_get(info, key, &text, &found) && found) {
        opal_cryptproc_cut(value, size, text->string);
        OBJ_RELEASE(text);
    }
#else
    char text[MPI_MAX_INFO_VAL + 1];
    if (OPAL_SUCCESS == opal_info_get(info, (char *) (uintptr_t) key, MPI_MAX_INFO_VAL, text, &found) && found) {
        opal_cryptproc_cut(value, size, text);
    }
#endif
    return 0 != found;
}

/* The name of info key number `n`, cut to size - 1 characters; false if there are no more. */
static inline bool ompi_common_cryptmpi_info_key(opal_info_t *info, int n, char *name, size_t size)
{
    int keys = 0;

    if (NULL == info || OPAL_SUCCESS != opal_info_get_nkeys(info, &keys) || n >= keys) {
        return false;
    }
#if OMPI_MAJOR_VERSION >= 5
    opal_cstring_t *text;
    if (OPAL_SUCCESS != opal_info_get_nthkey(info, n, &text)) {
        return false;
    }
    opal_cryptproc_cut(name, size, text->string);
    OBJ_RELEASE(text);
#else
    char text[MPI_MAX_INFO_KEY + 1];
    if (OPAL_SUCCESS != opal_info_get_nthkey(info, n, text)) {
        return false;
    }
    opal_cryptproc_cut(name, size, text);
#endif
    return true;
}

/* A lock that costs one test while the application has a single thread.  The
 * threads framework's own header is not part of every devel package. */
typedef pthread_mutex_t ompi_common_cryptmpi_lock_t;

static inline void ompi_common_cryptmpi_lock_acquire(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        pthread_mutex_lock(lock);
    }
}

static inline void ompi_common_cryptmpi_lock_release(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        pthread_mutex_unlock(lock);
    }
}

/* Counters that only callers of MPI change (the team's workers do not): atomic once there
 * are several threads, plain until then, because a locked instruction waits for the stores
 * of a whole message.  Here and with the locks, a session that brings threads at the
 * very moment when another thread is at such a place is not covered, as it is not in
 * Open MPI's own OPAL_THREAD_ADD_FETCH32. */
static inline int32_t ompi_common_cryptmpi_add(ompi_common_cryptmpi_atomic32_t *at, int32_t more)
{
    volatile int32_t *plain = (volatile int32_t *) at;

    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        return opal_atomic_add_fetch_32(at, more);
    }
    return *plain = *plain + more;
}

/* Returns what was there before. */
static inline int32_t ompi_common_cryptmpi_set_bits(ompi_common_cryptmpi_atomic32_t *at, int32_t bits)
{
    volatile int32_t *plain = (volatile int32_t *) at;
    int32_t before;

    if (OPAL_UNLIKELY(opal_cryptproc_threaded())) {
        return opal_atomic_fetch_or_32(at, bits);
    }
    before = *plain;
    *plain = before | bits;
    return before;
}

#endif

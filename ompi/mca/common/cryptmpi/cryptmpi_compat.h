/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where Open MPI 4.1 and 5.0 differ: every #if on a version lives here.
 */
#ifndef OMPI_COMMON_CRYPTMPI_COMPAT_H
#define OMPI_COMMON_CRYPTMPI_COMPAT_H

#include "ompi_config.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <pthread.h>

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

/* The name of a job, as PMIx knows it: empty where PMIx knows none. */
enum { OMPI_COMMON_CRYPTMPI_NSPACE_BYTES = 256 };

/* May MPI be initialised again, after its end, in one process? */
#if OMPI_MAJOR_VERSION >= 5
#    define OMPI_COMMON_CRYPTMPI_LIVES 1

static inline void ompi_common_cryptmpi_nspace(opal_jobid_t jobid, char text[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES])
{
    pmix_nspace_t nspace;

    text[0] = '\0';
    if (OPAL_SUCCESS == opal_pmix_convert_jobid(nspace, jobid)) {
        snprintf(text, OMPI_COMMON_CRYPTMPI_NSPACE_BYTES, "%s", nspace);
    }
}
#else
#    define OMPI_COMMON_CRYPTMPI_LIVES 0

static inline void ompi_common_cryptmpi_nspace(opal_jobid_t jobid, char text[OMPI_COMMON_CRYPTMPI_NSPACE_BYTES])
{
    const char *nspace = NULL == opal_pmix.get_nspace ? NULL : opal_pmix.get_nspace(jobid);

    text[0] = '\0';
    if (NULL != nspace) {
        snprintf(text, OMPI_COMMON_CRYPTMPI_NSPACE_BYTES, "%s", nspace);
    }
}
#endif

/* What `name` has published under `key`, past every cache, or NULL; the caller's
 * to free.  Somebody who never published it is waited for no longer than this. */
enum { OMPI_COMMON_CRYPTMPI_FETCH_SECONDS = 30 };

#if OMPI_MAJOR_VERSION >= 5
static inline int ompi_common_cryptmpi_commit(void)
{
    return PMIX_SUCCESS == PMIx_Commit() ? OPAL_SUCCESS : OPAL_ERROR;
}

static inline uint8_t *ompi_common_cryptmpi_fetch(const opal_process_name_t *name, const char *key, size_t *bytes)
{
    pmix_value_t *value = NULL;
    uint8_t *found = NULL;
    int limit = OMPI_COMMON_CRYPTMPI_FETCH_SECONDS;
    pmix_info_t how[2];
    pmix_proc_t proc;
    pmix_status_t rc;

    *bytes = 0;
    OPAL_PMIX_CONVERT_NAME(&proc, name);
    PMIX_INFO_LOAD(&how[0], PMIX_GET_REFRESH_CACHE, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&how[1], PMIX_TIMEOUT, &limit, PMIX_INT);
    rc = PMIx_Get(&proc, key, how, 2, &value);
    PMIX_INFO_DESTRUCT(&how[0]);
    PMIX_INFO_DESTRUCT(&how[1]);
    if (PMIX_SUCCESS == rc && NULL != value && PMIX_BYTE_OBJECT == value->type) {
        found = (uint8_t *) value->data.bo.bytes;
        *bytes = value->data.bo.size;
        value->data.bo.bytes = NULL;
        value->data.bo.size = 0;
    }
    if (NULL != value) {
        PMIX_VALUE_RELEASE(value);
    }
    return found;
}
#else
static inline int ompi_common_cryptmpi_commit(void)
{
    return opal_pmix.commit();
}

static inline uint8_t *ompi_common_cryptmpi_fetch(const opal_process_name_t *name, const char *key, size_t *bytes)
{
    opal_value_t *value = NULL, *refresh = OBJ_NEW(opal_value_t), *limit = OBJ_NEW(opal_value_t);
    uint8_t *found = NULL;
    opal_list_t how;
    int rc;

    *bytes = 0;
    OBJ_CONSTRUCT(&how, opal_list_t);
    refresh->key = strdup("pmix.get.refresh");
    refresh->type = OPAL_BOOL;
    refresh->data.flag = true;
    opal_list_append(&how, &refresh->super);
    limit->key = strdup(OPAL_PMIX_TIMEOUT);
    limit->type = OPAL_INT;
    limit->data.integer = OMPI_COMMON_CRYPTMPI_FETCH_SECONDS;
    opal_list_append(&how, &limit->super);
    rc = opal_pmix.get(name, key, &how, &value);
    OPAL_LIST_DESTRUCT(&how);
    if (OPAL_SUCCESS == rc && NULL != value && OPAL_BYTE_OBJECT == value->type) {
        found = value->data.bo.bytes;
        *bytes = (size_t) value->data.bo.size;
        value->data.bo.bytes = NULL;
        value->data.bo.size = 0;
    }
    if (NULL != value) {
        OBJ_RELEASE(value);
    }
    return found;
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

static inline void ompi_common_cryptmpi_cut(char *value, size_t size, const char *text)
{
    size_t bytes = strnlen(text, size - 1);

    memcpy(value, text, bytes);
    value[bytes] = '\0';
}

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
        ompi_common_cryptmpi_cut(value, size, text->string);
        OBJ_RELEASE(text);
    }
#else
    char text[MPI_MAX_INFO_VAL + 1];
    if (OPAL_SUCCESS == opal_info_get(info, (char *) (uintptr_t) key, MPI_MAX_INFO_VAL, text, &found) && found) {
        ompi_common_cryptmpi_cut(value, size, text);
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
    ompi_common_cryptmpi_cut(name, size, text->string);
    OBJ_RELEASE(text);
#else
    char text[MPI_MAX_INFO_KEY + 1];
    if (OPAL_SUCCESS != opal_info_get_nthkey(info, n, text)) {
        return false;
    }
    ompi_common_cryptmpi_cut(name, size, text);
#endif
    return true;
}

/* A lock that costs one test while the application has a single thread.  The
 * threads framework's own header is not part of every devel package. */
typedef pthread_mutex_t ompi_common_cryptmpi_lock_t;

/* May several threads be in here at once?  In 5.0 a session may be the first to
 * bring them, long after the start; Open MPI of 4.1 uses its locks for
 * MPI_THREAD_FUNNELED, too, which needs none of ours. */
#if OMPI_MAJOR_VERSION >= 5
static inline bool ompi_common_cryptmpi_threaded(void)
{
    return opal_uses_threads;
}
#else
extern OMPI_DECLSPEC bool ompi_common_cryptmpi_threads;     /* decided at the start */

static inline bool ompi_common_cryptmpi_threaded(void)
{
    return ompi_common_cryptmpi_threads;
}
#endif

static inline void ompi_common_cryptmpi_lock_acquire(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threaded())) {
        pthread_mutex_lock(lock);
    }
}

static inline void ompi_common_cryptmpi_lock_release(ompi_common_cryptmpi_lock_t *lock)
{
    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threaded())) {
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

    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threaded())) {
        return opal_atomic_add_fetch_32(at, more);
    }
    return *plain = *plain + more;
}

/* Returns what was there before. */
static inline int32_t ompi_common_cryptmpi_set_bits(ompi_common_cryptmpi_atomic32_t *at, int32_t bits)
{
    volatile int32_t *plain = (volatile int32_t *) at;
    int32_t before;

    if (OPAL_UNLIKELY(ompi_common_cryptmpi_threaded())) {
        return opal_atomic_fetch_or_32(at, bits);
    }
    before = *plain;
    *plain = before | bits;
    return before;
}

#endif

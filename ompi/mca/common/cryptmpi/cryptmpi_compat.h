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
#include <stdlib.h>
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
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 0      /* calls of the runtime that can be replaced: opal_pmix */

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
#    define OMPI_COMMON_CRYPTMPI_RUNTIME_TABLE 1

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

/* May MPI be initialized again, after its end, in one process? */
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

/* A question to the runtime that may be long in being answered: what has `name` published under
 * `key`?  ANEW: the answer is past every cache, and somebody who never published it is
 * waited for no longer than this.  AT_ONCE: what the runtime of this node has been told, and no
 * waiting; of somebody in our own job that is all there is, where exchanged_all. */
enum { OMPI_COMMON_CRYPTMPI_FETCH_SECONDS = 30 };
typedef enum { OMPI_COMMON_CRYPTMPI_CACHED, OMPI_COMMON_CRYPTMPI_ANEW, OMPI_COMMON_CRYPTMPI_AT_ONCE } ompi_common_cryptmpi_how_t;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
    bool nobody;                    /* the runtime knows that it was not published; else, without `found`, it does not say */
    uint8_t *found;                 /* a copy; NULL: nothing */
    size_t bytes;
#if OMPI_MAJOR_VERSION >= 5
    pmix_proc_t proc;
    pmix_info_t how[2];
    int limit;
#endif
} ompi_common_cryptmpi_question_t;

static inline void ompi_common_cryptmpi_answer(ompi_common_cryptmpi_question_t *question, const void *found, size_t bytes, bool nobody)
{
    pthread_mutex_lock(&question->lock);
    question->nobody = nobody;
    question->found = NULL == found ? NULL : malloc(bytes + 1);
    question->bytes = NULL == question->found ? 0 : bytes;
    if (NULL != question->found) {
        memcpy(question->found, found, bytes);
    }
    question->done = true;
    pthread_cond_signal(&question->answered);
    pthread_mutex_unlock(&question->lock);
}

#if OMPI_MAJOR_VERSION >= 5
static inline int ompi_common_cryptmpi_commit(void)
{
    return PMIX_SUCCESS == PMIx_Commit() ? OPAL_SUCCESS : OPAL_ERROR;
}

static inline void ompi_common_cryptmpi_answer_value(pmix_status_t status, pmix_value_t *value, void *question)
{
    const bool good = PMIX_SUCCESS == status && NULL != value && PMIX_BYTE_OBJECT == value->type;

    ompi_common_cryptmpi_answer(question, good ? value->data.bo.bytes : NULL, good ? value->data.bo.size : 0,
                                PMIX_ERR_NOT_FOUND == status);
}

static inline void ompi_common_cryptmpi_ask(ompi_common_cryptmpi_question_t *question, const opal_process_name_t *name,
                                            const char *key, ompi_common_cryptmpi_how_t how)
{
    const size_t count = OMPI_COMMON_CRYPTMPI_ANEW == how ? 2 : OMPI_COMMON_CRYPTMPI_AT_ONCE == how ? 1 : 0;

    question->limit = OMPI_COMMON_CRYPTMPI_FETCH_SECONDS;
    OPAL_PMIX_CONVERT_NAME(&question->proc, name);
    PMIX_INFO_LOAD(&question->how[0], OMPI_COMMON_CRYPTMPI_AT_ONCE == how ? PMIX_IMMEDIATE : PMIX_GET_REFRESH_CACHE, NULL, PMIX_BOOL);
    PMIX_INFO_LOAD(&question->how[1], PMIX_TIMEOUT, &question->limit, PMIX_INT);
    if (PMIX_SUCCESS != PMIx_Get_nb(&question->proc, key, 0 == count ? NULL : question->how, count,
                                    ompi_common_cryptmpi_answer_value, question)) {
        ompi_common_cryptmpi_answer(question, NULL, 0, false);
    }
}

/* 5.0 waits for what nobody has published, unless it is told not to. */
static inline bool ompi_common_cryptmpi_exchanged_all(void)
{
    return opal_pmix_collect_all_data && !opal_pmix_base_async_modex;
}
enum { OMPI_COMMON_CRYPTMPI_ELSEWHERE = OMPI_COMMON_CRYPTMPI_ANEW };
#else
static inline int ompi_common_cryptmpi_commit(void)
{
    return opal_pmix.commit();
}

/* Open MPI's own number, and PMIx's, which get_nb of 4.1 passes on as it is. */
static inline bool ompi_common_cryptmpi_is_not_found(int status)
{
    return OPAL_ERR_NOT_FOUND == status || -46 == status;
}

static inline void ompi_common_cryptmpi_answer_value(int status, opal_value_t *value, void *question)
{
    const bool good = OPAL_SUCCESS == status && NULL != value && OPAL_BYTE_OBJECT == value->type;

    ompi_common_cryptmpi_answer(question, good ? value->data.bo.bytes : NULL, good ? (size_t) value->data.bo.size : 0,
                                ompi_common_cryptmpi_is_not_found(status));
}

static inline void ompi_common_cryptmpi_ask(ompi_common_cryptmpi_question_t *question, const opal_process_name_t *name,
                                            const char *key, ompi_common_cryptmpi_how_t how)
{
    const bool anew = OMPI_COMMON_CRYPTMPI_ANEW == how;
    opal_value_t *refresh = OBJ_NEW(opal_value_t), *limit = OBJ_NEW(opal_value_t), *value = NULL;
    opal_list_t list;
    int rc;

    OBJ_CONSTRUCT(&list, opal_list_t);
    refresh->key = strdup("pmix.get.refresh");
    refresh->type = OPAL_BOOL;
    refresh->data.flag = true;
    opal_list_append(&list, &refresh->super);
    limit->key = strdup(OPAL_PMIX_TIMEOUT);
    limit->type = OPAL_INT;
    limit->data.integer = OMPI_COMMON_CRYPTMPI_FETCH_SECONDS;
    opal_list_append(&list, &limit->super);
    /* PMI-1, PMI-2 and Cray's have no calls but those that block. */
    if (NULL == opal_pmix.get_nb
        || OPAL_SUCCESS != opal_pmix.get_nb(name, key, anew ? &list : NULL, ompi_common_cryptmpi_answer_value, question)) {
        rc = opal_pmix.get(name, key, anew ? &list : NULL, &value);
        ompi_common_cryptmpi_answer_value(rc, value, question);
        if (NULL != value) {
            OBJ_RELEASE(value);
        }
    }
    OPAL_LIST_DESTRUCT(&list);
}

/* 4.1 does not wait for what nobody has published, and does not let us see how it exchanges. */
static inline bool ompi_common_cryptmpi_exchanged_all(void)
{
    return false;
}
enum { OMPI_COMMON_CRYPTMPI_ELSEWHERE = OMPI_COMMON_CRYPTMPI_CACHED };
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

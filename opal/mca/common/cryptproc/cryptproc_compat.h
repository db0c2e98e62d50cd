/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Where the OPALs of Open MPI 4.1, 5.0 and 6.0 differ: every #if on a version that this library needs.  The rest is in
 * ompi/mca/common/cryptmpi/cryptmpi_compat.h.
 */
#ifndef OPAL_MCA_COMMON_CRYPTPROC_COMPAT_H
#define OPAL_MCA_COMMON_CRYPTPROC_COMPAT_H

#include "opal_config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "opal/constants.h"
#include "opal/util/proc.h"

#if !((4 == OPAL_MAJOR_VERSION && 1 == OPAL_MINOR_VERSION) || (5 == OPAL_MAJOR_VERSION && 0 == OPAL_MINOR_VERSION) \
      || (6 == OPAL_MAJOR_VERSION && 0 == OPAL_MINOR_VERSION))
#    error "ompi-crypt supports Open MPI 4.1, 5.0 and 6.0"
#endif

#if OPAL_MAJOR_VERSION >= 5
#    include "opal/mca/pmix/pmix-internal.h"
#    include "opal/mca/threads/thread_usage.h"

#    define OPAL_CRYPTPROC_MODEX_SCOPE PMIX_GLOBAL
#else
#    include "opal/mca/pmix/pmix.h"
#    include "opal/threads/thread_usage.h"

#    define OPAL_CRYPTPROC_MODEX_SCOPE OPAL_PMIX_GLOBAL
#endif

/* Events of MPI_T (cryptproc_event.c). */
#if OPAL_MAJOR_VERSION >= 6
#    include "opal/mca/base/mca_base_event.h"

#    define OPAL_CRYPTPROC_HAS_EVENTS 1
#else
#    define OPAL_CRYPTPROC_HAS_EVENTS 0
#endif

/* The components of osc that send through ob1 or its BTLs, or stay on the node. */
#if OPAL_MAJOR_VERSION >= 5
#    define OPAL_CRYPTPROC_OSC_OVER_BTL "rdma,sm"
#else
#    define OPAL_CRYPTPROC_OSC_OVER_BTL "pt2pt,sm"
#endif

/* Components of coll with a network of their own. */
#define OPAL_CRYPTPROC_COLL_NETWORKS "fca,hcoll,portals4,ucc"

/* The name of a job as PMIx knows it: empty if PMIx has none. */
enum { OPAL_CRYPTPROC_NSPACE_BYTES = 256 };

/* May MPI be initialized again, after its end, in one process? */
#if OPAL_MAJOR_VERSION >= 5
#    define OPAL_CRYPTPROC_INSTANCES 1

static inline void opal_cryptproc_nspace(opal_jobid_t jobid, char text[OPAL_CRYPTPROC_NSPACE_BYTES])
{
    pmix_nspace_t nspace;

    text[0] = '\0';
    if (OPAL_SUCCESS == opal_pmix_convert_jobid(nspace, jobid)) {
        snprintf(text, OPAL_CRYPTPROC_NSPACE_BYTES, "%s", nspace);
    }
}
#else
#    define OPAL_CRYPTPROC_INSTANCES 0

static inline void opal_cryptproc_nspace(opal_jobid_t jobid, char text[OPAL_CRYPTPROC_NSPACE_BYTES])
{
    const char *nspace = NULL == opal_pmix.get_nspace ? NULL : opal_pmix.get_nspace(jobid);

    text[0] = '\0';
    if (NULL != nspace) {
        snprintf(text, OPAL_CRYPTPROC_NSPACE_BYTES, "%s", nspace);
    }
}
#endif

/* A query to the runtime that may take long: what has `name` published under `key`?  ANEW bypasses every cache, and
 * waits no longer than this for something never published.  AT_ONCE returns what the runtime of this node knows,
 * without waiting; that is complete for processes of this node, and for our own job if exchanged_all.  LIMITED uses
 * caches, and waits no longer than ANEW. */
enum { OPAL_CRYPTPROC_FETCH_SECONDS = 30 };
typedef enum { OPAL_CRYPTPROC_CACHED, OPAL_CRYPTPROC_ANEW, OPAL_CRYPTPROC_AT_ONCE, OPAL_CRYPTPROC_LIMITED } opal_cryptproc_how_t;

typedef struct {
    pthread_mutex_t lock;
    pthread_cond_t answered;
    bool done;
    bool forgotten;                 /* nobody waits for the answer: the callback frees this */
    char *key;                      /* PMIx reads it until it answers */
    bool nobody;                    /* certainly not published; if not set, no `found` may mean anything */
    uint8_t *found;                 /* a copy; NULL: nothing */
    size_t bytes;
#if OPAL_MAJOR_VERSION >= 5
    pmix_proc_t proc;
    pmix_info_t how[2];
    int limit;
#endif
} opal_cryptproc_question_t;

static inline void opal_cryptproc_question_free(opal_cryptproc_question_t *question)
{
    pthread_mutex_destroy(&question->lock);
    pthread_cond_destroy(&question->answered);
    free(question->found);
    free(question->key);
    free(question);
}

/* Runs in a thread of the runtime. */
static inline void opal_cryptproc_answer(opal_cryptproc_question_t *question, const void *found, size_t bytes, bool nobody)
{
    bool forgotten;

    pthread_mutex_lock(&question->lock);
    question->nobody = nobody;
    question->found = NULL == found ? NULL : malloc(bytes + 1);
    question->bytes = NULL == question->found ? 0 : bytes;
    if (NULL != question->found) {
        memcpy(question->found, found, bytes);
    }
    question->done = true;
    forgotten = question->forgotten;
    pthread_cond_signal(&question->answered);
    pthread_mutex_unlock(&question->lock);
    if (forgotten) {
        opal_cryptproc_question_free(question);
    }
}

#if OPAL_MAJOR_VERSION >= 5
static inline int opal_cryptproc_commit(void)
{
    return PMIX_SUCCESS == PMIx_Commit() ? OPAL_SUCCESS : OPAL_ERROR;
}

/* End the job through its launcher. */
static inline void opal_cryptproc_runtime_abort(void)
{
    (void) PMIx_Abort(1, NULL, NULL, 0);
}

static inline void opal_cryptproc_answer_value(pmix_status_t status, pmix_value_t *value, void *question)
{
    const bool good = PMIX_SUCCESS == status && NULL != value && PMIX_BYTE_OBJECT == value->type;

    opal_cryptproc_answer(question, good ? value->data.bo.bytes : NULL, good ? value->data.bo.size : 0,
                          PMIX_ERR_NOT_FOUND == status);
}

static inline void opal_cryptproc_ask(opal_cryptproc_question_t *question, const opal_process_name_t *name,
                                      opal_cryptproc_how_t how)
{
    const bool limited = OPAL_CRYPTPROC_ANEW == how || OPAL_CRYPTPROC_LIMITED == how;
    const size_t count = (limited ? 1 : 0) + (OPAL_CRYPTPROC_ANEW == how || OPAL_CRYPTPROC_AT_ONCE == how ? 1 : 0);
    const int flag = limited ? 1 : 0;

    question->limit = OPAL_CRYPTPROC_FETCH_SECONDS;
    OPAL_PMIX_CONVERT_NAME(&question->proc, name);
    PMIX_INFO_LOAD(&question->how[0], PMIX_TIMEOUT, &question->limit, PMIX_INT);
    PMIX_INFO_LOAD(&question->how[flag], OPAL_CRYPTPROC_AT_ONCE == how ? PMIX_IMMEDIATE : PMIX_GET_REFRESH_CACHE, NULL, PMIX_BOOL);
    if (PMIX_SUCCESS != PMIx_Get_nb(&question->proc, question->key, 0 == count ? NULL : question->how, count,
                                    opal_cryptproc_answer_value, question)) {
        opal_cryptproc_answer(question, NULL, 0, false);
    }
}

/* 5.0 waits for what was never published, unless told not to. */
static inline bool opal_cryptproc_exchanged_all(void)
{
    return opal_pmix_collect_all_data && !opal_pmix_base_async_modex;
}
enum { OPAL_CRYPTPROC_ELSEWHERE = OPAL_CRYPTPROC_ANEW };
#else
static inline int opal_cryptproc_commit(void)
{
    return opal_pmix.commit();
}

static inline void opal_cryptproc_runtime_abort(void)
{
    (void) opal_pmix.abort(1, NULL, NULL);
}

/* Open MPI's own number, and PMIx's, which get_nb of 4.1 passes on unchanged. */
static inline bool opal_cryptproc_is_not_found(int status)
{
    return OPAL_ERR_NOT_FOUND == status || -46 == status;
}

static inline void opal_cryptproc_answer_value(int status, opal_value_t *value, void *question)
{
    const bool good = OPAL_SUCCESS == status && NULL != value && OPAL_BYTE_OBJECT == value->type;

    opal_cryptproc_answer(question, good ? value->data.bo.bytes : NULL, good ? (size_t) value->data.bo.size : 0,
                          opal_cryptproc_is_not_found(status));
}

static inline void opal_cryptproc_ask(opal_cryptproc_question_t *question, const opal_process_name_t *name,
                                      opal_cryptproc_how_t how)
{
    opal_value_t *flag, *limit = OBJ_NEW(opal_value_t), *value = NULL;
    opal_list_t infos, *list = OPAL_CRYPTPROC_CACHED == how ? NULL : &infos;
    int rc;

    OBJ_CONSTRUCT(&infos, opal_list_t);
    if (OPAL_CRYPTPROC_LIMITED != how) {
        flag = OBJ_NEW(opal_value_t);
        flag->key = strdup(OPAL_CRYPTPROC_AT_ONCE == how ? OPAL_PMIX_IMMEDIATE : "pmix.get.refresh");
        flag->type = OPAL_BOOL;
        flag->data.flag = true;
        opal_list_append(&infos, &flag->super);
    }
    limit->key = strdup(OPAL_PMIX_TIMEOUT);
    limit->type = OPAL_INT;
    limit->data.integer = OPAL_CRYPTPROC_FETCH_SECONDS;
    opal_list_append(&infos, &limit->super);
    /* The components for PMI-1, PMI-2 and Cray have blocking calls only. */
    if (NULL == opal_pmix.get_nb
        || OPAL_SUCCESS != opal_pmix.get_nb(name, question->key, list, opal_cryptproc_answer_value, question)) {
        rc = opal_pmix.get(name, question->key, list, &value);
        opal_cryptproc_answer_value(rc, value, question);
        if (NULL != value) {
            OBJ_RELEASE(value);
        }
    }
    OPAL_LIST_DESTRUCT(&infos);
}

/* 4.1 does not wait for what was never published, and does not show how it exchanges. */
static inline bool opal_cryptproc_exchanged_all(void)
{
    return false;
}
enum { OPAL_CRYPTPROC_ELSEWHERE = OPAL_CRYPTPROC_CACHED };
#endif

/* May several threads be in here at once?  In 5.0 a session may be the first to require it, long after the start.  Open
 * MPI 4.1 uses its locks for MPI_THREAD_FUNNELED too, where we need none. */
#if OPAL_MAJOR_VERSION >= 5
static inline bool opal_cryptproc_threaded(void)
{
    return opal_uses_threads;
}
static inline void opal_cryptproc_threads_come(bool threads)
{
    (void) threads;
}
#else
extern OPAL_DECLSPEC bool opal_cryptproc_threads;     /* decided at the start */

static inline bool opal_cryptproc_threaded(void)
{
    return opal_cryptproc_threads;
}
static inline void opal_cryptproc_threads_come(bool threads)
{
    opal_cryptproc_threads = opal_cryptproc_threads || threads;
}
#endif

static inline void opal_cryptproc_cut(char *value, size_t size, const char *text)
{
    size_t bytes = strnlen(text, size - 1);

    memcpy(value, text, bytes);
    value[bytes] = '\0';
}

#endif

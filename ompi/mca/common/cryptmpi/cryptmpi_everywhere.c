/*
 * Copyright (c) 2026 The ompi-crypt authors.  See LICENSE.
 *
 * Is hook/crypt in every process of a communicator?  Those that have it communicate when a
 * file is opened; one without it, on a node where ompi-crypt is not installed, would never
 * answer, and the others would wait for ever.  So each publishes through Open MPI's modex
 * that it has it, and none communicates before all are known to.
 *
 * Processes with different answers would wait for each other for ever, or mix up their collectives.
 * So only a definite answer counts: what a process has published does not change after MPI_Init, and
 * is the same for all that ask.  Where no answer comes, in time or at all, the job ends.
 *
 * We publish our version in plain text, which says only that the process answers: an attacker who
 * could forge it could as well keep the process from answering.  How another version would
 * communicate is not known, so a process of another version counts as one without hook/crypt.
 */
#include "cryptmpi.h"
#include "cryptmpi_internal.h"

#include <stdlib.h>

#include "opal/mca/aead/base/base.h"
#include "ompi/communicator/communicator.h"
#include "ompi/proc/proc.h"
#include "ompi/runtime/mpiruntime.h"
#include "ompi/runtime/params.h"

static mca_base_component_t hook_key = {
    OMPI_MCA_BASE_VERSION_2_1_0("crypt", 1, 0, 0),
    .mca_component_name = "hook",
    MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
};

static const char version[] = OPAL_CRYPT_BUILT;
static bool here, published;           /* a singleton may have no runtime to publish to */

/* Answers in our own job, by rank; they do not change. */
typedef enum { UNKNOWN, HAS_IT, LACKS_IT } answer_t;
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static uint8_t *known;
static uint32_t known_count;

void ompi_common_cryptmpi_everywhere_publish(void)
{
    int rc;

    here = true;
    OPAL_MODEX_SEND(rc, OPAL_CRYPTPROC_MODEX_SCOPE, &hook_key, (void *) (uintptr_t) version, sizeof(version));
    published = OMPI_SUCCESS == rc;
}

void ompi_common_cryptmpi_everywhere_forget(void)
{
    pthread_mutex_lock(&looking);
    free(known);
    known = NULL;
    known_count = 0;
    here = published = false;
    pthread_mutex_unlock(&looking);
}

/* With an MPI_Init that does not wait for the others, a process may have it but not have published that yet. */
static answer_t ask_how(const opal_process_name_t *name, const char *key, opal_cryptproc_how_t how)
{
    size_t bytes = 0;
    bool nobody = false;
    uint8_t *found = opal_cryptproc_get(name, key, how, "whether it has hook/crypt", &bytes, &nobody);
    const bool same = sizeof(version) == bytes && 0 == memcmp(found, version, bytes);

    free(found);
    return same ? HAS_IT : bytes > 0 || (nobody && !ompi_async_mpi_init) ? LACKS_IT : UNKNOWN;
}

/* What was exchanged is usually on this node, but 5.0 may also leave it where it was published:
 * only there is it known that a process lacks it.  For a process of this node the runtime would wait,
 * and in the end not report that there is nothing. */
static answer_t ask(const opal_process_name_t *name, bool ours, bool near)
{
    char *key = mca_base_component_to_string(&hook_key);
    answer_t answer = UNKNOWN;

    if (NULL != key && ours && (near || opal_cryptproc_exchanged_all())) {
        answer = ask_how(name, key, OPAL_CRYPTPROC_AT_ONCE);
    }
    if (NULL != key && HAS_IT != answer && !(LACKS_IT == answer && near)) {
        answer = ask_how(name, key, (opal_cryptproc_how_t) OPAL_CRYPTPROC_ELSEWHERE);
    }
    free(key);
    return answer;
}

static uint8_t *place_of(uint32_t rank)
{
    if (rank >= known_count) {
        uint32_t count = rank < 1024 ? 1024 : rank + rank / 2;
        uint8_t *more = realloc(known, count);

        if (NULL == more) {
            return NULL;
        }
        memset(more + known_count, UNKNOWN, count - known_count);
        known = more;
        known_count = count;
    }
    return known + rank;
}

/* From the beginning, Open MPI knows all processes of our job on this node. */
static bool is_near(const ompi_communicator_t *comm, int rank)
{
    const ompi_proc_t *proc = ompi_group_peer_lookup_existing(comm->c_local_group, rank);

    return NULL != proc && OPAL_PROC_ON_LOCAL_NODE(proc->super.proc_flags);
}

static answer_t has_it(const ompi_communicator_t *comm, int rank)
{
    const opal_process_name_t name = ompi_group_get_proc_name(comm->c_local_group, rank);
    const bool ours = name.jobid == OPAL_PROC_MY_NAME.jobid;
    uint8_t *place = ours ? place_of(name.vpid) : NULL;
    answer_t answer;

    if (ours && name.vpid == OPAL_PROC_MY_NAME.vpid) {
        return published ? HAS_IT : LACKS_IT;
    }
    if (NULL != place && UNKNOWN != *place) {
        return (answer_t) *place;
    }
    answer = ask(&name, ours, is_near(comm, rank));
    if (NULL != place) {
        *place = (uint8_t) answer;
    }
    return answer;
}

ompi_common_cryptmpi_everywhere_t ompi_common_cryptmpi_everywhere(const ompi_communicator_t *comm, int *lacks)
{
    const int size = ompi_comm_size((ompi_communicator_t *) (uintptr_t) comm);
    answer_t answer = HAS_IT;
    int with = 0;

    *lacks = -1;
    if (1 == size) {
        return here ? OMPI_COMMON_CRYPTMPI_EVERYWHERE : OMPI_COMMON_CRYPTMPI_NOWHERE;
    }
    pthread_mutex_lock(&looking);
    /* A process that has it can stop at the first that lacks it. */
    for (int rank = 0; rank < size && !(here && *lacks >= 0); ++rank) {
        answer = has_it(comm, rank);
        if (HAS_IT == answer) {
            ++with;
        } else if (*lacks < 0 || UNKNOWN == answer) {
            *lacks = rank;
        }
        if (UNKNOWN == answer) {
            break;
        }
    }
    pthread_mutex_unlock(&looking);
    return UNKNOWN == answer    ? OMPI_COMMON_CRYPTMPI_SILENT
           : size == with       ? OMPI_COMMON_CRYPTMPI_EVERYWHERE
           : here || with > 0   ? OMPI_COMMON_CRYPTMPI_IN_PARTS
                                : OMPI_COMMON_CRYPTMPI_NOWHERE;
}

void ompi_common_cryptmpi_everywhere_abort(ompi_common_cryptmpi_everywhere_t where, const char *path, ompi_communicator_t *comm,
                                           int lacks)
{
    const char *topic = OMPI_COMMON_CRYPTMPI_SILENT == where ? "everywhere-silent" : "not-everywhere";
    ompi_proc_t *proc = ompi_comm_peer_lookup(comm, lacks);
    const char *host = NULL == proc ? NULL : opal_get_proc_hostname(&proc->super);

    (void) opal_cryptproc_show_once("help-ompi-common-cryptmpi.txt", topic, path, opal_process_info.nodename, lacks,
                                    NULL == host ? "unknown" : host);
    ompi_mpi_abort(NULL, 1);
}

void ompi_common_cryptmpi_late_info_abort(const char *path, const char *key)
{
    (void) opal_cryptproc_show_once("help-ompi-common-cryptmpi.txt", "late-info", path, opal_process_info.nodename, key);
    ompi_mpi_abort(NULL, 1);
}
